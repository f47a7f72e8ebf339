#include "planner/search/priced_options.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "core/lowering/lower.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "planner/search/choice_lists.hpp"
#include "planner/search/layer_times.hpp"
#include "planner/search/space.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// More than any memory, and sums of it fit into an integer.
constexpr Bytes kTooMuch(std::int64_t{1} << 50);

/// Recomputation as the options of a block say it.
std::vector<Recompute> recomputes_of(const SearchJob& job) {
  SearchSpace space;
  ChoiceLists(job.model, job.cluster, job.goal, job.fixed, space).list_recomputes();
  std::erase_if(space.recomputes,
                [](const Recompute& r) { return r.kind == RecomputeKind::kBlocks; });
  return std::move(space.recomputes);
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
    const Value& value = values[static_cast<std::size_t>(block)];
    if (value == usual) continue;
    if (!runs.empty() && runs.back().last + 1 == block && runs.back().value == value)
      runs.back().last = block;
    else
      runs.push_back({block, block, value});
  }
  return runs;
}

class Pricing {
 public:
  Pricing(const Plan& plan, const SearchJob& job)
      : plan_(plan),
        strategy_(plan.strategy),
        job_(job),
        blocks_(block_count(job.model)),
        microbatches_(microbatch_count(plan.strategy)) {}

  std::vector<PricedOption> run() {
    add_recomputes();
    add_held_parameters();
    add_shared_tokens();
    return std::move(options_);
  }

 private:
  /// All blocks are recomputed in the same way.
  void add_recomputes() {
    Strategy plain = strategy_;
    plain.recompute = {};
    const LayerCosts whole = layer_costs(plain, job_.model, job_.cluster, job_.cost_model);
    for (const Layer& layer : job_.model.layers)
      if (layer.kind == LayerKind::kBlock)
        parameters_.push_back(whole.memory[static_cast<std::size_t>(layer.layer_class)].parameters);
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
    const bool reshards = strategy_.data_parallelism.reshard_after_forward;
    PricedOption& priced = options_.emplace_back();
    priced.option = {.recompute = recompute, .reshards = reshards};
    for (const LayerRun& run : costs.passes.blocks) {
      const PassTimes& times = is_full ? run.recomputed : run.plain;
      priced.time.insert(priced.time.end(), static_cast<std::size_t>(run.count),
                         times.forward + times.backward);
    }
    for (const Layer& layer : job_.model.layers) {
      if (layer.kind != LayerKind::kBlock) continue;
      const LayerMemory& memory = costs.memory[static_cast<std::size_t>(layer.layer_class)];
      priced.saved.push_back(is_full ? memory.saved_if_full : memory.saved);
    }
    for (std::size_t block = 0; block < parameters_.size(); ++block)
      priced.parameters.push_back(reshards ? Bytes() : gathered(block));
  }
  /// Of one block.
  Bytes gathered(std::size_t block) const {
    return stored_element(strategy_.dtype) * (parameters_[block].dense + parameters_[block].expert);
  }

  /// Under ZeRO 3.
  void add_held_parameters() {
    if (strategy_.zero < 3 || job_.fixed.reshard_after_forward) return;
    Plan resharding = plan_, holding = plan_;
    resharding.strategy.data_parallelism.reshard_after_forward = true;
    holding.strategy.data_parallelism.reshard_after_forward = false;
    const Ticks saved = saved_by(resharding, holding, blocks_);
    if (saved <= Ticks()) return;
    const bool reshards = strategy_.data_parallelism.reshard_after_forward;
    for (const PricedOption& priced : std::vector(options_)) {
      PricedOption& other = options_.emplace_back(priced);
      other.option.reshards = !reshards;
      for (std::size_t block = 0; block < parameters_.size(); ++block) {
        other.parameters[block] = reshards ? gathered(block) : Bytes();
        other.time[block] += reshards ? Ticks() - saved : saved;
      }
    }
  }
  /// Per block and micro-batch, if `count` blocks differ.
  Ticks saved_by(const Plan& from, const Plan& to, int count) const {
    const auto step = [&](const Plan& plan) {
      return predict({plan, job_.model, job_.cluster, job_.cost_model}).evaluation.step_time;
    };
    const std::int64_t of_rank = std::max(1, count / strategy_.degrees.pipeline);
    return Ticks((step(from) - step(to)).value / (of_rank * microbatches_));
  }

