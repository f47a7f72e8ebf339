#include "core/model/chain_problem.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

constexpr double kBytesPerMegabyte = 1 << 20;
constexpr Seconds kNotPossible(std::numeric_limits<double>::infinity());

double megabytes(Bytes size) { return static_cast<double>(size.value) / kBytesPerMegabyte; }

struct LayoutShape {
  int copies = 1;
  std::array<int, 3> shards{1, 1, 1};  ///< of every dimension
  friend bool operator==(const LayoutShape&, const LayoutShape&) = default;
};

LayoutShape shape_of(ChainLayout layout, const ChainStrategy& strategy) {
  const int t = strategy.tensor, d = strategy.data;
  switch (layout) {
    case ChainLayout::kReplicated:
      return {t, {1, d, 1}};
    case ChainLayout::kBatchFirst:
      return {t, {d, 1, 1}};
    case ChainLayout::kSplitHidden:
      return {1, {1, d, t}};
    case ChainLayout::kSplitHeads:
      return {1, {d, t, 1}};
    case ChainLayout::kAny:
      break;
  }
  return {};
}

Seconds collective_time(const ChainProblem& problem, CollectiveKind kind, int devices, Bytes size) {
  const auto tables = problem.collectives.find(kind);
  if (tables == problem.collectives.end()) return kNotPossible;
  const auto times = tables->second.find(devices);
  if (times == tables->second.end()) return kNotPossible;
  // Rounded to even, as Python prints numbers.
  for (const double size_in_mb : {megabytes(size), megabytes(size) - 1}) {
    const auto found = times->second.find(std::llrint(size_in_mb));
    if (found != times->second.end()) return found->second;
  }
  return kNotPossible;
}

/// Activation sizes of a stage: all, those that are recomputed, and the most recomputed at once.
struct StageActivations {
  Bytes all, recomputed, largest_run;
};

class StagePricer {
 public:
  StagePricer(const ChainProblem& problem, const ChainPlan& plan, const ChainStage& stage)
      : problem_(problem), plan_(plan), stage_(stage) {}

  Seconds time(bool begins_node, bool ends_node) const;
  Bytes memory(std::size_t stages_behind) const;

 private:
  const ChainOperator& op(std::size_t i) const {
    return problem_.operators[static_cast<std::size_t>(problem_.chain[i])];
  }
  const ChainCosts& costs(std::size_t i) const { return costs(i, plan_.strategies[i].tensor); }
  const ChainCosts& costs(std::size_t i, int tensor) const {
    static const ChainCosts kUnmeasured;
    const ChainStrategy& strategy = plan_.strategies[i];
    const auto size = std::find(problem_.microbatches.begin(), problem_.microbatches.end(),
                                plan_.microbatch / strategy.data);
    const int log_tensor = static_cast<int>(std::bit_width(static_cast<unsigned>(tensor))) - 1;
    if (size == problem_.microbatches.end() || plan_.microbatch % strategy.data != 0 ||
        log_tensor >= problem_.tensor_degrees)
      return kUnmeasured;
    return problem_.costs(op(i), static_cast<std::size_t>(size - problem_.microbatches.begin()),
                          log_tensor, strategy.algorithm);
  }
  Bytes activations(std::size_t i) const {
    return Bytes(
        std::llround(op(i).activation_share * static_cast<double>(costs(i).activations.value)));
  }
  StageActivations activations() const;

  const ChainProblem& problem_;
  const ChainPlan& plan_;
  const ChainStage& stage_;
};

Seconds StagePricer::time(bool begins_node, bool ends_node) const {
  Seconds time;
  for (std::size_t i = stage_.begin; i < stage_.end; ++i) {
    const ChainStrategy& strategy = plan_.strategies[i];
    if (!costs(i).is_measured || strategy.tensor * strategy.data != stage_.devices)
      return kNotPossible;
    time += costs(i).forward + costs(i).backward;
    if (strategy.is_recomputed) time += costs(i).forward;
    if (i == stage_.begin) continue;
    const ChainStrategy& source = plan_.strategies[i - 1];
    time += conversion_time(problem_, op(i - 1).output[static_cast<std::size_t>(source.algorithm)],
                            source, op(i).input[static_cast<std::size_t>(strategy.algorithm)],
                            strategy, costs(i).input);
  }
  const ChainCosts& last = costs(stage_.end - 1, plan_.strategies[stage_.begin].tensor);
  if (!last.is_measured) return kNotPossible;
  const auto rates = [&](bool between_nodes) -> const std::vector<BytesPerSecond>& {
    return between_nodes ? problem_.rates_between_nodes : problem_.rates_in_node;
  };
  return time + transfer_time(rates(begins_node), costs(stage_.begin).input) +
         transfer_time(rates(ends_node), last.output);
}

