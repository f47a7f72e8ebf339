#include "planner/search/branching.hpp"

#include <algorithm>
#include <tuple>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// False if check_plan() rejects the replication with this schedule, whatever the rest is.
bool suits(const Replication& replication, const PipelineChoice& pipeline) {
  const DataParallelism& data = replication.data;
  if (pipeline.rule->output_barriers > 0)
    return replication.zero <= 1 && data.buckets.rule == BucketRule::kNone && !data.overlap_gather;
  if (pipeline.placement->routes.size() > 1)
    return replication.zero <= 1 && data.shard_ranks == 0 && !data.overlap_gather;
  return true;
}

/// Another replication that differs in that alone.
bool has_one_without_buckets(std::span<const Replication> replications, Replication replication) {
  if (replication.data.buckets.rule == BucketRule::kNone) return false;
  replication.data.buckets = {};
  return std::ranges::find(replications, replication) != replications.end();
}

}  // namespace

void NodeOutcome::prune(PruneReason reason, std::int64_t count) {
  pruned[static_cast<std::size_t>(reason)] += count;
}

void NodeOutcome::note(const Candidate& lacking, const MemoryShortfall& found) {
  if (shortfall && shortfall->needed <= found.needed) return;
  candidate = lacking;
  shortfall = found;
}

Branching::Branching(const SearchJob& job, const SearchSpace& space, const Incumbents& incumbents)
    : job_(job), space_(space), incumbents_(incumbents), costs_(job), screen_(job, costs_) {}

const SearchSpace::Branch& Branching::branch_of(const Node& node) const {
  return space_.branches[static_cast<std::size_t>(node.branch)];
}
const PipelineChoice& Branching::pipeline_of(const Node& node) const {
  return space_.pipelines(branch_of(node))[static_cast<std::size_t>(node.pipeline)];
}
Candidate Branching::candidate_of(const Node& node) const {
  Candidate candidate{branch_of(node).layout,
                      pipeline_of(node),
                      space_.recomputes[static_cast<std::size_t>(node.recompute)],
                      {}};
  if (node.replication >= 0)
    candidate.replication =
        space_.replications(branch_of(node))[static_cast<std::size_t>(node.replication)];
  if (node.blocks > 0) candidate.recompute.blocks = node.blocks;
  return candidate;
}
std::int64_t Branching::candidates_below(const Node& node) const {
  if (node.postponed > 0) return node.postponed;
  if (node.pipeline < 0) return space_.candidates_below(branch_of(node));
  return node.replication < 0
             ? static_cast<std::int64_t>(space_.replications(branch_of(node)).size())
             : 1;
}

bool Branching::is_beaten(const Node& node) const {
  return incumbents_.beat(node.bound, branch_of(node).layout,
                          node.pipeline < 0 ? nullptr : &pipeline_of(node));
}

bool Branching::is_late(const Node& node) const {
  return postpones_ && !incumbents_.empty() && node.bound > incumbents_.best();
}

NodeOutcome Branching::judge(const Node& node) {
  if (node.pipeline < 0) return divide_layout(node);
  if (node.replication < 0) return node.is_timed ? divide_pipeline(node) : time_pipeline(node);
  return node.is_checked ? simulate_candidate(node) : check_candidate(node);
}

Ticks Branching::bound_of(const SearchSpace::Branch& branch) {
  const bool shares_ends = std::ranges::any_of(
      space_.pipelines(branch),
      [](const PipelineChoice& pipeline) { return pipeline.rule->output_barriers > 0; });
  return costs_.rough_layout_bound(branch.layout, shares_ends);
}

class Branching::Pipelines {
 public:
  Pipelines(Branching& of, const SearchSpace::Branch& branch, const Recompute& recompute)
      : layers(of.costs_.layers(branch.layout, recompute)),
        costs_(of.costs_),
        layout_(branch.layout),
        recompute_(recompute),
        bounds_(of.space_.pipelines(branch).size()) {}

  Ticks bound_of(const PipelineChoice& pipeline) {
    std::optional<Ticks>& bound = bounds_[pipeline.bounded_as];
    if (!bound) bound = costs_.pipeline_bound(layout_, layers, pipeline, recompute_);
    return *bound;
  }

  const SharedLayers layers;

 private:
  CandidateCosts& costs_;
  const Layout& layout_;
  const Recompute& recompute_;
  std::vector<std::optional<Ticks>> bounds_;  ///< by PipelineChoice::bounded_as
};

/// True if the pipeline, whose bound counts the layers only, was not postponed when its layout was
/// divided before.
bool Branching::was_divided(const Node& layout, const Node& child, Pipelines& pipelines) {
  if (layout.postponed == 0 || child.bound > layout.divided_up_to) return false;
  const PipelineChoice& pipeline = pipeline_of(child);
  const Recompute& recompute = space_.recomputes[static_cast<std::size_t>(child.recompute)];
  return costs_.repeats_cut(pipelines.layers, pipeline, recompute) ||
         pipelines.bound_of(pipeline) <= layout.divided_up_to;
}

