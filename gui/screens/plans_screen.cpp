#include "gui/screens/plans_screen.hpp"

#include <QCheckBox>
#include <QElapsedTimer>
#include <QHBoxLayout>
#include <QVBoxLayout>
#include <cmath>

#include "core/plan/strategy_text.hpp"
#include "gui/session/state_text.hpp"
#include "gui/session/workbench.hpp"
#include "gui/text/number_text.hpp"
#include "gui/text/part_names.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/empty_notice.hpp"
#include "gui/widgets/flow_layout.hpp"

namespace meshwright::gui {
namespace {

constexpr int kPlansWanted = 25;
constexpr qint64 kMillisecondsAllowed = 10'000;  ///< of a search that has found a plan

/// The named parts of a step as times; they add up to the step time exactly, with the rounding
/// error in the last one.
std::vector<std::pair<QString, Ticks>> parts_of(const Evaluation& evaluation) {
  const StepShares shares = step_shares(evaluation);
  std::vector<std::pair<QString, double>> named;
  for (std::size_t i = 0; i < shares.compute.size(); ++i)
    named.emplace_back(part_name(static_cast<KernelKind>(i)), shares.compute[i]);
  named.emplace_back(PlansScreen::tr("recomputation"), shares.recompute);
  named.emplace_back(PlansScreen::tr("optimizer"), shares.optimizer);
  named.emplace_back(PlansScreen::tr("kernel launches"), shares.launch);
  for (std::size_t i = 0; i < shares.exposed_communication.size(); ++i)
    named.emplace_back(part_name(static_cast<Axis>(i)), shares.exposed_communication[i]);
  for (std::size_t i = 0; i < shares.bubble.size(); ++i)
    named.emplace_back(part_name(static_cast<BubbleCause>(i)), shares.bubble[i]);
  std::vector<std::pair<QString, Ticks>> parts;
  Ticks left = evaluation.step_time;
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Ticks time = i + 1 == named.size()
                           ? left
                           : Ticks(std::llround(static_cast<double>(evaluation.step_time.value) *
                                                named[i].second));
    parts.emplace_back(named[i].first, time);
    left -= time;
  }
  return parts;
}

QString certificate_of(const SearchResult& result) {
  const SearchCertificate& c = result.certificate;
  QStringList pruned;
  for (int i = 0; i < kPruneReasonCount; ++i)
    if (const std::int64_t count = c.pruned[static_cast<std::size_t>(i)]; count > 0)
      pruned += QString("%1 %2").arg(count_text(count), part_name(static_cast<PruneReason>(i)));
  const QString verdict =
      c.proved_optimal ? PlansScreen::tr("proved optimal within the searched space and cost model")
                       : PlansScreen::tr("optimality gap %1").arg(percent_text(c.gap));
  return PlansScreen::tr("%1 candidates; pruned: %2; simulated: %3; %4")
      .arg(count_text(c.candidates), pruned.join(", "), count_text(c.simulated), verdict);
}

}  // namespace

PlansScreen::PlansScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "plans", .title = tr("Plans")}, parent) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(make_knobs());
  certificate_->setWordWrap(true);
  certificate_->setProperty("role", "faint");
  column->addWidget(certificate_);
  QSplitter* both = make_splitter(Qt::Vertical, {{table_, 1}, {make_details(), 1}});
  notice_ = new EmptyNotice(
      {tr("No plans yet"),
       tr("Searches parallel degrees, pipeline schedules, micro-batch sizes, recomputation and "
          "ZeRO for the scenario's model and devices, and ranks the plans by simulated step time. "
          "Takes a few seconds."),
       tr("Search")},
      [this] { start(); }, both, *column);
  make_row_table(*table_, fontMetrics());
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setAccessibleName(tr("Plans, best first"));
  cancel_->setEnabled(false);
  connect(start_, &QPushButton::clicked, this, &PlansScreen::start);
  connect(cancel_, &QPushButton::clicked, this, &PlansScreen::cancel);
  connect(table_, &QTableWidget::currentCellChanged, this, [this](int row) { choose(row); });
  connect(table_, &QTableWidget::cellActivated, this, &PlansScreen::take_over);
  connect(scatter_, &ParetoScatter::plan_chosen, this,
          [this](int plan) { table_->setCurrentCell(plan, 0); });
}

