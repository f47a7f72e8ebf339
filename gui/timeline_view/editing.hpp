/// Requests of the user to change the schedule: another order of passes, a slower pipeline rank.
/// The view only sends requests; the owner of the schedule replies with new tracks.
#pragma once

#include <QObject>
#include <QString>
#include <functional>
#include <optional>

#include "gui/timeline/order_edit.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

class TimelineEditing : public QObject {
  Q_OBJECT
 public:
  /// Validates an order while it is dragged: returns an empty string if valid, else the reason.
  /// Called on the GUI thread; must return within a few milliseconds.
  using OrderJudge = std::function<QString(const OrderEdit&)>;

  /// If editable, passes can be dragged to another position in the order of their row, and the
  /// handle of a pipeline rank (left of its row) can be dragged to slow it down.
  void set_editable(bool editable);
  bool is_editable() const { return editable_; }
  void set_order_judge(OrderJudge judge) { judge_ = std::move(judge); }

  // ---- a pass of the order that is dragged ------------------------------------------------------
  void drag_pass(const TimelineTracks& tracks, std::size_t slice, Nanoseconds middle);
  void drop_pass();
  void cancel_order();
  /// The order if the pass were dropped now; nullopt: as it is.
  const std::optional<OrderEdit>& order() const { return order_; }
  /// Why order() is invalid; empty if it is valid.
  const QString& order_problem() const { return order_problem_; }

  // ---- a pipeline rank that is slowed down ------------------------------------------------------
  /// The rank stays the same when a request leads to new tracks.
  void begin_slowdown(std::int32_t pipeline_rank);
  void drag_slowdown(int pixels);
  void finish_slowdown();
  void request_slowdown(std::int32_t pipeline_rank, double factor);
  double slowdown() const { return slowdown_; }

 Q_SIGNALS:
  void editable_changed();
  /// The user dropped a pass at another position in the order of its row.
  void order_edited(const meshwright::gui::OrderEdit& edit);
  /// The user requests that `pipeline_rank` take `factor` times as long (straggler). Emitted with
  /// `is_final` false while dragging, and once with true at the end.
  void slowdown_requested(int pipeline_rank, double factor, bool is_final);

 private:
  bool editable_ = false;
  OrderJudge judge_;
  std::optional<OrderEdit> order_;
  QString order_problem_;
  std::int32_t slowed_pipeline_rank_ = -1;
  double slowdown_ = 1.0;
};

}  // namespace meshwright::gui

Q_DECLARE_METATYPE(meshwright::gui::OrderEdit)
