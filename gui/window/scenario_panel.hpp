/// The parameters of the scenario. Every change goes through the ScenarioEditor and can be undone;
/// problems are shown below the parameter that causes them.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QScrollArea>
#include <map>

#include "gui/session/workbench.hpp"
#include "gui/widgets/knob.hpp"
#include "gui/widgets/stage_bars.hpp"

class QVBoxLayout;

namespace meshwright::gui {

class ScenarioPanel : public QScrollArea {
  Q_OBJECT
 public:
  explicit ScenarioPanel(Workbench& workbench, QWidget* parent = nullptr);
  /// Looks up an input by its command-line flag: "pp", "global-batch". Null for unknown flags.
  CountKnob* knob(const QString& flag) const;
  QComboBox* schedules() { return schedule_; }
  StageBars* stage_bars() { return bars_; }
  /// Scrolls to the input that a diagnostic refers to and focuses it.
  void go_to_problem(const QString& where);
  /// Selects the next or previous schedule that is valid for the current degrees.
  void step_schedule(int direction);

 private:
  void add_job(QVBoxLayout& column);
  void add_pipeline(QVBoxLayout& column);
  void add_split(QVBoxLayout& column);
  void add_batch(QVBoxLayout& column);
  void add_times(QVBoxLayout& column);
  void add_stages(QVBoxLayout& column);
  CountKnob* add_knob(QVBoxLayout& column, const QString& flag, const KnobText& text,
                      std::vector<int> stops, int most,
                      const std::function<void(Scenario&, int)>& change);
  QComboBox* add_choice(QVBoxLayout& column, const QString& flag, const QString& label,
                        const QString& hint, const std::function<void(Scenario&, int)>& change);
  TimeKnob* add_time(QVBoxLayout& column, const KnobText& text, std::optional<Ticks> WhatIf::*time);
  void edit(const QString& text, const QString& gesture,
            const std::function<void(Scenario&)>& change);
  void choose_source(QComboBox& box, bool is_model, int index);
  void set_times_by_hand(bool by_hand);
  void show_scenario();
  void show_simulation();
  void show_source(QComboBox& box, const NamedText& text);
  QLabel* add_problem_label(QVBoxLayout& column, const QString& flag);

  Workbench& workbench_;
  std::map<QString, CountKnob*> knobs_;
  std::map<QString, QLabel*> problems_;  ///< problem labels of other inputs, by flag
  std::map<QString, QWidget*> fields_;   ///< widget to focus, by flag
  QComboBox *model_, *cluster_, *schedule_, *recompute_, *zero_, *dtype_;
  QCheckBox *sequence_parallel_, *by_hand_;
  QWidget* times_;
  TimeKnob *forward_, *backward_, *weight_, *message_;
  StageBars* bars_;
  QLabel *devices_, *other_problems_;
  bool is_showing_ = false;  ///< true while inputs are set by the program, not by the user
};

}  // namespace meshwright::gui