void PlansScreen::add_lock(const QString& text,
                           std::function<void(const Strategy&, FixedChoices&)> hold) {
  auto* box = new QCheckBox(text);
  box->setToolTip(tr("Restricts the search to the scenario's value"));
  locks_.push_back({box, std::move(hold)});
}

QWidget* PlansScreen::make_knobs() {
  FlowLayout* row = make_flow();
  start_->setToolTip(tr("Finds the fastest plans for this model on these devices"));
  cancel_->setToolTip(tr("Cancels the search and keeps the previous results"));
  row->addWidget(start_);
  row->addWidget(cancel_);
  row->addWidget(new QLabel(tr("Fix:")));
  for (const ParallelSize& size : kParallelSizes)
    if (size.axis)
      add_lock(qstring_of(size.key).toUpper(), [&size](const Strategy& s, FixedChoices& f) {
        f.*size.fixed = s.degrees.*size.size;
      });
  add_lock(tr("schedule"), [](const Strategy& s, FixedChoices& f) {
    f.schedule = s.schedule;
    f.chunks = s.degrees.chunks;
  });
  add_lock(tr("micro-batch size"),
           [](const Strategy& s, FixedChoices& f) { f.micro_batch = s.micro_batch; });
  add_lock(tr("recompute"), [](const Strategy& s, FixedChoices& f) { f.recompute = s.recompute; });
  add_lock("ZeRO", [](const Strategy& s, FixedChoices& f) { f.zero = s.zero; });
  for (const Lock& lock : locks_) row->addWidget(lock.box);
  return row->parentWidget();
}

QWidget* PlansScreen::make_details() {
  pages_->setDocumentMode(true);
  pages_->addTab(why_, tr("Why"));
  pages_->addTab(waterfall_, tr("Compare with best"));
  pages_->addTab(memory_, tr("Memory"));
  pages_->addTab(hand_over_, tr("Launch"));
  why_->setFrameShape(QFrame::NoFrame);
  return make_splitter(Qt::Horizontal, {{scatter_}, {pages_}});
}

void PlansScreen::add_actions(ActionSet& actions) {
  actions.add({"plans.search", MenuId::kPlan, tr("&Search plans"),
               tr("Finds the fastest plans for this model on these devices"), shortcuts("Ctrl+P")},
              [this] {
                workbench().show_screen(traits().name);
                start();
              });
  actions.add({"plans.cancel", MenuId::kPlan, tr("&Cancel search"), {}, shortcuts("Ctrl+.")},
              [this] { cancel(); });
  actions.add({"plans.take-over", MenuId::kPlan, tr("&Use plan as scenario"),
               tr("Opens the selected plan as the scenario in Explore"), shortcuts("Ctrl+Return")},
              [this] { take_over(); });
  actions.add({"plans.copy", MenuId::kPlan, tr("C&opy launch command"),
               tr("Copies the launch command or config file for the selected training framework"),
               shortcuts("Ctrl+Alt+H")},
              [this] { hand_over_->copy(); });
  constexpr const char* kPages[]{"plans.why", "plans.against-best", "plans.memory",
                                 "plans.hand-over"};
  for (int page = 0; page < pages_->count(); ++page)
    actions.add({kPages[page],
                 MenuId::kPlan,
                 pages_->tabText(page),
                 {},
                 shortcuts(QString("Alt+%1").arg(page + 1))},
                [this, page] {
                  workbench().show_screen(traits().name);
                  pages_->setCurrentIndex(page);
                });
}

