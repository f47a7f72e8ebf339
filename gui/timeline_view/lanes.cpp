#include "gui/timeline_view/lanes.hpp"

#include <algorithm>

namespace meshwright::gui {

void TimelineLanes::arrange(int height) {
  height_ = height;
  arrangement_ = nullptr;  // without tracks; the scroll position is kept for the next ones
  if (content_.tracks != nullptr) {
    arrangement_ = std::make_shared<const LaneArrangement>(arranged_in(height));
    scroll_ = std::clamp(scroll_, 0, most_scroll());
  }
  Q_EMIT arranged();
}

/// Adds memory counters if they fit and counters were not requested, then grows the lanes to fill
/// the available height.
LaneArrangement TimelineLanes::arranged_in(int room) const {
  const auto arranged_with = [&](const LaneOptions& options) {
    return content_.is_comparison()
               ? arrange_comparison(*content_.tracks, *content_.measured, options)
               : arrange_lanes(*content_.tracks, options);
  };
  constexpr int kLowCounter = 26;  // keeps the focus on the rows
  LaneOptions options = options_;
  LaneArrangement arrangement = arranged_with(options);
  if (counters_where_room_) {
    LaneOptions more = options;
    more.counters = LaneCounters::kMemory;
    more.sizes.counter = kLowCounter;
    LaneArrangement with = arranged_with(more);
    if (with.height <= room) arrangement = std::move(with), options = std::move(more);
  }
  if (arrangement.height > room) return arrangement;
  constexpr double kMostGrowth = 2.0, kLeastGrowth = 1.05, kFilled = 0.98;
  const double growth = std::min(kMostGrowth, room * kFilled / std::max(1, arrangement.height));
  if (growth < kLeastGrowth) return arrangement;
  for (int* size : {&options.sizes.compute, &options.sizes.stream, &options.sizes.counter,
                    &options.sizes.difference})
    *size = static_cast<int>(*size * growth);
  return arranged_with(options);
}

int TimelineLanes::most_scroll() const {
  return arrangement_ == nullptr ? 0 : std::max(0, arrangement_->height - height_);
}

void TimelineLanes::scroll_to(int pixels) {
  const int scroll = std::clamp(pixels, 0, most_scroll());
  if (scroll == scroll_) return;
  scroll_ = scroll;
  Q_EMIT scrolled();
}

void TimelineLanes::reveal_row(std::size_t row) {
  const auto lane_of_row = [&] {
    const auto& lanes = arrangement_->lanes;
    return std::find_if(lanes.begin(), lanes.end(), [&](const Lane& lane) {
      return lane.kind == LaneKind::kSlices && !lane.is_measured &&
             lane.row == static_cast<std::int32_t>(row);
    });
  };
  auto lane = lane_of_row();
  if (lane == arrangement_->lanes.end()) {
    const TimelineRow& hidden = content_.tracks->rows[row];
    options_.open_ranks.insert(hidden.rank);
    if (hidden.replica > 0) options_.fold_replicas = false;
    arrange(height_);
    lane = lane_of_row();
  }
  if (lane == arrangement_->lanes.end() || lane->is_pinned) return;
  const int room = height_ - arrangement_->pinned_height;
  const int top = lane->top - arrangement_->pinned_height;
  if (top < scroll_)
    scroll_to(top);
  else if (top + lane->height > scroll_ + room)
    scroll_to(top + lane->height - room);
}

void TimelineLanes::set_counters_shown(bool shown) {
  options_.counters = shown ? LaneCounters::kAll : LaneCounters::kNone;
  counters_where_room_ = false;
  arrange(height_);
}

void TimelineLanes::set_counters_where_room() {
  counters_where_room_ = true;
  arrange(height_);
}

void TimelineLanes::set_replicas_folded(bool folded) {
  options_.fold_replicas = folded;
  arrange(height_);
}

void TimelineLanes::set_all_streams_shown(bool shown) {
  options_.all_open = shown;
  arrange(height_);
}

void TimelineLanes::set_order(LaneOrder order) {
  options_.order = order;
  arrange(height_);
}

void TimelineLanes::use_next_order() {
  constexpr int kOrders = 3;
  set_order(static_cast<LaneOrder>((static_cast<int>(options_.order) + 1) % kOrders));
}

void TimelineLanes::toggle_rank(std::int32_t rank) {
  if (!options_.open_ranks.erase(rank)) options_.open_ranks.insert(rank);
  arrange(height_);
}

void TimelineLanes::toggle_pin(std::size_t row) {
  const auto at = std::find(options_.pinned.begin(), options_.pinned.end(), row);
  if (at == options_.pinned.end())
    options_.pinned.push_back(row);
  else
    options_.pinned.erase(at);
  arrange(height_);
}

}  // namespace meshwright::gui
