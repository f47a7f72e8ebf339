/// S2: the scenario's timeline, updated with every change of a parameter; the bubble formula next
/// to the simulated value; schedule editing by dragging passes.
#pragma once

#include <QLabel>
#include <QTextBrowser>
#include <QTimer>
#include <functional>
#include <string>
#include "gui/screens/slice_table.hpp"
#include "gui/widgets/legend_strip.hpp"

#include "gui/screens/screen.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {

class ExploreScreen : public Screen {
  Q_OBJECT
 public:
  explicit ExploreScreen(Workbench& workbench, QWidget* parent = nullptr);
  void add_actions(ActionSet& actions) override;
  QWidget* inspector() override { return inspector_; }
  bool take(const OpenedFile& file) override;
  bool is_settled() override;
  TimelineView& view() { return *view_; }
  SliceTable& table() { return *table_; }

 private:
  void connect_view();
  void add_edit_actions(ActionSet& actions);
  void add_export_actions(ActionSet& actions);
  void add_view_switches(ActionSet& actions);
  void show_simulation();
  void show_tracks();
  void show_legend();
  void show_causes();
  void show_ghost();
  void show_formula();
  void show_slice(qint64 slice);
  void show_area(const TimelineArea& area);
  void apply_preferences();
  QString judge(const OrderEdit& edit) const;
  void take_order(const OrderEdit& edit);
  void toggle_snapshot();
  void swap_with_snapshot();
  void make_to_measure();
  void save_plan();
  void save_schedule();
  void export_picture();
  void copy_picture();
  void copy(QString (*text)(const TimelineSnapshot&));
  void copy_state();
  void paste_state();
  void save(const QString& title, const QString& pattern, const QString& suffix,
            const std::function<std::string()>& content);

  TimelineView* view_ = new TimelineView;
  SliceTable* table_ = new SliceTable(*view_);  ///< hidden by default
  QLabel* formula_ = new QLabel;
  QLabel* problems_ = new QLabel;
  LegendStrip* legend_ = new LegendStrip;
  std::string schedule_shown_;
  QTextBrowser* inspector_ = new QTextBrowser(this);
  QTimer overview_;  ///< limits updates of the inspector: rich text is slow to lay out
};

}  // namespace meshwright::gui
