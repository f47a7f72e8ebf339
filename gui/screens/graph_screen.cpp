#include "gui/screens/graph_screen.hpp"

#include <QFileDialog>
#include <QFontMetricsF>
#include <QHeaderView>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>

#include "core/base/indices.hpp"
#include "gui/session/workbench.hpp"
#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/empty_notice.hpp"
#include "gui/widgets/flow_layout.hpp"
#include "models/load/load.hpp"

namespace meshwright::gui {
namespace {

constexpr int kLargestBatch = 1 << 20;

/// "4+2+2", or "8 × 2" for many equal ones.
QString replicas_text(const std::vector<ReplicatedStage>& stages) {
  constexpr std::size_t kMostListed = 4;
  const bool are_equal = std::ranges::all_of(
      stages, [&](const ReplicatedStage& each) { return each.data == stages.front().data; });
  if (are_equal && stages.size() > kMostListed)
    return QString("%1 × %2").arg(stages.size()).arg(stages.front().data);
  QStringList counts;
  for (const ReplicatedStage& stage : stages) counts += QString::number(stage.data);
  return counts.join("+");
}

std::vector<std::int32_t> stages_of_nodes(const GraphPlan& plan, std::size_t nodes) {
  std::vector<std::int32_t> stage(nodes, 0);
  for (std::size_t s = 0; s < plan.training.partition.stages.size(); ++s)
    for (const std::int32_t node : plan.training.partition.stages[s].nodes)
      stage[to_index(node)] = static_cast<std::int32_t>(s);
  return stage;
}

/// The graph and the step of a plan.
struct ShownPlan {
  std::shared_ptr<const GraphDrawing> drawing;
  std::shared_ptr<const TimelineTracks> tracks;
};

}  // namespace

GraphScreen::GraphScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "graph", .title = tr("Graph"), .uses_scenario = false}, parent) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(make_knobs());
  note_->setWordWrap(true);
  note_->setProperty("role", "faint");
  column->addWidget(note_);
  auto* area = new QScrollArea;
  area->setWidget(map_);
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  QSplitter* upper = make_splitter(Qt::Horizontal, {{table_, 2}, {area, 3}});
  QSplitter* both = make_splitter(Qt::Vertical, {{upper, 2}, {view_, 1}});
  notice_ = new EmptyNotice(
      {tr("No graph yet"),
       tr("Plans any model that is an ONNX file: stages, replicas, tensor parallelism and ZeRO, "
          "with the step of every plan simulated. PyTorch models are exported by torch.onnx or "
          "python -m meshwright.export_graph."),
       tr("Open ONNX file…")},
      [this] { choose_file(); }, both, *column);
  make_row_table(*table_, fontMetrics());
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setAccessibleName(tr("Plans, fastest first"));
  operators_->setAccessibleName(tr("Operators of the chosen box"));
  operators_->setHorizontalHeaderLabels({tr("node"), tr("operator"), tr("FLOP"), tr("output")});
  make_row_table(*operators_, fontMetrics());
  follow_preferences(*view_, workbench.preferences());
  view_->set_placeholder(tr("Choose a plan"));
  connect(table_, &QTableWidget::currentCellChanged, this, [this](int row) { choose(row); });
  connect(map_, &GraphMap::box_chosen, this, [this, area](int box) {
    const QRect place = map_->place_of(box);
    area->ensureVisible(place.center().x(), place.center().y(), place.width(), place.height());
    show_box(box);
  });
}

