#include "gui/window/main_window.hpp"

#include <QElapsedTimer>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QTemporaryDir>
#include <QTimer>
#include <QToolButton>
#include <QTreeWidget>
#include <fstream>
#include <set>

#include "gui/screens/explore_screen.hpp"
#include "gui/text/number_text.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/window/command_palette.hpp"
#include "gui/window/error_dialog.hpp"
#include "gui/window/key_sheet.hpp"
#include "gui/window/preferences_dialog.hpp"
#include "gui/window/scenario_panel.hpp"
#include "gui/window/screenshot.hpp"
#include "tests/gui/window/window_fixture.hpp"

namespace meshwright::gui {
namespace {

class MainWindowTest : public WindowTest {
 protected:
  /// The value on the card of this title.
  QString card(const QString& title) {
    for (const QLabel* label : window->findChildren<QLabel*>())
      if (label->accessibleName() == title) return label->text();
    return "no card " + title;
  }
};

/// Closes popups that open while a test triggers all actions.
class DialogCloser {
 public:
  DialogCloser() {
    QObject::connect(&timer_, &QTimer::timeout, [this] {
      for (QWidget* widget : QApplication::topLevelWidgets())
        if (widget->isVisible() && (widget->inherits("QDialog") || widget->inherits("QMenu"))) {
          widget->close();
          ++closed_;
        }
    });
    timer_.start(5);
  }
  int closed() const { return closed_; }

