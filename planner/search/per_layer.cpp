#include "planner/search/per_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/lowering/lower.hpp"
#include "core/plan/placement.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/block_choices.hpp"
#include "planner/search/choice_lists.hpp"
#include "planner/search/explain.hpp"
#include "planner/search/held_activations.hpp"
#include "planner/search/layer_times.hpp"
#include "planner/search/neighbors.hpp"
#include "planner/search/refinement.hpp"
#include "planner/search/space.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// The options of a block.
struct LayerOption {
  Recompute recompute;  ///< not kBlocks
  bool reshards = true;
  friend bool operator==(const LayerOption&, const LayerOption&) = default;
};

/// Simulations that find the largest memory budgets, and the share of the memory by which they may
/// differ from what the memory of blocks alone says: an eighth.
constexpr int kTrials = 7, kWidestCorrection = 8;
/// Changes of plan 1, each to a plan that is faster with options of its own.
constexpr int kMostNeighbors = 4;

/// Recomputation as the options of a block say it.
std::vector<Recompute> recomputes_of(const SearchJob& job) {
  SearchSpace space;
  ChoiceLists(job.model, job.cluster, job.goal, job.fixed, space).list_recomputes();
  std::erase_if(space.recomputes,
                [](const Recompute& r) { return r.kind == RecomputeKind::kBlocks; });
  return std::move(space.recomputes);
}

/// The options of every block of a plan.
std::vector<LayerOption> options_of(const Plan& plan) {
  const Strategy& s = plan.strategy;
  const Recompute of_others =
      s.recompute.kind == RecomputeKind::kBlocks ? Recompute{} : s.recompute;
  std::vector<LayerOption> options;
  for (std::size_t part = 0; part < plan.blocks_per_stage.size(); ++part) {
    int recomputed = s.recompute.kind == RecomputeKind::kBlocks
                         ? recomputed_blocks(s.recompute, static_cast<int>(part))
                         : 0;
    for (int i = 0; i < plan.blocks_per_stage[part]; ++i)
      options.push_back({recomputed-- > 0 ? Recompute{RecomputeKind::kFull} : of_others,
                         s.data_parallelism.reshard_after_forward});
  }
  return options;
}

/// The most frequent of some values, the first of several.
template <class Value>
Value most_frequent(const std::vector<Value>& values) {
  return *std::ranges::max_element(
      values, {}, [&](const Value& value) { return std::ranges::count(values, value); });
}

/// Runs of blocks whose value is not the usual one.
template <class Value>
std::vector<OfBlocks<Value>> unusual(const std::vector<Value>& values, const Value& usual) {
  std::vector<OfBlocks<Value>> runs;
  for (int block = 0; block < static_cast<int>(values.size()); ++block) {
    const Value value = values[static_cast<std::size_t>(block)];
    if (value == usual) continue;
    if (!runs.empty() && runs.back().last + 1 == block && runs.back().value == value)
      runs.back().last = block;
    else
      runs.push_back({block, block, value});
  }
  return runs;
}

/// The plan with these options: the most frequent ones are those of the plan.
Plan with_options(Plan plan, const std::vector<LayerOption>& options) {
  std::vector<Recompute> recomputes;
  std::vector<bool> reshards;
  for (const LayerOption& option : options) {
    recomputes.push_back(option.recompute);
    reshards.push_back(option.reshards);
  }
  Strategy& s = plan.strategy;
  s.recompute = most_frequent(recomputes);
  s.layer_options.recompute = unusual(recomputes, s.recompute);
  if (s.zero < 3) return plan;
  const auto held = std::ranges::count(reshards, false);
  s.data_parallelism.reshard_after_forward =
      2 * held <= static_cast<std::ptrdiff_t>(reshards.size());
  s.layer_options.reshard_after_forward =
      unusual<bool>(reshards, s.data_parallelism.reshard_after_forward);
  return plan;
}

