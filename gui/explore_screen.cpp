#include "gui/explore_screen.hpp"

#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QLabel>
#include <QTextBrowser>
#include <QToolBar>
#include <QVBoxLayout>

#include "core/io_file.hpp"
#include "core/io_schedule_csv.hpp"
#include "gui/actions.hpp"
#include "gui/number_text.hpp"
#include "gui/order_edit.hpp"
#include "gui/slice_text.hpp"
#include "gui/state_text.hpp"
#include "gui/theme.hpp"
#include "gui/workbench.hpp"

namespace meshwright::gui {
namespace {

/// Beyond that, checking an order while it is dragged would be felt.
constexpr std::size_t kMostPassesJudged = 20'000;

QString assumption_text(FormulaAssumption assumption) {
  switch (assumption) {
    case FormulaAssumption::kEqualStages:
      return ExploreScreen::tr("stages are not equally long");
    case FormulaAssumption::kFreeMessages:
      return ExploreScreen::tr("messages take time");
    case FormulaAssumption::kEnoughBatches:
      return ExploreScreen::tr("m < p: the pipeline never fills");
    case FormulaAssumption::kWholeGroups:
      return ExploreScreen::tr("m is no multiple of p");
    case FormulaAssumption::kEqualPasses:
      return ExploreScreen::tr("F, B and W are not equally long");
  }
  return {};
}

}  // namespace

ExploreScreen::ExploreScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, parent),
      view_(new TimelineView),
      formula_(new QLabel),
      problems_(new QLabel),
      inspector_(new QTextBrowser(this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(problems_);
  column->addWidget(view_, 1);
  column->addWidget(formula_);
  formula_->setContentsMargins(10, 6, 10, 6);
  formula_->setTextFormat(Qt::RichText);
  formula_->setWordWrap(true);
  formula_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  problems_->setContentsMargins(10, 6, 10, 6);
  problems_->setProperty("role", "problem");
  problems_->setWordWrap(true);
  problems_->hide();
  inspector_->setFrameShape(QFrame::NoFrame);
  inspector_->setAccessibleName(tr("Inspector"));
  view_->set_placeholder(tr("Simulating…"));
  view_->set_editable(true);
  view_->set_order_judge([this](const OrderEdit& edit) { return judge(edit); });
  connect_view();
  connect(&workbench, &Workbench::simulated, this, &ExploreScreen::show_simulation);
  connect(&workbench, &Workbench::causes_found, this, &ExploreScreen::show_causes);
  connect(&workbench, &Workbench::snapshot_changed, this, &ExploreScreen::show_ghost);
  connect(&workbench.preferences(), &Preferences::changed, this, &ExploreScreen::apply_preferences);
  apply_preferences();
}

void ExploreScreen::connect_view() {
  connect(view_, &TimelineView::slice_selected, this, &ExploreScreen::show_slice);
  connect(view_, &TimelineView::bubble_selected, this, [this](qint64 after) {
    const auto s = workbench().sound_simulation();
    const auto causes = workbench().causes();
    if (s && causes)
      inspector_->setHtml(
          bubble_html(*s, *causes, after, workbench().preferences().values().time_unit));
  });
  connect(view_, &TimelineView::area_selected, this, &ExploreScreen::show_area);
  connect(view_, &TimelineView::area_cleared, this, [this] { show_slice(-1); });
  connect(view_, &TimelineView::order_edited, this, &ExploreScreen::take_order);
  connect(view_, &TimelineView::stage_slowdown_requested, this,
          [this](int position, double factor, bool is_final) {
            workbench().scenario().edit(tr("Slow position %1 down ×%2").arg(position).arg(factor),
                                        "slowness",
                                        [&](Scenario& s) { set_slowness(s, position, factor); });
            if (is_final) workbench().scenario().end_gesture();
          });
}

QWidget* ExploreScreen::inspector() { return inspector_; }

bool ExploreScreen::is_settled() {
  if (!workbench().is_up_to_date()) return false;
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
  view_->set_tracks(s->tracks);
  view_->set_causes(nullptr);
  show_formula();
  if (!view_->selected_slice() && !view_->selected_area()) show_slice(-1);
}

void ExploreScreen::show_causes() {
  view_->set_causes(workbench().causes());
  if (view_->selected_slice()) show_slice(static_cast<qint64>(*view_->selected_slice()));
}

void ExploreScreen::show_ghost() {
  const auto snapshot = workbench().snapshot();
  view_->set_ghost(snapshot ? snapshot->tracks : nullptr);
}

void ExploreScreen::show_formula() {
  const Simulation& s = *workbench().sound_simulation();
  const QString simulated = percent_text(s.evaluation.bubble_of_makespan, 2);
  if (!s.formula) {
    formula_->setText(tr("Bubble, simulated: <b>%1</b>. No closed form is known for %2.")
                          .arg(simulated, QString::fromStdString(s.plan.strategy.schedule)));
    return;
  }
  const BubbleFormula& f = *s.formula;
  QStringList broken;
  for (const FormulaAssumption assumption : f.broken) broken += assumption_text(assumption);
  const QString verdict = broken.isEmpty()
                              ? tr("every assumption of the formula holds")
                              : tr("they differ because %1").arg(broken.join(tr(", and ")));
  formula_->setText(tr("Bubble by formula: %1 = %2 = <b>%3</b> · simulated: <b>%4</b> · %5")
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
                                : slice_html(*s, causes.get(), slice, unit));
}

void ExploreScreen::show_area(const TimelineArea& area) {
  const auto s = workbench().sound_simulation();
  if (s)
    inspector_->setHtml(area_html(*s, workbench().causes().get(), area,
                                  workbench().preferences().values().time_unit));
}

void ExploreScreen::apply_preferences() {
  const PreferenceValues& values = workbench().preferences().values();
  view_->set_theme(timeline_colours_of(values));
  view_->set_reduced_motion(values.reduced_motion);
}

// ---- editing ------------------------------------------------------------------------------------

QString ExploreScreen::judge(const OrderEdit& edit) const {
  const auto s = const_cast<ExploreScreen*>(this)->workbench().sound_simulation();
  if (!s) return tr("nothing is shown yet");
  const std::optional<Schedule> schedule = edited_schedule(*s, edit);
  if (!schedule) return tr("only whole passes can be moved");
  std::size_t passes = 0;
  for (const auto& order : schedule->orders) passes += order.size();
  if (passes > kMostPassesJudged) return {};  // judged when it is dropped
  return QString::fromStdString(problem_of_orders(*s, *schedule));
}

void ExploreScreen::take_order(const OrderEdit& edit) {
  const auto s = workbench().sound_simulation();
  const std::optional<Schedule> schedule = s ? edited_schedule(*s, edit) : std::nullopt;
  if (!schedule) return;
  if (const std::string problem = problem_of_orders(*s, *schedule); !problem.empty()) {
    workbench().log(tr("The pass stays where it was: %1").arg(QString::fromStdString(problem)));
    return;
  }
  workbench().scenario().replace(tr("Move a pass"),
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

// ---- actions ------------------------------------------------------------------------------------

void ExploreScreen::add_actions(ActionSet& actions) {
  for (QAction* action : view_->actions())
    actions.adopt(action->objectName(), MenuId::kView, action);
  add_edit_actions(actions);
  add_export_actions(actions);
}

void ExploreScreen::add_edit_actions(ActionSet& actions) {
  actions.add({"explore.snapshot",
               MenuId::kEdit,
               tr("Pin as &A"),
               tr("Keeps this scenario as outlines behind the next ones; again: lets it go"),
               {QKeySequence("Ctrl+D")}},
              [this] { toggle_snapshot(); });
  actions.add({"explore.swap",
               MenuId::kEdit,
               tr("S&wap with A"),
               tr("The pinned scenario comes back, this one is pinned"),
               {QKeySequence("Ctrl+Shift+D")}},
              [this] { swap_with_snapshot(); });
  actions.add({"explore.made-to-measure",
               MenuId::kPlan,
               tr("Make a schedule to &measure"),
               tr("Searches orders of its own for these stage times, messages and memory"),
               {QKeySequence("Ctrl+M")}},
              [this] { make_to_measure(); });
  actions.add({"explore.copy-state",
               MenuId::kEdit,
               tr("&Copy as one line"),
               tr("The scenario as a command line of meshwright simulate"),
               {QKeySequence("Ctrl+Shift+C")}},
              [this] { copy_state(); });
  actions.add({"explore.paste-state",
               MenuId::kEdit,
               tr("&Paste a line"),
               tr("Takes the scenario from a line that was copied"),
               {QKeySequence("Ctrl+Shift+V")}},
              [this] { paste_state(); });
}

void ExploreScreen::add_export_actions(ActionSet& actions) {
  actions.add({"explore.save-plan",
               MenuId::kFile,
               tr("&Save plan…"),
               tr("A .plan.json that every command takes"),
               {QKeySequence::Save}},
              [this] { save_plan(); });
  actions.add({"explore.save-schedule",
               MenuId::kFile,
               tr("Save &schedule…"),
               tr("PyTorch's schedule CSV"),
               {QKeySequence("Ctrl+Shift+S")}},
              [this] { save_schedule(); });
  actions.add({"explore.export",
               MenuId::kFile,
               tr("&Export what is shown…"),
               tr("PNG, SVG, PDF, CSV or .pftrace of the visible range"),
               {QKeySequence("Ctrl+E")}},
              [this] { export_picture(); });
  actions.add({"explore.copy-picture",
               MenuId::kEdit,
               tr("Copy p&icture"),
               tr("What is shown, to the clipboard"),
               {QKeySequence("Ctrl+Alt+C")}},
              [this] { view_->copy_image(); });
}

void ExploreScreen::toggle_snapshot() {
  workbench().set_snapshot(workbench().snapshot() ? nullptr : workbench().sound_simulation());
}

void ExploreScreen::swap_with_snapshot() {
  const auto snapshot = workbench().snapshot();
  if (!snapshot) return;
  workbench().set_snapshot(workbench().sound_simulation());
  workbench().scenario().replace(tr("Swap with A"), snapshot->scenario);
}

void ExploreScreen::make_to_measure() {
  workbench().jobs().start<Scenario>(
      {tr("Make a schedule to measure"), "made-to-measure", true}, this,
      [scenario = workbench().scenario().scenario(), &library = workbench().library()](
          const JobContext&) { return made_to_measure_scenario(scenario, library); },
      [this, before = workbench().scenario().scenario()](const Scenario& made) {
        if (workbench().scenario().scenario() != before) return;  // no longer asked for
        workbench().scenario().replace(tr("Schedule made to measure"), made);
      });
}

void ExploreScreen::save(const QString& title, const QString& pattern, const QString& suffix,
                         const std::function<std::string()>& content) {
  QString path = QFileDialog::getSaveFileName(this, title, {}, pattern);
  if (path.isEmpty()) return;
  if (!path.contains('.')) path += suffix;
  workbench().jobs().start<int>(
      {title, "", true}, this,
      [content, file = path.toStdString()](const JobContext&) {
        write_file(file, content());
        return 0;
      },
      [this, path](int) { workbench().log(tr("Wrote %1").arg(path)); });
}

void ExploreScreen::save_plan() {
  const auto s = workbench().sound_simulation();
  if (s)
    save(tr("Save plan"), tr("Plans (*.plan.json)"), ".plan.json",
         [s] { return to_json(plan_file_of(*s)); });
}

void ExploreScreen::save_schedule() {
  const auto s = workbench().sound_simulation();
  if (s)
    save(tr("Save schedule"), tr("PyTorch schedules (*.csv)"), ".csv",
         [s] { return write_schedule_csv(s->schedule); });
}

void ExploreScreen::export_picture() {
  const QString path = QFileDialog::getSaveFileName(
      this, tr("Export what is shown"), {},
      "PNG (*.png);;SVG (*.svg);;PDF (*.pdf);;CSV (*.csv);;Perfetto (*.pftrace)");
  if (path.isEmpty()) return;
  const QString reason = view_->export_to(path, path.endsWith(".png") ? 2.0 : 1.0);
  workbench().log(reason.isEmpty() ? tr("Wrote %1").arg(path)
                                   : tr("Could not write %1: %2").arg(path, reason));
}

void ExploreScreen::copy_state() {
  QApplication::clipboard()->setText(
      QString::fromStdString(to_state_text(workbench().scenario().scenario())));
  workbench().log(tr("Copied the scenario as one line"));
}

void ExploreScreen::paste_state() {
  workbench().jobs().start<Scenario>(
      {tr("Paste a line"), "paste", true}, this,
      [text = QApplication::clipboard()->text().toStdString()](const JobContext&) {
        return scenario_from_state_text(text);
      },
      [this](const Scenario& s) { workbench().scenario().replace(tr("Paste a line"), s); });
}

}  // namespace meshwright::gui