StageActivations StagePricer::activations() const {
  StageActivations sum;
  Bytes run;
  const auto end_run = [&] {
    sum.largest_run = std::max(sum.largest_run, run);
    run = {};
  };
  for (std::size_t i = stage_.begin; i < stage_.end; ++i) {
    const Bytes size = activations(i);
    sum.all += size;
    if (i + 1 == stage_.end) break;
    if (!plan_.strategies[i].is_recomputed || !plan_.strategies[i + 1].is_recomputed) {
      end_run();
      continue;
    }
    const bool ends_layer = op(i + 1).begins_layer;
    if (!ends_layer) sum.recomputed += size;
    run += size;
    // Runs end with layers and with the stage, but not at operators that share their activations.
    if (op(i).activation_share == 1 && (ends_layer || i + 2 == stage_.end)) end_run();
  }
  return sum;
}

Bytes StagePricer::memory(std::size_t stages_behind) const {
  const StageActivations activations = this->activations();
  Bytes parameters, forward_workspace, backward_workspace;
  for (std::size_t i = stage_.begin; i < stage_.end; ++i) {
    parameters += costs(i).parameters;
    if (i + 1 == stage_.end) break;
    forward_workspace = std::max(forward_workspace, costs(i).forward_workspace);
    backward_workspace = std::max(backward_workspace, costs(i).backward_workspace);
  }
  const Bytes kept = costs(stage_.begin).input + activations.all - activations.recomputed;
  const double state = problem_.state_share * static_cast<double>(parameters.value);
  return Bytes(std::llround(state)) + kept * static_cast<std::int64_t>(stages_behind + 1) +
         activations.largest_run + std::max(forward_workspace + backward_workspace, parameters);
}

}  // namespace

Seconds conversion_time(const ChainProblem& problem, ChainLayout from, const ChainStrategy& source,
                        ChainLayout to, const ChainStrategy& target, Bytes size) {
  if (from == ChainLayout::kAny || to == ChainLayout::kAny) return Seconds(0);
  const LayoutShape a = shape_of(from, source), b = shape_of(to, target);
  if (a == b) return Seconds(0);
  const auto time = [&](CollectiveKind kind, int large, int small) {
    return large % small == 0 ? collective_time(problem, kind, large / small, size) : kNotPossible;
  };
  if (a.copies > b.copies) {  // split; its gradient is gathered
    for (std::size_t dim = 0; dim < a.shards.size(); ++dim)
      if (a.shards[dim] < b.shards[dim])
        return time(CollectiveKind::kAllGather, a.copies, b.copies);
    return kNotPossible;
  }
  for (std::size_t dim = 0; dim < a.shards.size(); ++dim) {
    if (a.shards[dim] <= b.shards[dim]) continue;
    if (a.copies < b.copies)  // its gradient is split
      return time(CollectiveKind::kAllGather, a.shards[dim], b.shards[dim]);
    for (std::size_t other = 0; other < a.shards.size(); ++other)
      if (other != dim && a.shards[other] < b.shards[other])
        return 2.0 * time(CollectiveKind::kAllToAll, a.shards[dim], b.shards[dim]);
  }
  return kNotPossible;
}

Seconds transfer_time(const std::vector<BytesPerSecond>& rates, Bytes size) {
  if (size.value <= 0 || rates.empty()) return Seconds(0);
  const double power = std::floor(std::log2(std::max(1.0, megabytes(size))));
  const auto index = static_cast<std::size_t>(std::max(0.0, power - 1));
  return size / rates[std::min(index, rates.size() - 1)];
}

void price_chain(const ChainProblem& problem, ChainPlan& plan) {
  Seconds sum, slowest;
  int devices = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    ChainStage& stage = plan.stages[s];
    const StagePricer pricer(problem, plan, stage);
    const bool begins_node = devices > 0 && devices % problem.devices_per_node == 0;
    devices += stage.devices;
    stage.time = pricer.time(begins_node, devices % problem.devices_per_node == 0);
    stage.memory = pricer.memory(plan.stages.size() - 1 - s);
    sum += stage.time;
    slowest = std::max(slowest, stage.time);
  }
  const int microbatches = problem.global_batch / plan.microbatch;
  plan.time = sum;
  if (microbatches > 1) plan.time += slowest * static_cast<double>(microbatches - 1);
}

void check_chain_problem(const ChainProblem& problem, const std::string& where) {
  if (problem.chain.empty())
    throw InputError({where, "the chain has no operators", "give at least one operator"});
  for (const ChainOperator& op : problem.operators)
    for (const ChainCosts& costs : op.costs)
      if (costs.forward.value > 0 || costs.backward.value > 0) return;
  throw InputError({where, "all times are 0", "give the times of the operators"});
}

}  // namespace meshwright