QWidget* GraphScreen::make_knobs() {
  FlowLayout* row = make_flow();
  auto* open = new QPushButton(tr("&Open…"));
  open->setToolTip(tr("Opens an ONNX file"));
  connect(open, &QPushButton::clicked, this, &GraphScreen::choose_file);
  row->addWidget(open);
  row->addWidget(start_);
  row->addWidget(cancel_);
  row->addWidget(file_);
  const auto add = [&](const QString& text, const QString& hint, QWidget* knob) {
    knob->setToolTip(hint);
    QHBoxLayout* pair = make_row();
    add_labeled(*pair, text, knob);
    row->addWidget(pair->parentWidget());
  };
  for (const std::string& name : cluster_preset_names())
    cluster_->addItem(QString::fromStdString(name));
  cluster_->setCurrentText("dgx-h100");
  gpus_->setRange(1, kLargestBatch);
  gpus_->setValue(8);
  batch_->setRange(1, kLargestBatch);
  batch_->setValue(256);
  micro_batch_->setRange(0, kLargestBatch);
  micro_batch_->setSpecialValueText(tr("all"));
  tensor_->addItem(tr("all"), 0);
  for (const int degree : {1, 2, 4, 8}) tensor_->addItem(QString::number(degree), degree);
  add(tr("C&luster"), tr("Cluster to train on"), cluster_);
  add("&GPUs", tr("Number of GPUs"), gpus_);
  add(tr("Global &batch"), tr("Samples per training step"), batch_);
  add(tr("&Micro-batch"),
      tr("Samples per micro-batch; all: powers of two, for graphs with a dimension named batch"),
      micro_batch_);
  add("&TP", tr("Tensor-parallel degree"), tensor_);
  start_->setToolTip(tr("Finds the fastest plans for this graph on these GPUs"));
  cancel_->setToolTip(tr("Cancels the search and keeps the previous results"));
  start_->setEnabled(false);
  cancel_->setEnabled(false);
  connect(start_, &QPushButton::clicked, this, &GraphScreen::start);
  connect(cancel_, &QPushButton::clicked, this, &GraphScreen::cancel);
  return row->parentWidget();
}

void GraphScreen::add_actions(ActionSet& actions) {
  actions.add({"graph.plan", MenuId::kPlan, tr("Plan &graph of operators"),
               tr("Finds the fastest plans for the opened ONNX file"), shortcuts("Ctrl+Alt+N")},
              [this] {
                workbench().show_screen(traits().name);
                start();
              });
  actions.add(
      {"graph.zoom-in", MenuId::kTools, tr("Enlarge operators"), {}, shortcuts("Ctrl+Alt++")},
      [this] { map_->zoom_to(map_->zoom() * 1.25); });
  actions.add(
      {"graph.zoom-out", MenuId::kTools, tr("Shrink operators"), {}, shortcuts("Ctrl+Alt+-")},
      [this] { map_->zoom_to(map_->zoom() / 1.25); });
}

void GraphScreen::choose_file() {
  const QString path =
      QFileDialog::getOpenFileName(this, tr("Graph of operators"), {}, tr("ONNX files (*.onnx)"));
  if (!path.isEmpty()) workbench().open({path});
}

bool GraphScreen::take(const OpenedFile& file) {
  const auto* opened = std::get_if<OpenedGraph>(&file.content);
  if (opened == nullptr) return false;
  graph_ = opened->text;
  file_->setText(QString::fromStdString(graph_->name));
  start_->setEnabled(true);
  start();
  return true;
}

void GraphScreen::start() {
  if (!graph_ || cancel_->isEnabled()) return;
  const GraphQuestion question{.graph = *graph_,
                               .cluster = find_cluster(cluster_->currentText().toStdString()),
                               .gpus = gpus_->value(),
                               .global_batch = batch_->value(),
                               .micro_batch = micro_batch_->value(),
                               .tensor = tensor_->currentData().toInt()};
  notice_->give_way();
  start_->setEnabled(false);
  cancel_->setEnabled(true);
  note_->setText(tr("Planning %1…").arg(file_->text()));
  const auto settle = [this] {
    start_->setEnabled(true);
    cancel_->setEnabled(false);
  };
  using Answer = std::shared_ptr<const GraphAnswer>;
  workbench().jobs().start<Answer>(
      {tr("Plan graph"), "graph"}, this,
      [question](const JobContext& context) {
        return search_graph(question, [&] { return context.is_canceled(); });
      },
      [this, settle](const Answer& answer) {
        settle();
        show_answer(answer);
      },
      [this, settle](const JobFailure& failure) {
        settle();
        show_failure(failure);
      });
}

void GraphScreen::show_failure(const JobFailure& failure) {
  const Diagnostic& first = failure.diagnostics.front();
  note_->setText(QString::fromStdString(first.where + ": " + first.what + ". " + first.hint));
}

void GraphScreen::cancel() {
  workbench().jobs().cancel_lane("graph");
  start_->setEnabled(graph_.has_value());
  cancel_->setEnabled(false);
  note_->setText(tr("Canceled"));
}

