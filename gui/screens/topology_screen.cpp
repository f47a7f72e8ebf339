#include "gui/screens/topology_screen.hpp"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QScrollArea>
#include <QVBoxLayout>
#include <set>

#include "core/base/value_named.hpp"
#include "gui/session/workbench.hpp"
#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"

namespace meshwright::gui {
namespace {

/// "TP"
QString label_of(Axis axis) { return qstring_of(name_of(axis)).toUpper(); }

QString network_text(LocalNetworkKind kind) {
  const std::array texts{TopologyScreen::tr("NVSwitch"), TopologyScreen::tr("NVLink mesh"),
                         TopologyScreen::tr("PCIe"), TopologyScreen::tr("shared memory")};
  return entry_of(texts, kind);
}

/// "node3.device1.local.out" → "n3.d1.local.out", for the narrow dock.
QString short_link_name(QString link) { return link.replace("node", "n").replace("device", "d"); }

/// Nullopt if that would take too long for an interactive program.
std::optional<LinkUses> links_of(const Simulation& simulation) {
  constexpr std::int64_t kMostTasks = 4'000'000;
  const std::int64_t ranks = rank_count(simulation.plan.strategy.degrees);
  if (task_count_of_all_ranks(simulation.step.graph, ranks) > kMostTasks) return std::nullopt;
  return link_uses(simulation.plan, simulation.job->model, simulation.job->cluster,
                   simulation.evaluation.step_time);
}

/// Number of devices of each node used by the job.
std::vector<int> nodes_of_job(const Cluster& cluster, int ranks) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t node = node_index_in_job(cluster, ranks, DeviceId(rank)).index();
    nodes.resize(std::max(nodes.size(), node + 1));
    ++nodes[node];
  }
  return nodes;
}

}  // namespace

TopologyScreen::TopologyScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "topology", .title = tr("Topology")}, parent) {
  auto* column = new QVBoxLayout(this);
  QHBoxLayout* head = add_row(*column);
  add_labeled(*head, tr("Process &groups"), axis_);
  axis_->setAccessibleName(tr("Process groups"));
  axis_->setToolTip(
      tr("Colors devices by tensor-, context-, data- or pipeline-parallel process group"));
  for (const ProcessGroup& group : kDenseGroups) axis_->addItem(label_of(group.axis));
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
  table_->setAccessibleName(tr("Links, highest utilization first"));
  table_->setHorizontalHeaderLabels({tr("utilization"), tr("used"), tr("link")});
  make_row_table(*table_, fontMetrics());
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->setTextElideMode(Qt::ElideMiddle);  // keeps the direction at the end readable
  connect(axis_, &QComboBox::currentIndexChanged, this, [this](int axis) {
    map_->set_axis(kDenseGroups[static_cast<std::size_t>(axis)].axis);
    show_device(map_->chosen());
  });
  connect(map_, &TopologyMap::rank_chosen, this, &TopologyScreen::show_device);
  connect(&workbench, &Workbench::simulated, this, &TopologyScreen::show_simulation);
}

void TopologyScreen::add_actions(ActionSet& actions) {
  actions.add(
      {"topology.axis", MenuId::kTools, tr("Next topology &axis"),
       tr("Cycles the coloring through tensor-, context-, data- and pipeline-parallel groups"),
       shortcuts("Ctrl+Alt+G")},
      [this] { axis_->setCurrentIndex((axis_->currentIndex() + 1) % axis_->count()); });
}

void TopologyScreen::showEvent(QShowEvent* event) {
  Screen::showEvent(event);
  show_simulation();
}

bool TopologyScreen::is_settled() {
  return workbench().is_up_to_date() && links_of_ == workbench().sound_simulation();
}

