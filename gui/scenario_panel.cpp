#include "gui/scenario_panel.hpp"

#include <QFileDialog>
#include <QFormLayout>
#include <QGroupBox>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "core/schedule.hpp"
#include "gui/number_text.hpp"
#include "models/load.hpp"
#include "planner/candidates.hpp"

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

/// A scenario's passes with the cost model's own times, to begin with.
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

const std::vector<Recompute>& recompute_choices() {
  static const std::vector<Recompute> all{
      {RecomputeKind::kNone, 0}, {RecomputeKind::kSelective, 0}, {RecomputeKind::kFull, 0}};
  return all;
}

constexpr Dtype kDtypes[]{Dtype::kBf16, Dtype::kFp16, Dtype::kFp32, Dtype::kFp8};

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

// ---- building -----------------------------------------------------------------------------------

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
    box->addItem(tr("From a file…"));
    box->disconnect(SIGNAL(activated(int)));
    connect(box, &QComboBox::activated, this,
            [this, box, is_model](int index) { choose_source(*box, is_model, index); });
    return box;
  };
  model_ = add_source("model", tr("Model"), tr("What is trained: a preset or a config.json"), true,
                      model_preset_names());
  cluster_ =
      add_source("cluster", tr("Cluster"), tr("What it is trained on: a preset or a TOML file"),
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
                 tr("Order of forwards and backwards. Alt+← and Alt+→ step through all of them"),
                 [this](Scenario& s, int index) {
                   set_schedule(s, schedule_->itemData(index).toString().toStdString());
                 });
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.name == kMadeToMeasure) continue;
    const QString name = QString::fromUtf8(rule.name.data(), static_cast<int>(rule.name.size()));
    schedule_->addItem(name, name);
    schedule_->setItemData(
        schedule_->count() - 1,
        QString("%1\n%2").arg(
            QString::fromUtf8(rule.summary.data(), static_cast<int>(rule.summary.size())),
            QString::fromUtf8(rule.source.data(), static_cast<int>(rule.source.size()))),
        Qt::ToolTipRole);
  }
  schedule_->setMaxVisibleItems(30);
  add_knob(*group, "pp",
           {tr("Pipeline devices"), "p", tr("Consecutive groups of layers, one per device")},
           count_stops(64), kMostDegree, set_pipeline_degree);
  add_knob(*group, "microbatches",
           {tr("Micro-batches"), "m",
            tr("Of one replica in one step. Below p the pipeline never fills")},
           count_stops(512), kMostMicrobatches, set_microbatches);
  add_knob(*group, "vpp", {tr("Chunks per device"), "v", tr("Stages that every device holds")},
           count_stops(16), 64, set_chunks);
}

void ScenarioPanel::add_stages(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Time per stage"));
  bars_ = new StageBars;
  group->addWidget(bars_);
  connect(bars_, &StageBars::slowness_changed, this, [this](int position, double factor) {
    edit(tr("Slow position %1 down ×%2").arg(position).arg(factor), "slowness",
         [&](Scenario& s) { set_slowness(s, position, factor); });
  });
  connect(bars_, &StageBars::settled, &workbench_.scenario(), &ScenarioEditor::end_gesture);
}

void ScenarioPanel::add_split(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Split"));
  const auto degree = [&](const QString& flag, const KnobText& text, int most,
                          int ParallelDegrees::*d) {
    add_knob(*group, flag, text, power_stops(most), kMostDegree,
             [d](Scenario& s, int value) { s.strategy.degrees.*d = value; });
  };
  add_knob(*group, "tp", {tr("Tensor ranks"), "tp", tr("Parts of every weight matrix")},
           power_stops(64), kMostDegree, set_tensor_degree);
  add_knob(*group, "dp",
           {tr("Replicas"), "dp",
            tr("Copies of the model; micro-batches stay, the global batch follows")},
           power_stops(1024), kMostDegree, set_data_degree);
  degree("cp", {tr("Context ranks"), "cp", tr("Parts of the sequence")}, 64,
         &ParallelDegrees::context);
  degree("ep", {tr("Expert ranks"), "ep", tr("Parts of the set of experts")}, 256,
         &ParallelDegrees::expert);
  sequence_parallel_ = new QCheckBox(tr("Sequence parallelism"));
  sequence_parallel_->setToolTip(
      tr("Norms and dropouts are cut along the sequence over the tensor ranks"));
  fields_["sequence-parallel"] = sequence_parallel_;
  group->addWidget(sequence_parallel_);
  add_problem_label(*group, "sequence-parallel");
  connect(sequence_parallel_, &QCheckBox::clicked, this, [this](bool on) {
    edit(tr("Sequence parallelism"), {}, [&](Scenario& s) { s.strategy.sequence_parallel = on; });
  });
  zero_ = add_choice(*group, "zero", tr("ZeRO"),
                     tr("What is cut over the replicas: optimizer state, gradients, parameters"),
                     [](Scenario& s, int index) { s.strategy.zero = index; });
  zero_->addItems({tr("0: nothing"), tr("1: optimizer state"), tr("2: and gradients"),
                   tr("3: and parameters")});
  recompute_ = add_choice(
      *group, "recompute", tr("Recompute"),
      tr("Activations that are worked out twice instead of kept"), [](Scenario& s, int index) {
        s.strategy.recompute = recompute_choices()[static_cast<std::size_t>(index)];
      });
  recompute_->addItems({tr("none"), tr("selective"), tr("full")});
}