/// Prices of the options of a plan's blocks, and the plans with the fastest ones that fit.
class LayerSearch {
 public:
  LayerSearch(const RankedPlan& base, const SearchJob& job)
      : base_(base),
        job_(job),
        strategy_(base.plan.strategy),
        facts_(job_facts(strategy_, job.model, job.cluster)),
        placement_(placement_of(base.plan)),
        chosen_(options_of(base.plan)),
        microbatches_(microbatch_count(strategy_)) {}

  std::optional<RankedPlan> run() {
    list_recomputes();
    list_reshards();
    if (options_.size() < 2) return std::nullopt;
    note_blocks_held();
    try_within(budgets_with(chosen_, base_.evaluation));
    if (!tried_) return std::nullopt;
    // The allocator of a training program keeps less in reserve where memory is scarce, so that
    // peaks are not linear in what is held: the largest budgets are found by bisection.
    const std::vector<Bytes> corrected = budgets_with(*tried_, of_tried_);
    Bytes least = Bytes() - facts_.memory_capacity / kWidestCorrection, most = Bytes() - least;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Bytes middle((least + most).value / 2);
      std::vector<Bytes> budgets = corrected;
      for (Bytes& budget : budgets) budget += middle;
      (try_within(budgets) ? least : most) = middle;
    }
    const Ticks before = base_.evaluation.step_time;
    if (!best_ || (fits_in_memory(base_.evaluation) &&
                   ratio(before - best_->evaluation.step_time, before) <= kWorthwhileGain))
      return std::nullopt;
    best_->why = why(best_->plan, best_->evaluation, job_);
    best_->nodes = base_.nodes;
    return std::move(best_);
  }

 private:
  /// Predicts the fastest options within these budgets: false if they do not fit.
  bool try_within(const std::vector<Bytes>& budgets) {
    const std::optional<std::vector<LayerOption>> options = fastest_within(budgets);
    if (!options) return false;
    if (tried_ != options) {
      const Plan plan = with_options(base_.plan, *options);
      const bool is_possible =
          check_plan(plan, job_.model, job_.cluster).empty() &&
          (!job_.fixed.trainer || can_run(job_.fixed.trainer->abilities, plan));
      if (!is_possible) return false;
      tried_ = options;
      of_tried_ = evaluation_of(plan);
      if (fits_in_memory(of_tried_) &&
          (!best_ || of_tried_.step_time < best_->evaluation.step_time))
        best_ = {.plan = plan, .evaluation = of_tried_, .why = {}};
    }
    return fits_in_memory(of_tried_);
  }

  Evaluation evaluation_of(const Plan& plan) const {
    return predict({plan, job_.model, job_.cluster, job_.cost_model}).evaluation;
  }

  // ---- options and their prices ----

  /// By block: forward and backward pass of a micro-batch, and the activations that it holds.
  struct PricedOption {
    LayerOption option;
    std::vector<Ticks> time;
    std::vector<Bytes> saved;     ///< of a micro-batch
    std::vector<Bytes> gathered;  ///< of all micro-batches
  };

  /// All blocks are recomputed in the same way.
  void list_recomputes() {
    Strategy plain = strategy_;
    plain.recompute = {};
    plain.layer_options = {};
    const LayerCosts whole = layer_costs(plain, job_.model, job_.cluster, job_.cost_model);
    for (const Recompute& recompute : recomputes_of(job_)) {
      Strategy s = plain;
      s.recompute = recompute;
      add(recompute, recomputes_operators(recompute.kind)
                         ? layer_costs(s, job_.model, job_.cluster, job_.cost_model, &whole)
                         : whole);
    }
  }
  void add(const Recompute& recompute, const LayerCosts& costs) {
    const bool is_full = recompute.kind == RecomputeKind::kFull;
    PricedOption priced{{recompute, strategy_.data_parallelism.reshard_after_forward}, {}, {}, {}};
    for (const LayerRun& run : costs.passes.blocks) {
      const PassTimes& times = is_full ? run.recomputed : run.plain;
      priced.time.insert(priced.time.end(), static_cast<std::size_t>(run.count),
                         times.forward + times.backward);
    }
    for (const Layer& layer : job_.model.layers) {
      if (layer.kind != LayerKind::kBlock) continue;
      const LayerMemory& memory = costs.memory[static_cast<std::size_t>(layer.layer_class)];
      priced.saved.push_back(is_full ? memory.saved_if_full : memory.saved);
      priced.gathered.push_back(stored_element(strategy_.dtype) *
                                (memory.parameters.dense + memory.parameters.expert));
    }
    options_.push_back(std::move(priced));
  }

  /// Under ZeRO 3, every option also without reshard_after_forward. What that saves is measured on
  /// the plan with all blocks in this way, as if there was enough memory.
  void list_reshards() {
    std::vector<PricedOption> held = options_;
    const bool is_free = strategy_.zero >= 3 && !job_.fixed.reshard_after_forward;
    const Ticks saved = is_free ? saved_without_reshard() : Ticks();
    for (PricedOption& priced : options_)
      if (priced.option.reshards) std::ranges::fill(priced.gathered, Bytes());
    if (saved <= Ticks()) return;
    for (PricedOption& priced : held) {
      priced.option.reshards = false;
      for (Ticks& time : priced.time) time -= saved;
      options_.push_back(std::move(priced));
    }
  }
  /// Per block and micro-batch.
  Ticks saved_without_reshard() const {
    std::array<Ticks, 2> steps;
    for (const bool reshards : {false, true}) {
      Plan plan = base_.plan;
      plan.strategy.data_parallelism.reshard_after_forward = reshards;
      steps[reshards ? 1 : 0] = evaluation_of(plan).step_time;
    }
    const std::int64_t blocks_of_rank =
        std::max<std::int64_t>(1, block_count(job_.model) / strategy_.degrees.pipeline);
    return Ticks((steps[1] - steps[0]).value / (blocks_of_rank * microbatches_));
  }

  // ---- memory ----

  /// Where every block is, and how many micro-batches it holds at the peak of its rank.
  void note_blocks_held() {
    const HeldActivations held = held_at_peaks(schedule_of(base_.plan)).front();
    for (std::size_t part = 0; part < base_.plan.blocks_per_stage.size(); ++part) {
      const auto count = static_cast<std::size_t>(base_.plan.blocks_per_stage[part]);
      const std::size_t rank = placement_.device_of_stage[part].index();
      rank_of_block_.insert(rank_of_block_.end(), count, rank);
      held_of_block_.insert(held_of_block_.end(), count, held.of_stage[part].whole);
      part_of_block_.insert(part_of_block_.end(), count, part);
    }
  }
  Bytes held(const PricedOption& priced, std::size_t block) const {
    return priced.saved[block] * std::int64_t{held_of_block_[block]} + priced.gathered[block];
  }
  const PricedOption* priced(const LayerOption& option) const {
    const auto found = std::ranges::find(options_, option, &PricedOption::option);
    return found == options_.end() ? nullptr : &*found;
  }
  /// What the blocks of every rank hold with these options.
  std::vector<Bytes> held_of_ranks(const std::vector<LayerOption>& options) const {
    std::vector<Bytes> sums(static_cast<std::size_t>(placement_.devices));
    for (std::size_t block = 0; block < options.size(); ++block)
      if (const PricedOption* of = priced(options[block]))
        sums[rank_of_block_[block]] += held(*of, block);
    return sums;
  }
  /// By rank: what is left for its blocks if all else is as in the evaluation of these options.
  std::vector<Bytes> budgets_with(const std::vector<LayerOption>& options,
                                  const Evaluation& evaluation) const {
    std::vector<Bytes> left = held_of_ranks(options);
    const std::size_t ranks_each = evaluation.peak_memory.size() / left.size();
    for (std::size_t rank = 0; rank < left.size(); ++rank) {
      Bytes peak;
      for (std::size_t i = 0; i < ranks_each; ++i)
        peak = std::max(peak, total(evaluation.peak_memory[rank * ranks_each + i]));
      left[rank] += capacity_at(facts_, rank) - peak;
    }
    return left;
  }

  // ---- the choice ----

  /// Blocks of a rank that are alike: of one part and one class.
  struct Group {
    std::vector<std::size_t> blocks;
  };

  /// nullopt: the blocks of a rank do not fit with any options.
  std::optional<std::vector<LayerOption>> fastest_within(const std::vector<Bytes>& budgets) const {
    std::vector<LayerOption> options = chosen_;
    for (std::size_t rank = 0; rank < budgets.size(); ++rank) {
      const std::vector<Group> groups = groups_of(rank);
      std::vector<AlikeBlocks> alike;
      for (const Group& group : groups) alike.push_back(choices_of(group));
      const std::optional<BlockCounts> counts = fast_choices(alike, budgets[rank]);
      if (!counts) return std::nullopt;
      for (std::size_t g = 0; g < groups.size(); ++g) assign(groups[g], (*counts)[g], options);
    }
    return options;
  }

  std::vector<Group> groups_of(std::size_t rank) const {
    std::vector<Group> groups;
    const auto is_alike = [&](std::size_t a, std::size_t b) {
      return part_of_block_[a] == part_of_block_[b] && class_of(a) == class_of(b);
    };
    for (std::size_t block = 0; block < rank_of_block_.size(); ++block) {
      if (rank_of_block_[block] != rank) continue;
      const auto known = std::ranges::find_if(
          groups, [&](const Group& group) { return is_alike(group.blocks.front(), block); });
      (known == groups.end() ? groups.emplace_back() : *known).blocks.push_back(block);
    }
    return groups;
  }
  std::int32_t class_of(std::size_t block) const {
    const std::size_t first = job_.model.layers.front().kind == LayerKind::kBlock ? 0 : 1;
    return job_.model.layers[first + block].layer_class;
  }

  AlikeBlocks choices_of(const Group& group) const {
    AlikeBlocks alike{.count = static_cast<int>(group.blocks.size()), .choices = {}};
    const std::size_t block = group.blocks.front();
    for (const PricedOption& of : options_)
      alike.choices.push_back({of.time[block], held(of, block)});
    return alike;
  }

  /// Those that take longest come first, as in Megatron-LM's --recompute-method block; the last
  /// blocks are the first that are needed again.
  void assign(const Group& group, const std::vector<int>& counts,
              std::vector<LayerOption>& options) const {
    const std::size_t block = group.blocks.front();
    std::vector<std::size_t> slowest(options_.size());
    for (std::size_t c = 0; c < slowest.size(); ++c) slowest[c] = c;
    std::ranges::stable_sort(slowest, [&](std::size_t a, std::size_t b) {
      return options_[a].time[block] > options_[b].time[block];
    });
    std::size_t next = 0;
    for (const std::size_t c : slowest)
      for (int i = 0; i < counts[c]; ++i) options[group.blocks[next++]] = options_[c].option;
  }

  const RankedPlan& base_;
  const SearchJob& job_;
  const Strategy& strategy_;
  JobFacts facts_;
  Placement placement_;
  std::vector<LayerOption> chosen_;  ///< by block, of the plan
  std::int64_t microbatches_;
  std::vector<PricedOption> options_;
  std::vector<std::size_t> rank_of_block_, part_of_block_;
  std::vector<int> held_of_block_;
  std::optional<std::vector<LayerOption>> tried_;  ///< last
  Evaluation of_tried_;
  std::optional<RankedPlan> best_;  ///< the fastest tried one that fits
};

