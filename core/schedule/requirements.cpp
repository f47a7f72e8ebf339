#include "core/schedule/requirements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/generators.hpp"

namespace meshwright {

namespace {

/// Larger schedules would only exhaust memory.
constexpr std::int64_t kMostActions = 1 << 26;

Problem sizes_problem(const ScheduleRequest& r) {
  if (r.devices < 1) return fmt::format("requires at least 1 device, got {}", r.devices);
  if (r.chunks < 1) return fmt::format("requires at least 1 chunk per device, got {}", r.chunks);
  if (r.microbatches < 1)
    return fmt::format("requires at least 1 micro-batch, got {}", r.microbatches);
  const auto actions = static_cast<double>(r.devices) * r.chunks * r.microbatches *
                       std::max(1, r.slices.value_or(1)) * 3.0;
  if (actions > static_cast<double>(kMostActions))
    return fmt::format("{} devices x {} chunks x {} micro-batches exceed the limit of {} actions",
                       r.devices, r.chunks, r.microbatches, kMostActions);
  return std::nullopt;
}

}  // namespace

Problem several_chunks_problem(const ScheduleRequest& r) { return sizes_problem(r); }

Problem one_chunk_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  if (r.chunks != 1)
    return fmt::format("requires 1 chunk per device, got {}; use interleaved-1f1b for several",
                       r.chunks);
  return std::nullopt;
}

/// Megatron-LM's rule for the group size g: p <= g <= m, and m mod g is 0 or at least p. A single
/// group of all micro-batches is valid too.
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
    return fmt::format(
        "micro-batch group size {} is out of range: expected {} (devices) to {} (micro-batches)",
        group, p, m);
  if (m % group != 0 && m % group < p)
    return fmt::format(
        "{} micro-batches in groups of {} leave a last group of {}; expected 0 or at least {} "
        "(devices)",
        m, group, m % group, p);
  return std::nullopt;
}

Placement one_chunk_placement(const ScheduleRequest& r) { return looped_placement(r.devices, 1); }
Placement loop_of_request(const ScheduleRequest& r) {
  return looped_placement(r.devices, r.chunks);
}

double one_microbatch(const ScheduleRequest&, PipelineRankId) { return 1; }
double all_microbatches(const ScheduleRequest& r, PipelineRankId) { return r.microbatches; }
double one_per_remaining_device(const ScheduleRequest& r, PipelineRankId d) {
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
/// Both directions together: p + 1 micro-batches of one stage.
double dualpipe_peak(const ScheduleRequest& r, PipelineRankId) {
  return std::min(r.microbatches, r.devices + 1);
}
/// 2p + 1 chunks, two per device.
double dualpipev_peak(const ScheduleRequest& r, PipelineRankId) {
  return std::min<double>(r.microbatches, r.devices + 0.5);
}

Problem two_chunks_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  if (r.chunks != 2) return fmt::format("requires 2 chunks per device, got {}", r.chunks);
  return std::nullopt;
}

/// Each direction needs at least as many micro-batches as there are devices.
Problem dualpipe_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  if (r.chunks != 1)
    return fmt::format("requires 1 chunk per device and direction, got {}", r.chunks);
  if (r.devices % 2 != 0)
    return fmt::format("requires an even number of devices, got {}; use {} or {}", r.devices,
                       r.devices - 1, r.devices + 1);
  if (r.microbatches % 2 != 0 || r.microbatches < 2 * r.devices)
    return fmt::format(
        "requires an even number of micro-batches, at least {} (2 x {} devices), got {}",
        2 * r.devices, r.devices, r.microbatches);
  return std::nullopt;
}

Problem dualpipev_problem(const ScheduleRequest& r) {
  if (auto problem = two_chunks_problem(r)) return problem;
  if (r.microbatches < 2 * r.devices)
    return fmt::format("requires at least {} micro-batches (2 x {} devices), got {}", 2 * r.devices,
                       r.devices, r.microbatches);
  return std::nullopt;
}

Placement v_of_request(const ScheduleRequest& r) { return wave_placement(r.devices, 2); }
Placement bidirectional_of_request(const ScheduleRequest& r) {
  return bidirectional_placement(r.devices);
}

namespace {

/// The given times have the wrong number of stages.
std::string times_problem(const StageTimes& times, int stages) {
  return fmt::format(
      "expected {} times per pass (one per stage), got {} forward, {} input-gradient and {} "
      "weight-gradient times",
      stages, times.forward.size(), times.backward_input.size(), times.backward_weight.size());
}

}  // namespace

/// Checks the costs of cost-driven schedules.
Problem costs_problem(const ScheduleRequest& r) {
  const int stages = r.devices * r.chunks;
  const auto entries = static_cast<std::size_t>(stages);
  if (r.times && (r.times->forward.size() != entries || r.times->backward_input.size() != entries ||
                  r.times->backward_weight.size() != entries))
    return times_problem(*r.times, stages);
  if (r.activation_cap && !(*r.activation_cap >= 1))
    return fmt::format("activation cap must be at least 1 micro-batch per device, got {}",
                       *r.activation_cap);
  if (!(r.freed_by_input_gradient >= 0 && r.freed_by_input_gradient < 1))
    return fmt::format(
        "fraction freed by the input gradient must be at least 0 and below 1, got {}",
        r.freed_by_input_gradient);
  return std::nullopt;
}

