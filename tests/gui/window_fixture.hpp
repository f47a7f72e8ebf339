/// A window as a user has it, with settings of its own.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QSettings>
#include <QSignalSpy>
#include <QTest>
#include <memory>

#include "gui/main_window.hpp"

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

  bool settles() {
    return QTest::qWaitFor([this] { return window->is_settled(); }, kPatienceMs);
  }
  /// Every dialog, menu and popup that is open; a nested event loop ends with its dialog.
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