/// The plans that differ from this one by one change and may be faster than it, without
/// recomputation: the options of layers choose that.
std::vector<Plan> neighbors_of(const RankedPlan& best, const SearchJob& job) {
  Strategy uniform = best.plan.strategy;
  uniform.layer_options = {};
  uniform.recompute = {};
  std::vector<Plan> neighbors;
  for (const ChangedStrategy& single : single_changes(uniform)) {
    const Strategy& s = single.strategy;
    const bool is_other_schedule = s.schedule != uniform.schedule;
    if (s.schedule == kSynthesizedSchedule || s.recompute != uniform.recompute ||
        (is_other_schedule && s.degrees.pipeline == 1))
      continue;
    try {
      Plan plan = complete_plan(s, job.model, job.cluster, job.cost_model);
      if (step_bound_of(plan, job) < best.evaluation.step_time)
        neighbors.push_back(std::move(plan));
    } catch (const InputError&) {
      continue;  // not a valid plan
    }
  }
  return neighbors;
}

/// The fastest neighbor with options of its own, if it is worthwhile.
std::optional<RankedPlan> faster_neighbor(const RankedPlan& best, const SearchJob& job) {
  const std::vector<Plan> neighbors = neighbors_of(best, job);
  std::vector<std::optional<RankedPlan>> changed(neighbors.size());
  parallel_for(neighbors.size(), job.threads, [&](std::size_t i) {
    FixedChoices fixed = job.fixed;
    fixed.recompute.reset();
    if (!keeps_fixed_choices(neighbors[i].strategy, fixed)) return;
    RankedPlan neighbor{.plan = neighbors[i], .evaluation = {}, .why = {}};
    neighbor.evaluation =
        predict({neighbors[i], job.model, job.cluster, job.cost_model}).evaluation;
    changed[i] = with_layer_options(neighbor, job);
  });
  const Ticks before = best.evaluation.step_time;
  std::optional<RankedPlan> fastest;
  for (std::optional<RankedPlan>& plan : changed)
    if (plan && ratio(before - plan->evaluation.step_time, before) > kWorthwhileGain &&
        (!fastest || plan->evaluation.step_time < fastest->evaluation.step_time))
      fastest = std::move(plan);
  return fastest;
}

