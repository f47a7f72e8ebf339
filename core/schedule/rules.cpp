/// All schedules, one row each: requirements and guarantees.
#include <algorithm>
#include <array>

#include "core/schedule/bubble_formula.hpp"
#include "core/schedule/requirements.hpp"

namespace meshwright {

// Each generator is a pure function of the request and requires that the rule's problem() is empty.
// They are declared here, at their only use, and defined in the files named after their families.
Schedule generate_synthesized(const ScheduleRequest& request);
Schedule generate_naive(const ScheduleRequest& request);
Schedule generate_gpipe(const ScheduleRequest& request);
Schedule generate_1f1b(const ScheduleRequest& request);
Schedule generate_interleaved_1f1b(const ScheduleRequest& request);
Schedule generate_breadth_first(const ScheduleRequest& request);
Schedule generate_zb_h1(const ScheduleRequest& request);
Schedule generate_zb_h2(const ScheduleRequest& request);
Schedule generate_zb_v(const ScheduleRequest& request);
Schedule generate_dualpipe(const ScheduleRequest& request);
Schedule generate_dualpipev(const ScheduleRequest& request);
Schedule generate_pipedream(const ScheduleRequest& request);
Schedule generate_pipedream_2bw(const ScheduleRequest& request);
Schedule generate_vocab_1f1b(const ScheduleRequest& request);
Schedule generate_vocab_1_1f1b(const ScheduleRequest& request);
Schedule generate_interlaced_1f1b(const ScheduleRequest& request);
Schedule generate_seq1f1b(const ScheduleRequest& request);
Schedule generate_terapipe(const ScheduleRequest& request);
Schedule generate_chimera(const ScheduleRequest& request);
Schedule generate_hanayo(const ScheduleRequest& request);
Schedule generate_v_half(const ScheduleRequest& request);
Schedule generate_v_min(const ScheduleRequest& request);
Schedule generate_zb_1p(const ScheduleRequest& request);
Schedule generate_zb_2p(const ScheduleRequest& request);

namespace {

constexpr std::array kRules{
    ScheduleRule{.name = "naive",
                 .summary = "one micro-batch at a time through all stages: no pipelining",
                 .source = "plain model parallelism; the baseline of arXiv:1811.06965",
                 .problem = one_chunk_problem,
                 .generate = generate_naive,
                 .peak_activations = one_microbatch,
                 .bubble = one_at_a_time_bubble,
                 .manual_order = ManualOrder::kMicrobatchByMicrobatch},
    ScheduleRule{.name = "gpipe",
                 .summary = "all forwards, then all backwards",
                 .source = "GPipe, Huang et al., arXiv:1811.06965",
                 .problem = one_chunk_problem,
                 .generate = generate_gpipe,
                 .peak_activations = all_microbatches,
                 .worth_searching = true,
                 .bubble = flushed_bubble,
                 .manual_order = ManualOrder::kForwardsThenBackwards,
                 .launch = {.pytorch = "GPipe"}},
    ScheduleRule{
        .name = "1f1b",
        .summary = "one forward, one backward alternating, with a flush (PipeDream-Flush, DAPPLE)",
        .source = "Megatron-LM, Narayanan et al., arXiv:2104.04473, 2.2.1",
        .problem = one_chunk_problem,
        .generate = generate_1f1b,
        .peak_activations = one_per_remaining_device,
        .worth_searching = true,
        .bubble = flushed_bubble,
        .paired_passes = PairedPasses::kWithoutPipeline,
        .launch = {.is_megatron_default = true, .pytorch = "1F1B"}},
    ScheduleRule{.name = "interleaved-1f1b",
                 .summary = "1f1b with v chunks per device: 1/v of the bubble, more messages",
                 .source = "Megatron-LM, Narayanan et al., arXiv:2104.04473, 2.2.2",
                 .problem = interleaved_problem,
                 .placement = loop_of_request,
                 .generate = generate_interleaved_1f1b,
                 .peak_activations = interleaved_peak,
                 .worth_searching = true,
                 .bubble = looped_bubble,
                 .paired_passes = PairedPasses::kInPipeline,
                 .launch = {.is_megatron_default = true, .pytorch = "Interleaved1F1B"}},
    ScheduleRule{.name = "breadth-first",
                 .summary = "all micro-batches through a chunk before the next chunk (LoopedBFS)",
                 .source = "Breadth-First Pipeline Parallelism, Lamy-Poirier, arXiv:2211.05953",
                 .problem = several_chunks_problem,
                 .placement = loop_of_request,
                 .generate = generate_breadth_first,
                 .peak_activations = all_microbatches,
                 .worth_searching = true,
                 .bubble = looped_bubble,
                 .launch = {.pytorch = "LoopedBFS"}},
    ScheduleRule{.name = "zb-h1",
                 .summary = "1f1b with weight gradients in the bubbles, same memory as 1f1b",
                 .source = "Zero Bubble, Qi et al., arXiv:2401.10241, 2.2",
                 .problem = one_chunk_problem,
                 .generate = generate_zb_h1,
                 .peak_activations = one_per_device,
                 .worth_searching = true,
                 .bubble = zb_h1_bubble},
    ScheduleRule{
        .name = "zb-h2",
        .summary = "zb-h1 with a longer warm-up: no bubble between steps, twice the memory",
        .source = "Zero Bubble, Qi et al., arXiv:2401.10241, 2.3",
        .problem = one_chunk_problem,
        .generate = generate_zb_h2,
        .peak_activations = zb_h2_peak,
        .worth_searching = true,
        .bubble = zb_h2_bubble},
    ScheduleRule{.name = "zb-v",
                 .summary = "two chunks in a V: no bubble between steps, same memory as 1f1b",
                 .source = "Zero Bubble, Qi et al., arXiv:2401.10241, 6",
                 .problem = automatic_v_problem,
                 .placement = v_of_request,
                 .generate = generate_zb_v,
                 .peak_activations = zb_v_peak,
                 .reaches_peak = false,
                 .worth_searching = true,
                 .launch = {.pytorch = "ZBVZeroBubble"}},
    ScheduleRule{
        .name = "dualpipe",
        .summary =
            "micro-batches from both ends, forward overlaps backward; two copies of the weights",
        .source = "DualPipe, DeepSeek-AI, arXiv:2412.19437, 3.2.1",
        .problem = dualpipe_problem,
        .placement = bidirectional_of_request,
        .generate = generate_dualpipe,
        .peak_activations = dualpipe_peak,
        .worth_searching = true},
    ScheduleRule{.name = "dualpipev",
                 .summary = "dualpipe folded into a V: one copy of the weights",
                 .source = "DualPipeV, github.com/deepseek-ai/DualPipe@3da1bbe",
                 .problem = dualpipev_problem,
                 .placement = v_of_request,
                 .generate = generate_dualpipev,
                 .peak_activations = dualpipev_peak,
                 .worth_searching = true,
                 .launch = {.pytorch = "DualPipeV"}},
    ScheduleRule{.name = "zb-1p",
                 .summary = "zero bubble optimized for the given times, same memory as 1f1b",
                 .source = "Zero Bubble, Qi et al., arXiv:2401.10241, 3.1",
                 .problem = automatic_problem,
                 .generate = generate_zb_1p,
                 .peak_activations = zb_1p_peak,
                 .worth_searching = true},
    ScheduleRule{.name = "zb-2p",
                 .summary = "zero bubble optimized for the given times, twice the memory of 1f1b",
                 .source = "Zero Bubble, Qi et al., arXiv:2401.10241, 3.1",
                 .problem = automatic_problem,
                 .generate = generate_zb_2p,
                 .peak_activations = zb_2p_peak,
                 .worth_searching = true},
    ScheduleRule{
        .name = "v-half",
        .summary = "two chunks in a V, half the activation memory of 1f1b",
        .source = "Pipeline Parallelism with Controllable Memory, Qi et al., arXiv:2405.15362",
        .problem = automatic_v_problem,
        .placement = v_of_request,
        .generate = generate_v_half,
        .peak_activations = v_half_peak,
        .reaches_peak = false,
        .worth_searching = true},
    ScheduleRule{
        .name = "v-min",
        .summary = "two chunks in a V, a third of the activation memory of 1f1b",
        .source = "Pipeline Parallelism with Controllable Memory, Qi et al., arXiv:2405.15362",
        .problem = automatic_v_problem,
        .placement = v_of_request,
        .generate = generate_v_min,
        .peak_activations = v_min_peak,
        .reaches_peak = false,
        .worth_searching = true},
    ScheduleRule{.name = "hanayo",
                 .summary = "W waves up and down the pipeline: 2 W chunks per device",
                 .source = "Hanayo, Liu et al., arXiv:2308.15762",
                 .problem = hanayo_problem,
                 .placement = waves_of_request,
                 .generate = generate_hanayo,
                 .peak_activations = one_per_device,
                 .reaches_peak = false,
                 .worth_searching = true},
    ScheduleRule{.name = "chimera",
                 .summary = "two pipelines in opposite directions; two copies of the weights",
                 .source = "Chimera, Li and Hoefler, arXiv:2107.06925",
                 .problem = chimera_problem,
                 .placement = bidirectional_of_request,
                 .generate = generate_chimera,
                 .peak_activations = one_per_device,
                 .reaches_peak = false,
                 .worth_searching = true},
    ScheduleRule{.name = "seq1f1b",
                 .summary = "1f1b over sequence slices",
                 .source = "Seq1F1B, Sun et al., arXiv:2406.03488",
                 .problem = slices_problem,
                 .generate = generate_seq1f1b,
                 .peak_activations = seq1f1b_peak},
    ScheduleRule{.name = "terapipe",
                 .summary = "gpipe over sequence slices",
                 .source = "TeraPipe, Li et al., arXiv:2102.07988",
                 .problem = slices_problem,
                 .generate = generate_terapipe,
                 .peak_activations = all_microbatches},
    ScheduleRule{.name = "vocab-1f1b",
                 .summary = "1f1b with the output layer sharded over all devices, one barrier "
                            "(Vocab-2)",
                 .source = "Vocabulary Parallelism, Yeung et al., arXiv:2411.05288",
                 .problem = vocabulary_problem,
                 .generate = generate_vocab_1f1b,
                 .peak_activations = vocab_peak,
                 .worth_searching = true,
                 .output_barriers = 1},
    ScheduleRule{.name = "vocab-1-1f1b",
                 .summary = "vocab-1f1b with two barriers and one more micro-batch (Vocab-1)",
                 .source = "Vocabulary Parallelism, Yeung et al., arXiv:2411.05288",
                 .problem = vocabulary_problem,
                 .generate = generate_vocab_1_1f1b,
                 .peak_activations = vocab_1_peak,
                 .worth_searching = true,
                 .output_barriers = 2},
    ScheduleRule{.name = "interlaced-1f1b",
                 .summary = "1f1b interlaced with a tensor-parallel output layer over all devices, "
                            "blocking; 1.5 times the memory",
                 .source = "nnScaler, Lin et al., OSDI 2024; Yeung et al., arXiv:2411.05288",
                 .problem = vocabulary_problem,
                 .generate = generate_interlaced_1f1b,
                 .peak_activations = interlaced_peak,
                 .worth_searching = true,
                 .output_barriers = 2},
    ScheduleRule{.name = "pipedream",
                 .summary = "1f1b without a flush; one weight version per micro-batch in flight",
                 .source = "PipeDream, Narayanan et al., arXiv:1806.03377",
                 .problem = one_chunk_problem,
                 .generate = generate_pipedream,
                 .peak_activations = one_per_remaining_device,
                 .weight_versions = stashed_versions,
                 .updates = UpdateTime::kEachMicrobatch},
    ScheduleRule{.name = "pipedream-2bw",
                 .summary = "1f1b without a flush; two weight versions, updates one step late",
                 .source = "PipeDream-2BW, Narayanan et al., arXiv:2006.09503",
                 .problem = two_versions_problem,
                 .generate = generate_pipedream_2bw,
                 .peak_activations = one_per_remaining_device,
                 .weight_versions = two_versions,
                 .updates = UpdateTime::kEachStep},
    ScheduleRule{.name = "auto",
                 .summary = "synthesized by the planner for the times and memory of the job",
                 .source = "Meshwright; falls back to zb-1p or hanayo without synthesized orders",
                 .problem = synthesized_problem,
                 .placement = line_or_waves,
                 .generate = generate_synthesized,
                 .peak_activations = one_per_device,
                 .reaches_peak = false},
};

}  // namespace

std::span<const ScheduleRule> schedule_rules() { return kRules; }

const ScheduleRule* find_schedule_rule(std::string_view name) {
  const auto row = std::find_if(kRules.begin(), kRules.end(),
                                [&](const ScheduleRule& rule) { return rule.name == name; });
  return row == kRules.end() ? nullptr : &*row;
}

std::string_view default_schedule(int chunks) {
  return chunks > 1 ? "interleaved-1f1b" : kDefaultSchedule;
}
std::string_view unsynthesized_schedule(int chunks) { return chunks > 1 ? "hanayo" : "gpipe"; }

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  names.reserve(std::size(kRules));
  for (const ScheduleRule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

}  // namespace meshwright
