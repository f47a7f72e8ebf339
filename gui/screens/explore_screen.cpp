#include "gui/screens/explore_screen.hpp"

#include <QVBoxLayout>
#include <algorithm>

#include "core/base/value_named.hpp"
#include "gui/screens/slice_text.hpp"
#include "gui/screens/timeline_prompt.hpp"
#include "gui/session/edited_schedule.hpp"
#include "gui/session/workbench.hpp"
#include "gui/text/number_text.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/theme.hpp"

namespace meshwright::gui {
namespace {

QString assumption_text(FormulaAssumption assumption) {
  const std::array texts{ExploreScreen::tr("equal stage times"),
                         ExploreScreen::tr("free communication"),
                         ExploreScreen::tr("m ≥ p"),
                         ExploreScreen::tr("m divisible by p"),
                         ExploreScreen::tr("equal F, B and W times"),
                         ExploreScreen::tr("m ≥ 2 p − 2")};
  return entry_of(texts, assumption);
}

}  // namespace

ExploreScreen::ExploreScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "explore", .title = tr("Explore"), .shows_toolbar = true},
             parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(problems_);
  column->addWidget(new TimelinePrompt(*view_, workbench));
  column->addWidget(make_splitter(Qt::Vertical, {{view_, 2}, {table_, 1}}), 1);
  table_->hide();
  column->addWidget(legend_);
  column->addWidget(formula_);
  formula_->setContentsMargins(10, 6, 10, 6);
  formula_->setTextFormat(Qt::RichText);
  formula_->setWordWrap(true);
  formula_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  setFocusProxy(view_);
  problems_->setContentsMargins(10, 6, 10, 6);
  problems_->setProperty("role", "problem");
  problems_->setWordWrap(true);
  problems_->hide();
  inspector_->setFrameShape(QFrame::NoFrame);
  inspector_->setAccessibleName(tr("Inspector"));
  view_->set_placeholder(tr("Simulating…"));
  view_->editing().set_editable(true);
  view_->editing().set_order_judge([this](const OrderEdit& edit) { return judge(edit); });
  constexpr int kOverviewEveryMs = 150;
  overview_.setSingleShot(true);
  overview_.setInterval(kOverviewEveryMs);
  connect(&overview_, &QTimer::timeout, this, [this] {
    if (!view_->selection().slice() && !view_->selection().area()) show_slice(-1);
  });
  connect_view();
  connect(&workbench, &Workbench::simulated, this, &ExploreScreen::show_simulation);
  connect(&workbench, &Workbench::causes_found, this, &ExploreScreen::show_causes);
  connect(&workbench, &Workbench::snapshot_changed, this, &ExploreScreen::show_ghost);
  connect(&workbench.preferences(), &Preferences::changed, this, &ExploreScreen::apply_preferences);
  apply_preferences();
}

void ExploreScreen::connect_view() {
  connect(&view_->lanes(), &TimelineLanes::arranged, this, &ExploreScreen::show_legend);
  connect(&view_->appearance(), &TimelineAppearance::changed, this, &ExploreScreen::show_legend);
  connect(&view_->selection(), &TimelineSelection::slice_selected, this,
          &ExploreScreen::show_slice);
  connect(&view_->selection(), &TimelineSelection::bubble_selected, this, [this](qint64 after) {
    const auto s = workbench().sound_simulation();
    const auto causes = workbench().causes();
    if (s && causes)
      inspector_->setHtml(
          bubble_html(*s->tracks, *causes, after, workbench().preferences().values().time_unit));
  });
  connect(&view_->selection(), &TimelineSelection::area_selected, this, &ExploreScreen::show_area);
  connect(&view_->selection(), &TimelineSelection::area_cleared, this, [this] { show_slice(-1); });
  connect(&view_->editing(), &TimelineEditing::order_edited, this, &ExploreScreen::take_order);
  connect(&view_->editing(), &TimelineEditing::slowdown_requested, this,
          [this](int pipeline_rank, double factor, bool is_final) {
            workbench().scenario().edit(
                tr("Slow down pipeline rank %1 ×%2").arg(pipeline_rank).arg(factor), "slowness",
                [&](Scenario& s) { set_slowness(s, pipeline_rank, factor); });
            if (is_final) workbench().scenario().end_gesture();
          });
}

bool ExploreScreen::is_settled() {
  if (!workbench().is_up_to_date() || overview_.isActive() || view_->is_gliding() ||
      !table_->is_settled())
    return false;
  view_->wait_for_painters();
  return true;
}

// ---- showing ------------------------------------------------------------------------------------

void ExploreScreen::show_simulation() {
  const std::shared_ptr<const Simulation> s = workbench().simulation();
  QStringList problems;
  for (const Diagnostic& problem : s->problems)
    problems +=
        QString("⚠ %1: %2")
            .arg(QString::fromStdString(problem.where), QString::fromStdString(problem.what));
  problems_->setText(problems.join("\n"));
  problems_->setVisible(!problems.isEmpty());
  if (!s->is_sound()) return;
  show_tracks();
  show_legend();
  show_formula();
  if (!overview_.isActive()) overview_.start();
}

void ExploreScreen::show_legend() {
  const auto s = workbench().sound_simulation();
  if (!s) return;
  const auto& lanes = view_->lanes().arrangement();
  const SceneStyle& style = view_->appearance().style();
  legend_->show_content(
      {.kinds = s->kinds,
       .has_chunks = s->plan.strategy.degrees.chunks > 1,
       .has_causes = style.bubble_causes,
       .has_memory = lanes != nullptr &&
                     std::any_of(lanes->lanes.begin(), lanes->lanes.end(),
                                 [](const Lane& lane) { return lane.kind == LaneKind::kMemory; }),
       .microbatch_colors = style.microbatch_colors});
}