void ScenarioPanel::add_batch(QVBoxLayout& column) {
  QVBoxLayout* group = add_group(column, tr("Batch"));
  add_knob(*group, "micro-batch",
           {tr("Sequences per micro-batch"), "b",
            tr("The number of micro-batches stays, the global batch follows")},
           power_stops(64), kMostDegree, set_micro_batch);
  std::vector<int> lengths;
  for (int length = 128; length <= 1 << 20; length *= 2) lengths.push_back(length);
  add_knob(*group, "seq", {tr("Tokens per sequence"), "s", tr("Length of one sequence")}, lengths,
           kMostSequence, [](Scenario& s, int value) { s.strategy.sequence_length = value; });
  dtype_ = add_choice(*group, "dtype", tr("Numbers"), tr("Format of the matrix products"),
                      [](Scenario& s, int index) { s.strategy.dtype = kDtypes[index]; });
  for (const Dtype dtype : kDtypes) {
    const std::string_view name = meshwright::name_of(dtype);
    dtype_->addItem(QString::fromUtf8(name.data(), static_cast<int>(name.size())));
  }
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
  by_hand_ = new QCheckBox(tr("By hand instead of the cost model"));
  by_hand_->setToolTip(tr("Every stage takes the same; the bars above change single positions"));
  group->addWidget(by_hand_);
  connect(by_hand_, &QCheckBox::clicked, this, &ScenarioPanel::set_times_by_hand);
  times_ = new QWidget;
  auto* inner = new QVBoxLayout(times_);
  inner->setContentsMargins(0, 0, 0, 0);
  forward_ = add_time(*inner, {tr("Forward"), "t<sub>F</sub>", tr("One micro-batch on one stage")},
                      &WhatIf::forward);
  backward_ = add_time(
      *inner, {tr("Input gradient"), "t<sub>B</sub>", tr("What the stage in front waits for")},
      &WhatIf::backward_input);
  weight_ = add_time(*inner,
                     {tr("Weight gradient"), "t<sub>W</sub>",
                      tr("May be done at any time after the input gradient")},
                     &WhatIf::backward_weight);
  message_ =
      add_time(*inner, {tr("Message"), "t<sub>C</sub>", tr("From stage to stage, beside the work")},
               &WhatIf::message);
  group->addWidget(times_);
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
    show_scenario();  // the box shows what is, until the file is read
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
  edit(by_hand ? tr("Pass times by hand") : tr("Pass times of the cost model"), {},
       [&](Scenario& s) {
         if (by_hand && simulation) {
           const WhatIf times = times_as_priced(*simulation);
           s.what_if = {times.forward, times.backward_input, times.backward_weight, times.message,
                        s.what_if.slowness};
         } else {
           s.what_if = {{}, {}, {}, {}, s.what_if.slowness};
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
  if (!s.orders.empty()) schedule_->setPlaceholderText(tr("edited by hand"));
  for (const auto& [flag, value] :
       {std::pair("pp", d.pipeline), std::pair("microbatches", microbatches(s)),
        std::pair("vpp", d.chunks), std::pair("tp", d.tensor), std::pair("dp", d.data),
        std::pair("cp", d.context), std::pair("ep", d.expert),
        std::pair("micro-batch", s.strategy.micro_batch),
        std::pair("seq", static_cast<int>(s.strategy.sequence_length))})
    knobs_[flag]->show_value(value);
  sequence_parallel_->setChecked(s.strategy.sequence_parallel);
  zero_->setCurrentIndex(s.strategy.zero);
  const auto& recomputes = recompute_choices();
  recompute_->setCurrentIndex(static_cast<int>(
      std::find(recomputes.begin(), recomputes.end(), s.strategy.recompute) - recomputes.begin()));
  dtype_->setCurrentIndex(static_cast<int>(
      std::find(std::begin(kDtypes), std::end(kDtypes), s.strategy.dtype) - std::begin(kDtypes)));
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
      tr("%1 devices, %2 sequences a step")
          .arg(count_text(rank_count(strategy.degrees)), count_text(strategy.global_batch)));
  if (s->is_sound()) bars_->show_times(s->time_of_position, s->scenario.what_if.slowness);
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
