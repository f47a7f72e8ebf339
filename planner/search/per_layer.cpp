#include "planner/search/per_layer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "core/plan/placement.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/block_choices.hpp"
#include "planner/search/explain.hpp"
#include "planner/search/held_activations.hpp"
#include "planner/search/neighbors.hpp"
#include "planner/search/priced_options.hpp"
#include "planner/search/refinement.hpp"
#include "planner/search/tried_plan.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// Simulations that find the largest memory budgets, and the share of the memory by which they may
/// differ from what the memory of blocks alone says: an eighth.
constexpr int kTrials = 7, kWidestCorrection = 8;
/// Changes of plan 1, each to a plan that is faster with options of its own.
constexpr int kMostNeighbors = 4;

/// The plans with the fastest options of their blocks that fit.
class LayerSearch {
 public:
  LayerSearch(const RankedPlan& base, const SearchJob& job, const std::function<bool()>& canceled)
      : base_(base),
        job_(job),
        canceled_(canceled),
        strategy_(base.plan.strategy),
        facts_(job_facts(strategy_, job.model, job.cluster)),
        placement_(placement_of(base.plan)),
        chosen_(options_of(base.plan)),
        options_(priced_options(base.plan, job)) {}

  std::optional<RankedPlan> run() {
    if (options_.size() < 2) return std::nullopt;
    note_blocks_held();
    try_within(budgets_with(chosen_, base_.evaluation));
    if (!tried_) return std::nullopt;
    // The allocator of a training program keeps less in reserve where memory is scarce, so that
    // peaks are not linear in what is held: the largest budgets are found by bisection.
    const std::vector<Bytes> corrected = budgets_with(*tried_, of_tried_);
    Bytes least = Bytes() - facts_.memory_capacity / kWidestCorrection, most = Bytes() - least;
    for (int trial = 0; trial < kTrials && !(canceled_ && canceled_()); ++trial) {
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
      if (!is_possible(plan, job_)) return false;
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
    return priced.saved[block] * std::int64_t{held_of_block_[block]} + priced.parameters[block];
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
  using Group = std::vector<std::size_t>;

  /// nullopt: the blocks of a rank do not fit with any options.
  std::optional<std::vector<LayerOption>> fastest_within(const std::vector<Bytes>& budgets) const {
    std::vector<LayerOption> options = chosen_;
    for (std::size_t rank = 0; rank < budgets.size(); ++rank) {
      const std::vector<Group> groups = groups_of(rank);
      std::vector<AlikeBlocks> alike;
      alike.reserve(groups.size());
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
          groups, [&](const Group& group) { return is_alike(group.front(), block); });
      (known == groups.end() ? groups.emplace_back() : *known).push_back(block);
    }
    return groups;
  }
  std::int32_t class_of(std::size_t block) const {
    const std::size_t first = job_.model.layers.front().kind == LayerKind::kBlock ? 0 : 1;
    return job_.model.layers[first + block].layer_class;
  }

  AlikeBlocks choices_of(const Group& group) const {
    AlikeBlocks alike{.count = static_cast<int>(group.size()), .choices = {}};
    const std::size_t block = group.front();
    for (const PricedOption& of : options_)
      alike.choices.push_back({of.time[block], held(of, block)});
    return alike;
  }

  /// Those that take longest come first, as in Megatron-LM's --recompute-method block; the last
  /// blocks are the first that are needed again.
  void assign(const Group& group, const std::vector<int>& counts,
              std::vector<LayerOption>& options) const {
    const std::size_t block = group.front();
    std::vector<std::size_t> slowest(options_.size());
    std::iota(slowest.begin(), slowest.end(), std::size_t{0});
    std::ranges::stable_sort(slowest, [&](std::size_t a, std::size_t b) {
      return options_[a].time[block] > options_[b].time[block];
    });
    std::size_t next = 0;
    for (const std::size_t c : slowest)
      for (int i = 0; i < counts[c]; ++i) options[group[next++]] = options_[c].option;
  }

  const RankedPlan& base_;
  const SearchJob& job_;
  const std::function<bool()>& canceled_;
  const Strategy& strategy_;
  JobFacts facts_;
  Placement placement_;
  std::vector<LayerOption> chosen_;  ///< by block, of the plan
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
    std::optional<Plan> plan = completed_plan(s, job);
    if (plan && step_bound_of(*plan, job) < best.evaluation.step_time)
      neighbors.push_back(std::move(*plan));
  }
  return neighbors;
}

/// The fastest neighbor with options of its own, if it is worthwhile.
std::optional<RankedPlan> faster_neighbor(const RankedPlan& best, const SearchJob& job,
                                          const std::function<bool()>& canceled) {
  const std::vector<Plan> neighbors = neighbors_of(best, job);
  std::vector<std::optional<RankedPlan>> changed(neighbors.size());
  parallel_for(neighbors.size(), job.threads, [&](std::size_t i) {
    if (canceled && canceled()) return;
    FixedChoices fixed = job.fixed;
    fixed.recompute.reset();
    if (!keeps_fixed_choices(neighbors[i].strategy, fixed)) return;
    RankedPlan neighbor{.plan = neighbors[i], .evaluation = {}, .why = {}};
    neighbor.evaluation =
        predict({neighbors[i], job.model, job.cluster, job.cost_model}).evaluation;
    changed[i] = with_layer_options(neighbor, job, canceled);
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

std::optional<RankedPlan> with_layer_options(const RankedPlan& plan, const SearchJob& job,
                                             const std::function<bool()>& canceled) {
  if (!can_have_layer_options(plan.plan, job)) return std::nullopt;
  return LayerSearch(plan, job, canceled).run();
}

void choose_layer_options(SearchResult& result, const SearchJob& job,
                          const SearchOptions& options) {
  if (result.plans.empty()) return;
  const auto is_canceled = [&] { return options.canceled && options.canceled(); };
  const Ticks uniform = result.plans.front().evaluation.step_time;
  std::vector<std::optional<RankedPlan>> changed(result.plans.size());
  parallel_for(changed.size(), job.threads, [&](std::size_t i) {
    if (!is_canceled()) changed[i] = with_layer_options(result.plans[i], job, options.canceled);
  });
  for (std::size_t i = 0; i < changed.size(); ++i)
    if (changed[i]) result.plans[i] = std::move(*changed[i]);
  std::ranges::stable_sort(result.plans, {},
                           [](const RankedPlan& p) { return p.evaluation.step_time; });
  for (int i = 0; i < kMostNeighbors && !is_canceled(); ++i) {
    std::optional<RankedPlan> faster = faster_neighbor(result.plans.front(), job, options.canceled);
    if (!faster) break;
    put_first(std::move(*faster), result.plans);
  }
  if (!is_canceled()) result.certificate.uniform_step_time = uniform;
}

}  // namespace meshwright