 private:
  QTimer timer_;
  int closed_ = 0;
};

TEST_F(MainWindowTest, SurvivesEveryActionOnEveryScreen) {
  ASSERT_TRUE(settles());
  const DialogCloser closer;
  std::vector<QString> names;
  for (const ActionEntry& entry : window->actions().entries()) names.push_back(entry.name);
  ASSERT_GE(names.size(), 40u);
  for (const Screen* screen : window->screens()) {
    for (const QString& name : names) {
      if (name == "file.quit") continue;  // closing_test.cpp has it
      window->show_screen(screen->traits().name);
      QAction* action = window->actions().find(name);
      ASSERT_NE(action, nullptr);
      action->trigger();
      QTest::qWait(1);
    }
  }
  EXPECT_GT(closer.closed(), 4);
  EXPECT_TRUE(settles());
}

TEST_F(MainWindowTest, ReachesEveryActionByKeyboard) {
  std::set<QAction*> in_menus;
  for (const QAction* menu : window->menuBar()->actions()) {
    EXPECT_TRUE(menu->text().contains('&')) << menu->text().toStdString();
    EXPECT_LE(menu->menu()->actions().size(), 20) << menu->text().toStdString();
    for (QAction* action : menu->menu()->actions()) {
      in_menus.insert(action);
      if (action->menu() == nullptr) continue;
      EXPECT_TRUE(action->text().contains('&')) << action->text().toStdString();
      EXPECT_LE(action->menu()->actions().size(), 20) << action->text().toStdString();
      for (QAction* inner : action->menu()->actions()) in_menus.insert(inner);
    }
  }
  for (const ActionEntry& entry : window->actions().entries()) {
    EXPECT_TRUE(in_menus.contains(entry.action)) << entry.name.toStdString();
    EXPECT_FALSE(entry.action->text().isEmpty()) << entry.name.toStdString();
    EXPECT_FALSE(entry.action->shortcuts().isEmpty()) << entry.name.toStdString();
  }
}

TEST_F(MainWindowTest, AssignsEveryShortcutOnce) {
  std::map<QString, QString> users;
  for (const ActionEntry& entry : window->actions().entries())
    for (const QKeySequence& keys : entry.action->shortcuts()) {
      const auto [found, is_new] = users.emplace(keys.toString(), entry.name);
      EXPECT_TRUE(is_new) << keys.toString().toStdString() << ": " << entry.name.toStdString()
                          << " and " << found->second.toStdString();
    }
}

// Every button, combo box, slider and spin box has a tooltip.
TEST_F(MainWindowTest, ExplainsEveryControl) {
  ASSERT_TRUE(settles());
  window->actions().find("edit.preferences")->trigger();
  int explained = 0;
  for (const QWidget* control : window->findChildren<QWidget*>()) {
    const bool is_control =
        control->inherits("QAbstractButton") || control->inherits("QComboBox") ||
        control->inherits("QAbstractSlider") || control->inherits("QAbstractSpinBox");
    const QWidget* parent = control->parentWidget();
    const bool is_part = control->inherits("QScrollBar") || parent->inherits("QTabBar") ||
                         parent->inherits("QMenuBar") || parent->inherits("QDialogButtonBox") ||
                         parent->inherits("QDockWidget") || parent->inherits("QLineEdit") ||
                         parent->inherits("QToolBar") || parent->inherits("QTableView");
    if (!is_control || (is_part && !control->objectName().startsWith("button."))) continue;
    ++explained;
    EXPECT_FALSE(control->toolTip().isEmpty())
        << control->metaObject()->className() << " '" << control->objectName().toStdString()
        << "' '" << control->accessibleName().toStdString() << "' in "
        << parent->metaObject()->className();
  }
  EXPECT_GT(explained, 60);
  close_dialogs();
}

// Toolbar buttons and menu actions switch each other.
TEST_F(MainWindowTest, HasAToolbarThatFollowsTheMenus) {
  ASSERT_TRUE(settles());
  window->show_screen("explore");
  auto* path = window->findChild<QToolButton*>("button.timeline.critical-path");
  ASSERT_NE(path, nullptr);
  EXPECT_TRUE(path->isVisible());
  QAction* action = window->actions().find("timeline.critical-path");
  EXPECT_FALSE(path->isChecked());
  action->trigger();
  EXPECT_TRUE(path->isChecked());
  QTest::mouseClick(path, Qt::LeftButton);
  EXPECT_FALSE(action->isChecked());
  EXPECT_FALSE(path->isChecked());
  EXPECT_FALSE(window->findChild<QToolButton*>("button.edit.undo")->isEnabled());
  window->show_screen("plans");
  EXPECT_FALSE(path->isVisible());
}

TEST_F(MainWindowTest, RestoresTheLastSession) {
  window->scenario_panel().knob("pp")->box()->setValue(4);
  ASSERT_TRUE(settles());
  const Scenario left = workbench->scenario().scenario();
  window->close();
  Workbench next;
  MainWindow again(next);
  again.show();
  EXPECT_NE(next.scenario().scenario(), left);
  again.actions().find("file.continue")->trigger();
  ASSERT_TRUE(QTest::qWaitFor([&] { return again.is_settled(); }, kPatienceMs));
  EXPECT_EQ(next.scenario().scenario(), left);
  EXPECT_EQ(again.current_screen()->traits().name, "explore");
}

TEST_F(MainWindowTest, OpensEveryExampleWithinASecond) {
  ASSERT_TRUE(settles());
  for (const Example& example : example_scenarios()) {
    QElapsedTimer timer;
    timer.start();
    window->actions().find("example." + QString::fromUtf8(example.name.data()))->trigger();
    ASSERT_TRUE(QTest::qWaitFor([&] { return workbench->is_up_to_date(); }, kPatienceMs));
    EXPECT_TRUE(workbench->simulation()->is_sound())
        << example.name << ": " << workbench->simulation()->problems.front().what;
    EXPECT_EQ(window->current_screen()->traits().name, "explore");
    RecordProperty(std::string(example.name), static_cast<int>(timer.elapsed()));
    EXPECT_LT(timer.elapsed(), 1000) << example.name;
  }
}

TEST_F(MainWindowTest, AppliesAndUndoesAKnobChange) {
  ASSERT_TRUE(settles());
  const Ticks before = workbench->simulation()->evaluation.step_time;
  CountKnob* knob = window->scenario_panel().knob("microbatches");
  knob->box()->setValue(64);
  ASSERT_TRUE(settles());
  EXPECT_EQ(microbatches(workbench->simulation()->scenario), 64);
  EXPECT_GT(workbench->simulation()->evaluation.step_time, before);
  window->actions().find("edit.undo")->trigger();
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->simulation()->evaluation.step_time, before);
  EXPECT_EQ(knob->value(), 32);
  window->actions().find("edit.redo")->trigger();
  ASSERT_TRUE(settles());
  EXPECT_EQ(microbatches(workbench->simulation()->scenario), 64);
}

// One drag over many values is one undo step; the next drag is another one.
TEST_F(MainWindowTest, UndoesADragAsAWhole) {
  ASSERT_TRUE(settles());
  QSlider* slider = window->scenario_panel().knob("microbatches")->slider();
  const int steps_before = workbench->scenario().undo_stack().count();
  for (int drag = 0; drag < 2; ++drag) {
    slider->setSliderDown(true);
    for (int i = 1; i <= 5; ++i) slider->setValue(5 * drag + i);
    slider->setSliderDown(false);
  }
  EXPECT_EQ(workbench->scenario().undo_stack().count(), steps_before + 2);
}

TEST_F(MainWindowTest, ShowsAnInvalidSettingInPlaceAndKeepsTheTimeline) {
  ASSERT_TRUE(settles());
  const auto sound = workbench->sound_simulation();
  window->scenario_panel().knob("tp")->box()->setValue(5);
  ASSERT_TRUE(settles());
  EXPECT_FALSE(workbench->simulation()->is_sound());
  EXPECT_EQ(workbench->sound_simulation(), sound);
  window->show_screen("explore");
  const auto labels = window->scenario_panel().knob("tp")->findChildren<QLabel*>();
  EXPECT_TRUE(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) {
    return !label->isHidden() && label->text().contains("tensor-parallel size 5");
  }));
}

