/// Branch and bound. The node with the lowest bound is next, until the next bound exceeds plan 1;
/// then, for the other rows of the table, until it exceeds all of them. A batch is selected before
/// any of it is judged, and its outcomes are applied in order, so that neither result nor
/// certificate depends on threads.
#include "planner/search/search.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/base/check.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/branching.hpp"
#include "planner/search/explain.hpp"
#include "planner/search/node_selection.hpp"
#include "planner/search/open_nodes.hpp"
#include "planner/search/per_layer.hpp"
#include "planner/search/refinement.hpp"
#include "planner/search/state_bound.hpp"
#include "planner/search/synthesized_plan.hpp"
#include "planner/search/trainer_choices.hpp"
#include "planner/search/unequal_shares.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// Nodes of a batch: those with the lowest bounds; and of the rest, candidates and pipelines with
/// the lowest bounds, so that plans are found long before all layouts with low bounds are divided.
constexpr std::size_t kBatchSize = 32, kLowestOfBatch = 16, kCandidatesOfBatch = 8;
/// Layouts that are bounded before the time is looked at.
constexpr std::size_t kBoundedAtOnce = 1024;

/// Layouts of a space in which a good plan is looked for first.
constexpr std::size_t kBranchesOfLargeSpace = 5'000;

/// Simulations are by far the longest; if one finds a better plan, others of its batch were in
/// vain.
constexpr int kSimulatedOfBatch = 4;

/// Work of a search: nodes that are judged, and tasks of the plans that are simulated.
struct Effort {
  std::int64_t judged = 0, tasks = 0;
};
/// For a good plan of a part of the space.
constexpr Effort kForGoodPlan{.judged = 512, .tasks = 1'500'000};
/// For the rows below plan 1: in any case, and as a share of that for plan 1. The first nodes of
/// every row come before the rest, so that none takes the time of the others.
constexpr Effort kLeastForRows{.judged = 8192, .tasks = 4'000'000};
constexpr Effort kLeastForRowsOfLargeSpace{.judged = 5000, .tasks = 4'000'000};
constexpr double kShareForRows = 0.25;
constexpr int kFirstOfRow = 128, kSimulatedFirstOfRow = 4;

class Search {
 public:
  /// `options.top` >= 1.
  Search(const SearchJob& job, const SearchOptions& options)
      : job_(job),
        options_(options),
        space_(make_space(job_.model, job_.cluster, job_.goal, job_.fixed)),
        incumbents_(space_, options.top, options.longest_step),
        branching_(job_, space_, incumbents_),
        team_(job_.threads) {}

  SearchResult run() {
    if (options_.top == 1) branching_.search_rows();
    certificate_.pruned = space_.pruned;
    for (const std::int64_t count : space_.pruned) certificate_.candidates += count;
    settled_ = certificate_.candidates;
    for (const SearchSpace::Branch& branch : space_.branches)
      certificate_.candidates += space_.candidates_below(branch);
    if (space_.branches.empty()) return nothing_to_search();
    open_layouts();
    const bool complete = judge_all();
    certify(complete);
    return result();
  }

  bool is_large() const { return space_.branches.size() > kBranchesOfLargeSpace; }
  /// A plan of the space, from elsewhere: before run().
  void offer(const Incumbents::Row& row) { incumbents_.offer(row.candidate, row.step_time); }
  /// If there is a plan by then; before run().
  void stop_after(const Effort& most) { most_ = most; }
  /// After run(). Null if nothing was found.
  const Incumbents::Row* best() const {
    return incumbents_.empty() ? nullptr : incumbents_.ranked().front();
  }

  /// Why nothing fits; after run().
  std::optional<Infeasible> infeasible() {
    const std::optional<Leanest>& leanest = leanest_ ? leanest_ : least_state_;
    if (!leanest || !certificate_.proved_optimal) return std::nullopt;
    const Plan plan = branching_.costs().plan_of(leanest->candidate);
    Infeasible infeasible{.reason = leanest_ ? reason_of_shortfall(plan, leanest->shortfall)
                                             : reason_of_state(leanest->shortfall),
                          .nearest = std::nullopt};
    infeasible.nearest = RankedPlan{
        .plan = plan,
        .evaluation = predict({plan, job_.model, job_.cluster, job_.cost_model}).evaluation,
        .why = infeasible.reason};
    return infeasible;
  }

