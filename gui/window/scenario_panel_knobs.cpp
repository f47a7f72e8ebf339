/// The inputs of the scenario panel, and what each of them changes.
#include <QFileDialog>
#include <QFormLayout>
#include <QGroupBox>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "core/schedule/schedule.hpp"
#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/window/scenario_panel.hpp"
#include "models/load/load.hpp"
#include "planner/search/space.hpp"

namespace meshwright::gui {
namespace {

constexpr int kMostDegree = 4096, kMostMicrobatches = 4096, kMostSequence = 1 << 24;

QVBoxLayout* add_group(QVBoxLayout& column, const QString& title) {
  auto* group = new QGroupBox(title);
  auto* inner = new QVBoxLayout(group);
  inner->setContentsMargins(0, 8, 0, 4);
  inner->setSpacing(6);
  column.addWidget(group);
  return inner;
}

}  // namespace

CountKnob* ScenarioPanel::add_knob(QVBoxLayout& column, const QString& flag, const KnobText& text,
                                   std::vector<int> stops, int most,
                                   const std::function<void(Scenario&, int)>& change) {
  auto* made = new CountKnob(text, std::move(stops), most);
  made->setObjectName(flag);
  column.addWidget(made);
  knobs_[flag] = made;
  fields_[flag] = made->box();
  connect(made, &CountKnob::moved, this, [this, flag, text, change](int value) {
    edit(QString("%1 %2").arg(text.label).arg(value), flag, [&](Scenario& s) { change(s, value); });
  });
  connect(made, &CountKnob::settled, &workbench_.scenario(), &ScenarioEditor::end_gesture);
  return made;
}

QLabel* ScenarioPanel::add_problem_label(QVBoxLayout& column, const QString& flag) {
  auto* label = new QLabel;
  label->setProperty("role", "problem");
  label->setWordWrap(true);
  label->hide();
  column.addWidget(label);
  problems_[flag] = label;
  return label;
}

QComboBox* ScenarioPanel::add_choice(QVBoxLayout& column, const QString& flag, const QString& label,
                                     const QString& hint,
                                     const std::function<void(Scenario&, int)>& change) {
  auto* box = new QComboBox;
  box->setObjectName(flag);
  box->setToolTip(hint);
  box->setAccessibleName(label);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(12);
  auto* row = new QHBoxLayout;
  auto* name = new QLabel(label);
  name->setBuddy(box);
  name->setToolTip(hint);
  row->addWidget(name);
  row->addWidget(box, 1);
  column.addLayout(row);
  add_problem_label(column, flag);
  fields_[flag] = box;
  connect(box, &QComboBox::activated, this, [this, box, label, change](int index) {
    edit(QString("%1 %2").arg(label, box->itemText(index)), {},
         [&](Scenario& s) { change(s, index); });
  });
  return box;
}

void ScenarioPanel::add_job(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Job"));
  const auto add_source = [&](const QString& flag, const QString& label, const QString& hint,
                              bool is_model, const std::vector<std::string>& names) {
    QComboBox* box = add_choice(*group, flag, label, hint, [](Scenario&, int) {});
    for (const std::string& name : names) box->addItem(QString::fromStdString(name));
    box->insertSeparator(box->count());
    box->addItem(tr("Open file…"));
    box->disconnect(SIGNAL(activated(int)));
    connect(box, &QComboBox::activated, this,
            [this, box, is_model](int index) { choose_source(*box, is_model, index); });
    return box;
  };
  model_ = add_source("model", tr("Model"), tr("Model to train: a preset or a config.json"), true,
                      model_preset_names());
  cluster_ =
      add_source("cluster", tr("Cluster"), tr("Cluster to train on: a preset or a TOML file"),
                 false, cluster_preset_names());
  devices_ = new QLabel;
  devices_->setProperty("role", "faint");
  devices_->setWordWrap(true);
  group->addWidget(devices_);
}

void ScenarioPanel::add_pipeline(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Pipeline"));
  schedule_ =
      add_choice(*group, "schedule", tr("Schedule"),
                 tr("Pipeline schedule. Press Alt+← and Alt+→ to step through all schedules"),
                 [this](Scenario& s, int index) {
                   set_schedule(s, schedule_->itemData(index).toString().toStdString());
                 });
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.name == kSynthesizedSchedule) continue;
    const QString name = qstring_of(rule.name);
    schedule_->addItem(name, name);
    schedule_->setItemData(schedule_->count() - 1,
                           QString("%1\n%2").arg(qstring_of(rule.summary), qstring_of(rule.source)),
                           Qt::ToolTipRole);
  }
  schedule_->setMaxVisibleItems(30);
  add_knob(*group, "pp", {tr("Pipeline-parallel size"), "p", tr("Number of pipeline ranks")},
           count_stops(64), kMostDegree, set_pipeline_degree);
  add_knob(*group, "microbatches",
           {tr("Micro-batches"), "m",
            tr("Micro-batches per replica and step. With m < p the pipeline never fills")},
           count_stops(512), kMostMicrobatches, set_microbatches);
  add_knob(*group, "vpp",
           {tr("Model chunks per rank"), "v",
            tr("Model chunks (virtual pipeline stages) per pipeline rank")},
           count_stops(16), 64, set_chunks);
}

void ScenarioPanel::add_stages(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Time per pipeline rank"));
  bars_ = new StageBars;
  group->addWidget(bars_);
  connect(bars_, &StageBars::slowness_changed, this, [this](int position, double factor) {
    edit(tr("Slow down pipeline rank %1 ×%2").arg(position).arg(factor), "slowness",
         [&](Scenario& s) { set_slowness(s, position, factor); });
  });
  connect(bars_, &StageBars::settled, &workbench_.scenario(), &ScenarioEditor::end_gesture);
}

