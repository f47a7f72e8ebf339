/// Branch and bound over the tree of the space: layouts, pipelines with recomputation,
/// replications. The node with the lowest bound is next: a layout or a pipeline is divided, a
/// candidate checked for memory, bounded more tightly, and simulated, until the next bound exceeds
/// all rows of the table. A batch is selected before any of it is evaluated, and its results are
/// applied in order, so that neither result nor certificate depends on threads.
#include "planner/search/search.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
#include "planner/search/candidate_costs.hpp"
#include "planner/search/explain.hpp"
#include "planner/search/memory_screen.hpp"
#include "planner/search/parallel_for.hpp"
#include "planner/search/space.hpp"
#include "planner/search/stage_partition.hpp"
#include "planner/search/synthesized_plan.hpp"
#include "planner/search/trainer_choices.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// Nodes of a batch: those with the lowest bounds; and of the rest, candidates and pipelines with
/// the lowest bounds, so that plans are found long before all layouts with low bounds are divided.
constexpr std::size_t kBatchSize = 32, kLowestOfBatch = 16, kCandidatesOfBatch = 8;

/// Rows of the result differ in their parallel sizes. If there are fewer combinations than rows,
/// they also differ in chunks, schedule and micro-batch.
using RowKey = std::tuple<ParallelDegrees, const ScheduleRule*, int>;
RowKey row_key(const Layout& layout, const PipelineChoice& pipeline, bool fine) {
  if (!fine) return {layout.degrees, nullptr, 0};
  ParallelDegrees degrees = layout.degrees;
  degrees.chunks = pipeline.chunks;
  return {degrees, pipeline.rule, layout.micro_batch};
}

/// A node of the tree; the indices of choices that are not made yet are -1.
struct Node {
  Ticks bound;  ///< of the simulated step time of everything below
  std::int32_t branch = -1;
  std::int16_t pipeline = -1, recompute = -1, replication = -1;
  bool is_timed = false;     ///< the bound is at least the makespan of the schedule
  bool is_screened = false;  ///< a candidate: memory was checked, the bound includes its end
  int blocks = 0;            ///< recomputed blocks of a screened candidate
  std::size_t order = 0;     ///< of creation; breaks ties between equal bounds
  friend bool operator>(const Node& a, const Node& b) {
    return std::tie(a.bound, a.order) > std::tie(b.bound, b.order);
  }
};

/// What came of a node.
struct Outcome {
  std::vector<Node> children;  ///< or the node itself with a higher bound
  std::array<std::int64_t, kPruneReasonCount> pruned{};
  std::optional<Ticks> step_time;            ///< it was simulated
  std::optional<MemoryShortfall> shortfall;  ///< of the candidate
  Candidate candidate;                       ///< with `step_time` or `shortfall`
  void prune(PruneReason reason, std::int64_t count = 1) {
    pruned[static_cast<std::size_t>(reason)] += count;
  }
  /// Of candidates that do not fit, keeps the one that needs the least.
  void note(const Candidate& lacking, const MemoryShortfall& found) {
    if (shortfall && shortfall->needed <= found.needed) return;
    candidate = lacking;
    shortfall = found;
  }
};

class Search {
 public:
  Search(const SearchJob& job, const SearchOptions& options)
      : job_(job), options_(options), costs_(job_) {}

  SearchResult run() {
    space_ = make_space(job_.model, job_.cluster, job_.goal, job_.fixed);
    screen_.emplace(job_, costs_);
    certificate_.pruned = space_.pruned;
    for (const std::int64_t count : space_.pruned) certificate_.candidates += count;
    settled_ = certificate_.candidates;
    for (const SearchSpace::Branch& branch : space_.branches)
      certificate_.candidates += space_.candidates_below(branch);
    if (space_.branches.empty() || space_.recomputes.empty()) return nothing_to_search();
    choose_rows();
    plant();
    const bool complete = look_through_queue();
    certify(complete);
    return result();
  }

  /// Why nothing fits; after run().
  std::optional<Infeasible> infeasible() {
    if (!leanest_ || !certificate_.proved_optimal) return std::nullopt;
    const Plan plan = costs_.plan_of(leanest_->candidate);
    Infeasible infeasible{.reason = reason_of_shortfall(plan, leanest_->shortfall),
                          .nearest = std::nullopt};
    infeasible.nearest = RankedPlan{
        .plan = plan,
        .evaluation = predict({plan, job_.model, job_.cluster, job_.cost_model}).evaluation,
        .why = infeasible.reason};
    return infeasible;
  }

