// Menu actions and shortcuts of the Explore screen.
#include <QApplication>
#include <QClipboard>
#include <QFileDialog>

#include "core/formats/file.hpp"
#include "core/formats/schedule_csv.hpp"
#include "gui/screens/explore_screen.hpp"
#include "gui/screens/slice_table.hpp"
#include "gui/session/state_text.hpp"
#include "gui/session/workbench.hpp"
#include "gui/widgets/actions.hpp"

namespace meshwright::gui {
namespace {

/// Images are exported at twice the resolution of the view.
constexpr double kPictureScale = 2.0;

}  // namespace

void ExploreScreen::add_actions(ActionSet& actions) {
  for (QAction* action : view_->actions())
    actions.adopt(action->objectName(), MenuId::kView, action);
  add_view_switches(actions);
  add_edit_actions(actions);
  add_export_actions(actions);
}

void ExploreScreen::add_view_switches(ActionSet& actions) {
  actions.add_switch(
      {"explore.arrows", MenuId::kView, tr("Message &arrows"),
       tr("Draws arrows from the sends to the receives of the selection"), shortcuts("Ctrl+Alt+W")},
      true, [this](bool on) { view_->appearance().set_arrows_shown(on); });
  actions.add_switch({"explore.causes", MenuId::kView, tr("&Bubbles by cause"),
                      tr("Hatches idle time by its cause"), shortcuts("Ctrl+Alt+B")},
                     true, [this](bool on) { view_->appearance().set_bubble_causes_shown(on); });
  actions.add_switch({"explore.counters", MenuId::kView, tr("Co&unters"),
                      tr("Shows memory, in-flight micro-batches and stream activity below the rows "
                         "(initially memory only, if there is room)"),
                      shortcuts("Ctrl+Alt+K")},
                     true, [this](bool on) { view_->lanes().set_counters_shown(on); });
  actions.add_switch(
      {"explore.microbatch-colors", MenuId::kView, tr("Color by &micro-batch"),
       tr("Colors slices by micro-batch instead of by kind"), shortcuts("Ctrl+Alt+M")},
      false, [this](bool on) { view_->appearance().set_microbatch_colors(on); });
  actions.add_switch({"explore.table", MenuId::kView, tr("S&lice table"),
                      tr("Lists the visible slices in a table"), shortcuts("Ctrl+Alt+L")},
                     false, [this](bool on) { table_->setVisible(on); });
  view_->appearance().set_arrows_shown(true);
  view_->appearance().set_bubble_causes_shown(true);
  view_->lanes().set_counters_where_room();
}

void ExploreScreen::add_edit_actions(ActionSet& actions) {
  actions.add({"explore.snapshot", MenuId::kEdit, tr("Pin as &A"),
               tr("Pins this scenario and outlines it in later timelines; run again to unpin"),
               shortcuts("Ctrl+D")},
              [this] { toggle_snapshot(); });
  actions.add(
      {"explore.swap", MenuId::kEdit, tr("S&wap with A"),
       tr("Restores the pinned scenario and pins the current one"), shortcuts("Ctrl+Shift+D")},
      [this] { swap_with_snapshot(); });
  actions.add(
      {"explore.made-to-measure", MenuId::kPlan, tr("S&ynthesize schedule"),
       tr("Searches for an order of passes for these stage times, messages and memory limits"),
       shortcuts("Ctrl+M")},
      [this] { make_to_measure(); });
  actions.add(
      {"explore.copy-state", MenuId::kEdit, tr("&Copy as command line"),
       tr("Copies the scenario as a meshwright simulate command"), shortcuts("Ctrl+Shift+C")},
      [this] { copy_state(); });
  actions.add({"explore.paste-state", MenuId::kEdit, tr("Pas&te command line"),
               tr("Loads the scenario from a copied command line"), shortcuts("Ctrl+Shift+V")},
              [this] { paste_state(); });
}

void ExploreScreen::add_export_actions(ActionSet& actions) {
  actions.add({"explore.save-plan", MenuId::kFile, tr("&Save plan…"),
               tr("Saves a .plan.json file that all meshwright commands accept"),
               shortcuts(QKeySequence::Save)},
              [this] { save_plan(); });
  actions.add({"explore.save-schedule", MenuId::kFile, tr("Save sc&hedule…"),
               tr("Saves the schedule in PyTorch's CSV format"), shortcuts("Ctrl+Shift+S")},
              [this] { save_schedule(); });
  actions.add(
      {"explore.export", MenuId::kFile, tr("&Export view…"),
       tr("Exports the visible range as PNG, SVG, PDF, CSV or .pftrace"), shortcuts("Ctrl+E")},
      [this] { export_picture(); });
  actions.add({"explore.copy-picture", MenuId::kEdit, tr("Copy &image"),
               tr("Copies the visible range as an image"), shortcuts("Ctrl+Alt+C")},
              [this] { copy_picture(); });
  actions.add(
      {"explore.copy-table", MenuId::kEdit, tr("Copy ta&ble"),
       tr("Copies the statistics of the selected area, or the visible slices, for a spreadsheet"),
       shortcuts("Ctrl+Alt+T")},
      [this] { copy(to_table); });
  actions.add({"explore.copy-markdown", MenuId::kEdit, tr("Copy statistics as Mar&kdown"),
               tr("Copies the time breakdown of the selected area, or of the visible range"),
               shortcuts("Ctrl+Alt+Shift+T")},
              [this] {
                copy([](const TimelineSnapshot& s) { return area_text(s, AreaFormat::kMarkdown); });
              });
  actions.add(
      {"explore.copy-json", MenuId::kEdit, tr("Copy statistics as &JSON"),
       tr("Copies the time breakdown of the selected area, or of the visible range"),
       shortcuts("Ctrl+Alt+J")},
      [this] { copy([](const TimelineSnapshot& s) { return area_text(s, AreaFormat::kJson); }); });
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
      {tr("Synthesize schedule"), "made-to-measure", true}, this,
      [scenario = workbench().scenario().scenario(), &library = workbench().library()](
          const JobContext&) { return synthesized_scenario(scenario, library); },
      [this, before = workbench().scenario().scenario()](const Scenario& made) {
        if (workbench().scenario().scenario() != before) return;  // the scenario has changed since
        workbench().scenario().replace(tr("Synthesize schedule"), made);
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
      [this, path](int) { workbench().log(tr("Saved %1").arg(path)); });
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
      this, tr("Export view"), {},
      "PNG (*.png);;SVG (*.svg);;PDF (*.pdf);;CSV (*.csv);;Perfetto (*.pftrace)");
  if (path.isEmpty()) return;
  workbench().jobs().start<int>(
      {tr("Export"), "", true}, this,
      [snapshot = view_->snapshot(), file = path.toStdString()](const JobContext&) {
        write_snapshot(snapshot, file, file.ends_with(".png") ? kPictureScale : 1.0);
        return 0;
      },
      [this, path](int) { workbench().log(tr("Saved %1").arg(path)); });
}

