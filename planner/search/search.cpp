/// Best-first search: candidates in the order of their bounds, in batches of fixed size, until the
/// next bound exceeds all rows of the table. A batch is selected before any of it is evaluated, and
/// its results are applied in order, so that neither result nor certificate depends on threads.
#include "planner/search/search.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
#include "planner/search/candidates.hpp"
#include "planner/search/explain.hpp"
#include "planner/search/memory_screen.hpp"
#include "planner/search/parallel_for.hpp"
#include "planner/search/prospects.hpp"
#include "planner/search/stage_partition.hpp"
#include "planner/search/synthesized_plan.hpp"
#include "planner/search/trainer_choices.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kBatchSize = 16;

/// Rows of the result differ in their parallel sizes. If there are fewer combinations than rows,
/// they also differ in chunks, schedule and micro-batch.
using RowKey = std::tuple<ParallelDegrees, const ScheduleRule*, int>;
RowKey row_key(const Candidate& c, bool fine) {
  if (fine) return {c.degrees, c.rule, c.micro_batch};
  ParallelDegrees degrees = c.degrees;
  degrees.chunks = 1;
  return {degrees, nullptr, 0};
}

/// Outcome of the evaluation of a prospect.
struct Verdict {
  enum class Kind : std::uint8_t { kPruned, kPostponed, kSimulated };
  Kind kind = Kind::kPruned;
  PruneReason reason = PruneReason::kMemory;
  Ticks step_time;
  MemoryShortfall shortfall;  ///< if pruned for memory
};

class Search {
 public:
  /// `look_further`: if nothing fits, try more devices.
  Search(const SearchJob& job, const SearchOptions& options, bool look_further = true)
      : job_(job), options_(options), look_further_(look_further) {}

  SearchResult run() {
    CandidateSpace space = enumerate_candidates(job_.model, job_.cluster, job_.goal, job_.fixed);
    certificate_.pruned = space.pruned;
    certificate_.candidates = static_cast<std::int64_t>(space.candidates.size());
    for (const std::int64_t count : space.pruned) certificate_.candidates += count;
    if (space.candidates.empty()) return nothing_to_search(space);
    choose_rows(space.candidates);
    prospects_ = appraise(space.candidates, job_);
    screened_.assign(prospects_.size(), false);
    for (std::size_t i = 0; i < prospects_.size(); ++i) queue_.emplace(prospects_[i].bound, i);
    const bool complete = look_through_queue();
    certify(complete);
    return result();
  }

 private:
  using Entry = std::pair<Ticks, std::size_t>;  ///< bound and prospect index, which breaks ties

  SearchResult nothing_to_search(const CandidateSpace& space) const {
    SearchResult result;
    result.certificate = certificate_;
    result.certificate.proved_optimal = true;
    result.infeasible = Infeasible{.reason = reason_of_empty_space(space), .nearest = std::nullopt};
    return result;
  }

  void choose_rows(const std::vector<Candidate>& candidates) {
    std::set<RowKey> splits;
    for (const Candidate& candidate : candidates) splits.insert(row_key(candidate, false));
    fine_rows_ = splits.size() < static_cast<std::size_t>(options_.top);
  }

  /// False if it was canceled.
  bool look_through_queue() {
    while (!queue_.empty()) {
      if (options_.canceled && options_.canceled()) return false;
      const std::vector<std::size_t> batch = next_batch();
      std::vector<Verdict> verdicts(batch.size());
      parallel_for(batch.size(), job_.threads,
                   [&](std::size_t i) { verdicts[i] = judge(batch[i]); });
      for (std::size_t i = 0; i < batch.size(); ++i) settle(batch[i], verdicts[i]);
      if (options_.progress) options_.progress(settled_, total());
    }
    return true;
  }

  std::int64_t total() const { return static_cast<std::int64_t>(prospects_.size()); }