 private:
  SearchResult nothing_to_search() const {
    SearchResult result;
    result.certificate = certificate_;
    result.certificate.proved_optimal = true;
    result.infeasible =
        Infeasible{.reason = reason_of_empty_space(space_), .nearest = std::nullopt};
    return result;
  }

  void choose_rows() {
    std::set<ParallelDegrees> sizes;
    for (const SearchSpace::Branch& branch : space_.branches) sizes.insert(branch.layout.degrees);
    fine_rows_ = sizes.size() < static_cast<std::size_t>(options_.top);
  }

  /// One node per layout.
  void plant() {
    std::vector<Node> nodes(space_.branches.size());
    parallel_for(nodes.size(), job_.threads, [&](std::size_t i) {
      const SearchSpace::Branch& branch = space_.branches[i];
      const auto pipelines = space_.pipelines(branch);
      const bool shares_ends = std::ranges::any_of(
          pipelines, [](const PipelineChoice& p) { return p.rule->output_barriers > 0; });
      nodes[i].branch = static_cast<std::int32_t>(i);
      nodes[i].bound =
          costs_.layout_bound(branch.layout, costs_.layers(branch.layout, {}), {}, shares_ends);
    });
    for (const Node& node : nodes) push(node);
  }

  void push(Node node) {
    node.order = created_++;
    open_[node.pipeline < 0 ? 0 : node.replication < 0 ? 1 : 2].push(node);
  }

  /// False if it was canceled.
  bool look_through_queue() {
    while (queue_with_lowest_bound() != nullptr) {
      if (options_.canceled && options_.canceled()) return false;
      if (options_.is_out_of_time && !best_of_row_.empty() && options_.is_out_of_time())
        return false;
      const std::vector<Node> batch = next_batch();
      std::vector<Outcome> outcomes(batch.size());
      parallel_for(batch.size(), job_.threads,
                   [&](std::size_t i) { outcomes[i] = judge(batch[i]); });
      for (std::size_t i = 0; i < batch.size(); ++i) settle(outcomes[i]);
      if (options_.progress) options_.progress(settled_, certificate_.candidates);
    }
    return true;
  }

  const SearchSpace::Branch& branch_of(const Node& node) const {
    return space_.branches[static_cast<std::size_t>(node.branch)];
  }
  const PipelineChoice& pipeline_of(const Node& node) const {
    return space_.pipelines(branch_of(node))[static_cast<std::size_t>(node.pipeline)];
  }
  const Recompute& recompute_of(const Node& node) const {
    return space_.recomputes[static_cast<std::size_t>(node.recompute)];
  }
  Candidate candidate_of(const Node& node) const {
    Candidate candidate{branch_of(node).layout, pipeline_of(node), recompute_of(node), {}};
    if (node.replication >= 0)
      candidate.replication =
          space_.replications(branch_of(node))[static_cast<std::size_t>(node.replication)];
    if (node.blocks > 0) candidate.recompute.blocks = node.blocks;
    return candidate;
  }
  std::int64_t candidates_below(const Node& node) const {
    if (node.pipeline < 0) return space_.candidates_below(branch_of(node));
    return node.replication < 0
               ? static_cast<std::int64_t>(space_.replications(branch_of(node)).size())
               : 1;
  }

  /// Nodes that can no longer enter the table are pruned.
  std::vector<Node> next_batch() {
    std::vector<Node> batch;
    while (batch.size() < kLowestOfBatch)
      if (!take_from(queue_with_lowest_bound(), batch)) break;
    for (const auto& [queue, size] :
         {std::pair(&open_[2], kLowestOfBatch + kCandidatesOfBatch), {&open_[1], kBatchSize}})
      while (batch.size() < size)
        if (!take_from(queue, batch)) break;
    return batch;
  }

  using Queue = std::priority_queue<Node, std::vector<Node>, std::greater<>>;
  /// False if the queue is empty.
  bool take_from(Queue* queue, std::vector<Node>& batch) {
    if (queue == nullptr || queue->empty()) return false;
    const Node node = queue->top();
    queue->pop();
    if (is_beaten(node))
      prune(PruneReason::kBound, candidates_below(node));
    else
      batch.push_back(node);
    return true;
  }
  /// Null if all are empty.
  Queue* queue_with_lowest_bound() {
    Queue* lowest = nullptr;
    for (Queue& queue : open_)
      if (!queue.empty() && (lowest == nullptr || lowest->top() > queue.top())) lowest = &queue;
    return lowest;
  }

