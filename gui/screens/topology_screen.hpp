/// S5: nodes and devices of the job, colored by the process groups of one axis; a click shows all
/// process groups of a device, and the nodes they span.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QTableWidget>
#include <memory>
#include <optional>
#include "gui/widgets/topology_map.hpp"

#include "gui/screens/screen.hpp"
#include "gui/session/simulation.hpp"
#include "simulator/predict/link_use.hpp"

namespace meshwright::gui {

class TopologyScreen : public Screen {
  Q_OBJECT
 public:
  explicit TopologyScreen(Workbench& workbench, QWidget* parent = nullptr);
  void add_actions(ActionSet& actions) override;
  QWidget* inspector() override { return table_; }
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

  QComboBox* axis_ = new QComboBox;
  QLabel* cluster_ = new QLabel;
  QLabel* device_ = new QLabel;
  TopologyMap* map_ = new TopologyMap;
  QTableWidget* table_ = new QTableWidget(0, 3);
  std::shared_ptr<const Simulation> links_of_;
  std::optional<LinkUses> links_;
};

}  // namespace meshwright::gui
