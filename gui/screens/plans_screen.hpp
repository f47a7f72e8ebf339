/// S4: plan search: a table and a Pareto plot of the plans, the
/// rationale of each, its breakdown against the best one and its launch
/// command. Strategy parameters can be fixed to the scenario's values.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTabWidget>
#include <QTableWidget>
#include <QTextBrowser>
#include <functional>
#include <optional>
#include <vector>
#include "gui/screens/hand_over.hpp"
#include "gui/widgets/memory_bars.hpp"
#include "gui/widgets/pareto_scatter.hpp"
#include "gui/widgets/waterfall.hpp"

#include "gui/screens/screen.hpp"
#include "gui/session/scenario.hpp"
#include "planner/search/search.hpp"

class QCheckBox;

namespace meshwright::gui {

class EmptyNotice;

class PlansScreen : public Screen {
  Q_OBJECT
 public:
  explicit PlansScreen(Workbench& workbench, QWidget* parent = nullptr);
  void add_actions(ActionSet& actions) override;
  bool is_settled() override { return !is_searching_; }
  /// Searches for the scenario's model, cluster, device count, global batch and sequence length.
  void start();
  void cancel();
  const SearchResult* result() const { return result_ ? &*result_ : nullptr; }
  QTableWidget& table() { return *table_; }
  HandOver& hand_over() { return *hand_over_; }

 private:
  /// A parameter that can be fixed to the scenario's value.
  struct Lock {
    QCheckBox* box;
    std::function<void(const Strategy&, FixedChoices&)> hold;
  };
  void add_lock(const QString& text, std::function<void(const Strategy&, FixedChoices&)> hold);
  QWidget* make_knobs();
  QWidget* make_details();
  void show_result(SearchResult result);
  void show_table();
  void choose(int plan);
  void show_difference(int plan);
  void show_memory(int plan);
  void take_over();
  Scenario scenario_of_plan(std::size_t plan) const;

  QPushButton* start_ = new QPushButton(tr("&Search"));
  QPushButton* cancel_ = new QPushButton(tr("&Cancel"));
  QLabel* certificate_ = new QLabel;
  EmptyNotice* notice_;
  QTableWidget* table_ = new QTableWidget;
  ParetoScatter* scatter_ = new ParetoScatter;
  Waterfall* waterfall_ = new Waterfall;
  QTextBrowser* why_ = new QTextBrowser;
  QTabWidget* pages_ = new QTabWidget;
  MemoryBars* memory_ = new MemoryBars;
  HandOver* hand_over_ = new HandOver;
  std::vector<Lock> locks_;
  Scenario asked_;  ///< the scenario of the search
  std::optional<SearchResult> result_;
  std::vector<PlanFigures> figures_;
  bool is_searching_ = false;
};

}  // namespace meshwright::gui