  void prune(PruneReason reason, std::int64_t count) {
    certificate_.pruned[static_cast<std::size_t>(reason)] += count;
    settled_ += count;
  }

  /// True if a faster plan has its row, or if all rows are faster.
  bool is_beaten(const Node& node) const {
    if (row_limit_ && node.bound > *row_limit_) return true;
    if (fine_rows_ && node.pipeline < 0) return false;
    const PipelineChoice none;
    const auto row = best_of_row_.find(
        row_key(branch_of(node).layout, node.pipeline < 0 ? none : pipeline_of(node), fine_rows_));
    return row != best_of_row_.end() && node.bound > row->second.step_time;
  }

  /// Runs in parallel.
  Outcome judge(const Node& node) {
    if (node.pipeline < 0) return divide_layout(node);
    if (node.replication < 0) return node.is_timed ? divide_pipeline(node) : time_pipeline(node);
    return node.is_screened ? simulate_candidate(node) : screen_candidate(node);
  }

  Outcome divide_layout(const Node& node) {
    Outcome outcome;
    const SearchSpace::Branch& branch = branch_of(node);
    const auto pipelines = space_.pipelines(branch);
    for (std::size_t r = 0; r < space_.recomputes.size(); ++r) {
      const Recompute& recompute = space_.recomputes[r];
      const LayerCosts layers = costs_.layers(branch.layout, recompute);
      const Ticks ends = costs_.layout_bound(branch.layout, layers, recompute, false);
      const Ticks no_ends = costs_.layout_bound(branch.layout, layers, recompute, true);
      for (std::size_t p = 0; p < pipelines.size(); ++p) {
        Node child = node;
        child.recompute = static_cast<std::int16_t>(r);
        child.pipeline = static_cast<std::int16_t>(p);
        child.bound = pipelines[p].rule->output_barriers > 0 ? no_ends : ends;
        if (!is_beaten(child))
          child.bound = costs_.pipeline_bound(branch.layout, layers, pipelines[p], recompute);
        if (is_beaten(child)) {
          outcome.prune(PruneReason::kBound, candidates_below(child));
          continue;
        }
        const Replication* leanest = leanest_replication(branch, pipelines[p]);
        if (leanest == nullptr) {
          outcome.prune(PruneReason::kStructure, candidates_below(child));
          continue;
        }
        const Candidate candidate{branch.layout, pipelines[p], recompute, *leanest};
        if (const auto shortfall = screen_->rough_shortfall_of(candidate, layers)) {
          outcome.note(candidate, *shortfall);
          outcome.prune(PruneReason::kMemory, candidates_below(child));
          continue;
        }
        outcome.children.push_back(child);
      }
    }
    return outcome;
  }

  /// False if check_plan() rejects the replication with this schedule, whatever the rest is.
  static bool suits(const Replication& replication, const PipelineChoice& pipeline) {
    const DataParallelism& data = replication.data;
    if (pipeline.rule->output_barriers > 0)
      return replication.zero <= 1 && data.buckets.rule == BucketRule::kNone &&
             !data.overlap_gather;
    if (pipeline.placement->routes.size() > 1)
      return replication.zero <= 1 && data.shard_ranks == 0 && !data.overlap_gather;
    return true;
  }

