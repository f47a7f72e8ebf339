/// Commands that move the selection and the visible range together: from slice to slice, along
/// dependencies, from bubble to bubble, to search matches, to a rank or time.
#pragma once

#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/timeline_view/lanes.hpp"
#include "gui/timeline_view/selection.hpp"
#include "gui/timeline_view/viewport.hpp"

namespace meshwright::gui {

class TimelineNavigation {
 public:
  TimelineNavigation(const TimelineContent& content, TimelineLanes& lanes,
                     TimelineViewport& viewport, TimelineSelection& selection)
      : content_(content), lanes_(lanes), viewport_(viewport), selection_(selection) {}

  /// Scrolls to the slice and selects it; zooms in only if it is narrower than a few pixels.
  void go_to_slice(std::size_t slice);
  /// Goes to a rank, a time or both: "r12 3.5ms", "12",
  /// "3.5 ms". Returns false if the text is invalid.
  bool go_to(const QString& place);
  /// Centers the selection; if it is centered already, zooms to fit it.
  void fit_selection();

  void next_slice() { step_slice(1); }
  void previous_slice() { step_slice(-1); }
  /// Selects the slice at the same time in the next lane that has slices.
  void next_row() { step_row(1); }
  void previous_row() { step_row(-1); }
  void follow_dependency();
  void follow_dependency_back();
  void next_bubble() { step_bubble(1); }
  void previous_bubble() { step_bubble(-1); }

  /// Marks search hits in the order of slices_named() (run that on another thread) and moves to the
  /// first one in or after the visible range. Empty clears the marks.
  void show_hits(std::vector<std::uint32_t> slices);
  void next_hit() { step_hit(1); }
  void previous_hit() { step_hit(selection_.marked_slices().size() - 1); }

  /// The next bubble is the largest again.
  void forget_bubble() { bubble_index_.reset(); }

 private:
  void step_slice(int step);
  void step_row(int step);
  void step_bubble(std::ptrdiff_t step);
  void step_hit(std::size_t step);

  const TimelineContent& content_;
  TimelineLanes& lanes_;
  TimelineViewport& viewport_;
  TimelineSelection& selection_;
  std::size_t hit_ = 0;                      ///< in the marked slices
  std::optional<std::size_t> bubble_index_;  ///< in causes->bubbles
};

}  // namespace meshwright::gui