NodeOutcome Branching::divide_layout(const Node& node) {
  NodeOutcome outcome;
  const SearchSpace::Branch& branch = branch_of(node);
  const auto choices = space_.pipelines(branch);
  Node rest = node;
  rest.postponed = 0;
  for (std::size_t r = 0; r < space_.recomputes.size(); ++r) {
    const Recompute& recompute = space_.recomputes[r];
    Pipelines pipelines(*this, branch, recompute);
    const LayerCosts& layers = *pipelines.layers;
    const Ticks ends = costs_.layout_bound(branch.layout, layers, recompute, false);
    const Ticks no_ends = costs_.layout_bound(branch.layout, layers, recompute, true);
    for (std::size_t p = 0; p < choices.size(); ++p) {
      Node child = node;
      child.postponed = 0;
      child.recompute = static_cast<std::int16_t>(r);
      child.pipeline = static_cast<std::int16_t>(p);
      child.bound = choices[p].rule->output_barriers > 0 ? no_ends : ends;
      if (was_divided(node, child, pipelines)) continue;
      if (!is_late(child)) bound_pipeline(child, pipelines, outcome);
      if (child.bound == Ticks::max()) continue;
      if (!is_late(child)) {
        outcome.children.push_back(child);
        continue;
      }
      rest.bound = rest.postponed == 0 ? child.bound : std::min(rest.bound, child.bound);
      rest.postponed += candidates_below(child);
    }
  }
  if (rest.postponed == 0) return outcome;
  rest.divided_up_to = incumbents_.best();
  outcome.children.push_back(rest);
  return outcome;
}

/// Also counts the stages of a pipeline; Ticks::max(): it is pruned. Memory is counted without the
/// order of the passes, which takes long to generate, if the peak is known without it.
void Branching::bound_pipeline(Node& node, Pipelines& pipelines, NodeOutcome& outcome) {
  const SearchSpace::Branch& branch = branch_of(node);
  const PipelineChoice& pipeline = pipeline_of(node);
  const Recompute& recompute = space_.recomputes[static_cast<std::size_t>(node.recompute)];
  const auto prune = [&](PruneReason reason) {
    outcome.prune(reason, candidates_below(node));
    node.bound = Ticks::max();
  };
  if (is_beaten(node)) return prune(PruneReason::kBound);
  if (costs_.repeats_cut(pipelines.layers, pipeline, recompute))
    return prune(PruneReason::kDominated);
  node.bound = pipelines.bound_of(pipeline);
  if (is_late(node)) return;
  if (is_beaten(node)) return prune(PruneReason::kBound);
  const Replication* leanest = leanest_replication(branch, pipeline);
  if (leanest == nullptr) return prune(PruneReason::kStructure);
  const Candidate candidate{branch.layout, pipeline, recompute, *leanest};
  const auto shortfall = screen_.rough_shortfall_of(
      candidate, pipelines.layers,
      pipeline.rule->reaches_peak ? HeldCount::kFormula : HeldCount::kOrders);
  if (!shortfall) return;
  outcome.note(candidate, *shortfall);
  prune(PruneReason::kMemory);
}

/// The replication with the least memory. Null if none suits the schedule.
const Replication* Branching::leanest_replication(const SearchSpace::Branch& branch,
                                                  const PipelineChoice& pipeline) const {
  const auto leanness = [](const Replication& replication) {
    return std::tuple(replication.zero, -replication.data.shard_ranks,
                      replication.data.reshard_after_forward, !replication.data.overlap_gather);
  };
  const Replication* leanest = nullptr;
  for (const Replication& replication : space_.replications(branch))
    if (suits(replication, pipeline) &&
        (leanest == nullptr || leanness(replication) > leanness(*leanest)))
      leanest = &replication;
  return leanest;
}

Candidate Branching::leanest_below(const SearchSpace::Branch& branch,
                                   const Replication& replication) const {
  const auto pipelines = space_.pipelines(branch);
  const auto suited = std::ranges::find_if(
      pipelines, [&](const PipelineChoice& pipeline) { return suits(replication, pipeline); });
  const auto full = std::ranges::find(space_.recomputes, RecomputeKind::kFull, &Recompute::kind);
  return {branch.layout, suited == pipelines.end() ? pipelines.front() : *suited,
          full == space_.recomputes.end() ? space_.recomputes.front() : *full, replication};
}

NodeOutcome Branching::time_pipeline(const Node& node) {
  NodeOutcome outcome;
  Node timed = node;
  timed.is_timed = true;
  timed.bound = std::max(node.bound, costs_.schedule_time(candidate_of(node)));
  outcome.children.push_back(timed);
  return outcome;
}

