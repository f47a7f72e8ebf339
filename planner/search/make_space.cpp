#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/check.hpp"
#include "core/plan/plan_numbers.hpp"
#include "planner/search/choice_lists.hpp"
#include "planner/search/stage_partition.hpp"

namespace meshwright {
namespace {

std::vector<int> sizes_dividing(std::int64_t ranks) {
  const std::vector<std::int64_t> sizes = divisors(ranks);
  return {sizes.begin(), sizes.end()};
}

/// Larger ones are powers of two: their shapes no longer differ much in efficiency.
constexpr int kLargestUnevenMicroBatch = 8;
constexpr int kLargestMicroBatch = 1 << 20;          ///< sequences; far beyond any device
constexpr std::int64_t kMostMicrobatches = 1 << 26;  ///< all schedules reject more

/// Enumerates the layouts, outermost choice first; each level sets one choice of `at_`.
class Enumeration {
 public:
  Enumeration(const ModelGraph& model, const Cluster& cluster, const Goal& goal,
              const FixedChoices& fixed, SearchSpace& space)
      : goal_(goal),
        fixed_(fixed),
        traits_(traits_of(model)),
        devices_per_node_(largest_node(cluster)),
        space_(space),
        lists_(model, cluster, goal, fixed, space) {}

  void run() {
    lists_.list_recomputes();
    at_.degrees = degrees_of(fixed_);  // the others are searched below
    add_tensor_sizes();
  }

 private:
  /// One node, or as many ranks as are left for one sequence, if they are more; where nodes are
  /// small, as many as usual nodes have.
  std::int64_t largest_tensor_size() const {
    constexpr int kUsualNode = 8, kMostNodes = 4;
    const std::int64_t node = std::max(devices_per_node_, kUsualNode);
    return std::clamp(goal_.gpus / std::max<std::int64_t>(1, goal_.global_batch), node,
                      kMostNodes * node);
  }

  void add_tensor_sizes() {
    std::vector<int> sizes = sizes_dividing(goal_.gpus);
    std::erase_if(sizes, [most = largest_tensor_size()](int size) { return size > most; });
    for (const int tensor : choices(fixed_.tensor, sizes)) {
      if (tensor < 1 || goal_.gpus % tensor != 0 || traits_.heads.value_or(tensor) % tensor != 0) {
        lists_.turn_down(PruneReason::kStructure);
        continue;
      }
      at_.degrees.tensor = tensor;
      add_context_sizes(goal_.gpus / tensor);
    }
  }

  void add_context_sizes(int ranks) {
    for (const int context : choices(fixed_.context, sizes_dividing(ranks))) {
      if (context < 1 || ranks % context != 0 || goal_.sequence_length % context != 0) {
        lists_.turn_down(PruneReason::kStructure);
        continue;
      }
      at_.degrees.context = context;
      add_pipeline_sizes(ranks / context);
    }
  }

  void add_pipeline_sizes(int ranks) {
    for (const int pipeline : choices(fixed_.pipeline, sizes_dividing(ranks))) {
      const bool divides = pipeline >= 1 && ranks % pipeline == 0;
      const int data = divides ? ranks / pipeline : 1;
      if (!divides || pipeline > traits_.blocks + (pipeline > 1 ? 2 : 1) ||
          goal_.global_batch % data != 0 || (fixed_.data && *fixed_.data != data)) {
        lists_.turn_down(PruneReason::kStructure);
        continue;
      }
      at_.degrees.pipeline = pipeline;
      at_.degrees.data = data;
      add_expert_sizes();
    }
  }

  void add_expert_sizes() {
    const std::int64_t ranks = stage_rank_count(at_.degrees);
    const int experts = traits_.experts.value_or(1);
    const std::vector<int> shards =
        traits_.experts ? sizes_dividing(at_.degrees.tensor) : std::vector{1};
    for (const int expert_tensor : choices(fixed_.expert_tensor, shards))
      for (const int expert : choices(fixed_.expert, sizes_dividing(experts))) {
        const std::int64_t used = std::int64_t{expert} * expert_tensor;
        if (used < 1 || ranks % used != 0) {
          lists_.turn_down(PruneReason::kStructure);
          continue;
        }
        at_.degrees.expert = expert;
        at_.degrees.expert_tensor = expert_tensor;
        add_sequence_parallelism();
      }
  }

  /// A fixed switch of tensor parallelism is for plans that have it; with a fixed size of 1 it is
  /// an error, found by check_plan().
  bool is_choice(bool value, const std::optional<bool>& fixed) const {
    if (at_.degrees.tensor == 1 && !fixed_.tensor) return !value;
    return fixed ? value == *fixed : !value || at_.degrees.tensor > 1;
  }