TEST_F(MainWindowTest, StepsThroughAllApplicableSchedules) {
  ASSERT_TRUE(settles());
  std::set<std::string> seen;
  for (int i = 0; i < 40; ++i) {
    window->actions().find("edit.next-schedule")->trigger();
    ASSERT_TRUE(settles());
    seen.insert(workbench->scenario().scenario().strategy.schedule);
  }
  EXPECT_GE(seen.size(), 10u);
  window->actions().find("edit.previous-schedule")->trigger();
  ASSERT_TRUE(settles());
}

TEST_F(MainWindowTest, SlowsAPipelineRankByDraggingItsBar) {
  ASSERT_TRUE(settles());
  window->show_screen("explore");
  ASSERT_TRUE(settles());
  const Ticks before = workbench->simulation()->evaluation.step_time;
  StageBars* bars = window->scenario_panel().stage_bars();
  const QPoint top = bars->handle_of(3);
  QTest::mousePress(bars, Qt::LeftButton, {}, top);
  QTest::mouseMove(bars, top - QPoint(0, 5));
  QTest::mouseMove(bars, {top.x(), 2});
  QTest::mouseRelease(bars, Qt::LeftButton, {}, {top.x(), 2});
  ASSERT_TRUE(settles());
  ASSERT_EQ(workbench->scenario().scenario().what_if.slowness.size(), 8u);
  EXPECT_GT(workbench->scenario().scenario().what_if.slowness[3], 1.1);
  EXPECT_GT(workbench->simulation()->evaluation.step_time, before);
}

// A slower rank has a smaller bubble itself, but all others wait for it.
TEST_F(MainWindowTest, LeadsWithTheMeanBubbleOfAllRanks) {
  ASSERT_TRUE(settles());
  const auto figures = [&] { return workbench->sound_simulation()->figures; };
  const PlanFigures even = figures();
  EXPECT_EQ(card("Bubble"), percent_text(even.bubble_of_period));
  workbench->scenario().edit("slow", {}, [](Scenario& s) { set_slowness(s, 2, 1.35); });
  ASSERT_TRUE(settles());
  EXPECT_LT(figures().busiest_rank_bubble, even.busiest_rank_bubble);
  EXPECT_GT(figures().bubble_of_period, even.bubble_of_period);
  EXPECT_EQ(card("Bubble"), percent_text(figures().bubble_of_period));
}

TEST_F(MainWindowTest, HasNoFiguresOfTheDevicesForPassTimesSetByHand) {
  ASSERT_TRUE(settles());
  const QStringList of_devices{"MFU", "Peak memory", "Tokens/s per GPU"};
  for (const QString& title : of_devices) EXPECT_NE(card(title), "–");
  window->actions().find("example.textbook")->trigger();
  ASSERT_TRUE(settles());
  for (const QString& title : of_devices) EXPECT_EQ(card(title), "–");
}