void ScenarioPanel::add_split(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Parallelism"));
  const auto degree = [&](const QString& flag, const KnobText& text, int most,
                          int ParallelDegrees::*d) {
    add_knob(*group, flag, text, power_stops(most), kMostDegree,
             [d](Scenario& s, int value) { s.strategy.degrees.*d = value; });
  };
  add_knob(*group, "tp",
           {tr("Tensor-parallel size"), "tp", tr("Number of shards of each weight matrix")},
           power_stops(64), kMostDegree, set_tensor_degree);
  add_knob(*group, "dp",
           {tr("Data-parallel size"), "dp",
            tr("Number of model replicas. The number of micro-batches stays the same; the global "
               "batch size follows")},
           power_stops(1024), kMostDegree, set_data_degree);
  degree("cp", {tr("Context-parallel size"), "cp", tr("Number of shards of each sequence")}, 64,
         &ParallelDegrees::context);
  degree("ep",
         {tr("Expert-parallel size"), "ep",
          tr("Number of ranks that the experts are distributed over")},
         256, &ParallelDegrees::expert);
  sequence_parallel_ = new QCheckBox(tr("Sequence parallelism"));
  sequence_parallel_->setToolTip(
      tr("Shards layer norms and dropouts along the sequence over the tensor-parallel ranks"));
  fields_["sequence-parallel"] = sequence_parallel_;
  group->addWidget(sequence_parallel_);
  add_problem_label(*group, "sequence-parallel");
  connect(sequence_parallel_, &QCheckBox::clicked, this, [this](bool on) {
    edit(tr("Sequence parallelism"), {}, [&](Scenario& s) { s.strategy.sequence_parallel = on; });
  });
  zero_ = add_choice(
      *group, "zero", tr("ZeRO"),
      tr("Sharding over the data-parallel replicas: optimizer state, gradients, parameters"),
      [](Scenario& s, int index) { s.strategy.zero = index; });
  zero_->addItems({tr("0: no sharding"), tr("1: optimizer state"), tr("2: + gradients"),
                   tr("3: + parameters")});
  recompute_ = add_choice(
      *group, "recompute", tr("Recompute"),
      tr("Activations that the backward pass recomputes instead of keeping them in memory"),
      [](Scenario& s, int index) {
        s.strategy.recompute = recompute_choices()[static_cast<std::size_t>(index)];
      });
  recompute_->addItems({tr("none"), tr("selective"), tr("full")});
}

void ScenarioPanel::add_batch(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Batch"));
  add_knob(*group, "micro-batch",
           {tr("Micro-batch size"), "b",
            tr("Sequences per micro-batch. The number of micro-batches stays the same; the global "
               "batch size follows")},
           power_stops(64), kMostDegree, set_micro_batch);
  std::vector<int> lengths;
  for (int length = 128; length <= 1 << 20; length *= 2) lengths.push_back(length);
  add_knob(*group, "seq", {tr("Sequence length"), "s", tr("Tokens per sequence")}, lengths,
           kMostSequence, [](Scenario& s, int value) { s.strategy.sequence_length = value; });
  dtype_ =
      add_choice(*group, "dtype", tr("Precision"), tr("Number format of matrix multiplications"),
                 [](Scenario& s, int index) { s.strategy.dtype = kDtypeChoices[index]; });
  for (const Dtype dtype : kDtypeChoices) dtype_->addItem(qstring_of(meshwright::name_of(dtype)));
}

TimeKnob* ScenarioPanel::add_time(QVBoxLayout& column, const KnobText& text,
                                  std::optional<Ticks> WhatIf::*time) {
  auto* made = new TimeKnob(text);
  column.addWidget(made);
  connect(made, &TimeKnob::moved, this, [this, text, time](qint64 ticks) {
    edit(QString("%1 %2").arg(text.label, time_text(Ticks(ticks))), text.symbol,
         [&](Scenario& s) { s.what_if.*time = Ticks(ticks); });
  });
  connect(made, &TimeKnob::settled, &workbench_.scenario(), &ScenarioEditor::end_gesture);
  return made;
}

void ScenarioPanel::add_times(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Pass times"));
  by_hand_ = new QCheckBox(tr("Set manually"));
  by_hand_->setToolTip(
      tr("Sets the same pass times for all stages, replacing the cost model. Use the bars above to "
         "change individual pipeline ranks"));
  group->addWidget(by_hand_);
  connect(by_hand_, &QCheckBox::clicked, this, &ScenarioPanel::set_times_by_hand);
  times_ = new QWidget;
  auto* inner = new QVBoxLayout(times_);
  inner->setContentsMargins(0, 0, 0, 0);
  forward_ = add_time(
      *inner, {tr("Forward"), "t<sub>F</sub>", tr("Forward pass of one micro-batch on one stage")},
      &WhatIf::forward);
  backward_ = add_time(*inner,
                       {tr("Input gradient"), "t<sub>B</sub>",
                        tr("Backward-input pass; the previous stage waits for it")},
                       &WhatIf::backward_input);
  weight_ = add_time(*inner,
                     {tr("Weight gradient"), "t<sub>W</sub>",
                      tr("Backward-weight pass; can run any time after the input gradient")},
                     &WhatIf::backward_weight);
  message_ = add_time(
      *inner,
      {tr("Message"), "t<sub>C</sub>", tr("Transfer between stages, overlapped with compute")},
      &WhatIf::message);
  group->addWidget(times_);
}

}  // namespace meshwright::gui