  /// The replication with the least memory. Null if none suits the schedule.
  const Replication* leanest_replication(const SearchSpace::Branch& branch,
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

  Outcome time_pipeline(const Node& node) {
    Outcome outcome;
    Node timed = node;
    timed.is_timed = true;
    timed.bound = std::max(node.bound, costs_.schedule_time(candidate_of(node)));
    outcome.children.push_back(timed);
    return outcome;
  }

  Outcome divide_pipeline(const Node& node) {
    Outcome outcome;
    const auto replications = space_.replications(branch_of(node));
    Candidate candidate = candidate_of(node);
    const LayerCosts layers = costs_.layers(candidate.layout, candidate.recompute);
    for (std::size_t i = 0; i < replications.size(); ++i) {
      if (!suits(replications[i], candidate.pipeline)) {
        outcome.prune(PruneReason::kStructure);
        continue;
      }
      candidate.replication = replications[i];
      if (const auto shortfall = screen_->rough_shortfall_of(candidate, layers)) {
        outcome.note(candidate, *shortfall);
        outcome.prune(PruneReason::kMemory);
        continue;
      }
      outcome.children.push_back(node);
      outcome.children.back().replication = static_cast<std::int16_t>(i);
    }
    return outcome;
  }

  Outcome screen_candidate(const Node& node) {
    Outcome outcome;
    Candidate candidate = candidate_of(node);
    const Plan plan = costs_.plan_of(candidate);
    if (!is_runnable(plan)) {
      outcome.prune(PruneReason::kTrainer);
      return outcome;
    }
    if (!check_plan(plan, job_.model, job_.cluster).empty()) {
      outcome.prune(PruneReason::kStructure);
      return outcome;
    }
    Node screened = node;
    screened.is_screened = true;
    if (candidate.recompute == Recompute{.kind = RecomputeKind::kBlocks}) {
      if (!choose_blocks(candidate, 1, true, outcome)) return outcome;
      screened.blocks = candidate.recompute.blocks;
    }
    screened.bound = costs_.candidate_bound(candidate, bound_with_blocks(node, candidate));
    outcome.children.push_back(screened);
    return outcome;
  }

  /// Lower bound of the time of all passes of a candidate whose recomputed blocks are chosen.
  Ticks bound_with_blocks(const Node& node, const Candidate& candidate) {
    if (candidate.recompute.blocks <= 1) return node.bound;
    const Ticks bound = costs_.pipeline_bound(candidate.layout,
                                              costs_.layers(candidate.layout, candidate.recompute),
                                              candidate.pipeline, candidate.recompute);
    Node other = node;
    other.bound = std::max(node.bound, bound);
    return is_beaten(other) ? other.bound : std::max(other.bound, costs_.schedule_time(candidate));
  }

  bool choose_blocks(Candidate& candidate, int least, bool rough, Outcome& outcome) {
    MemoryShortfall shortfall;
    const auto reason = screen_->choose_blocks(candidate, least, rough, shortfall);
    if (!reason) return true;
    if (*reason == PruneReason::kMemory) outcome.note(candidate, shortfall);
    outcome.prune(*reason);
    return false;
  }

  bool is_runnable(const Plan& plan) const {
    return !job_.fixed.trainer || can_run(job_.fixed.trainer->abilities, plan);
  }

  Outcome simulate_candidate(const Node& node) {
    Outcome outcome;
    Candidate candidate = candidate_of(node);
    std::optional<MemoryShortfall> shortfall = screen_->shortfall_of(candidate);
    std::optional<TaskGraph> graph;
    if (!shortfall) {
      const Plan plan = costs_.plan_of(candidate);
      graph = lower(plan, job_.model, job_.cluster, {.memory = job_.cost_model.memory()});
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

  void settle(const Outcome& outcome) {
    for (std::size_t i = 0; i < outcome.pruned.size(); ++i)
      prune(static_cast<PruneReason>(i), outcome.pruned[i]);
    for (const Node& child : outcome.children) push(child);
    if (outcome.shortfall) note_shortfall(outcome.candidate, *outcome.shortfall);
    if (!outcome.step_time) return;
    ++certificate_.simulated;
    ++settled_;
    offer(outcome.candidate, *outcome.step_time);
  }

  void note_shortfall(const Candidate& candidate, const MemoryShortfall& shortfall) {
    if (leanest_ && leanest_->shortfall.needed <= shortfall.needed) return;
    leanest_ = Leanest{candidate, shortfall};
    Recompute& recompute = leanest_->candidate.recompute;
    if (recompute == Recompute{.kind = RecomputeKind::kBlocks}) recompute = {RecomputeKind::kFull};
  }

  struct Row {
    Ticks step_time;
    Candidate candidate;
  };

  void offer(const Candidate& candidate, Ticks step_time) {
    const RowKey key = row_key(candidate.layout, candidate.pipeline, fine_rows_);
    const auto [row, is_new] = best_of_row_.try_emplace(key, Row{step_time, candidate});
    if (!is_new) {
      Row& best = row->second;
      if (step_time > best.step_time) return;
      if (step_time == best.step_time && !is_simpler(candidate, best.candidate)) return;
      best = {step_time, candidate};
    }
    const std::vector<const Row*> rows = ranked_rows();
    if (rows.size() == static_cast<std::size_t>(options_.top)) row_limit_ = rows.back()->step_time;
  }

  /// At most `top` rows, best first; ties are broken by simplicity.
  std::vector<const Row*> ranked_rows() const {
    std::vector<const Row*> rows;
    for (const auto& [key, row] : best_of_row_) rows.push_back(&row);
    std::sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) {
      if (a->step_time != b->step_time) return a->step_time < b->step_time;
      return is_simpler(a->candidate, b->candidate);
    });
    if (rows.size() > static_cast<std::size_t>(options_.top))
      rows.resize(static_cast<std::size_t>(options_.top));
    return rows;
  }

  void certify(bool complete) {
    certificate_.proved_optimal = complete;
    const Queue* lowest = queue_with_lowest_bound();
    if (complete || lowest == nullptr) return;
    const std::vector<const Row*> rows = ranked_rows();
    certificate_.gap = 1;
    if (rows.empty()) return;
    const Ticks best = rows.front()->step_time, bound = lowest->top().bound;
    certificate_.gap = best > bound ? ratio(best - bound, best) : 0;
  }

  SearchResult result() {
    const std::vector<const Row*> rows = ranked_rows();
    SearchResult result;
    result.certificate = certificate_;
    result.plans.resize(rows.size());
    parallel_for(rows.size(), job_.threads, [&](std::size_t i) {
      RankedPlan& row = result.plans[i];
      row.plan = costs_.plan_of(rows[i]->candidate);
      row.evaluation = predict({row.plan, job_.model, job_.cluster, job_.cost_model}).evaluation;
      MW_CHECK(fits_in_memory(row.evaluation));
      row.why = why(row.plan, row.evaluation, job_);
    });
    return result;
  }

  struct Leanest {
    Candidate candidate;
    MemoryShortfall shortfall;
  };

  SearchJob job_;
  SearchOptions options_;
  CandidateCosts costs_;
  std::optional<MemoryScreen> screen_;  ///< of a goal that is possible
  SearchSpace space_;
  bool fine_rows_ = false;
  std::array<Queue, 3> open_;  ///< layouts, pipelines, candidates
  std::size_t created_ = 0;
  std::map<RowKey, Row> best_of_row_;
  std::optional<Ticks> row_limit_;  ///< step time of the last row, if the table is full
  std::optional<Leanest> leanest_;
  std::int64_t settled_ = 0;
  SearchCertificate certificate_;
};

/// The best plan for the same goal on 2x, 4x, … the devices. Whether any fits is asked of the
/// plans with small micro-batches and one chunk first.
std::optional<RankedPlan> fitting_with_more_devices(const SearchJob& job,
                                                    const SearchOptions& options) {
  SearchJob larger = job;
  larger.fixed.data.reset();
  SearchOptions one = options;
  one.top = 1;
  one.progress = {};
  for (std::int64_t gpus = 2 * std::int64_t{job.goal.gpus}; gpus <= device_count(job.cluster);
       gpus *= 2) {
    larger.goal.gpus = static_cast<int>(gpus);
    SearchJob leanest = larger;
    if (!leanest.fixed.micro_batch) leanest.fixed.micro_batch = 1;
    if (!leanest.fixed.schedule) leanest.fixed.schedule = kDefaultSchedule;
    if (Search(leanest, one).run().plans.empty()) continue;
    SearchResult found = Search(larger, one).run();
    if (!found.plans.empty()) return std::move(found.plans.front());
  }
  return std::nullopt;
}

/// Optimizer state goes to host memory only if nothing fits otherwise.
bool may_offload(const SearchJob& job) {
  return !job.fixed.offload_optimizer && !job.fixed.data_parallelism.offload_optimizer &&
         node_of(job.cluster, DeviceId(0)).host.has_value() &&
         !has_servers(job.fixed.data_parallelism.kind) &&
         job.fixed.data_parallelism.kind != DataParallelKind::kOneProcess;
}

SearchResult search_named_schedules(const SearchJob& job, const SearchOptions& options) {
  Search search(job, options);
  SearchResult result = search.run();
  if (!result.plans.empty() || result.infeasible) return result;
  if (may_offload(job)) {
    SearchJob offloading = job;
    offloading.fixed.offload_optimizer = true;
    SearchResult other = Search(offloading, options).run();
    other.certificate.candidates += result.certificate.candidates;
    other.certificate.simulated += result.certificate.simulated;
    for (std::size_t i = 0; i < other.certificate.pruned.size(); ++i)
      other.certificate.pruned[i] += result.certificate.pruned[i];
    other.infeasible.reset();
    result = std::move(other);
    if (!result.plans.empty()) return result;
  }
  result.infeasible = search.infeasible();
  if (result.infeasible)
    if (auto larger = fitting_with_more_devices(job, options))
      result.infeasible->nearest = std::move(larger);
  return result;
}

}  // namespace

