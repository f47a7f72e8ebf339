#include "planner/synthesis/schedule_shaving.hpp"

#include <algorithm>
#include <array>

namespace meshwright {

bool ScheduleShaving::could_meet(Ticks target, std::int64_t most_visits) {
  last_visit_ = propagation_.visits() + most_visits;
  if (!propagation_.could_meet(target, most_visits)) return false;
  earliest_ = propagation_.earliest_;
  latest_ = propagation_.latest_;
  Verdict verdict = Verdict::kNarrowed;
  while (verdict == Verdict::kNarrowed && propagation_.visits() < last_visit_)
    verdict = shave_all();
  return verdict != Verdict::kRefuted;
}

/// A few micro-batches of every stage, those first that are most often refuted: before the middle.
ScheduleShaving::Verdict ScheduleShaving::shave_all() {
  constexpr int kParts = 8;
  constexpr std::array kOrder{3, 4, 5, 6, 2, 1, 7};
  constexpr int kInput = 1, kWeight = 2;
  Verdict all = Verdict::kUnchanged;
  for (const int part : kOrder)
    for (const int pass : {kWeight, kInput})
      for (int stage = network_.stages; stage-- > 0;) {
        const int microbatch = network_.microbatches * part / kParts;
        for (Verdict one = Verdict::kNarrowed; one == Verdict::kNarrowed;) {
          if (propagation_.visits() >= last_visit_) return all;
          one = shave(network_.id(pass, stage, microbatch));
          if (one == Verdict::kRefuted) return one;
          if (one == Verdict::kNarrowed) all = one;
        }
      }
  return all;
}

ScheduleShaving::Verdict ScheduleShaving::shave(std::int32_t operation) {
  const Ticks duration = network_.duration[at(operation)];
  const Ticks earliest = earliest_[at(operation)], latest = latest_[at(operation)];
  const Ticks slack = latest - earliest - duration;
  if (slack <= duration / 2) return Verdict::kUnchanged;
  const Ticks half = slack / 2;
  if (is_possible(operation, earliest, earliest + duration + half)) return Verdict::kUnchanged;
  if (!is_possible(operation, earliest + half + Ticks(1), latest)) return Verdict::kRefuted;
  earliest_ = propagation_.earliest_;
  latest_ = propagation_.latest_;
  return Verdict::kNarrowed;
}

/// Propagates with another window for one operation. False: no schedule has it there.
bool ScheduleShaving::is_possible(std::int32_t operation, Ticks earliest, Ticks latest) {
  propagation_.earliest_ = earliest_;
  propagation_.latest_ = latest_;
  propagation_.earliest_[at(operation)] = earliest;
  propagation_.latest_[at(operation)] = latest;
  return propagation_.propagate_from(operation);
}

Ticks shaving_bound(const OperationNetwork& network, ConstraintPropagation& propagation,
                    Ticks bound, Ticks known, std::int64_t most_visits) {
  const std::int64_t last_visit = propagation.visits() + most_visits;
  ScheduleShaving shaving(network, propagation);
  const std::int64_t grain = network.grain.value;
  // In grains: the smallest target not refuted, and one that cannot be refuted.
  std::int64_t low = (bound.value + grain - 1) / grain, high = known.value / grain;
  for (std::int64_t target = high - 1; target >= low; target = low + (high - low) / 2 - 1) {
    const std::int64_t left = last_visit - propagation.visits();
    if (left <= 0) break;
    if (shaving.could_meet(Ticks(target * grain), left))
      high = target;
    else
      low = target + 1;
  }
  return std::max(bound, Ticks(low * grain));
}

}  // namespace meshwright
