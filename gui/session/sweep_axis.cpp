#include "gui/session/sweep_axis.hpp"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <set>

namespace meshwright::gui {
namespace {

class SweepAxisWords {
  Q_DECLARE_TR_FUNCTIONS(SweepAxis)
};

/// Powers of two up to `most`, and the scenario's value.
std::set<int> doublings(int most, int now) {
  std::set<int> values{now};
  for (int value = 1; value <= most; value *= 2) values.insert(value);
  return values;
}

template <class Put>
std::vector<SweepValue> numbers(int most, int now, Put put) {
  std::vector<SweepValue> values;
  for (const int value : doublings(most, now))
    values.push_back(
        {QString::number(value), [put, value](Scenario& s) { put(s, value); }, value == now});
  return values;
}

std::vector<SweepValue> schedules(const Scenario& base) {
  std::vector<SweepValue> values;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.name == kSynthesizedSchedule) continue;  // would need a search per cell
    const std::string name(rule.name);
    values.push_back({QString::fromStdString(name), [name](Scenario& s) { set_schedule(s, name); },
                      base.strategy.schedule == name});
  }
  return values;
}

std::vector<SweepValue> recomputes(const Scenario& base) {
  std::vector<SweepValue> values;
  std::vector<Recompute> all{
      {RecomputeKind::kNone, 0}, {RecomputeKind::kSelective, 0}, {RecomputeKind::kFull, 0}};
  if (base.strategy.recompute.kind == RecomputeKind::kBlocks)
    all.push_back(base.strategy.recompute);
  values.reserve(all.size());
  for (const Recompute& recompute : all)
    values.push_back({QString::fromStdString(to_text(recompute)),
                      [recompute](Scenario& s) { s.strategy.recompute = recompute; },
                      base.strategy.recompute == recompute});
  return values;
}

std::vector<SweepValue> zeros(const Scenario& base) {
  std::vector<SweepValue> values;
  for (const int zero : {0, 1, 2, 3})
    values.push_back({QString("ZeRO %1").arg(zero), [zero](Scenario& s) { s.strategy.zero = zero; },
                      base.strategy.zero == zero});
  return values;
}

}  // namespace

QString title_of(SweepKnob knob) {
  constexpr std::array<const char*, kSweepKnobCount> kTitles{
      QT_TRANSLATE_NOOP("SweepAxis", "pipeline-parallel size p"),
      QT_TRANSLATE_NOOP("SweepAxis", "micro-batches m"),
      QT_TRANSLATE_NOOP("SweepAxis", "schedule"),
      QT_TRANSLATE_NOOP("SweepAxis", "model chunks v"),
      QT_TRANSLATE_NOOP("SweepAxis", "tensor-parallel size"),
      QT_TRANSLATE_NOOP("SweepAxis", "data-parallel size"),
      QT_TRANSLATE_NOOP("SweepAxis", "micro-batch size"),
      QT_TRANSLATE_NOOP("SweepAxis", "recompute"),
      QT_TRANSLATE_NOOP("SweepAxis", "ZeRO")};
  static_assert(kTitles.back() != nullptr);
  return SweepAxisWords::tr(kTitles[static_cast<std::size_t>(knob)]);
}

SweepAxis sweep_axis(SweepKnob knob, const Scenario& base) {
  constexpr int kMostDevices = 32, kMostBatches = 128, kMostChunks = 8, kMostTensor = 8;
  const ParallelDegrees& d = base.strategy.degrees;
  SweepAxis axis{title_of(knob), {}};
  switch (knob) {
    case SweepKnob::kPipeline:
      // The number of micro-batches does not depend on the pipeline-parallel size.
      axis.values = numbers(kMostDevices, d.pipeline, set_pipeline_degree);
      break;
    case SweepKnob::kMicrobatches:
      axis.values = numbers(kMostBatches, microbatches(base), set_microbatches);
      break;
    case SweepKnob::kSchedule:
      axis.values = schedules(base);
      break;
    case SweepKnob::kChunks:
      axis.values = numbers(kMostChunks, d.chunks, set_chunks);
      break;
    case SweepKnob::kTensor:
      axis.values = numbers(kMostTensor, d.tensor, set_tensor_degree);
      break;
    case SweepKnob::kData:
      axis.values = numbers(kMostDevices, d.data, set_data_degree);
      break;
    case SweepKnob::kMicroBatch:
      axis.values = numbers(kMostTensor, base.strategy.micro_batch, set_micro_batch);
      break;
    case SweepKnob::kRecompute:
      axis.values = recomputes(base);
      break;
    case SweepKnob::kZero:
      axis.values = zeros(base);
      break;
  }
  return axis;
}

}  // namespace meshwright::gui