TEST_F(MainWindowTest, FitsIntoSmallScreens) {
  constexpr QSize kSmall(1024, 640);
  for (const Screen* screen : window->screens()) {
    window->show_screen(screen->traits().name);
    ASSERT_TRUE(settles());
    window->resize(kSmall);
    QCoreApplication::processEvents();
    EXPECT_EQ(window->size(), kSmall)
        << screen->traits().name.toStdString() << " needs " << window->minimumSizeHint().width()
        << "x" << window->minimumSizeHint().height() << ", its page "
        << screen->minimumSizeHint().width() << "x" << screen->minimumSizeHint().height();
  }
}

TEST_F(MainWindowTest, KeepsTheTabsInPlaceWhenPanelsComeAndGo) {
  auto* tabs = window->findChild<QTabBar*>("screens");
  window->show_screen("explore");
  ASSERT_TRUE(settles());
  const QRect place(tabs->mapTo(window.get(), QPoint()), tabs->size());
  for (const Screen* screen : window->screens()) {
    window->show_screen(screen->traits().name);
    ASSERT_TRUE(settles());
    EXPECT_EQ(QRect(tabs->mapTo(window.get(), QPoint()), tabs->size()), place)
        << screen->traits().name.toStdString();
  }
}

TEST_F(MainWindowTest, GivesTheTimelineTheFocusWhenItIsShown) {
  ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
  EXPECT_TRUE(screen<ExploreScreen>("explore").view().hasFocus());
}

TEST_F(MainWindowTest, PinsASnapshotAndSwapsWithIt) {
  ASSERT_TRUE(settles());
  const Scenario first = workbench->scenario().scenario();
  window->actions().find("explore.snapshot")->trigger();
  ASSERT_TRUE(workbench->snapshot());
  window->scenario_panel().knob("pp")->box()->setValue(4);
  ASSERT_TRUE(settles());
  window->actions().find("explore.swap")->trigger();
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->scenario().scenario(), first);
  EXPECT_EQ(workbench->snapshot()->scenario.strategy.degrees.pipeline, 4);
  window->actions().find("explore.snapshot")->trigger();
  EXPECT_FALSE(workbench->snapshot());
}

TEST_F(MainWindowTest, CopiesAScenarioAsALineAndPastesIt) {
  ASSERT_TRUE(settles());
  const Scenario first = workbench->scenario().scenario();
  window->actions().find("explore.copy-state")->trigger();
  window->scenario_panel().knob("pp")->box()->setValue(4);
  window->actions().find("explore.paste-state")->trigger();
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->scenario().scenario(), first);
}

TEST_F(MainWindowTest, RunsTheActionTypedIntoThePalette) {
  ASSERT_TRUE(settles());
  window->actions().find("help.palette")->trigger();
  auto* palette = open_dialog<CommandPalette>();
  ASSERT_NE(palette, nullptr);
  QTest::keyClicks(palette->findChild<QLineEdit*>(), "explore screen");
  QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Return);
  EXPECT_EQ(window->current_screen()->traits().name, "explore");
}

struct BrokenFile {
  const char *name, *content, *said;
};

// One invalid file of every kind: the dialog names the file and the problem, and nothing else
// changes.
TEST_F(MainWindowTest, ShowsADialogForABrokenFileOfEachKind) {
  ASSERT_TRUE(settles());
  const BrokenFile files[]{
      {"a.plan.json", R"({"schema": 1, "strategy": {}})", "a.plan.json"},
      {"b.pftrace", "not a trace", "b.pftrace"},
      {"c.csv", "0F0,nonsense\n", "c.csv"},
      {"d.toml", "schema = 1\nname = 3", "d.toml"},
      {"e.json", R"({"model_type": "gpt2", "n_layer": -1})", "e.json"},
      {"f.json", R"({"schema": 1, "provenance": 4, "collectives": []})", "f.json"},
      {"g.bin", "\x01\x02\x03", "g.bin"},
      {"h.json", "{", "h.json"},
      {"i.trace.json", R"({"traceEvents": [{"ph": "X", "ts": )", "i.trace.json"},
      {"j.pt.trace.json", R"({"schemaVersion": 1, "traceEvents": 7})", "j.pt.trace.json"},
      {"k.json.gz", "\x1f\x8b not packed", "k.json.gz"},
  };
  const Scenario before = workbench->scenario().scenario();
  QTemporaryDir folder;
  for (const BrokenFile& file : files) {
    const QString path = folder.filePath(file.name);
    std::ofstream(path.toStdString()) << file.content;
    workbench->open({path});
    ASSERT_TRUE(QTest::qWaitFor([&] { return open_dialog<ErrorDialog>() != nullptr; }, kPatienceMs))
        << file.name;
    EXPECT_TRUE(open_dialog<ErrorDialog>()->text().contains(file.said)) << file.name;
    close_dialogs();
    QTest::qWait(1);
  }
  workbench->open({folder.filePath("missing.plan.json")});
  EXPECT_TRUE(QTest::qWaitFor([&] { return open_dialog<ErrorDialog>() != nullptr; }, kPatienceMs));
  EXPECT_EQ(workbench->scenario().scenario(), before);
}

