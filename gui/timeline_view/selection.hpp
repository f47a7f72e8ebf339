/// What is selected in a timeline: a slice or a bubble, an area, two cursors, and marked slices.
#pragma once

#include <QObject>
#include <QString>
#include <optional>
#include <utility>
#include <vector>

#include "gui/timeline/content.hpp"
#include "gui/timeline/statistics.hpp"

namespace meshwright::gui {

class TimelineSelection : public QObject {
  Q_OBJECT
 public:
  explicit TimelineSelection(const TimelineContent& content) : content_(content) {}

  std::optional<std::size_t> slice() const { return slice_; }
  /// The measured counterpart of slice() in a comparison.
  std::optional<std::size_t> measured_slice() const { return measured_slice_; }
  const std::optional<Bubble>& bubble() const { return bubble_; }
  const std::optional<TimelineArea>& area() const { return area_; }
  std::optional<Nanoseconds> cursor_a() const { return cursor_a_; }
  std::optional<Nanoseconds> cursor_b() const { return cursor_b_; }
  /// The slice, or the slice after the bubble: its dependencies are drawn and followed.
  std::optional<std::size_t> slice_or_after_bubble() const;
  /// Times of the slice, else of the bubble, else of the area.
  std::optional<std::pair<Nanoseconds, Nanoseconds>> times() const;

  void select_slice(std::optional<std::size_t> slice);
  void select_bubble(const Bubble& bubble);
  void select_area(const std::optional<TimelineArea>& area);
  void set_cursors(std::optional<Nanoseconds> a, std::optional<Nanoseconds> b);
  /// Selects the area of the selected slice or bubble.
  void select_area_of_selection();
  void set_cursors_to_selection();
  /// Slices to outline, such as search matches.
  void mark_slices(std::vector<std::uint32_t> slices);
  const std::vector<std::uint32_t>& marked_slices() const { return marked_; }
  /// Selects and marks nothing; the cursors stay.
  void clear();
  /// For new tracks: as clear(), but announces the area only.
  void forget();

 Q_SIGNALS:
  /// -1: nothing selected.
  void slice_selected(qint64 slice);
  /// A gap of a compute row, given by the slice after it, or -1.
  void bubble_selected(qint64 slice_after);
  void area_selected(const meshwright::gui::TimelineArea& area);
  void area_cleared();
  void cursors_changed();
  /// One line of text about the selected slice or bubble.
  void described(const QString& text);
  void cleared();
  void changed();

 private:
  const TimelineContent& content_;
  std::optional<std::size_t> slice_, measured_slice_;
  std::optional<Bubble> bubble_;
  std::optional<TimelineArea> area_;
  std::optional<Nanoseconds> cursor_a_, cursor_b_;
  std::vector<std::uint32_t> marked_;
};

}  // namespace meshwright::gui

Q_DECLARE_METATYPE(meshwright::gui::TimelineArea)
