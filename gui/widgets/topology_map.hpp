/// Draws nodes and their devices; ranks are colored
/// and numbered by their process group on one axis.
#pragma once

#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/plan/plan.hpp"
#include "gui/widgets/chart.hpp"

namespace meshwright::gui {

/// Position of `rank` in one of the process groups of kDenseGroups, and the number of that group.
struct GroupPlace {
  int member = 0;
  int group = 0;
  friend bool operator==(const GroupPlace&, const GroupPlace&) = default;
};
GroupPlace group_place(const Strategy& strategy, RankId rank, Axis axis);

class TopologyMap : public Chart {
  Q_OBJECT
 public:
  explicit TopologyMap(QWidget* parent = nullptr);
  /// `nodes`: number of devices of each node in use, in order.
  void show_job(const Strategy& strategy, std::vector<int> nodes);
  void set_axis(Axis axis);
  /// Link utilization by device and by node, see LinkUses; empty if unknown.
  void show_shares(std::vector<double> of_device, std::vector<double> of_network);
  int chosen() const { return chosen_; }
  QSize sizeHint() const override;

 Q_SIGNALS:
  void rank_chosen(int rank);

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;
  QString tip_at(const QPointF& point) const override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void choose_side();
  QRectF node_box(int node) const;
  QRectF device_box(int rank) const;
  void paint_node(QPainter& painter, int node) const;
  void paint_device(QPainter& painter, int rank, const GroupPlace& chosen) const;
  int rank_at(const QPointF& point) const;
  void choose(int rank);
  Strategy strategy_;
  std::vector<int> nodes_, first_of_node_, node_of_rank_;
  std::vector<double> share_of_device_, share_of_network_;
  Axis axis_ = Axis::kTensor;
  int chosen_ = 0, widest_ = 1;  ///< widest_: number of devices of the largest node
  double side_ = 0;              ///< side length of a device in pixels
};

}  // namespace meshwright::gui
