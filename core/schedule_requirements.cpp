#include "core/schedule_requirements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/schedule_generators.hpp"

namespace meshwright {

namespace {

/// Orders beyond this many actions help nobody and would only exhaust memory.
constexpr std::int64_t kMostActions = 1 << 26;

Problem sizes_problem(const ScheduleRequest& r) {
  if (r.devices < 1) return fmt::format("{} devices: at least 1 is needed", r.devices);
  if (r.chunks < 1) return fmt::format("{} chunks per device: at least 1 is needed", r.chunks);
  if (r.microbatches < 1)
    return fmt::format("{} micro-batches: at least 1 is needed", r.microbatches);
  const auto actions = static_cast<double>(r.devices) * r.chunks * r.microbatches *
                       std::max(1, r.slices.value_or(1)) * 3.0;
  if (actions > static_cast<double>(kMostActions))
    return fmt::format("{} devices x {} chunks x {} micro-batches make more than {} actions",
                       r.devices, r.chunks, r.microbatches, kMostActions);
  return std::nullopt;
}

}  // namespace

Problem several_chunks_problem(const ScheduleRequest& r) { return sizes_problem(r); }

Problem one_chunk_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  if (r.chunks != 1)
    return fmt::format(
        "{} chunks per device, but this schedule has 1; interleaved-1f1b takes several", r.chunks);
  return std::nullopt;
}

/// Megatron's rule for the group size g: p <= g <= m and m mod g is 0 or at least p. A single group
/// of all micro-batches is sound as well.
Problem interleaved_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  const int p = r.devices;
  const int m = r.microbatches;
  const int group = microbatch_group_of(r);
  if (!r.microbatch_group && m % p != 0) {
    const int below = m / p * p;
    return fmt::format("{} micro-batches are not a multiple of {} devices; use {}{}", m, p,
                       below > 0 ? fmt::format("{} or ", below) : "", below + p);
  }
  if (group == m) return std::nullopt;
  if (group < p || group > m)
    return fmt::format("micro-batch group size {} is outside {} (devices) .. {} (micro-batches)",
                       group, p, m);
  if (m % group != 0 && m % group < p)
    return fmt::format(
        "{} micro-batches leave a last group of {} with group size {}; 0 or at least {} devices "
        "are needed",
        m, m % group, group, p);
  return std::nullopt;
}

Placement one_chunk_placement(const ScheduleRequest& r) { return looped_placement(r.devices, 1); }
Placement loop_of_request(const ScheduleRequest& r) {
  return looped_placement(r.devices, r.chunks);
}

double one_microbatch(const ScheduleRequest&, PipelineRankId) { return 1; }
double all_microbatches(const ScheduleRequest& r, PipelineRankId) { return r.microbatches; }
double one_per_device_behind(const ScheduleRequest& r, PipelineRankId d) {
  return std::min(r.microbatches, r.devices - d.value);
}
double interleaved_peak(const ScheduleRequest& r, PipelineRankId d) {
  const int warm_up = 2 * (r.devices - 1 - d.value) + (r.chunks - 1) * microbatch_group_of(r);
  return std::min<double>(r.microbatches, (warm_up + 1.0) / r.chunks);
}

int one_version(const ScheduleRequest&, PipelineRankId) { return 1; }

double one_per_device(const ScheduleRequest& r, PipelineRankId) {
  return std::min(r.microbatches, r.devices);
}
double zb_h2_peak(const ScheduleRequest& r, PipelineRankId) {
  return std::min(r.microbatches, 2 * r.devices - 1);
}
/// Both directions together: p + 1 replicas of a stage.
double dualpipe_peak(const ScheduleRequest& r, PipelineRankId) {
  return std::min(r.microbatches, r.devices + 1);
}
/// 2p + 1 chunks, two of which are a device.
double dualpipev_peak(const ScheduleRequest& r, PipelineRankId) {
  return std::min<double>(r.microbatches, r.devices + 0.5);
}

Problem two_chunks_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  if (r.chunks != 2)
    return fmt::format("{} chunks per device, but the V of this schedule has 2", r.chunks);
  return std::nullopt;
}

/// Each direction must bring as many micro-batches as there are devices.
Problem dualpipe_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  if (r.chunks != 1)
    return fmt::format("{} chunks per device, but each direction of this schedule has 1", r.chunks);
  if (r.devices % 2 != 0)
    return fmt::format("{} devices: two directions need an even number; use {} or {}", r.devices,
                       r.devices - 1, r.devices + 1);
  if (r.microbatches % 2 != 0 || r.microbatches < 2 * r.devices)
    return fmt::format("{} micro-batches: an even number of at least {} (2 x {} devices) is needed",
                       r.microbatches, 2 * r.devices, r.devices);
  return std::nullopt;
}

Problem dualpipev_problem(const ScheduleRequest& r) {
  if (auto problem = two_chunks_problem(r)) return problem;
  if (r.microbatches < 2 * r.devices)
    return fmt::format("{} micro-batches: at least {} (2 x {} devices) are needed", r.microbatches,
                       2 * r.devices, r.devices);
  return std::nullopt;
}

Placement v_of_request(const ScheduleRequest& r) { return wave_placement(r.devices, 2); }
Placement bidirectional_of_request(const ScheduleRequest& r) {
  return bidirectional_placement(r.devices);
}

}  // namespace meshwright