// ---- searching ----------------------------------------------------------------------------------

void PlansScreen::start() {
  asked_ = workbench().scenario().scenario();
  FixedChoices fixed;
  const Strategy& s = asked_.strategy;
  fixed.dtype = s.dtype;
  fixed.attention = s.attention;
  fixed.data_parallelism = s.data_parallelism;
  fixed.model_parallelism = s.model_parallelism;
  fixed.precision = s.precision;
  for (const Lock& lock : locks_)
    if (lock.box->isChecked()) lock.hold(s, fixed);
  const Goal goal{.gpus = static_cast<int>(rank_count(s.degrees)),
                  .global_batch = s.global_batch,
                  .sequence_length = s.sequence_length};
  is_searching_ = true;
  start_->setEnabled(false);
  cancel_->setEnabled(true);
  certificate_->setText(tr("Searching plans for %1 devices…").arg(goal.gpus));
  const auto settle = [this] {
    is_searching_ = false;
    start_->setEnabled(true);
    cancel_->setEnabled(false);
  };
  JobLibrary& library = workbench().library();
  workbench().jobs().start<SearchResult>(
      {tr("Search plans"), "plan", true}, this,
      [scenario = asked_, fixed, goal, &library](const JobContext& context) {
        const auto job = library.load(scenario);
        QElapsedTimer timer;
        timer.start();
        SearchResult result = search(
            job->model, job->cluster, *job->cost_model, goal, fixed,
            {.top = kPlansWanted,
             .progress = [&](std::int64_t done, std::int64_t of) { context.report(done, of); },
             .canceled = [&] { return context.is_canceled(); },
             .is_out_of_time = [&] { return timer.hasExpired(kMillisecondsAllowed); },
             .tries_shares = true});
        context.stop_if_canceled();
        return result;
      },
      [this, settle](SearchResult result) {
        settle();
        show_result(std::move(result));
      },
      [this, settle](const JobFailure& failure) {
        settle();
        certificate_->setText(qstring_of(failure.diagnostics.front().where + ": " +
                                         failure.diagnostics.front().what));
      });
}

void PlansScreen::cancel() {
  if (!is_searching_) return;
  workbench().jobs().cancel_lane("plan");
  is_searching_ = false;
  start_->setEnabled(true);
  cancel_->setEnabled(false);
  certificate_->setText(tr("Canceled."));
}

// ---- showing ------------------------------------------------------------------------------------

void PlansScreen::show_result(SearchResult result) {
  result_ = std::move(result);
  figures_.clear();
  for (const RankedPlan& ranked : result_->plans)
    figures_.push_back(figures_of(ranked.plan.strategy, ranked.evaluation, ranked.why));
  QString text = certificate_of(*result_);
  if (result_->infeasible) {
    text = tr("No plan fits: %1").arg(qstring_of(result_->infeasible->reason)) + "\n" + text;
    if (result_->infeasible->nearest)
      text +=
          "\n" + tr("Closest plan: %1")
                     .arg(qstring_of(strategy_text(result_->infeasible->nearest->plan.strategy)));
  }
  certificate_->setText(text);
  if (!figures_.empty()) notice_->give_way();
  scatter_->show_plans(figures_);
  show_table();
  if (!figures_.empty()) table_->setCurrentCell(0, 0);
}

