/// S6: memory breakdown: peak memory per pipeline rank
/// and class, and memory over time for one pipeline rank.
#pragma once

#include <QLabel>
#include <QTableWidget>
#include "gui/screens/screen.hpp"
#include "gui/widgets/memory_bars.hpp"
#include "gui/widgets/memory_curve.hpp"

namespace meshwright::gui {

class MemoryScreen : public Screen {
  Q_OBJECT
 public:
  explicit MemoryScreen(Workbench& workbench, QWidget* parent = nullptr);
  bool is_settled() override;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  /// Updates only while visible, because sliders trigger many simulations.
  void show_simulation();
  void show_table();
  void show_pipeline_rank(int pipeline_rank);
  QWidget* make_legend();

  MemoryBars* bars_ = new MemoryBars;
  MemoryCurve* curve_ = new MemoryCurve;
  QTableWidget* table_ = new QTableWidget;
  QLabel* verdict_ = new QLabel;
  std::vector<std::size_t> fullest_;  ///< by pipeline rank: index into the graph's ranks
};

}  // namespace meshwright::gui
