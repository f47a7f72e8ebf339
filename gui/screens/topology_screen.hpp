/// S5: nodes and devices of the job, colored by the process groups of one axis; a click shows all
/// process groups of a device, and the nodes they span.
#pragma once

#include <memory>
#include <optional>

#include "gui/screens/screen.hpp"
#include "gui/session/simulation.hpp"
#include "simulator/predict/link_use.hpp"

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
  /// Link utilization of the current scenario; null
  /// until computed, or if the scenario is too large.
  const LinkUses* links() const { return links_ ? &*links_ : nullptr; }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  /// Updates only while visible, because sliders trigger many simulations.
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