  /// The prospects with the lowest bounds. Prospects that can no longer enter the table are pruned.
  std::vector<std::size_t> next_batch() {
    std::vector<std::size_t> batch;
    while (!queue_.empty() && batch.size() < kBatchSize) {
      const auto [bound, prospect] = queue_.top();
      queue_.pop();
      if (is_beaten(prospects_[prospect]))
        prune(PruneReason::kBound);
      else
        batch.push_back(prospect);
    }
    return batch;
  }

  void prune(PruneReason reason) {
    ++certificate_.pruned[static_cast<std::size_t>(reason)];
    ++settled_;
  }

  /// True if a faster plan has its row, or if all rows are faster.
  bool is_beaten(const Prospect& prospect) const {
    if (row_limit_ && prospect.bound > *row_limit_) return true;
    const auto row = best_of_row_.find(row_key(prospect.candidate, fine_rows_));
    return row != best_of_row_.end() && prospect.bound > row->second.first;
  }

  /// Runs in parallel: modifies only the prospect itself.
  Verdict judge(std::size_t index) {
    Prospect& prospect = prospects_[index];
    if (!screened_[index]) {
      Verdict verdict;
      if (const auto reason = screen_memory(prospect, job_, verdict.shortfall)) {
        verdict.reason = *reason;
        return verdict;
      }
      const Ticks bound = bound_of(prospect, microbatches_of(prospect.candidate, job_.goal));
      if (bound > prospect.bound) {
        prospect.bound = bound;
        verdict.kind = Verdict::Kind::kPostponed;
        return verdict;
      }
    }
    return simulate_prospect(prospect);
  }

  Verdict simulate_prospect(const Prospect& prospect) const {
    const Plan plan = plan_of(prospect, job_);
    const TaskGraph graph =
        lower(plan, job_.model, job_.cluster, {.memory = job_.cost_model.memory()});
    Verdict verdict;
    if (auto shortfall = shortfall_of(graph, job_facts(plan.strategy, job_.model, job_.cluster))) {
      verdict.shortfall = *shortfall;
      return verdict;
    }
    thread_local SimulatedTimes times;  // reuses its memory
    simulate(graph, price_works(graph.parts, graph.works, job_.cost_model), times);
    verdict.kind = Verdict::Kind::kSimulated;
    verdict.step_time = makespan(times);
    return verdict;
  }

  void settle(std::size_t index, const Verdict& verdict) {
    switch (verdict.kind) {
      case Verdict::Kind::kPostponed:
        screened_[index] = true;
        queue_.emplace(prospects_[index].bound, index);
        return;
      case Verdict::Kind::kPruned:
        if (verdict.reason == PruneReason::kMemory) note_shortfall(index, verdict.shortfall);
        prune(verdict.reason);
        return;
      case Verdict::Kind::kSimulated:
        ++certificate_.simulated;
        ++settled_;
        offer(index, verdict.step_time);
        return;
    }
  }

  void note_shortfall(std::size_t index, const MemoryShortfall& shortfall) {
    if (leanest_ && leanest_->shortfall.needed <= shortfall.needed) return;
    leanest_ = Leanest{index, shortfall};
  }

  void offer(std::size_t index, Ticks step_time) {
    const RowKey key = row_key(prospects_[index].candidate, fine_rows_);
    const auto [row, is_new] = best_of_row_.try_emplace(key, step_time, index);
    if (!is_new) {
      const auto& [best, holder] = row->second;
      if (step_time > best) return;
      if (step_time == best &&
          !is_simpler(prospects_[index].candidate, prospects_[holder].candidate))
        return;
      row->second = {step_time, index};
    }
    const std::vector<Entry> rows = ranked_rows();
    if (rows.size() == static_cast<std::size_t>(options_.top)) row_limit_ = rows.back().first;
  }