TEST_F(MainWindowTest, ReopensSavedPlansAndSchedules) {
  ASSERT_TRUE(settles());
  QTemporaryDir folder;
  const auto simulation = workbench->sound_simulation();
  const std::string plan = folder.filePath("x.plan.json").toStdString();
  std::ofstream(plan) << to_json(plan_file_of(*simulation));
  const std::string csv = folder.filePath("x.csv").toStdString();
  std::ofstream(csv) << write_schedule_csv(simulation->schedule);
  window->scenario_panel().knob("pp")->box()->setValue(4);
  workbench->open({QString::fromStdString(plan)});
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->simulation()->evaluation, simulation->evaluation);
  workbench->open({QString::fromStdString(csv)});
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->scenario().scenario().orders, simulation->schedule.orders);
  EXPECT_EQ(workbench->simulation()->evaluation.step_time, simulation->evaluation.step_time);
}

TEST_F(MainWindowTest, ChangesItsThemeAndRemembersIt) {
  ASSERT_TRUE(settles());
  PreferenceValues values = workbench->preferences().values();
  values.theme = ThemeChoice::kDark;
  workbench->preferences().set(values);
  EXPECT_LT(window->palette().color(QPalette::Window).lightness(), 128);
  const Preferences next_start;
  EXPECT_EQ(next_start.values().theme, ThemeChoice::kDark);
}

TEST_F(MainWindowTest, ReadsShortcutsFromPreferences) {
  PreferenceValues values = workbench->preferences().values();
  values.keys["view.theme"] = QKeySequence("Ctrl+Alt+T");
  workbench->preferences().set(values);
  EXPECT_EQ(window->actions().find("view.theme")->shortcut(), QKeySequence("Ctrl+Alt+T"));
  workbench->preferences().set({});
  EXPECT_EQ(window->actions().find("view.theme")->shortcut(), QKeySequence("T"));
}

// Shortcuts of held keys are set in the same dialog as those of actions, and are stored.
TEST_F(MainWindowTest, ReadsHeldKeysFromPreferences) {
  ASSERT_TRUE(settles());
  window->actions().find("edit.preferences")->trigger();
  auto* dialog = open_dialog<PreferencesDialog>();
  ASSERT_NE(dialog, nullptr);
  dialog->key_field(kHeldKeyNames[0])->setKeySequence(QKeySequence("I"));
  Q_EMIT dialog->key_field(kHeldKeyNames[0])->editingFinished();
  dialog->accept();
  const Preferences next_start;
  EXPECT_EQ(next_start.values().keys.at(kHeldKeyNames[0]), QKeySequence("I"));
  window->show_screen("explore");
  TimelineView& view = qobject_cast<ExploreScreen*>(window->current_screen())->view();
  const Nanoseconds before = view.viewport().visible_to() - view.viewport().visible_from();
  QTest::keyClick(&view, Qt::Key_I);
  EXPECT_TRUE(QTest::qWaitFor(
      [&] { return view.viewport().visible_to() - view.viewport().visible_from() < before; },
      kPatienceMs));
}

TEST_F(MainWindowTest, SavesAScreenshotOfEveryScreen) {
  QTemporaryDir folder;
  for (const Screen* screen : window->screens()) {
    window->show_screen(screen->traits().name);
    const QString path = folder.filePath(screen->traits().name + ".png");
    EXPECT_EQ(save_screenshot(*window, path).toStdString(), "");
    EXPECT_EQ(QImage(path).size(), window->size() * window->devicePixelRatio());
  }
}

}  // namespace
}  // namespace meshwright::gui