Problem automatic_problem(const ScheduleRequest& r) {
  if (auto problem = one_chunk_problem(r)) return problem;
  return costs_problem(r);
}

Problem automatic_v_problem(const ScheduleRequest& r) {
  if (auto problem = two_chunks_problem(r)) return problem;
  return costs_problem(r);
}

Problem vocabulary_problem(const ScheduleRequest& r) {
  if (auto problem = one_chunk_problem(r)) return problem;
  const auto devices = static_cast<std::size_t>(r.devices);
  if (r.times && (r.times->forward.size() != devices || r.times->backward_input.size() != devices ||
                  r.times->backward_weight.size() != devices))
    return times_problem(*r.times, r.devices);
  return std::nullopt;
}

Problem synthesized_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  if (r.chunks > 1 && r.chunks % 2 != 0)
    return fmt::format("requires 1 or an even number of chunks per device, got {}; use {} or {}",
                       r.chunks, r.chunks - 1, r.chunks + 1);
  return std::nullopt;
}

Placement line_or_waves(const ScheduleRequest& r) { return wave_placement(r.devices, r.chunks); }

Problem slices_problem(const ScheduleRequest& r) {
  if (auto problem = one_chunk_problem(r)) return problem;
  if (r.slices && *r.slices < 1)
    return fmt::format("requires at least 1 sequence slice, got {}", *r.slices);
  return std::nullopt;
}

/// Fewer micro-batches per update would need a third version.
Problem two_versions_problem(const ScheduleRequest& r) {
  if (auto problem = one_chunk_problem(r)) return problem;
  if (r.microbatches < r.devices)
    return fmt::format("requires at least {} micro-batches (one per device), got {}", r.devices,
                       r.microbatches);
  return std::nullopt;
}

Problem chimera_problem(const ScheduleRequest& r) {
  if (auto problem = one_chunk_problem(r)) return problem;
  if (r.devices % 2 != 0)
    return fmt::format("requires an even number of devices, got {}; use {} or {}", r.devices,
                       r.devices - 1, r.devices + 1);
  if (r.microbatches % r.devices != 0)
    return fmt::format("{} micro-batches are not a multiple of {} devices; use {}", r.microbatches,
                       r.devices, (r.microbatches / r.devices + 1) * r.devices);
  return std::nullopt;
}

Problem hanayo_problem(const ScheduleRequest& r) {
  if (auto problem = several_chunks_problem(r)) return problem;
  if (r.chunks % 2 != 0)
    return fmt::format("requires an even number of chunks per device (2 per wave), got {}; use {}",
                       r.chunks, r.chunks + 1);
  return std::nullopt;
}

Placement waves_of_request(const ScheduleRequest& r) { return wave_placement(r.devices, r.chunks); }

namespace {

/// Activations partly freed by the input gradient allow more micro-batches in flight than the cap.
double capped_peak(const ScheduleRequest& r, int own_cap) {
  const double cap = r.activation_cap.value_or(own_cap) / (1 - r.freed_by_input_gradient);
  return std::min<double>(r.microbatches, cap);
}

/// Peak of a V schedule: that of the pattern, unless times or a cap are given.
double v_peak(const ScheduleRequest& r, int own_peak) {
  if (!r.times && !r.activation_cap) return std::min(r.microbatches, own_peak);
  return std::max(1.0, capped_peak(r, own_peak));
}

}  // namespace

double zb_1p_peak(const ScheduleRequest& r, PipelineRankId) { return capped_peak(r, r.devices); }
double zb_2p_peak(const ScheduleRequest& r, PipelineRankId) {
  return capped_peak(r, 2 * r.devices);
}
double zb_v_peak(const ScheduleRequest& r, PipelineRankId) { return v_peak(r, r.devices); }
double v_half_peak(const ScheduleRequest& r, PipelineRankId) {
  return v_peak(r, (r.devices + 2) / 2);  // rounds down
}
double v_min_peak(const ScheduleRequest& r, PipelineRankId) {
  return v_peak(r, (r.devices + 4) / 3);  // rounds down
}
double seq1f1b_peak(const ScheduleRequest& r, PipelineRankId d) {
  const int slices = r.slices.value_or(1);
  return std::min<double>(r.microbatches, (r.devices - 1.0 - d.value + slices) / slices);
}
double vocab_peak(const ScheduleRequest& r, PipelineRankId d) {
  return std::min(r.microbatches, r.devices + 1 - d.value);
}

double vocab_1_peak(const ScheduleRequest& r, PipelineRankId d) {
  return std::min(r.microbatches, r.devices + 2 - d.value);
}

double interlaced_peak(const ScheduleRequest& r, PipelineRankId d) {
  const int remaining = r.devices - 1 - d.value;
  return std::min(r.microbatches, 1 + remaining + (remaining + 1) / 2);
}

/// One version per micro-batch in flight: backward uses the same weights as forward.
int stashed_versions(const ScheduleRequest& r, PipelineRankId d) {
  return std::max(1, std::min(r.microbatches, r.devices - d.value));
}
int two_versions(const ScheduleRequest&, PipelineRankId) { return 2; }

}  // namespace meshwright
