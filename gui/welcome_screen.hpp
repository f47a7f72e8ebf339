/// S1: examples that open at once, the scenario of the last time, recent files, and a place to drop
/// files on.
#pragma once

#include "gui/scenario.hpp"
#include "gui/screen.hpp"

class QFrame;
class QListWidget;
class QPushButton;
class QVBoxLayout;

namespace meshwright::gui {

class WelcomeScreen : public Screen {
  Q_OBJECT
 public:
  explicit WelcomeScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "welcome"; }
  QString title() const override { return tr("Welcome"); }
  bool uses_scenario() const override { return false; }
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
  QPushButton* continue_;
  QListWidget* recent_;
  QFrame* drop_zone_;
};

/// Paths that were opened, latest first; kept between starts.
QStringList recent_files();
void add_recent_file(const QString& path);

/// For the next start, as the line of state_text.hpp: so it must have no orders by hand.
void keep_scenario(const Scenario& scenario);

}  // namespace meshwright::gui