void GraphScreen::show_answer(std::shared_ptr<const GraphAnswer> answer) {
  answer_ = std::move(answer);
  const std::vector<SizedGraphPlan>& plans = answer_->found.plans;
  note_->setText(plans.empty() ? tr("No plan fits: use more GPUs or a smaller micro-batch")
                               : tr("%1 plans simulated; step: 1F1B with a flush. Cost model: %2")
                                     .arg(plans.size())
                                     .arg(QString::fromStdString(answer_->cost_model)));
  const QSignalBlocker blocker(table_);
  table_->clear();
  const QStringList titles{tr("step"),   tr("stages"),      tr("replicas"),  "TP",
                           "ZeRO",       tr("micro-batch"), tr("samples/s"), "MFU",
                           tr("bubble"), tr("peak memory")};
  table_->setColumnCount(static_cast<int>(titles.size()));
  table_->setHorizontalHeaderLabels(titles);
  table_->setRowCount(static_cast<int>(plans.size()));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const GraphPlan& plan = plans[i].plan;
    const Evaluation& e = plan.prediction.evaluation;
    const double samples =
        static_cast<double>(answer_->question.global_batch) / to_seconds(e.step_time).value;
    const QStringList cells{time_text(e.step_time),
                            QString::number(plan.training.partition.stages.size()),
                            replicas_text(plan.training.partition.stages),
                            QString::number(plan.tensor),
                            QString::number(plan.zero),
                            count_text(plans[i].micro_batch),
                            count_text(static_cast<qint64>(samples)),
                            percent_text(e.mfu),
                            percent_text(e.bubble_of_period),
                            bytes_text(peak_memory(e))};
    for (int column = 0; column < cells.size(); ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      table_->setItem(static_cast<int>(i), column, item);
    }
  }
  table_->resizeColumnsToContents();
  plan_ = -1;
  if (plans.empty()) {
    map_->show_drawing(nullptr);
    view_->set_tracks(nullptr);
    operators_->setRowCount(0);
    return;
  }
  table_->setCurrentCell(0, 0);
  choose(0);
}

void GraphScreen::choose(int plan) {
  if (!answer_ || plan < 0 || plan == plan_) return;
  plan_ = plan;
  is_drawing_ = true;
  const QFontMetricsF metrics(map_->font());
  using Shown = std::shared_ptr<const ShownPlan>;
  workbench().jobs().start<Shown>(
      {tr("Draw graph"), "graph-drawing", false}, this,
      [answer = answer_, plan, metrics](const JobContext&) {
        const GraphPlan& chosen = answer->found.plans[static_cast<std::size_t>(plan)].plan;
        const KernelGraph& graph = answer->found.graph;
        auto drawing = std::make_shared<GraphDrawing>(
            draw_groups(graph, chosen.group, stages_of_nodes(chosen, graph.nodes.size())));
        lay_out(
            *drawing, [&](const QString& text) { return metrics.horizontalAdvance(text); },
            metrics.height());
        auto shown = std::make_shared<ShownPlan>();
        shown->drawing = std::move(drawing);
        shown->tracks = std::make_shared<const TimelineTracks>(
            timeline_tracks_of(chosen.prediction.graph, chosen.prediction.times));
        return Shown(std::move(shown));
      },
      [this, plan](const Shown& shown) {
        if (plan != plan_) return;
        is_drawing_ = false;
        map_->show_drawing(shown->drawing);
        view_->set_tracks(shown->tracks);
        map_->choose(0);
      },
      [this](const JobFailure& failure) {
        is_drawing_ = false;
        show_failure(failure);
      });
}

void GraphScreen::show_box(int box) {
  if (!answer_ || plan_ < 0) return;
  const KernelGraph& graph = answer_->found.graph;
  const GraphPlan& plan = answer_->found.plans[static_cast<std::size_t>(plan_)].plan;
  const GraphBox& shown = map_->drawing()->boxes[static_cast<std::size_t>(box)];
  operators_->setRowCount(static_cast<int>(shown.nodes.size()));
  for (std::size_t i = 0; i < shown.nodes.size(); ++i) {
    const std::size_t node = to_index(shown.nodes[i]);
    const KernelGraphNode& each = graph.nodes[node];
    const Flops work = forward_flops(each) + backward_flops(each);
    const QStringList cells{
        QString::fromStdString(each.name), QString::fromStdString(each.operation),
        work.value > 0 ? QString("%1 G").arg(work.value / 1e9, 0, 'g', 4) : QString(),
        plan.placements.empty() ? bytes_text(each.output)
                                : QString::fromStdString(plan.placements[node])};
    for (int column = 0; column < cells.size(); ++column)
      operators_->setItem(static_cast<int>(i), column, new QTableWidgetItem(cells[column]));
  }
  operators_->resizeColumnsToContents();
}

}  // namespace meshwright::gui