std::string_view name_of(PruneReason reason) {
  switch (reason) {
    case PruneReason::kStructure:
      return "structure";
    case PruneReason::kSchedule:
      return "schedule";
    case PruneReason::kMemory:
      return "memory";
    case PruneReason::kBound:
      return "bound";
    case PruneReason::kDominated:
      return "dominated";
    case PruneReason::kTrainer:
      break;
  }
  return "trainer";
}

SearchResult search(const ModelGraph& model, const Cluster& cluster, const CostModel& cost_model,
                    const Goal& goal, const FixedChoices& fixed, const SearchOptions& options) {
  if (auto problems = fixed_choice_problems(fixed); !problems.empty())
    throw InputError(std::move(problems));
  if (fixed.schedule == kSynthesizedSchedule) {
    FixedChoices named = fixed;
    named.schedule.reset();
    SearchResult result = search(model, cluster, cost_model, goal, named, options);
    synthesize_best_rows(result, model, cluster, cost_model, thread_count(options.threads));
    return result;
  }
  SearchJob job{.model = model,
                .cluster = cluster,
                .cost_model = cost_model,
                .goal = goal,
                .fixed = fixed,
                .threads = thread_count(options.threads)};
  if (!fixed.dtype) job.fixed.dtype = default_dtype(cluster);
  SearchOptions sane = options;
  sane.top = std::max(1, options.top);
  return search_named_schedules(job, sane);
}

