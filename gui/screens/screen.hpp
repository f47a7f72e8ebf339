/// A page in the center of the window. To add one, derive from this class and list it in
/// screens.cpp; see gui/README.md.
#pragma once

#include <QWidget>

#include "gui/session/opened_file.hpp"

namespace meshwright::gui {

class ActionSet;
class Workbench;

struct ScreenTraits {
  QString name;   ///< stable and never translated: "explore"; for --screen, settings and tests
  QString title;  ///< of the tab: tr("Explore")
  bool uses_scenario = true;   ///< the scenario panel and the key figures are shown with it
  bool shows_toolbar = false;  ///< the timeline toolbar is shown with it
};

class Screen : public QWidget {
  Q_OBJECT
 public:
  Screen(Workbench& workbench, ScreenTraits traits, QWidget* parent)
      : QWidget(parent), workbench_(workbench), traits_(std::move(traits)) {}

  const ScreenTraits& traits() const { return traits_; }
  /// Adds the actions of this screen; called once.
  virtual void add_actions(ActionSet&) {}
  /// Widget for the inspector dock while this screen is in front; null for none. The screen keeps a
  /// pointer to it; the window owns it as a child.
  virtual QWidget* inspector() { return nullptr; }
  /// Handles an opened file; returns false for files of other screens. Screens are asked in tab
  /// order, and the first one that returns true comes to the front.
  virtual bool take(const OpenedFile&) { return false; }
  /// Called when the screen comes to the front.
  virtual void come_to_front() {}
  /// False while a screenshot should wait for this screen. Jobs are waited for in any case.
  virtual bool is_settled() { return true; }

 protected:
  Workbench& workbench() { return workbench_; }

 private:
  Workbench& workbench_;
  ScreenTraits traits_;
};

}  // namespace meshwright::gui
