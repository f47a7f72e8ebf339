/// One page in the centre of the window. To add one: a class here, a line in screens.cpp; see
/// README.md.
#pragma once

#include <QWidget>

#include "gui/opened_file.hpp"

namespace meshwright::gui {

class ActionSet;
class Workbench;

class Screen : public QWidget {
  Q_OBJECT
 public:
  explicit Screen(Workbench& workbench, QWidget* parent = nullptr)
      : QWidget(parent), workbench_(workbench) {}

  /// Never translated, never changed: "explore". For --screen, settings and tests.
  virtual QString name() const = 0;
  /// On the tab: tr("Explore").
  virtual QString title() const = 0;
  /// True: the knobs of the scenario and its figures are shown around this screen.
  virtual bool uses_scenario() const { return true; }
  /// True: the toolbar, which is about the scenario's timeline, stands above this screen.
  virtual bool shows_toolbar() const { return false; }
  /// Adds everything that the user can do here; called once.
  virtual void add_actions(ActionSet&) {}
  /// Shown in the dock on the right while this screen is in front; null: no dock. The screen keeps
  /// it, the window only shows it.
  virtual QWidget* inspector() { return nullptr; }
  /// A file was opened; true if it is this screen's business. Screens are asked in tab order, and
  /// the first that says true comes to the front.
  virtual bool take(const OpenedFile&) { return false; }
  /// The screen came to the front.
  virtual void come_to_front() {}
  /// False while something is still being worked out that a screenshot should wait for. Jobs are
  /// waited for without it.
  virtual bool is_settled() { return true; }

 protected:
  Workbench& workbench() { return workbench_; }

 private:
  Workbench& workbench_;
};

}  // namespace meshwright::gui
