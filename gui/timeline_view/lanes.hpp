/// The rows of a timeline from top to bottom: which are shown, in which order, and how far they are
/// scrolled.
#pragma once

#include <QObject>
#include <memory>

#include "gui/timeline/content.hpp"
#include "gui/timeline/layout.hpp"

namespace meshwright::gui {

class TimelineLanes : public QObject {
  Q_OBJECT
 public:
  explicit TimelineLanes(const TimelineContent& content) : content_(content) {}

  const LaneOptions& options() const { return options_; }
  /// Null without tracks.
  const std::shared_ptr<const LaneArrangement>& arrangement() const { return arrangement_; }
  /// Arranges the content anew in `height` pixels; afterwards options change the arrangement.
  void arrange(int height);

  // ---- scrolling --------------------------------------------------------------------------------
  int height() const { return height_; }
  int scroll() const { return scroll_; }
  /// 0 if everything fits.
  int most_scroll() const;
  void scroll_to(int pixels);
  void scroll_by_pages(int pages) { scroll_to(scroll_ + pages * height_); }
  /// Expands and scrolls until the row of the first tracks is visible.
  void reveal_row(std::size_t row);

  // ---- options ----------------------------------------------------------------------------------
  void set_counters_shown(bool shown);
  /// Shows memory counters if they fit without scrolling, until the next set_counters_shown().
  void set_counters_where_room();
  void set_replicas_folded(bool folded);
  /// Shows the streams of all ranks, not only of expanded ones.
  void set_all_streams_shown(bool shown);
  void set_order(LaneOrder order);
  void use_next_order();
  /// Shows or hides the streams of one rank.
  void toggle_rank(std::int32_t rank);
  void toggle_pin(std::size_t row);

 Q_SIGNALS:
  /// Lanes are new: indices of lanes are no longer valid.
  void arranged();
  void scrolled();

 private:
  LaneArrangement arranged_in(int room) const;

  const TimelineContent& content_;
  LaneOptions options_;
  bool counters_where_room_ = false;
  std::shared_ptr<const LaneArrangement> arrangement_;
  int height_ = 1, scroll_ = 0;
};

}  // namespace meshwright::gui
