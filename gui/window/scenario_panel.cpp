#include "gui/window/scenario_panel.hpp"

#include <QFileDialog>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "core/schedule/schedule.hpp"
#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "models/load/load.hpp"
#include "planner/search/space.hpp"

namespace meshwright::gui {
namespace {

/// Initial values for manual pass times, taken from the cost model.
WhatIf times_as_priced(const Simulation& s) {
  WhatIf times = s.scenario.what_if;
  const auto& stages = s.stage_times;
  if (!stages || stages->forward.empty()) return times;
  const std::size_t middle = stages->forward.size() / 2;
  const Ticks backward = stages->backward_input[middle] + stages->backward_weight[middle];
  const bool is_split = stages->backward_weight[middle] > Ticks();
  times.forward = stages->forward[middle];
  times.backward_input = is_split ? stages->backward_input[middle] : backward / 2;
  times.backward_weight = backward - *times.backward_input;
  times.message = stages->latency;
  return times;
}

}  // namespace

ScenarioPanel::ScenarioPanel(Workbench& workbench, QWidget* parent)
    : QScrollArea(parent), workbench_(workbench) {
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(10, 6, 10, 10);
  column->setSpacing(4);
  other_problems_ = new QLabel;
  other_problems_->setProperty("role", "problem");
  other_problems_->setWordWrap(true);
  other_problems_->hide();
  column->addWidget(other_problems_);
  add_job(*column);
  add_pipeline(*column);
  add_stages(*column);
  add_split(*column);
  add_batch(*column);
  add_times(*column);
  column->addStretch();
  setWidget(content);
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setMinimumWidth(290);
  connect(&workbench_.scenario(), &ScenarioEditor::changed, this, &ScenarioPanel::show_scenario);
  connect(&workbench_, &Workbench::simulated, this, &ScenarioPanel::show_simulation);
  show_scenario();
}

// ---- editing ------------------------------------------------------------------------------------

void ScenarioPanel::edit(const QString& text, const QString& gesture,
                         const std::function<void(Scenario&)>& change) {
  if (!is_showing_) workbench_.scenario().edit(text, gesture, change);
}

void ScenarioPanel::choose_source(QComboBox& box, bool is_model, int index) {
  if (index == box.count() - 1) {
    const QString path = QFileDialog::getOpenFileName(
        this, is_model ? tr("Model") : tr("Cluster"), {},
        is_model ? tr("HuggingFace configurations (*.json)") : tr("Cluster files (*.toml)"));
    show_scenario();  // keep showing the current source until the file is read
    if (!path.isEmpty()) workbench_.open({path});
    return;
  }
  const std::string name = box.itemText(index).toStdString();
  const NamedText text = is_model ? find_model(name) : find_cluster(name);
  edit(box.itemText(index), {}, [&](Scenario& s) {
    (is_model ? s.model : s.cluster) = text;
    s.blocks_per_stage.clear();
  });
}

void ScenarioPanel::set_times_by_hand(bool by_hand) {
  const auto simulation = workbench_.sound_simulation();
  edit(by_hand ? tr("Set pass times manually") : tr("Use pass times of the cost model"), {},
       [&](Scenario& s) {
         if (by_hand && simulation) {
           const WhatIf times = times_as_priced(*simulation);
           s.what_if = times;
         } else {
           s.what_if = {.slowness = s.what_if.slowness};
         }
       });
}

void ScenarioPanel::step_schedule(int direction) {
  const int count = schedule_->count();
  const int now = std::max(0, schedule_->currentIndex());
  for (int step = 1; step < count; ++step) {
    const int next = ((now + direction * step) % count + count) % count;
    Scenario tried = workbench_.scenario().scenario();
    const std::string name = schedule_->itemData(next).toString().toStdString();
    set_schedule(tried, name);
    const ScheduleRule* rule = find_schedule_rule(name);
    if (rule == nullptr || rule->problem(request_of(tried.strategy))) continue;
    edit(tr("Schedule %1").arg(schedule_->itemText(next)), {}, [&](Scenario& s) { s = tried; });
    return;
  }
}

CountKnob* ScenarioPanel::knob(const QString& flag) const {
  const auto found = knobs_.find(flag);
  return found == knobs_.end() ? nullptr : found->second;
}

// ---- showing ------------------------------------------------------------------------------------

void ScenarioPanel::show_source(QComboBox& box, const NamedText& text) {
  const QString name = QString::fromStdString(text.name);
  int index = box.findText(name);
  if (index < 0) {
    box.insertItem(0, name);
    index = 0;
  }
  box.setCurrentIndex(index);
}

void ScenarioPanel::show_scenario() {
  is_showing_ = true;
  const Scenario& s = workbench_.scenario().scenario();
  const ParallelDegrees& d = s.strategy.degrees;
  show_source(*model_, s.model);
  show_source(*cluster_, s.cluster);
  schedule_->setCurrentIndex(schedule_->findData(QString::fromStdString(s.strategy.schedule)));
  if (!s.orders.empty()) schedule_->setPlaceholderText(tr("custom order"));
  for (const auto& [flag, value] : {std::pair("microbatches", microbatches(s)),
                                    std::pair("micro-batch", s.strategy.micro_batch),
                                    std::pair("seq", static_cast<int>(s.strategy.sequence_length))})
    knobs_[flag]->show_value(value);
  for (const ParallelSize& size : kParallelSizes)
    if (CountKnob* shown = knob(qstring_of(size.key))) shown->show_value(d.*size.size);
  sequence_parallel_->setChecked(s.strategy.sequence_parallel);
  zero_->setCurrentIndex(s.strategy.zero);
  const auto& recomputes = recompute_choices();
  recompute_->setCurrentIndex(static_cast<int>(
      std::find(recomputes.begin(), recomputes.end(), s.strategy.recompute) - recomputes.begin()));
  dtype_->setCurrentIndex(static_cast<int>(
      std::find(std::begin(kDtypeChoices), std::end(kDtypeChoices), s.strategy.dtype) -
      std::begin(kDtypeChoices)));
  const bool by_hand = sets_pass_times(s.what_if);
  by_hand_->setChecked(by_hand);
  times_->setVisible(by_hand);
  if (by_hand) {
    forward_->show_value(s.what_if.forward.value_or(Ticks()));
    backward_->show_value(s.what_if.backward_input.value_or(Ticks()));
    weight_->show_value(s.what_if.backward_weight.value_or(Ticks()));
    message_->show_value(s.what_if.message.value_or(Ticks()));
  }
  is_showing_ = false;
}

void ScenarioPanel::show_simulation() {
  const std::shared_ptr<const Simulation> s = workbench_.simulation();
  std::map<QString, QString> texts;
  QString others;
  for (const Diagnostic& problem : s->problems) {
    QString flag = QString::fromStdString(problem.where);
    flag.remove("--");
    if (flag == "global-batch") flag = "microbatches";
    const QString text = QString::fromStdString(
        problem.hint.empty() ? problem.what : problem.what + " – " + problem.hint);
    const bool is_known = knobs_.contains(flag) || problems_.contains(flag);
    QString& place = is_known ? texts[flag] : others;
    if (!place.isEmpty()) place += "\n";
    place += "⚠ " + text;
  }
  for (const auto& [flag, made] : knobs_) made->show_problem(texts[flag]);
  for (const auto& [flag, label] : problems_) {
    label->setText(texts[flag]);
    label->setVisible(!texts[flag].isEmpty());
  }
  other_problems_->setText(others);
  other_problems_->setVisible(!others.isEmpty());
  const Strategy& strategy = s->scenario.strategy;
  devices_->setText(
      tr("%1 devices, global batch size %2")
          .arg(count_text(rank_count(strategy.degrees)), count_text(strategy.global_batch)));
  if (s->is_sound()) bars_->show_times(s->time_of_pipeline_rank, s->scenario.what_if.slowness);
}

void ScenarioPanel::go_to_problem(const QString& where) {
  QString flag = where;
  flag.remove("--");
  if (flag == "global-batch") flag = "microbatches";
  const auto field = fields_.find(flag);
  if (field == fields_.end()) return;
  ensureWidgetVisible(field->second);
  field->second->setFocus(Qt::OtherFocusReason);
}

}  // namespace meshwright::gui
