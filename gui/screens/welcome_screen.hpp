/// S1: examples, the scenario of the last session, recent files and a drop zone for files.
#pragma once

#include <QFrame>
#include <QListWidget>
#include <QPushButton>
#include "gui/screens/screen.hpp"
#include "gui/session/scenario.hpp"

class QVBoxLayout;

namespace meshwright::gui {

class WelcomeScreen : public Screen {
  Q_OBJECT
 public:
  explicit WelcomeScreen(Workbench& workbench, QWidget* parent = nullptr);
  void add_actions(ActionSet& actions) override;
  void come_to_front() override;

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragLeaveEvent(QDragLeaveEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void add_examples(QVBoxLayout& column);
  void open_example(const QString& name);
  void show_drop_zone_active(bool active);
  void open_kept_scenario();
  QPushButton* continue_ = new QPushButton;
  QListWidget* recent_ = new QListWidget;
  QFrame* drop_zone_ = new QFrame;
};

/// Recently opened files, latest first; stored between runs of the program.
QStringList recent_files();
void add_recent_file(const QString& path);

/// Stores the scenario for the next start as a line of gui/session/state_text.hpp; it must not have
/// manual orders.
void keep_scenario(const Scenario& scenario);

}  // namespace meshwright::gui
