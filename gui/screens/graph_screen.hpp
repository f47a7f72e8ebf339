/// Plans of a graph of operators (ONNX): a table, the graph colored by stage, and the timeline of
/// the chosen plan's step.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSpinBox>
#include <QTableWidget>
#include <memory>
#include <optional>

#include "gui/screens/screen.hpp"
#include "gui/session/graph_search.hpp"
#include "gui/session/jobs.hpp"
#include "gui/timeline_view/timeline_view.hpp"
#include "gui/widgets/graph_map.hpp"

namespace meshwright::gui {

class EmptyNotice;

class GraphScreen : public Screen {
  Q_OBJECT
 public:
  explicit GraphScreen(Workbench& workbench, QWidget* parent = nullptr);
  void add_actions(ActionSet& actions) override;
  QWidget* inspector() override { return operators_; }
  bool take(const OpenedFile& file) override;
  bool is_settled() override { return !cancel_->isEnabled() && !is_drawing_; }
  void start();
  void cancel();
  const GraphAnswer* answer() const { return answer_.get(); }
  QTableWidget& table() { return *table_; }
  GraphMap& map() { return *map_; }

 private:
  QWidget* make_knobs();
  void choose_file();
  void show_answer(std::shared_ptr<const GraphAnswer> answer);
  void choose(int plan);
  void show_box(int box);
  void show_failure(const JobFailure& failure);

  QLabel* file_ = new QLabel;
  QComboBox* cluster_ = new QComboBox;
  QSpinBox* gpus_ = new QSpinBox;
  QSpinBox* batch_ = new QSpinBox;
  QSpinBox* micro_batch_ = new QSpinBox;
  QComboBox* tensor_ = new QComboBox;
  QPushButton* start_ = new QPushButton(tr("&Plan"));
  QPushButton* cancel_ = new QPushButton(tr("&Cancel"));
  QLabel* note_ = new QLabel;
  EmptyNotice* notice_;
  QTableWidget* table_ = new QTableWidget;
  GraphMap* map_ = new GraphMap;
  TimelineView* view_ = new TimelineView;
  QTableWidget* operators_ = new QTableWidget(0, 4);
  std::optional<NamedText> graph_;
  std::shared_ptr<const GraphAnswer> answer_;
  int plan_ = -1;
  bool is_drawing_ = false;
};

}  // namespace meshwright::gui
