/// S4: plan search: a table and a Pareto plot of the plans, the
/// rationale of each, its breakdown against the best one and its launch
/// command. Strategy parameters can be fixed to the scenario's values.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "gui/screens/screen.hpp"
#include "gui/session/scenario.hpp"
#include "planner/search/search.hpp"

class QCheckBox;
class QLabel;
class QPushButton;
class QTabWidget;
class QTableWidget;
class QTextBrowser;

namespace meshwright::gui {

class EmptyNotice;
class HandOver;
class MemoryBars;
class ParetoScatter;
class Waterfall;

class PlansScreen : public Screen {
  Q_OBJECT
 public:
  explicit PlansScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "plans"; }
  QString title() const override { return tr("Plans"); }
  void add_actions(ActionSet& actions) override;
  bool is_settled() override;
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

  QPushButton *start_, *cancel_;
  QLabel* certificate_;
  EmptyNotice* notice_;
  QTableWidget* table_;
  ParetoScatter* scatter_;
  Waterfall* waterfall_;
  QTextBrowser* why_;
  QTabWidget* pages_;
  MemoryBars* memory_;
  HandOver* hand_over_;
  std::vector<Lock> locks_;
  Scenario asked_;  ///< the scenario of the search
  std::optional<SearchResult> result_;
  std::vector<PlanFigures> figures_;
  bool is_searching_ = false;
};

}  // namespace meshwright::gui
