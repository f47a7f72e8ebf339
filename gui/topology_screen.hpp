/// S5: the job's devices in their nodes, coloured by the groups of one axis; a click shows every
/// group a device belongs to and what joins its members.
#pragma once

#include "gui/screen.hpp"

class QComboBox;
class QLabel;

namespace meshwright::gui {

class TopologyMap;

class TopologyScreen : public Screen {
  Q_OBJECT
 public:
  explicit TopologyScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "topology"; }
  QString title() const override { return tr("Topology"); }
  void add_actions(ActionSet& actions) override;
  bool is_settled() override;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  /// Only while it can be seen: a slider moves often.
  void show_simulation();
  void show_device(int rank);

  QComboBox* axis_;
  QLabel *cluster_, *device_;
  TopologyMap* map_;
};

}  // namespace meshwright::gui