void TopologyScreen::show_simulation() {
  const auto s = workbench().sound_simulation();
  if (!isVisible() || !s || s != workbench().simulation()) return;
  const Cluster& cluster = s->job->cluster;
  const int ranks = static_cast<int>(rank_count(s->plan.strategy.degrees));
  const NodeModel& node = node_of(cluster, DeviceId(0));
  const DeviceModel& device = device_of(cluster, DeviceId(0));
  QString text = tr("%1 × %2, %3 per node, %4 with %5 per device")
                     .arg(ranks)
                     .arg(QString::fromStdString(device.name))
                     .arg(node.device_count)
                     .arg(network_text(node.local.kind), rate_text(node.local.bandwidth));
  if (node.ports > 0)
    text += tr("; inter-node: %1 ports of %2 per node")
                .arg(node.ports)
                .arg(rate_text(node.port_bandwidth));
  cluster_->setText(text);
  map_->show_job(s->plan.strategy, nodes_of_job(cluster, ranks));
  show_device(map_->chosen());
  find_links();
}

void TopologyScreen::find_links() {
  const auto simulation = workbench().sound_simulation();
  if (links_of_ == simulation) return;
  using Found = std::shared_ptr<const std::optional<LinkUses>>;
  workbench().jobs().start<Found>(
      {tr("Compute link utilization"), "links", false}, this,
      [simulation](const JobContext&) {
        return std::make_shared<const std::optional<LinkUses>>(links_of(*simulation));
      },
      [this, simulation](const Found& found) {
        if (simulation != workbench().sound_simulation())
          return;  // superseded by a newer simulation
        links_of_ = simulation;
        links_ = *found;
        show_links();
      });
}

void TopologyScreen::show_links() {
  map_->show_shares(links_ ? links_->share_of_device : std::vector<double>{},
                    links_ ? links_->share_of_network : std::vector<double>{});
  constexpr std::size_t kMostShown = 200;
  const std::size_t shown = links_ ? std::min(kMostShown, links_->busiest.size()) : 0;
  table_->setRowCount(static_cast<int>(shown));
  for (std::size_t row = 0; row < shown; ++row) {
    const LinkUse& link = links_->links[links_->busiest[row]];
    const QStringList cells{percent_text(link.share()), rate_text(link.used),
                            QString::fromStdString(link.name)};
    for (int column = 0; column < cells.size(); ++column) {
      auto* item = new QTableWidgetItem(column == 2 ? short_link_name(cells[2]) : cells[column]);
      if (column < 2) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      item->setToolTip(
          tr("%1: %2 of %3, mean over a step").arg(cells[2], cells[1], rate_text(link.capacity)));
      table_->setItem(static_cast<int>(row), column, item);
    }
  }
  table_->resizeColumnsToContents();
  table_->setToolTip(links_ ? tr("Mean over a step, per link and direction: messages between "
                                 "stages and all collectives")
                            : tr("Too many ranks to compute link utilization"));
}

/// Shows the process groups of a rank, the nodes they span and their exposed communication.
void TopologyScreen::show_device(int rank) {
  const auto s = workbench().sound_simulation();
  if (!s) return;
  const Strategy& strategy = s->plan.strategy;
  const int ranks = static_cast<int>(rank_count(strategy.degrees));
  if (rank < 0 || rank >= ranks) return;
  QString html = tr("<b>Rank %1</b> · each device shows its rank and its ·position in the process "
                    "group; outlined: same group")
                     .arg(rank) +
                 "<table cellspacing=8>";
  for (const ProcessGroup& group : kDenseGroups) {
    const Axis axis = group.axis;
    const GroupPlace mine = group_place(strategy, RankId(rank), axis);
    QStringList members;
    std::set<int> nodes;
    int size = 0;
    constexpr int kMostShown = 12;
    for (int other = 0; other < ranks; ++other) {
      if (group_place(strategy, RankId(other), axis).group != mine.group) continue;
      if (++size <= kMostShown) members += QString::number(other);
      nodes.insert(node_index_in_job(s->job->cluster, ranks, DeviceId(other)).value);
    }
    if (size < 2) continue;
    if (size > kMostShown) members += "…";
    html += tr("<tr><td><b>%1</b></td><td>%2 ranks: %3</td><td>%4</td><td>exposed communication: "
               "%5 of the step</td></tr>")
                .arg(label_of(axis))
                .arg(size)
                .arg(members.join(" "),
                     nodes.size() == 1 ? tr("intra-node") : tr("across %1 nodes").arg(nodes.size()),
                     percent_text(exposed_communication_share(s->evaluation, axis)));
  }
  device_->setText(html + "</table>");
}

}  // namespace meshwright::gui
