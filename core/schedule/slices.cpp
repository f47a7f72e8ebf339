/// Schedules over slices of the sequence: micro-batch u of the schedule is slice u mod k of
/// micro-batch u / k.
#include <algorithm>

#include "core/schedule/generators.hpp"

namespace meshwright {

namespace {

/// Forwards slice by slice, backwards from the last slice of a micro-batch to its first.
std::vector<Action> sliced_order(StageId stage, int units, int slices, int warm_up) {
  std::vector<Action> order = one_forward_one_backward(stage, units, warm_up);
  for (Action& a : order)
    if (a.pass == Pass::kBackward) {
      const int first = a.microbatch.value / slices * slices;
      a.microbatch = MicrobatchId(first + slices - 1 - a.microbatch.value % slices);
    }
  return order;
}

Schedule sliced_schedule(std::string name, const ScheduleRequest& request) {
  const int slices = request.slices.value_or(1);
  Schedule schedule = empty_schedule(std::move(name), looped_placement(request.devices, 1),
                                     request.microbatches * slices);
  schedule.slices_per_microbatch = slices;
  return schedule;
}

}  // namespace

/// Seq1F1B (Sun et al., arXiv:2406.03488): 1F1B over slices. The first backward is that of a last
/// slice, so every device runs k - 1 forwards more ahead.
Schedule generate_seq1f1b(const ScheduleRequest& request) {
  Schedule schedule = sliced_schedule("seq1f1b", request);
  const int slices = schedule.slices_per_microbatch;
  for (int d = 0; d < request.devices; ++d)
    schedule.orders[static_cast<std::size_t>(d)] =
        sliced_order(StageId(d), schedule.microbatch_count, slices,
                     std::min(schedule.microbatch_count, request.devices - 1 - d + slices - 1));
  return schedule;
}

/// TeraPipe (Li et al., arXiv:2102.07988): GPipe over slices.
Schedule generate_terapipe(const ScheduleRequest& request) {
  Schedule schedule = sliced_schedule("terapipe", request);
  for (int d = 0; d < request.devices; ++d)
    schedule.orders[static_cast<std::size_t>(d)] =
        sliced_order(StageId(d), schedule.microbatch_count, schedule.slices_per_microbatch,
                     schedule.microbatch_count);
  return schedule;
}

}  // namespace meshwright
