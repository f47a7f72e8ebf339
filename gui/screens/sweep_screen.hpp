/// S7: one metric over two parameters as a heat map with
/// contour lines; a click applies the cell to the scenario.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <optional>
#include <vector>

#include "gui/screens/screen.hpp"
#include "gui/session/sweep_axis.hpp"
#include "gui/widgets/heat_map.hpp"

namespace meshwright::gui {

class SweepScreen : public Screen {
  Q_OBJECT
 public:
  explicit SweepScreen(Workbench& workbench, QWidget* parent = nullptr);
  void add_actions(ActionSet& actions) override;
  void come_to_front() override;
  bool is_settled() override { return !grid_.cells.empty(); }
  HeatMap& map() { return *map_; }

 private:
  /// The figures of one simulated scenario, or why it is invalid.
  struct Cell {
    std::optional<PlanFigures> figures;
    QString problem;
  };
  /// The latest request. Cells are in row-major order.
  struct Grid {
    SweepAxis rows, columns;
    std::vector<Scenario> scenarios;
    std::vector<Cell> cells;  ///< empty while simulating
  };
  void start();
  void show_grid();
  void take_over(int row, int column);

  QComboBox* rows_ = new QComboBox;
  QComboBox* columns_ = new QComboBox;
  QComboBox* figure_ = new QComboBox;
  QLabel* note_ = new QLabel;
  HeatMap* map_ = new HeatMap;
  Grid grid_;
  Scenario base_;
};

}  // namespace meshwright::gui
