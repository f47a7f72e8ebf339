#include "gui/topology_screen.hpp"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>
#include <set>

#include "gui/actions.hpp"
#include "gui/number_text.hpp"
#include "gui/topology_map.hpp"
#include "gui/workbench.hpp"

namespace meshwright::gui {
namespace {

constexpr const char* kAxisNames[kTopologyAxisCount]{"TP", "CP", "DP", "PP"};

QString network_text(LocalNetworkKind kind) {
  switch (kind) {
    case LocalNetworkKind::kNvSwitch:
      return TopologyScreen::tr("NVLink switches");
    case LocalNetworkKind::kNvLinkMesh:
      return TopologyScreen::tr("NVLink mesh");
    case LocalNetworkKind::kPcie:
      return TopologyScreen::tr("PCIe");
    case LocalNetworkKind::kSharedMemory:
      return TopologyScreen::tr("shared memory");
  }
  return {};
}

/// Devices of every node, as far as the job goes.
std::vector<int> nodes_of_job(const Cluster& cluster, int ranks) {
  std::vector<int> nodes;
  for (const NodeGroup& group : cluster.groups)
    for (int n = 0; n < group.count && ranks > 0; ++n) {
      nodes.push_back(std::min(ranks, cluster.nodes.at(group.node).device_count));
      ranks -= nodes.back();
    }
  return nodes;
}

}  // namespace

TopologyScreen::TopologyScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, parent),
      axis_(new QComboBox),
      cluster_(new QLabel),
      device_(new QLabel),
      map_(new TopologyMap) {
  auto* column = new QVBoxLayout(this);
  auto* head = new QHBoxLayout;
  column->addLayout(head);
  auto* label = new QLabel(tr("&Groups of"));
  label->setBuddy(axis_);
  axis_->setAccessibleName(tr("Groups of"));
  for (const char* axis : kAxisNames) axis_->addItem(axis);
  head->addWidget(label);
  head->addWidget(axis_);
  head->addSpacing(16);
  head->addWidget(cluster_, 1);
  cluster_->setWordWrap(true);
  auto* area = new QScrollArea;
  area->setWidget(map_);
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  column->addWidget(area, 1);
  device_->setTextFormat(Qt::RichText);
  device_->setWordWrap(true);
  column->addWidget(device_);
  connect(axis_, &QComboBox::currentIndexChanged, this, [this](int axis) {
    map_->set_axis(static_cast<TopologyAxis>(axis));
    show_device(map_->chosen());
  });
  connect(map_, &TopologyMap::rank_chosen, this, &TopologyScreen::show_device);
  connect(&workbench, &Workbench::simulated, this, &TopologyScreen::show_simulation);
}

void TopologyScreen::add_actions(ActionSet& actions) {
  actions.add({"topology.axis",
               MenuId::kTools,
               tr("Next &axis of the topology"),
               tr("Colours devices by tensor, context, data or pipeline groups"),
               {QKeySequence("Ctrl+Alt+G")}},
              [this] { axis_->setCurrentIndex((axis_->currentIndex() + 1) % axis_->count()); });
}

void TopologyScreen::showEvent(QShowEvent* event) {
  Screen::showEvent(event);
  show_simulation();
}

bool TopologyScreen::is_settled() { return workbench().is_up_to_date(); }

void TopologyScreen::show_simulation() {
  const auto s = workbench().sound_simulation();
  if (!isVisible() || !s || s != workbench().simulation()) return;
  const Cluster& cluster = s->job->cluster;
  const int ranks = static_cast<int>(rank_count(s->plan.strategy.degrees));
  const NodeModel& node = node_of(cluster, DeviceId(0));
  const DeviceModel& device = device_of(cluster, DeviceId(0));
  QString text = tr("%1 × %2, %3 in a node, %4 at %5 per device")
                     .arg(ranks)
                     .arg(QString::fromStdString(device.name))
                     .arg(node.device_count)
                     .arg(network_text(node.local.kind), rate_text(node.local.bandwidth));
  if (node.ports > 0)
    text +=
        tr("; between nodes %1 ports of %2").arg(node.ports).arg(rate_text(node.port_bandwidth));
  cluster_->setText(text);
  map_->show_job(s->plan.strategy, nodes_of_job(cluster, ranks));
  show_device(map_->chosen());
}

/// Which nodes each group of a rank reaches, and how much of the step waits for it.
void TopologyScreen::show_device(int rank) {
  const auto s = workbench().sound_simulation();
  if (!s) return;
  const Strategy& strategy = s->plan.strategy;
  const int ranks = static_cast<int>(rank_count(strategy.degrees));
  if (rank < 0 || rank >= ranks) return;
  constexpr Axis kAxes[kTopologyAxisCount]{Axis::kTensor, Axis::kContext, Axis::kData,
                                           Axis::kPipeline};
  QString html =
      tr("<b>Rank %1</b> · every box: the rank, and ·its place in its group; framed: the "
         "same group")
          .arg(rank) +
      "<table cellspacing=8>";
  for (int a = 0; a < kTopologyAxisCount; ++a) {
    const auto axis = static_cast<TopologyAxis>(a);
    const GroupPlace mine = group_place(strategy, RankId(rank), axis);
    QStringList members;
    std::set<int> nodes;
    int size = 0;
    constexpr int kMostShown = 12;
    for (int other = 0; other < ranks; ++other) {
      if (group_place(strategy, RankId(other), axis).group != mine.group) continue;
      if (++size <= kMostShown) members += QString::number(other);
      nodes.insert(node_index_of(s->job->cluster, DeviceId(other)).value);
    }
    if (size < 2) continue;
    if (size > kMostShown) members += "…";
    html +=
        tr("<tr><td><b>%1</b></td><td>%2 ranks: %3</td><td>%4</td><td>the step waits %5 for "
           "it</td></tr>")
            .arg(kAxisNames[a])
            .arg(size)
            .arg(members.join(" "),
                 nodes.size() == 1 ? tr("inside one node") : tr("over %1 nodes").arg(nodes.size()),
                 percent_text(exposed_communication_share(s->evaluation, kAxes[a])));
  }
  device_->setText(html + "</table>");
}

}  // namespace meshwright::gui