void ExploreScreen::copy_picture() {
  workbench().jobs().start<QImage>(
      {tr("Copy image"), "explore.copy", false}, this,
      [snapshot = view_->snapshot()](const JobContext&) {
        return to_image(snapshot, kPictureScale);
      },
      [](const QImage& image) { QApplication::clipboard()->setImage(image); });
}

void ExploreScreen::copy(QString (*text)(const TimelineSnapshot&)) {
  if (view_->tracks() == nullptr) return;
  workbench().jobs().start<QString>(
      {tr("Copy table"), "explore.copy", false}, this,
      [snapshot = view_->snapshot(), text](const JobContext&) { return text(snapshot); },
      [](const QString& copied) { QApplication::clipboard()->setText(copied); });
}

void ExploreScreen::copy_state() {
  QApplication::clipboard()->setText(
      QString::fromStdString(to_state_text(workbench().scenario().scenario())));
  workbench().log(tr("Copied the scenario as a command line"));
}

void ExploreScreen::paste_state() {
  workbench().jobs().start<Scenario>(
      {tr("Paste command line"), "paste", true}, this,
      [text = QApplication::clipboard()->text().toStdString()](const JobContext&) {
        return scenario_from_state_text(text);
      },
      [this](const Scenario& s) { workbench().scenario().replace(tr("Paste command line"), s); });
}

}  // namespace meshwright::gui
