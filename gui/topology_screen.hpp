/// S5: the job's devices in their nodes, coloured by the groups of one axis; a click shows every
/// group a device belongs to and what joins its members.
#pragma once

#include <memory>
#include <optional>

#include "gui/link_use.hpp"
#include "gui/screen.hpp"

class QComboBox;
class QLabel;
class QTableWidget;

namespace meshwright::gui {

class TopologyMap;

class TopologyScreen : public Screen {
  Q_OBJECT
 public:
  explicit TopologyScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "topology"; }
  QString title() const override { return tr("Topology"); }
  void add_actions(ActionSet& actions) override;
  QWidget* inspector() override;
  bool is_settled() override;
  /// Of the scenario that is shown; null until it is worked out, or where it is too large.
  const LinkUses* links() const { return links_ ? &*links_ : nullptr; }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  /// Only while it can be seen: a slider moves often.
  void show_simulation();
  void show_device(int rank);
  void find_links();
  void show_links();

  QComboBox* axis_;
  QLabel *cluster_, *device_;
  TopologyMap* map_;
  QTableWidget* table_;
  std::shared_ptr<const Simulation> links_of_;
  std::optional<LinkUses> links_;
};

}  // namespace meshwright::gui