namespace {

/// The partition that minimizes the time of the slowest stage on the devices of the stages.
std::vector<int> best_cut(const Strategy& strategy, int parts, const ModelGraph& model,
                          const Cluster& cluster, const CostModel& cost_model) {
  const auto times_on = [&](std::int32_t kind) {
    LayerPasses layers = layer_passes(strategy, model, cluster, cost_model.on_nodes(kind));
    if (find_schedule_rule(strategy.schedule)->output_barriers > 0)
      layers = without_ends(std::move(layers));
    return layer_times(layers, strategy.recompute.kind == RecomputeKind::kFull);
  };
  const std::vector<std::int32_t> kinds = node_kinds_of(strategy, cluster);
  if (kinds.empty()) return cut_blocks(times_on(-1), parts);
  std::map<std::int32_t, LayerTimes> known;
  std::vector<LayerTimes> of_stage;
  const Placement placement =
      find_schedule_rule(strategy.schedule)->placement(request_of(strategy));
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(parts); ++stage) {
    const std::int32_t kind = kinds[placement.device_of_stage[stage].index()];
    if (!known.contains(kind)) known[kind] = times_on(kind);
    of_stage.push_back(known[kind]);
  }
  return cut_blocks_for(of_stage);
}

}  // namespace

Plan complete_plan(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                   const CostModel& cost_model) {
  if (strategy.schedule == kSynthesizedSchedule)
    return best_ordered_plan(strategy, model, cluster, cost_model);
  const ScheduleRule* rule = find_schedule_rule(strategy.schedule);
  const int blocks = block_count(model);
  int parts = 1;
  if (rule != nullptr && strategy.degrees.pipeline >= 1 && strategy.degrees.chunks >= 1 &&
      stage_count(strategy.degrees) <= blocks + 2 && strategy.micro_batch >= 1 &&
      strategy.degrees.data >= 1 && !rule->problem(request_of(strategy)))
    parts = model_parts(rule->placement(request_of(strategy)));
  if (!can_cut(blocks, parts)) parts = 1;
  const Plan even{strategy, even_cut(blocks, parts)};
  if (auto problems = check_plan(even, model, cluster); !problems.empty())
    throw InputError(std::move(problems));
  return {strategy, best_cut(strategy, parts, model, cluster, cost_model)};
}

}  // namespace meshwright
