#include "gui/timeline_view/editing.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace meshwright::gui {

void TimelineEditing::set_editable(bool editable) {
  editable_ = editable;
  Q_EMIT editable_changed();
}

void TimelineEditing::drag_pass(const TimelineTracks& tracks, std::size_t slice,
                                Nanoseconds middle) {
  const auto order = order_edit_at(tracks, slice, middle);
  if (order != order_) order_problem_ = order && judge_ ? judge_(*order) : QString();
  order_ = order;
}

void TimelineEditing::drop_pass() {
  const std::optional<OrderEdit> order = order_;
  const bool is_valid = order_problem_.isEmpty();
  cancel_order();
  if (order && is_valid) Q_EMIT order_edited(*order);
}

void TimelineEditing::cancel_order() {
  order_.reset();
  order_problem_.clear();
}

void TimelineEditing::begin_slowdown(std::int32_t pipeline_rank) {
  slowed_pipeline_rank_ = pipeline_rank;
  slowdown_ = 1.0;
}

void TimelineEditing::drag_slowdown(int pixels) {
  constexpr double kPixelsPerDoubling = 200, kStepsPerUnit = 20, kLeast = 0.25, kMost = 8.0;
  slowdown_ =
      std::clamp(std::round(std::exp2(pixels / kPixelsPerDoubling) * kStepsPerUnit) / kStepsPerUnit,
                 kLeast, kMost);
  Q_EMIT slowdown_requested(slowed_pipeline_rank_, slowdown_, false);
}

void TimelineEditing::finish_slowdown() { request_slowdown(slowed_pipeline_rank_, slowdown_); }

void TimelineEditing::request_slowdown(std::int32_t pipeline_rank, double factor) {
  Q_EMIT slowdown_requested(pipeline_rank, factor, true);
}

}  // namespace meshwright::gui
