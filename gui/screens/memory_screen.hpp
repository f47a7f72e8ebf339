/// S6: memory breakdown: peak memory per pipeline rank
/// and class, and memory over time for one pipeline rank.
#pragma once

#include "gui/screens/screen.hpp"

class QLabel;
class QTableWidget;

namespace meshwright::gui {

class MemoryBars;
class MemoryCurve;

class MemoryScreen : public Screen {
  Q_OBJECT
 public:
  explicit MemoryScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "memory"; }
  QString title() const override { return tr("Memory"); }
  bool is_settled() override;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  /// Updates only while visible, because sliders trigger many simulations.
  void show_simulation();
  void show_table();
  void show_pipeline_rank(int pipeline_rank);
  QWidget* make_legend();

  MemoryBars* bars_;
  MemoryCurve* curve_;
  QTableWidget* table_;
  QLabel* verdict_;
  std::vector<std::size_t> fullest_;  ///< by pipeline rank: index into the graph's ranks
};

}  // namespace meshwright::gui