 private:
  /// All layouts whose model state may fit.
  void open_layouts() {
    const StateBound state(job_, space_);
    std::vector<std::int32_t> open;
    for (std::size_t i = 0; i < space_.branches.size(); ++i) {
      const SearchSpace::Branch& branch = space_.branches[i];
      const std::optional<MemoryShortfall> shortfall = state.shortfall_of(branch);
      if (!shortfall) {
        open.push_back(static_cast<std::int32_t>(i));
        continue;
      }
      prune(PruneReason::kMemory, space_.candidates_below(branch));
      if (!least_state_ || shortfall->needed < least_state_->shortfall.needed)
        least_state_ = Leanest{branching_.leanest_below(branch, state.leanest(branch)), *shortfall};
    }
    bound_layouts(open);
  }

  /// Those that are not reached in time have the bound 0.
  void bound_layouts(const std::vector<std::int32_t>& open) {
    std::vector<Ticks> bounds(open.size());
    for (std::size_t begin = 0; begin < open.size() && !is_stopped(); begin += kBoundedAtOnce)
      team_.for_each(std::min(kBoundedAtOnce, open.size() - begin), [&](std::size_t i) {
        const auto branch = static_cast<std::size_t>(open[begin + i]);
        bounds[begin + i] = branching_.bound_of(space_.branches[branch]);
      });
    for (std::size_t i = 0; i < open.size(); ++i) {
      const Node layout{.bound = bounds[i], .branch = open[i]};
      if (branching_.is_late(layout))
        late_.push_back(layout);
      else if (branching_.is_beaten(layout))
        prune(PruneReason::kBound, branching_.candidates_below(layout));
      else
        open_.push(layout);
    }
  }

  bool is_stopped() const {
    return (options_.canceled && options_.canceled()) ||
           (options_.is_out_of_time && !incumbents_.empty() && options_.is_out_of_time());
  }

  bool is_enough() const {
    return most_ && !incumbents_.empty() &&
           (spent_.judged > most_->judged || spent_.tasks > most_->tasks);
  }

  SearchResult nothing_to_search() const {
    SearchResult result;
    result.certificate = certificate_;
    result.certificate.proved_optimal = true;
    result.infeasible =
        Infeasible{.reason = reason_of_empty_space(space_), .nearest = std::nullopt};
    return result;
  }

  /// False if it was stopped before.
  bool judge_all() {
    while (!open_.empty() || !late_.empty()) {
      if (open_.empty()) open_late();
      if (is_stopped()) return false;
      if (is_enough()) return false;
      const std::vector<Node> batch = next_batch();
      spent_.judged += static_cast<std::int64_t>(batch.size());
      std::vector<NodeOutcome> outcomes(batch.size());
      team_.for_each(batch.size(),
                     [&](std::size_t i) { outcomes[i] = branching_.judge(batch[i]); });
      for (const NodeOutcome& outcome : outcomes) settle(outcome);
      if (options_.progress) options_.progress(settled_, certificate_.candidates);
    }
    return true;
  }

  /// Once plan 1 is proved optimal: the first nodes of every row; then all of them.
  void open_late() {
    for (const Node& node : late_) open_.push(node);
    late_.clear();
    if (rows_ == Rows::kFirstNodes) rows_ = Rows::kAllNodes;
    if (rows_ != Rows::kLate) return;
    branching_.search_rows();
    const auto limit = [](std::int64_t so_far, std::int64_t least) {
      const auto share = static_cast<std::int64_t>(kShareForRows * static_cast<double>(so_far));
      return so_far + std::max(share, least);
    };
    const Effort& least = is_large() ? kLeastForRowsOfLargeSpace : kLeastForRows;
    most_ = {.judged = limit(spent_.judged, least.judged),
             .tasks = limit(spent_.tasks, least.tasks)};
    rows_ = incumbents_.has_fine_rows() ? Rows::kAllNodes : Rows::kFirstNodes;
  }