void PlansScreen::show_table() {
  const QSignalBlocker quiet(table_);
  const QStringList titles{"#",
                           tr("parallelism"),
                           tr("schedule"),
                           tr("micro-batch size"),
                           tr("recompute"),
                           "ZeRO",
                           tr("step time"),
                           tr("tokens/s per GPU"),
                           "MFU",
                           tr("bubble"),
                           tr("busiest rank"),
                           tr("exposed comm."),
                           tr("peak memory"),
                           tr("headroom")};
  table_->setColumnCount(static_cast<int>(titles.size()));
  table_->setHorizontalHeaderLabels(titles);
  table_->setRowCount(static_cast<int>(figures_.size()));
  const TimeUnit unit = workbench().preferences().values().time_unit;
  for (int row = 0; row < static_cast<int>(figures_.size()); ++row) {
    const PlanFigures& f = figures_[static_cast<std::size_t>(row)];
    double exposed = 0;
    for (const double share : f.exposed_communication) exposed += share;
    const QStringList cells{QString::number(row + 1),
                            qstring_of(split_text(f.strategy)),
                            qstring_of(f.strategy.schedule),
                            QString::number(f.strategy.micro_batch),
                            qstring_of(to_text(f.strategy.recompute)),
                            QString::number(f.strategy.zero),
                            time_text(f.step_time, unit),
                            count_text(static_cast<qint64>(f.tokens_per_second_per_gpu)),
                            percent_text(f.mfu),
                            percent_text(f.bubble_of_period),
                            percent_text(f.busiest_rank_bubble),
                            percent_text(exposed),
                            bytes_text(f.peak_memory),
                            bytes_text(f.memory_capacity - f.peak_memory)};
    for (int column = 0; column < cells.size(); ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      const bool is_text = column == 1 || column == 2 || column == 4;
      item->setTextAlignment(is_text ? Qt::AlignLeft | Qt::AlignVCenter
                                     : Qt::AlignRight | Qt::AlignVCenter);
      table_->setItem(row, column, item);
    }
  }
  table_->resizeColumnsToContents();
}

void PlansScreen::choose(int plan) {
  if (!result_ || plan < 0 || static_cast<std::size_t>(plan) >= figures_.size()) return;
  const auto i = static_cast<std::size_t>(plan);
  scatter_->set_chosen(plan);
  const PlanFigures& f = figures_[i];
  why_->setHtml(QString("<h3>%1</h3><p>%2</p><p>%3</p>")
                    .arg(qstring_of(strategy_text(f.strategy)).toHtmlEscaped(),
                         qstring_of(f.why).toHtmlEscaped(),
                         tr("Press Enter to open this plan in Explore.")));
  hand_over_->show_plan(result_->plans[i].plan, qstring_of(to_state_text(scenario_of_plan(i))));
  show_memory(plan);
  show_difference(plan);
}

void PlansScreen::show_difference(int plan) {
  const auto best = parts_of(result_->plans.front().evaluation);
  const auto chosen = parts_of(result_->plans[static_cast<std::size_t>(plan)].evaluation);
  std::vector<WaterfallPart> parts;
  for (std::size_t i = 0; i < best.size(); ++i)
    parts.push_back({best[i].first, best[i].second, chosen[i].second});
  waterfall_->show_parts(tr("plan 1"), tr("plan %1").arg(plan + 1), std::move(parts));
}

/// One bar per pipeline rank: the search simulates one rank of each.
void PlansScreen::show_memory(int plan) {
  const Evaluation& e = result_->plans[static_cast<std::size_t>(plan)].evaluation;
  memory_->show_amounts(e.peak_memory, e.memory_capacity);
}

Scenario PlansScreen::scenario_of_plan(std::size_t plan) const {
  Scenario scenario = asked_;
  const Plan& p = result_->plans[plan].plan;
  scenario.strategy = p.strategy;
  scenario.blocks_per_stage = p.blocks_per_stage;
  scenario.orders = p.orders;
  scenario.device_of_stage = p.device_of_stage;
  scenario.what_if = {};
  return scenario;
}

void PlansScreen::take_over() {
  const int plan = table_->currentRow();
  if (!result_ || plan < 0 || static_cast<std::size_t>(plan) >= figures_.size()) return;
  workbench().scenario().replace(tr("Use plan %1").arg(plan + 1),
                                 scenario_of_plan(static_cast<std::size_t>(plan)));
  workbench().show_screen("explore");
}

}  // namespace meshwright::gui
