/// A main window as a user sees it, with settings of its own.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QSettings>
#include <QSignalSpy>
#include <QTest>
#include <memory>

#include "gui/window/main_window.hpp"
#include "models/load/load.hpp"

namespace meshwright::gui {

class WindowTest : public testing::Test {
 protected:
  static constexpr int kPatienceMs = 60'000;

  WindowTest() {
    QSettings().clear();
    workbench = std::make_unique<Workbench>();
    window = std::make_unique<MainWindow>(*workbench);
    window->show();
    window->activateWindow();
  }
  ~WindowTest() override { close_dialogs(); }

  template <class ScreenKind>
  ScreenKind& screen(const char* name) {
    window->show_screen(name);
    return *qobject_cast<ScreenKind*>(window->find_screen(name));
  }
  /// Small enough to be searched and run within a test.
  void set_small_scenario() {
    Scenario small = default_scenario();
    small.model = {.name = "small", .where = "small.json", .text = R"({
      "model_type": "gpt2", "n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 64,
      "vocab_size": 256})"};
    small.cluster = find_cluster("cpu-laptop");
    small.strategy = {};
    small.strategy.degrees.pipeline = 2;
    small.strategy.dtype = Dtype::kFp32;
    small.strategy.global_batch = 4;
    small.strategy.sequence_length = 16;
    workbench->scenario().replace("small", small);
    ASSERT_TRUE(settles());
    ASSERT_TRUE(workbench->simulation()->is_sound())
        << workbench->simulation()->problems.front().what;
  }
  bool settles() {
    return QTest::qWaitFor([this] { return window->is_settled(); }, kPatienceMs);
  }
  /// Closes every open dialog, menu and popup; a nested event loop ends with its dialog.
  static int close_dialogs() {
    int closed = 0;
    for (QWidget* widget : QApplication::topLevelWidgets())
      if (widget->isVisible() && (widget->inherits("QDialog") || widget->inherits("QMenu"))) {
        widget->close();
        ++closed;
      }
    return closed;
  }
  template <class Dialog>
  static Dialog* open_dialog() {
    for (QWidget* widget : QApplication::topLevelWidgets())
      if (auto* dialog = qobject_cast<Dialog*>(widget); dialog != nullptr && dialog->isVisible())
        return dialog;
    return nullptr;
  }

  std::unique_ptr<Workbench> workbench;
  std::unique_ptr<MainWindow> window;
};

}  // namespace meshwright::gui