  std::vector<Node> next_batch() {
    std::vector<Node> batch;
    simulated_of_batch_ = 0;
    fill(batch, kLowestOfBatch, [this] { return open_.lowest(); });
    fill(batch, kLowestOfBatch + kCandidatesOfBatch, [] { return OpenNodes::kCandidate; });
    fill(batch, kBatchSize, [] { return OpenNodes::kPipeline; });
    return batch;
  }

  /// Nodes that can no longer enter the table are pruned; those that are not plan 1 come later.
  template <class NextStage>
  void fill(std::vector<Node>& batch, std::size_t size, const NextStage& next) {
    while (batch.size() < size) {
      const OpenNodes::Stage stage = next();
      if (stage == OpenNodes::kStageCount || open_.empty(stage)) return;
      if (open_.next(stage).is_checked && simulated_of_batch_ == kSimulatedOfBatch) return;
      const Node node = open_.take(stage);
      if (!branching_.is_late(node) && branching_.is_beaten(node)) {
        prune(PruneReason::kBound, branching_.candidates_below(node));
      } else if (branching_.is_late(node) ||
                 (rows_ == Rows::kFirstNodes && !is_first_of_row(node))) {
        late_.push_back(node);
      } else {
        if (node.is_checked) ++simulated_of_batch_;
        batch.push_back(node);
      }
    }
  }

  /// Counts it.
  bool is_first_of_row(const Node& node) {
    OfRow& row = of_rows_[branching_.layout_of(node).degrees];
    if (row.judged == kFirstOfRow || row.simulated == kSimulatedFirstOfRow) return false;
    ++row.judged;
    if (node.is_checked) ++row.simulated;
    return true;
  }

  void prune(PruneReason reason, std::int64_t count) {
    certificate_.pruned[static_cast<std::size_t>(reason)] += count;
    settled_ += count;
  }

  void settle(const NodeOutcome& outcome) {
    for (std::size_t i = 0; i < outcome.pruned.size(); ++i)
      prune(static_cast<PruneReason>(i), outcome.pruned[i]);
    for (const Node& child : outcome.children)
      if (branching_.is_late(child))
        late_.push_back(child);
      else
        open_.push(child);
    if (outcome.shortfall) note_shortfall(outcome.candidate, *outcome.shortfall);
    spent_.tasks += outcome.tasks;
    if (!outcome.step_time) return;
    ++certificate_.simulated;
    ++settled_;
    incumbents_.offer(outcome.candidate, *outcome.step_time);
  }

  void note_shortfall(const Candidate& candidate, const MemoryShortfall& shortfall) {
    if (leanest_ && leanest_->shortfall.needed <= shortfall.needed) return;
    leanest_ = Leanest{candidate, shortfall};
    Recompute& recompute = leanest_->candidate.recompute;
    if (recompute == Recompute{.kind = RecomputeKind::kBlocks}) recompute = {RecomputeKind::kFull};
  }

  void certify(bool complete) {
    certificate_.proved_optimal = complete;
    if (complete || rows_ != Rows::kLate) return;
    certificate_.gap = 1;
    if (incumbents_.empty() || open_.empty()) return;
    const Ticks best = incumbents_.best(), bound = open_.lowest_bound();
    certificate_.gap = best > bound ? ratio(best - bound, best) : 0;
  }

  SearchResult result() {
    const std::vector<const Incumbents::Row*> rows = incumbents_.ranked();
    SearchResult result;
    result.certificate = certificate_;
    result.plans.resize(rows.size());
    parallel_for(rows.size(), job_.threads, [&](std::size_t i) {
      RankedPlan& row = result.plans[i];
      row.plan = branching_.costs().plan_of(rows[i]->candidate);
      row.evaluation = predict({row.plan, job_.model, job_.cluster, job_.cost_model}).evaluation;
      MW_CHECK(fits_in_memory(row.evaluation));
      row.why = why(row.plan, row.evaluation, job_);
    });
    return result;
  }

  enum class Rows : std::uint8_t { kLate, kFirstNodes, kAllNodes };
  struct OfRow {
    int judged = 0, simulated = 0;
  };

  struct Leanest {
    Candidate candidate;
    MemoryShortfall shortfall;
  };