  void add_sequence_parallelism() {
    for (const bool cut : {false, true}) {
      if (!is_choice(cut, fixed_.sequence_parallel)) continue;
      at_.sequence_parallel = cut;
      for (const bool overlap : {false, true}) {
        if (!is_choice(overlap, fixed_.tensor_overlap)) continue;
        if (overlap && !cut && !fixed_.tensor_overlap) continue;
        at_.tensor_overlap = overlap;
        add_context_algorithms();
      }
    }
  }

  void add_context_algorithms() {
    std::vector<ContextAlgorithm> algorithms{ContextAlgorithm::kAllGather};
    if (at_.degrees.context > 1)
      for (const auto more : {ContextAlgorithm::kRing, ContextAlgorithm::kAllToAll})
        algorithms.push_back(more);
    for (const ContextAlgorithm algorithm : choices(fixed_.context_algorithm, algorithms)) {
      at_.context = algorithm;
      add_micro_batches();
    }
  }

  void add_micro_batches() {
    const std::int64_t batch = goal_.global_batch / at_.degrees.data;
    at_.micro_batch = 1;
    if (!is_possible_layout()) return;
    std::vector<int> sizes;
    for (const int size : sizes_dividing(batch))
      if (size <= kLargestUnevenMicroBatch ||
          (size <= kLargestMicroBatch && std::has_single_bit(static_cast<unsigned>(size))))
        sizes.push_back(size);
    for (const int size : choices(fixed_.micro_batch, sizes)) {
      if (size < 1 || batch % size != 0 || batch / size > kMostMicrobatches) {
        lists_.turn_down(PruneReason::kStructure);
        continue;
      }
      at_.micro_batch = size;
      add_branch();
    }
  }

  /// Checks what depends on the layout only, with the default of every other choice.
  bool is_possible_layout() {
    const Replication plain{};
    if (can_cut(traits_.blocks, at_.degrees.pipeline)) {
      const Plan plan = layout_probe(at_, plain, goal_, fixed_, traits_.blocks);
      if (lists_.is_valid(plan)) return lists_.can_run(plan, is_of_layout);
    }
    lists_.turn_down(PruneReason::kStructure);
    return false;
  }

  static bool is_of_layout(Ability ability) {
    switch (ability) {
      case Ability::kSchedules:
      case Ability::kZero:
      case Ability::kRecompute:
      case Ability::kRecomputeModules:
      case Ability::kStageCuts:
      case Ability::kBuckets:
        return false;
      default:
        return true;
    }
  }

  void add_branch() {
    const SearchSpace::Branch branch{at_, lists_.pipelines_of(at_), lists_.replications_of(at_)};
    if (space_.candidates_below(branch) > 0) space_.branches.push_back(branch);
  }

  const Goal& goal_;
  const FixedChoices& fixed_;
  ModelTraits traits_;
  int devices_per_node_;
  SearchSpace& space_;
  ChoiceLists lists_;
  Layout at_;
};

void check_goal(const Cluster& cluster, const Goal& goal, const FixedChoices& fixed) {
  std::vector<Diagnostic> problems;
  const auto positive = [&](const char* flag, std::int64_t value) {
    if (value >= 1) return;
    problems.push_back(
        {.where = flag, .what = fmt::format("must be at least 1, got {}", value), .hint = ""});
  };
  positive("--gpus", goal.gpus);
  positive("--global-batch", goal.global_batch);
  positive("--seq", goal.sequence_length);
  if (goal.gpus > device_count(cluster))
    problems.push_back({.where = "--gpus",
                        .what = fmt::format("{} devices requested, but cluster '{}' has {}",
                                            goal.gpus, cluster.name, device_count(cluster)),
                        .hint = fmt::format("use at most {}", device_count(cluster))});
  const ScheduleRule* rule = fixed.schedule ? find_schedule_rule(*fixed.schedule) : nullptr;
  if (fixed.schedule && rule == nullptr)
    problems.push_back({.where = "--schedule",
                        .what = fmt::format("unknown schedule '{}'", *fixed.schedule),
                        .hint = suggest(*fixed.schedule, schedule_names())});
  if (rule != nullptr && rule->updates != UpdateTime::kAfterFlush)
    problems.push_back(
        {.where = "--schedule",
         .what = fmt::format("'{}' trains with stale weights and is not searched", *fixed.schedule),
         .hint = "use 'simulate' or 'run' with explicit parallel sizes"});
  throw_if_any(problems);
}

}  // namespace

SearchSpace make_space(const ModelGraph& model, const Cluster& cluster, const Goal& goal,
                       const FixedChoices& fixed) {
  check_goal(cluster, goal, fixed);
  SearchSpace space;
  Enumeration(model, cluster, goal, fixed, space).run();
  return space;
}

}  // namespace meshwright
