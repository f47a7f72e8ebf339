/// The zoo: what every schedule asks for and what it promises. One row each.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/schedule_generators.hpp"

namespace meshwright {

namespace {

/// Orders beyond this many actions help nobody and would only exhaust memory.
constexpr std::int64_t kMostActions = 1 << 26;

std::optional<std::string> sizes_problem(const ScheduleRequest& r) {
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

std::optional<std::string> one_chunk_problem(const ScheduleRequest& r) {
  if (auto problem = sizes_problem(r)) return problem;
  if (r.chunks != 1)
    return fmt::format(
        "{} chunks per device, but this schedule has 1; interleaved-1f1b takes several", r.chunks);
  return std::nullopt;
}

/// Megatron's rule for the group size g: p <= g <= m and m mod g is 0 or at least p. A single group
/// of all micro-batches is sound as well.
std::optional<std::string> interleaved_problem(const ScheduleRequest& r) {
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

constexpr std::array kRules{
    ScheduleRule{.name = "naive",
                 .summary = "one micro-batch at a time through all stages: no pipelining",
                 .source = "plain model parallelism; the baseline of arXiv:1811.06965",
                 .problem = one_chunk_problem,
                 .placement = one_chunk_placement,
                 .generate = generate_naive,
                 .peak_activations = one_microbatch,
                 .weight_versions = one_version},
    ScheduleRule{.name = "gpipe",
                 .summary = "all forwards, then all backwards",
                 .source = "GPipe, Huang et al., arXiv:1811.06965",
                 .problem = one_chunk_problem,
                 .placement = one_chunk_placement,
                 .generate = generate_gpipe,
                 .peak_activations = all_microbatches,
                 .weight_versions = one_version},
    ScheduleRule{
        .name = "1f1b",
        .summary = "one forward, one backward in turn, with a flush (PipeDream-Flush, DAPPLE)",
        .source = "Megatron-LM, Narayanan et al., arXiv:2104.04473, 2.2.1",
        .problem = one_chunk_problem,
        .placement = one_chunk_placement,
        .generate = generate_1f1b,
        .peak_activations = one_per_device_behind,
        .weight_versions = one_version},
    ScheduleRule{.name = "interleaved-1f1b",
                 .summary = "1f1b over several chunks per device: bubble 1/v, more messages",
                 .source = "Megatron-LM, Narayanan et al., arXiv:2104.04473, 2.2.2",
                 .problem = interleaved_problem,
                 .placement = loop_of_request,
                 .generate = generate_interleaved_1f1b,
                 .peak_activations = interleaved_peak,
                 .weight_versions = one_version},
};

}  // namespace

std::span<const ScheduleRule> schedule_rules() { return kRules; }

const ScheduleRule* find_schedule_rule(std::string_view name) {
  const auto row = std::find_if(kRules.begin(), kRules.end(),
                                [&](const ScheduleRule& rule) { return rule.name == name; });
  return row == kRules.end() ? nullptr : &*row;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleRule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

}  // namespace meshwright