NodeOutcome Branching::divide_pipeline(const Node& node) {
  NodeOutcome outcome;
  const auto replications = space_.replications(branch_of(node));
  Candidate candidate = candidate_of(node);
  const SharedLayers layers = costs_.layers(candidate.layout, candidate.recompute);
  for (std::size_t i = 0; i < replications.size(); ++i) {
    if (!suits(replications[i], candidate.pipeline)) {
      outcome.prune(PruneReason::kStructure);
      continue;
    }
    candidate.replication = replications[i];
    if (has_one_without_buckets(replications, replications[i]) && costs_.fills_buckets(candidate)) {
      outcome.prune(PruneReason::kDominated);
      continue;
    }
    Node child = node;
    child.replication = static_cast<std::int16_t>(i);
    child.bound = std::max(node.bound, costs_.reduction_bound(candidate));
    if (is_beaten(child)) {
      outcome.prune(PruneReason::kBound);
      continue;
    }
    if (const auto shortfall = screen_.rough_shortfall_of(candidate, layers)) {
      outcome.note(candidate, *shortfall);
      outcome.prune(PruneReason::kMemory);
      continue;
    }
    outcome.children.push_back(child);
  }
  return outcome;
}

NodeOutcome Branching::check_candidate(const Node& node) {
  NodeOutcome outcome;
  Candidate candidate = candidate_of(node);
  const Plan plan = costs_.plan_of(candidate);
  if (job_.fixed.trainer && !can_run(job_.fixed.trainer->abilities, plan)) {
    outcome.prune(PruneReason::kTrainer);
    return outcome;
  }
  if (!check_plan(plan, job_.model, job_.cluster).empty()) {
    outcome.prune(PruneReason::kStructure);
    return outcome;
  }
  Node checked = node;
  checked.is_checked = true;
  if (candidate.recompute == Recompute{.kind = RecomputeKind::kBlocks}) {
    if (!choose_blocks(candidate, 1, true, outcome)) return outcome;
    checked.blocks = candidate.recompute.blocks;
  }
  checked.bound = costs_.candidate_bound(candidate, bound_with_blocks(node, candidate));
  outcome.children.push_back(checked);
  return outcome;
}

/// Lower bound of the time of all passes of a candidate whose recomputed blocks are chosen.
Ticks Branching::bound_with_blocks(const Node& node, const Candidate& candidate) {
  if (candidate.recompute.blocks <= 1) return node.bound;
  const Ticks bound =
      costs_.pipeline_bound(candidate.layout, costs_.layers(candidate.layout, candidate.recompute),
                            candidate.pipeline, candidate.recompute);
  Node other = node;
  other.bound = std::max(node.bound, bound);
  return is_beaten(other) ? other.bound : std::max(other.bound, costs_.schedule_time(candidate));
}

bool Branching::choose_blocks(Candidate& candidate, int least, bool rough, NodeOutcome& outcome) {
  MemoryShortfall shortfall;
  const auto reason = screen_.choose_blocks(candidate, least, rough, shortfall);
  if (!reason) return true;
  if (*reason == PruneReason::kMemory) outcome.note(candidate, shortfall);
  outcome.prune(*reason);
  return false;
}

NodeOutcome Branching::simulate_candidate(const Node& node) {
  NodeOutcome outcome;
  Candidate candidate = candidate_of(node);
  std::optional<MemoryShortfall> shortfall = screen_.shortfall_of(candidate);
  std::optional<TaskGraph> graph;
  if (!shortfall) {
    const Plan plan = costs_.plan_of(candidate);
    graph = lower(plan, job_.model, job_.cluster, {.memory = job_.cost_model.memory()});
    outcome.tasks = static_cast<std::int64_t>(graph->tasks.size());
    shortfall = shortfall_of(*graph, job_facts(plan.strategy, job_.model, job_.cluster));
  }
  if (shortfall && node.blocks > 0) {  // the screen counts less than everything
    if (!choose_blocks(candidate, node.blocks + 1, false, outcome)) return outcome;
    Node more = node;
    more.blocks = candidate.recompute.blocks;
    more.bound = costs_.candidate_bound(candidate, bound_with_blocks(node, candidate));
    outcome.children.push_back(more);
    return outcome;
  }
  outcome.candidate = candidate;
  if (shortfall) {
    outcome.note(candidate, *shortfall);
    outcome.prune(PruneReason::kMemory);
    return outcome;
  }
  thread_local SimulatedTimes times;  // reuses its memory
  simulate(*graph, price_works(graph->parts, graph->works, job_.cost_model), times);
  outcome.step_time = makespan(times);
  return outcome;
}

}  // namespace meshwright