  SearchJob job_;
  SearchOptions options_;
  SearchSpace space_;
  Incumbents incumbents_;
  Branching branching_;
  ThreadTeam team_;
  OpenNodes open_;
  std::vector<Node> late_;              ///< slower than plan 1, or not the first of their rows
  std::optional<Leanest> leanest_;      ///< of layouts whose model state may fit
  std::optional<Leanest> least_state_;  ///< of the others
  std::int64_t settled_ = 0;
  Effort spent_;
  std::optional<Effort> most_;  ///< then the search ends
  int simulated_of_batch_ = 0;
  Rows rows_ = Rows::kLate;
  std::map<ParallelDegrees, OfRow> of_rows_;  ///< since plan 1 was proved optimal
  SearchCertificate certificate_;
};

/// Optimizer state goes to host memory only if nothing fits otherwise.
bool may_offload(const SearchJob& job) {
  return !job.fixed.offload_optimizer && !job.fixed.data_parallelism.offload_optimizer &&
         node_of(job.cluster, DeviceId(0)).host.has_value() &&
         !has_servers(job.fixed.data_parallelism.kind) &&
         job.fixed.data_parallelism.kind != DataParallelKind::kOneProcess;
}

/// For a part of a search: plan 1 only, and the end of the time limit ends it.
SearchOptions options_of_part(const SearchOptions& options) {
  SearchOptions part = options;
  part.top = 1;
  part.progress = {};
  part.canceled = [&options] {
    return (options.canceled && options.canceled()) ||
           (options.is_out_of_time && options.is_out_of_time());
  };
  return part;
}

/// Choices that need less memory than others.
struct Relief {
  int zero;
  Recompute recompute;
};

/// The best plan with micro-batches of one sequence and this relief, where they are not fixed.
std::optional<Incumbents::Row> best_with(const Relief& relief, SearchJob job,
                                         const SearchOptions& options) {
  if (!job.fixed.micro_batch) job.fixed.micro_batch = 1;
  if (!job.fixed.zero) job.fixed.zero = relief.zero;
  if (!job.fixed.recompute) job.fixed.recompute = relief.recompute;
  Search search(job, options);
  search.stop_after(kForGoodPlan);
  search.run();
  if (search.best() == nullptr) return std::nullopt;
  return *search.best();
}

constexpr Recompute kAllBlocks{.kind = RecomputeKind::kFull};

/// The best plan of a small part of the space: without context parallelism, with micro-batches of
/// one sequence, ZeRO 1 and no recomputation; if nothing fits, with all of it, and then with
/// ZeRO 3.
std::optional<Incumbents::Row> best_of_small_part(const SearchJob& job,
                                                  const SearchOptions& options) {
  SearchJob part = job;
  if (!part.fixed.context) part.fixed.context = 1;
  for (const Relief& relief : {Relief{1, {}}, Relief{1, kAllBlocks}, Relief{3, kAllBlocks}})
    if (auto best = best_with(relief, part, options)) return best;
  return std::nullopt;
}

struct ImprovedPlan {
  Incumbents::Row row;
  RankedPlan plan;
};

/// A better plan with the parallel sizes and the schedule of this one, or itself.
ImprovedPlan improved_with_same_sizes(const SearchJob& job, const Incumbents::Row& row,
                                      const SearchOptions& options) {
  SearchJob same_sizes = job;
  const ParallelDegrees& d = row.candidate.layout.degrees;
  same_sizes.fixed.tensor = d.tensor;
  same_sizes.fixed.pipeline = d.pipeline;
  same_sizes.fixed.context = d.context;
  same_sizes.fixed.expert = d.expert;
  same_sizes.fixed.expert_tensor = d.expert_tensor;
  same_sizes.fixed.schedule = row.candidate.pipeline.rule->name;
  Search refined(same_sizes, options);
  refined.offer(row);
  refined.stop_after(kForGoodPlan);
  SearchResult result = refined.run();
  return {*refined.best(), std::move(result.plans.front())};
}