  /// In blocks that can: the same activations, but all weights.
  void add_shared_tokens() {
    if (strategy_.degrees.tensor == 1 || !strategy_.sequence_parallel) return;
    const std::vector<bool> can_share = blocks_that_can_share();
    Plan sharing = plan_;
    for (int block = 0; block < blocks_; ++block)
      if (can_share[static_cast<std::size_t>(block)])
        sharing.strategy.layer_options.tensor.push_back({block, block, 1});
    const auto count = static_cast<int>(std::ranges::count(can_share, true));
    const Ticks saved = count > 0 ? saved_by(plan_, sharing, count) : Ticks();
    if (saved <= Ticks()) return;
    const std::int64_t others = strategy_.degrees.tensor - 1;
    for (const PricedOption& priced : std::vector(options_)) {
      PricedOption& shared = options_.emplace_back(priced);
      shared.option.shares_tokens = true;
      for (std::size_t block = 0; block < parameters_.size(); ++block) {
        shared.time[block] -= saved;
        shared.parameters[block] =
            can_share[block] ? priced.parameters[block] * (1 + others) +
                                   state_of_parameter() * (parameters_[block].dense * others)
                             : kTooMuch;
      }
    }
  }
  /// By block; all of a class can, or none.
  std::vector<bool> blocks_that_can_share() const {
    std::map<std::int32_t, bool> known;  // by class
    std::vector<bool> can_share;
    for (const Layer& layer : job_.model.layers) {
      if (layer.kind != LayerKind::kBlock) continue;
      const auto block = static_cast<int>(can_share.size());
      const auto [of_class, is_new] = known.try_emplace(layer.layer_class, false);
      if (is_new) {
        Plan single = plan_;
        single.strategy.layer_options.tensor = {{block, block, 1}};
        of_class->second = is_possible(single, job_);
      }
      can_share.push_back(of_class->second);
    }
    return can_share;
  }
  /// Weights, gradients and optimizer state of one parameter on a rank, rounded up.
  Bytes state_of_parameter() const {
    const ModelStateBytes state = model_state_bytes(strategy_, job_.cost_model.memory());
    const std::int64_t replicas = replica_count(strategy_.degrees);
    const auto share = [&](std::int64_t bytes, int least_zero) {
      return strategy_.zero >= least_zero ? divide_up(bytes, replicas) : bytes;
    };
    return Bytes(share(state.weights, 3) + share(state.gradients, 2) + share(state.optimizer, 1));
  }

  const Plan& plan_;
  const Strategy& strategy_;
  const SearchJob& job_;
  int blocks_;
  std::int64_t microbatches_;
  std::vector<LocalParameters> parameters_;  ///< by block
  std::vector<PricedOption> options_;
};

}  // namespace

std::vector<LayerOption> options_of(const Plan& plan) {
  const Strategy& s = plan.strategy;
  const bool of_stages = s.recompute.kind == RecomputeKind::kBlocks;
  std::vector<LayerOption> options;
  for (std::size_t part = 0; part < plan.blocks_per_stage.size(); ++part) {
    int recomputed = of_stages ? recomputed_blocks(s.recompute, static_cast<int>(part)) : 0;
    for (int i = 0; i < plan.blocks_per_stage[part]; ++i) {
      LayerOption& option = options.emplace_back();
      if (!of_stages)
        option.recompute = s.recompute;
      else if (recomputed-- > 0)
        option.recompute.kind = RecomputeKind::kFull;
      option.reshards = s.data_parallelism.reshard_after_forward;
    }
  }
  return options;
}

Plan with_options(Plan plan, const std::vector<LayerOption>& options) {
  std::vector<Recompute> recomputes;
  std::vector<bool> reshards;
  std::vector<int> tensors;
  Strategy& s = plan.strategy;
  for (const LayerOption& option : options) {
    recomputes.push_back(option.recompute);
    reshards.push_back(option.reshards);
    tensors.push_back(option.shares_tokens ? 1 : s.degrees.tensor);
  }
  s.recompute = most_frequent(recomputes);
  s.layer_options.recompute = unusual(recomputes, s.recompute);
  s.layer_options.tensor = unusual(tensors, s.degrees.tensor);
  if (s.zero < 3) return plan;
  bool& usual = s.data_parallelism.reshard_after_forward;
  usual = 2 * std::ranges::count(reshards, false) <= std::ssize(reshards);
  s.layer_options.reshard_after_forward = unusual<bool>(reshards, usual);
  return plan;
}

bool is_possible(const Plan& plan, const SearchJob& job) {
  return check_plan(plan, job.model, job.cluster).empty() &&
         (!job.fixed.trainer || can_run(job.fixed.trainer->abilities, plan));
}

std::vector<PricedOption> priced_options(const Plan& plan, const SearchJob& job) {
  return Pricing(plan, job).run();
}

}  // namespace meshwright