void ExploreScreen::show_tracks() {
  const Simulation& s = *workbench().simulation();
  const auto before = view_->tracks();
  const TimeWindow window = view_->viewport().window();
  view_->set_tracks(s.tracks);
  view_->set_causes(nullptr);
  table_->refill_soon();
  // The same passes in another order: animate where each one moves.
  const std::string& schedule = s.plan.strategy.schedule;
  if (before && schedule != schedule_shown_) view_->glide_from(*before, window);
  schedule_shown_ = schedule;
}

void ExploreScreen::show_causes() {
  view_->set_causes(workbench().causes());
  table_->refill_soon();
  if (view_->selection().slice()) show_slice(static_cast<qint64>(*view_->selection().slice()));
}

void ExploreScreen::show_ghost() {
  const auto snapshot = workbench().snapshot();
  view_->set_ghost(snapshot ? snapshot->tracks : nullptr);
}

void ExploreScreen::show_formula() {
  const Simulation& s = *workbench().sound_simulation();
  const QString simulated = percent_text(s.evaluation.bubble_of_makespan, 2);
  if (!s.formula) {
    formula_->setText(tr("Bubble: simulated <b>%1</b> · no closed-form formula for %2")
                          .arg(simulated, QString::fromStdString(s.plan.strategy.schedule)));
    return;
  }
  const BubbleFormula& f = *s.formula;
  QStringList broken;
  for (const FormulaAssumption assumption : f.broken) broken += assumption_text(assumption);
  const QString verdict = broken.isEmpty()
                              ? tr("all assumptions of the formula hold")
                              : tr("assumptions that do not hold: %1").arg(broken.join(", "));
  formula_->setText(tr("Bubble: formula %1 = %2 = <b>%3</b> · simulated <b>%4</b> · %5")
                        .arg(QString::fromStdString(f.formula), QString::fromStdString(f.numbers),
                             percent_text(f.bubble, 2), simulated, verdict));
  formula_->setToolTip(QString::fromStdString(f.source));
}

void ExploreScreen::show_slice(qint64 slice) {
  const auto s = workbench().sound_simulation();
  if (!s) return;
  const TimeUnit unit = workbench().preferences().values().time_unit;
  const auto causes = workbench().causes();
  inspector_->setHtml(slice < 0 ? overview_html(*s, unit)
                                : slice_html(*s->tracks, causes.get(), slice, unit));
}

void ExploreScreen::show_area(const TimelineArea& area) {
  const auto s = workbench().sound_simulation();
  if (s)
    inspector_->setHtml(area_html(*s->tracks, workbench().causes().get(), area,
                                  workbench().preferences().values().time_unit));
}

void ExploreScreen::apply_preferences() {
  const PreferenceValues& values = workbench().preferences().values();
  gui::apply_preferences(*view_, values);
  legend_->set_colors(timeline_colors_of(values));
}

// ---- editing ------------------------------------------------------------------------------------

QString ExploreScreen::judge(const OrderEdit& edit) const {
  const auto s = const_cast<ExploreScreen*>(this)->workbench().sound_simulation();
  if (!s) return tr("no timeline yet");
  const std::optional<Schedule> schedule = edited_schedule(*s, edit);
  if (!schedule) return tr("only whole passes can be moved");
  // Checking larger schedules on every mouse move would make dragging sluggish.
  constexpr std::size_t kMostPassesJudged = 20'000;
  std::size_t passes = 0;
  for (const auto& order : schedule->orders) passes += order.size();
  if (passes > kMostPassesJudged) return {};  // checked on drop
  return QString::fromStdString(problem_of_orders(*s, *schedule));
}

void ExploreScreen::take_order(const OrderEdit& edit) {
  const auto s = workbench().sound_simulation();
  const std::optional<Schedule> schedule = s ? edited_schedule(*s, edit) : std::nullopt;
  if (!schedule) return;
  if (const std::string problem = problem_of_orders(*s, *schedule); !problem.empty()) {
    workbench().log(tr("Cannot move the pass: %1").arg(QString::fromStdString(problem)));
    return;
  }
  workbench().scenario().replace(tr("Move pass"),
                                 with_orders(workbench().scenario().scenario(), *schedule));
}

bool ExploreScreen::take(const OpenedFile& file) {
  ScenarioEditor& editor = workbench().scenario();
  const QString title = tr("Open %1").arg(QString::fromStdString(file.path));
  if (const auto* plan = std::get_if<PlanFile>(&file.content)) {
    editor.replace(title, scenario_of(*plan));
  } else if (const auto* read = std::get_if<ImportedSchedule>(&file.content)) {
    editor.replace(title, with_orders(editor.scenario(), read->schedule));
    for (const std::string& note : read->notes) workbench().log(QString::fromStdString(note));
  } else if (const auto* model = std::get_if<OpenedModel>(&file.content)) {
    editor.edit(title, {}, [&](Scenario& s) { s.model = model->text, s.blocks_per_stage.clear(); });
  } else if (const auto* cluster = std::get_if<OpenedCluster>(&file.content)) {
    editor.edit(title, {}, [&](Scenario& s) { s.cluster = cluster->text; });
  } else {
    return false;
  }
  return true;
}

}  // namespace meshwright::gui