/// In large spaces, offers a good plan before the search: that of a small part, and then the best
/// one with the same parallel sizes and schedule.
void offer_good_plan(const SearchJob& job, const SearchOptions& options, Search& search) {
  if (!search.is_large()) return;
  const SearchOptions one = options_of_part(options);
  const std::optional<Incumbents::Row> first = best_of_small_part(job, one);
  if (!first) return;
  search.offer(*first);
  search.offer(improved_with_same_sizes(job, *first, one).row);
}

/// Without the choices that matter for time only.
SearchJob with_plain_options(SearchJob job) {
  FixedChoices& fixed = job.fixed;
  if (!fixed.schedule) fixed.schedule = kDefaultSchedule;
  if (!fixed.context_algorithm) fixed.context_algorithm = ContextAlgorithm::kAllGather;
  for (std::optional<bool>* choice : {&fixed.tensor_overlap, &fixed.overlap_gather})
    if (!*choice) *choice = false;
  return job;
}

/// A good plan for the same goal on 2x, 4x, … the devices, as few as plans that need little memory
/// fit on.
std::optional<RankedPlan> fitting_with_more_devices(const SearchJob& job,
                                                    const SearchOptions& options) {
  SearchJob larger = job;
  larger.fixed.data.reset();
  const SearchOptions one = options_of_part(options);
  SearchOptions first = one;
  first.is_out_of_time = [] { return true; };  // any plan will do
  for (std::int64_t gpus = 2 * std::int64_t{job.goal.gpus}; gpus <= device_count(job.cluster);
       gpus *= 2) {
    larger.goal.gpus = static_cast<int>(gpus);
    for (const Relief& relief : {Relief{3, kAllBlocks}, Relief{1, kAllBlocks}})
      if (const auto row = best_with(relief, with_plain_options(larger), first))
        return improved_with_same_sizes(larger, *row, one).plan;
  }
  return std::nullopt;
}

SearchResult search_named_schedules(const SearchJob& job, const SearchOptions& options) {
  Search search(job, options);
  offer_good_plan(job, options, search);
  SearchResult result = search.run();
  if (!result.plans.empty() || result.infeasible || options.longest_step) return result;
  if (may_offload(job)) {
    SearchJob offloading = job;
    offloading.fixed.offload_optimizer = true;
    offloading.layer_prices = nullptr;
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
  constexpr std::array<std::string_view, kPruneReasonCount> kNames{
      "structure", "schedule", "memory", "bound", "dominated", "trainer"};
  return kNames[static_cast<std::size_t>(reason)];
}

SearchResult search(const ModelGraph& model, const Cluster& cluster, const CostModel& cost_model,
                    const Goal& goal, const FixedChoices& choices, const SearchOptions& options) {
  const bool has_devices = goal.gpus <= device_count(cluster);  // else make_space() reports it
  if (options.selects_nodes && has_devices && !is_homogeneous(cluster))
    return search_node_selections(model, cluster, cost_model, goal, choices, options);
  const FixedChoices fixed = with_attention_of_trainer(choices);
  if (auto problems = fixed_choice_problems(fixed); !problems.empty())
    throw InputError(std::move(problems));
  SearchJob job{.model = model,
                .cluster = cluster,
                .cost_model = cost_model,
                .goal = goal,
                .fixed = fixed,
                .threads = thread_count(options.threads),
                .layer_prices = options.layer_prices};
  if (!fixed.dtype) job.fixed.dtype = default_dtype(cluster);
  SearchOptions sane = options;
  const int rows = std::max(1, options.top);
  sane.top = sane.per_layer ? std::max(rows, kRowsForLayerOptions) : rows;
  SearchResult result;
  if (fixed.schedule == kSynthesizedSchedule) {
    job.fixed.schedule.reset();
    result = search_named_schedules(job, sane);
    synthesize_best_rows(result, model, cluster, cost_model, job.threads);
  } else {
    result = search_named_schedules(job, sane);
    if (sane.tries_shares && !is_homogeneous(cluster)) try_unequal_shares(result, job, sane);
    if (sane.refines) refine_best_plan(result, job, sane);
  }
  if (!sane.per_layer) return result;
  choose_layer_options(result, job, sane);
  result.plans.resize(std::min(result.plans.size(), static_cast<std::size_t>(rows)));
  return result;
}

}  // namespace meshwright