  /// At most `top` rows, best first; ties are broken by simplicity.
  std::vector<Entry> ranked_rows() const {
    std::vector<Entry> rows;
    for (const auto& [key, entry] : best_of_row_) rows.push_back(entry);
    std::sort(rows.begin(), rows.end(), [&](const Entry& a, const Entry& b) {
      if (a.first != b.first) return a.first < b.first;
      return is_simpler(prospects_[a.second].candidate, prospects_[b.second].candidate);
    });
    if (rows.size() > static_cast<std::size_t>(options_.top))
      rows.resize(static_cast<std::size_t>(options_.top));
    return rows;
  }

  void certify(bool complete) {
    certificate_.proved_optimal = complete;
    if (complete || queue_.empty()) return;
    const std::vector<Entry> rows = ranked_rows();
    certificate_.gap = 1;
    if (!rows.empty() && rows.front().first > queue_.top().first)
      certificate_.gap = ratio(rows.front().first - queue_.top().first, rows.front().first);
    if (!rows.empty() && rows.front().first <= queue_.top().first) certificate_.gap = 0;
  }

  SearchResult result() {
    const std::vector<Entry> rows = ranked_rows();
    SearchResult result;
    result.certificate = certificate_;
    result.plans.resize(rows.size());
    parallel_for(rows.size(), job_.threads, [&](std::size_t i) {
      const Prospect& prospect = prospects_[rows[i].second];
      RankedPlan& row = result.plans[i];
      row.plan = plan_of(prospect, job_);
      row.evaluation = predict({row.plan, job_.model, job_.cluster, job_.cost_model}).evaluation;
      MW_CHECK(fits_in_memory(row.evaluation));
      row.why = why(row.plan, row.evaluation, prospect, job_);
    });
    if (rows.empty() && leanest_ && certificate_.proved_optimal && look_further_)
      result.infeasible = infeasible();
    return result;
  }

  Infeasible infeasible() const {
    const Prospect& prospect = prospects_[leanest_->prospect];
    const Plan plan = plan_of(prospect, job_);
    Infeasible infeasible{.reason = reason_of_shortfall(plan, leanest_->shortfall),
                          .nearest = fitting_with_more_devices()};
    if (!infeasible.nearest) {
      RankedPlan over{
          .plan = plan,
          .evaluation = predict({plan, job_.model, job_.cluster, job_.cost_model}).evaluation,
          .why = infeasible.reason};
      infeasible.nearest = std::move(over);
    }
    return infeasible;
  }

  /// The best plan for the same goal on 2x, 4x, … the devices.
  std::optional<RankedPlan> fitting_with_more_devices() const {
    SearchJob larger = job_;
    larger.fixed.data.reset();
    SearchOptions options;
    options.top = 1;
    options.canceled = options_.canceled;
    for (std::int64_t gpus = 2 * std::int64_t{job_.goal.gpus}; gpus <= device_count(job_.cluster);
         gpus *= 2) {
      larger.goal.gpus = static_cast<int>(gpus);
      SearchResult found = Search(larger, options, false).run();
      if (!found.plans.empty()) return std::move(found.plans.front());
    }
    return std::nullopt;
  }

  struct Leanest {
    std::size_t prospect;
    MemoryShortfall shortfall;
  };

  SearchJob job_;
  SearchOptions options_;
  bool look_further_ = true;
  bool fine_rows_ = false;
  std::vector<Prospect> prospects_;
  std::vector<char> screened_;  ///< by prospect: memory was checked
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::map<RowKey, Entry> best_of_row_;
  std::optional<Ticks> row_limit_;  ///< step time of the last row, if the table is full
  std::optional<Leanest> leanest_;
  std::int64_t settled_ = 0;
  SearchCertificate certificate_;
};

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
  return Search(job, sane).run();
}

namespace {

/// The partition that minimizes the time of the slowest stage on the devices of the stages.
std::vector<int> best_cut(const Strategy& strategy, int parts, const ModelGraph& model,
                          const Cluster& cluster, const CostModel& cost_model) {
  const auto times_on = [&](std::int32_t kind) {
    return times_to_cut(layer_passes(strategy, model, cluster, cost_model.on_nodes(kind)),
                        strategy.recompute);
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
