/// The zoo: what every schedule asks for and what it promises. One row each.
#include <algorithm>
#include <array>

#include "core/schedule_generators.hpp"
#include "core/schedule_requirements.hpp"

namespace meshwright {

namespace {

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
                 .weight_versions = one_version,
                 .worth_searching = true},
    ScheduleRule{
        .name = "1f1b",
        .summary = "one forward, one backward in turn, with a flush (PipeDream-Flush, DAPPLE)",
        .source = "Megatron-LM, Narayanan et al., arXiv:2104.04473, 2.2.1",
        .problem = one_chunk_problem,
        .placement = one_chunk_placement,
        .generate = generate_1f1b,
        .peak_activations = one_per_device_behind,
        .weight_versions = one_version,
        .worth_searching = true},
    ScheduleRule{.name = "interleaved-1f1b",
                 .summary = "1f1b over several chunks per device: bubble 1/v, more messages",
                 .source = "Megatron-LM, Narayanan et al., arXiv:2104.04473, 2.2.2",
                 .problem = interleaved_problem,
                 .placement = loop_of_request,
                 .generate = generate_interleaved_1f1b,
                 .peak_activations = interleaved_peak,
                 .weight_versions = one_version,
                 .worth_searching = true},
    ScheduleRule{.name = "breadth-first",
                 .summary = "all micro-batches through a chunk before the next chunk (LoopedBFS)",
                 .source = "Breadth-First Pipeline Parallelism, Lamy-Poirier, arXiv:2211.05953",
                 .problem = several_chunks_problem,
                 .placement = loop_of_request,
                 .generate = generate_breadth_first,
                 .peak_activations = all_microbatches,
                 .weight_versions = one_version,
                 .worth_searching = true},
    ScheduleRule{.name = "zb-h1",
                 .summary = "1f1b with weight gradients moved into the gaps, at the memory of 1f1b",
                 .source = "Zero Bubble, Qi et al., arXiv:2401.10241, 2.2",
                 .problem = one_chunk_problem,
                 .placement = one_chunk_placement,
                 .generate = generate_zb_h1,
                 .peak_activations = one_per_device,
                 .weight_versions = one_version,
                 .worth_searching = true},
    ScheduleRule{
        .name = "zb-h2",
        .summary = "as zb-h1 with twice the warm-up: no bubble between steps, twice the memory",
        .source = "Zero Bubble, Qi et al., arXiv:2401.10241, 2.3",
        .problem = one_chunk_problem,
        .placement = one_chunk_placement,
        .generate = generate_zb_h2,
        .peak_activations = zb_h2_peak,
        .weight_versions = one_version,
        .worth_searching = true},
    ScheduleRule{.name = "zb-v",
                 .summary = "two chunks in a V: no bubble between steps at the memory of 1f1b",
                 .source = "Zero Bubble, Qi et al., arXiv:2401.10241, 6",
                 .problem = two_chunks_problem,
                 .placement = v_of_request,
                 .generate = generate_zb_v,
                 .peak_activations = one_per_device,
                 .weight_versions = one_version,
                 .worth_searching = true},
    ScheduleRule{
        .name = "dualpipe",
        .summary =
            "micro-batches from both ends, forward overlaps backward; weights are held twice",
        .source = "DualPipe, DeepSeek-AI, arXiv:2412.19437, 3.2.1",
        .problem = dualpipe_problem,
        .placement = bidirectional_of_request,
        .generate = generate_dualpipe,
        .peak_activations = dualpipe_peak,
        .weight_versions = one_version,
        .worth_searching = true},
    ScheduleRule{.name = "dualpipev",
                 .summary = "dualpipe folded into a V: weights are held once",
                 .source = "DualPipeV, github.com/deepseek-ai/DualPipe@3da1bbe",
                 .problem = dualpipev_problem,
                 .placement = v_of_request,
                 .generate = generate_dualpipev,
                 .peak_activations = dualpipev_peak,
                 .weight_versions = one_version,
                 .worth_searching = true},
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