/// In place of the row with the same parallel sizes, or of the last one.
void put_first(RankedPlan plan, std::vector<RankedPlan>& plans) {
  const auto same = std::ranges::find_if(plans, [&](const RankedPlan& row) {
    return row.plan.strategy.degrees == plan.plan.strategy.degrees;
  });
  plans.erase(same == plans.end() ? same - 1 : same);
  plans.insert(plans.begin(), std::move(plan));
}

bool can_have_layer_options(const Plan& plan, const SearchJob& job) {
  const std::size_t stages = placement_of(plan).device_of_stage.size();
  return is_homogeneous(job.cluster) && stages == plan.blocks_per_stage.size();
}

}  // namespace

std::optional<RankedPlan> with_layer_options(const RankedPlan& plan, const SearchJob& job) {
  if (!can_have_layer_options(plan.plan, job)) return std::nullopt;
  return LayerSearch(plan, job).run();
}

void choose_layer_options(SearchResult& result, const SearchJob& job,
                          const SearchOptions& options) {
  if (result.plans.empty()) return;
  result.certificate.uniform_step_time = result.plans.front().evaluation.step_time;
  std::vector<std::optional<RankedPlan>> changed(result.plans.size());
  parallel_for(changed.size(), job.threads, [&](std::size_t i) {
    if (options.canceled && options.canceled()) return;
    changed[i] = with_layer_options(result.plans[i], job);
  });
  for (std::size_t i = 0; i < changed.size(); ++i)
    if (changed[i]) result.plans[i] = std::move(*changed[i]);
  std::ranges::stable_sort(result.plans, {},
                           [](const RankedPlan& p) { return p.evaluation.step_time; });
  for (int i = 0; i < kMostNeighbors && !(options.canceled && options.canceled()); ++i) {
    std::optional<RankedPlan> faster = faster_neighbor(result.plans.front(), job);
    if (!faster) break;
    put_first(std::move(*faster), result.plans);
  }
}

}  // namespace meshwright
