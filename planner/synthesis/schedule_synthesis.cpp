#include "planner/synthesis/schedule_synthesis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.hpp"
#include "core/schedule/automatic.hpp"
#include "planner/synthesis/schedule_bounds.hpp"
#include "planner/synthesis/schedule_branching.hpp"
#include "planner/synthesis/schedule_construction.hpp"
#include "planner/synthesis/schedule_justification.hpp"
#include "planner/synthesis/schedule_local_search.hpp"
#include "planner/synthesis/schedule_repetition.hpp"
#include "planner/synthesis/schedule_shaving.hpp"

namespace meshwright {
namespace {
/// Approximate cost of one call, in visits per operation of the network.
constexpr std::int64_t kDispatchVisits = 9, kInsertVisits = 8, kFilterVisits = 60;
/// Above this number of operations, a shorter schedule is searched and its steady state repeated.
constexpr int kLargestSearched = 10'000;
constexpr std::array kPatiences{0.0, 0.3, 0.6, 1.0};

struct CandidateOrder {
  Ticks value;
  Starts starts;
  const char* origin = "";
};

class Synthesizer {
 public:
  explicit Synthesizer(const SynthesisRequest& request)
      : request_(request),
        effort_(request.effort),
        network_(make_network(request)),
        reversed_(reversed(network_)),
        builder_(network_),
        reversed_builder_(reversed_),
        propagation_(network_),
        forward_tails_(meshwright::earliest_starts(reversed_)),
        forward_heads_(meshwright::earliest_starts(network_)) {
    for (const auto& cap : network_.cap) has_machine_caps_ |= cap.has_value();
    constexpr int kUsualSize = 1'600, kLargestSize = 25'000;
    if (network_.size() > kUsualSize && network_.size() <= kLargestSize)
      effort_ = effort_ / kUsualSize * network_.size();
    bound_ = period_.is_exact ? one_machine_bound(network_) : work_bound(network_) + period_.offset;
  }

  SynthesizedSchedule run() {
    offer_seeds();
    offer_repetition();
    dispatch_by_priority(forward_tails_, forward_heads_, "dispatch");
    dispatch_by_pass();
    raise_bound();
    offer_automatic();
    dispatch_by_windows();
    justify_best();
    branch();
    walk();
    search_locally();
    prove();
    return result();
  }

  Ticks bound_below(Ticks known) {
    best_.value = known + period_.offset;
    spent_ = 0;
    raise_bound();
    return bound_ - period_.offset;
  }

 private:
  OperationNetwork make_network(const SynthesisRequest& request) {
    OperationNetwork network = make_operation_network(request.placement, request.microbatches,
                                                      request.times, request.caps);
    if (request.objective == ScheduleObjective::kPeriod) period_ = aim_at_period(network);
    return network;
  }

  bool is_done() const { return best_.value <= bound_ || spent_ >= effort_; }
  void spend(std::int64_t visits_per_operation) {
    spent_ += visits_per_operation * network_.size();
  }

  /// Adds the work of propagation since the last call; one of its visits costs as much as two
  /// others.
  void spend_filtering() {
    spent_ += 2 * (propagation_.visits() - std::exchange(filtered_, propagation_.visits()));
  }

  void offer(Starts starts, const char* origin) {
    const Ticks value = objective_of(network_, starts);
    pool_.push_back({value, starts, origin});
    if (value < best_.value) best_ = {value, std::move(starts), origin};
  }

  void offer_seeds();
  void offer_automatic();
  void offer_seed(const Schedule& seed, const char* origin);
  void offer_repetition();
  void offer_stretched(const SynthesizedSchedule& few);
  void dispatch_both(std::span<const std::int64_t> forward, std::span<const std::int64_t> backward,
                     double patience, const char* origin);
  void dispatch_by_priority(const std::vector<Ticks>& tails, const std::vector<Ticks>& heads,
                            const char* origin);
  void dispatch_by_pass();
  void dispatch_by_windows();
  void raise_bound();
  void justify_best();
  void branch();
  void walk();
  void search_locally();
  void prove();
  SynthesizedSchedule result();

  const SynthesisRequest& request_;
  std::int64_t effort_;  ///< grows with the network
  PeriodObjective period_;
  OperationNetwork network_, reversed_;
  ScheduleBuilder builder_, reversed_builder_;
  ConstraintPropagation propagation_;
  std::vector<Ticks> forward_tails_, forward_heads_;
  bool has_machine_caps_ = false;
  Ticks bound_;
  CandidateOrder best_{Ticks::max(), {}, ""};
  std::vector<CandidateOrder> pool_;
  std::int64_t spent_ = 0;
  std::int64_t filtered_ = 0;  ///< propagation visits already counted
};

void Synthesizer::offer_seeds() {
  for (const Schedule& seed : request_.seeds)
    if (seed.placement == request_.placement && seed.microbatch_count == request_.microbatches)
      offer_seed(seed, "published schedule");
}

/// Zero Bubble's automatic scheduler, for one stage per device.
void Synthesizer::offer_automatic() {
  constexpr std::int64_t kVisits = 120;  // for all of its variants
  if (is_done() || network_.size() > kLargestSearched) return;
  if (request_.placement != looped_placement(network_.machines, 1)) return;
  AutomaticTask task{.microbatches = request_.microbatches,
                     .times = request_.times,
                     .activation_caps = {request_.caps.begin(), request_.caps.end()}};
  if (request_.caps.empty())
    task.activation_caps.assign(at(network_.machines), request_.microbatches);
  offer_seed(best_automatic_schedule(task), "published schedule");
  spend(kVisits);
}

/// For many micro-batches: synthesizes a schedule for few of them and repeats its steady state.
void Synthesizer::offer_repetition() {
  constexpr int kOperations = 1'500;
  const int attempts = has_machine_caps_ ? 3 : 1;
  const int least = std::max(2 * network_.machines, kOperations / (3 * network_.stages));
  if (2 * request_.microbatches < 3 * least) return;
  SynthesisRequest few = request_;
  few.seeds.clear();
  few.effort = request_.effort / 2;
  for (few.microbatches = least; few.microbatches < least + attempts; ++few.microbatches) {
    if (few.microbatches >= request_.microbatches ||
        3 * few.microbatches * network_.stages > kLargestSearched)
      return;
    const SynthesizedSchedule made = synthesize(few);
    if (!has_machine_caps_) offer_stretched(made);
    if (is_done()) return;
    const std::optional<Schedule> longer =
        repeat_steadily(made.schedule, request_.times, request_.microbatches);
    if (!longer) continue;
    offer_seed(*longer, "steady repetition");
    return;
  }
}

/// Starts of a shorter schedule as keys: its first half, its last half and, in between, its middle
/// micro-batch repeated at the rate of the busiest device.
void Synthesizer::offer_stretched(const SynthesizedSchedule& few) {
  const int missing = request_.microbatches - few.schedule.microbatch_count;
  const int middle = few.schedule.microbatch_count / 2;
  const Ticks rate = work_bound(network_) / request_.microbatches;
  std::vector<std::int64_t> keys(at(network_.size()));
  for (std::size_t d = 0; d < few.schedule.orders.size(); ++d)
    for (std::size_t k = 0; k < few.schedule.orders[d].size(); ++k) {
      const Action& a = few.schedule.orders[d][k];
      const int pass = a.pass == Pass::kForward ? 0 : a.pass == Pass::kBackwardInput ? 1 : 2;
      const std::int64_t start = few.timing.starts[d][k].value;
      const int j = a.microbatch.value;
      const auto set = [&](int microbatch, int shift) {
        keys[at(network_.id(pass, a.stage.value, microbatch))] = start + rate.value * shift;
      };
      if (j < middle) set(j, 0);
      if (j >= middle) set(j + missing, missing);
      if (j == middle)
        for (int i = 0; i < missing; ++i) set(j + i, i);
    }
  offer(builder_.insert_by(keys), "steady repetition");
  spend(kInsertVisits);
}

/// Converts a schedule to machine orders; a whole backward becomes I followed by W.
void Synthesizer::offer_seed(const Schedule& seed, const char* origin) {
  spend(kDispatchVisits);
  std::vector<std::vector<std::int32_t>> orders;
  for (const auto& actions : seed.orders) {
    auto& order = orders.emplace_back();
    for (const Action& a : actions) {
      const auto id = [&](int pass) {
        return network_.id(pass, a.stage.value, a.microbatch.value);
      };
      if (a.pass == Pass::kForward) order.push_back(id(0));
      if (a.pass == Pass::kBackward || a.pass == Pass::kBackwardInput) order.push_back(id(1));
      if (a.pass == Pass::kBackward || a.pass == Pass::kBackwardWeight) order.push_back(id(2));
    }
  }
  std::optional<Starts> starts = starts_of_orders(network_, orders);
  if (!starts) return;
  const std::vector<int> peaks = peak_held(network_, *starts);
  for (std::size_t d = 0; d < request_.caps.size(); ++d)
    if (peaks[d] > request_.caps[d]) return;
  offer(std::move(*starts), origin);
}

void Synthesizer::dispatch_both(std::span<const std::int64_t> forward,
                                std::span<const std::int64_t> backward, double patience,
                                const char* origin) {
  if (is_done()) return;
  if (std::optional<Starts> starts = builder_.dispatch(forward, patience))
    offer(std::move(*starts), origin);
  spend(kDispatchVisits);
  if (is_done()) return;
  if (std::optional<Starts> starts = reversed_builder_.dispatch(backward, patience)) {
    // The mirrored schedule may have slack at the start; its order is left-packed later.
    offer(mirrored(reversed_, *starts), origin);
  }
  spend(kDispatchVisits);
}

/// Longest tail first; in the reversed problem, heads take the role of tails.
void Synthesizer::dispatch_by_priority(const std::vector<Ticks>& tails,
                                       const std::vector<Ticks>& heads, const char* origin) {
  std::vector<std::int64_t> forward(tails.size()), backward(heads.size());
  for (std::size_t i = 0; i < tails.size(); ++i) {
    forward[i] = tails[i].value;
    backward[i] = heads[i].value;
  }
  for (const double patience : kPatiences) dispatch_both(forward, backward, patience, origin);
}

/// Fixed priorities of passes, as in published schedules (input gradients first, weight gradients
/// fill gaps, …); within a pass by chunk, deep or shallow first, then by micro-batch.
void Synthesizer::dispatch_by_pass() {
  constexpr std::array<std::array<int, 3>, 3> kRanks{{{1, 2, 0}, {2, 1, 0}, {0, 2, 1}}};
  const std::int64_t per_chunk = request_.microbatches + 1;
  const std::int64_t per_pass = per_chunk * (network_.stages + 1);
  const int chunk_orders = network_.stages > network_.machines ? 3 : 1;
  std::vector<std::int64_t> forward(at(network_.size())), backward(forward.size());
  for (const auto& rank : kRanks)
    for (int chunk_order = 0; chunk_order < chunk_orders; ++chunk_order) {
      for (std::int32_t o = 0; o < network_.size(); ++o) {
        const int stage = network_.stage_of(o), j = network_.microbatch_of(o);
        const std::int64_t base = rank[at(network_.pass_of(o))] * per_pass;
        const std::int64_t chunk = chunk_order == 0   ? stage
                                   : chunk_order == 1 ? network_.stages - stage
                                                      : 0;
        forward[at(o)] = base + chunk * per_chunk - j;
        backward[at(o)] = base - chunk * per_chunk + j;
      }
      for (const double patience : kPatiences)
        dispatch_both(forward, backward, patience, "dispatch");
    }
}

/// Priorities from the windows of propagation under a tight target, which are more informative than
/// longest paths.
void Synthesizer::dispatch_by_windows() {
  for (const int tenths : {0, 3, 7}) {
    if (is_done() || spent_ > effort_ / 2) return;
    const Ticks target = bound_ + Ticks((best_.value - bound_).value / 10 * tenths);
    const bool is_open = propagation_.could_meet(target, effort_ / 8);
    spend_filtering();
    if (!is_open) continue;
    std::vector<Ticks> tails(forward_tails_.size()), heads(forward_heads_.size());
    for (std::size_t i = 0; i < tails.size(); ++i) {
      tails[i] = network_.duration[i] - propagation_.latest_ends()[i];
      heads[i] = propagation_.earliest_starts()[i] + network_.duration[i];
    }
    dispatch_by_priority(tails, heads, "dispatch by windows");
  }
}

void Synthesizer::raise_bound() {
  if (best_.value <= bound_ || best_.value == Ticks::max() || !period_.is_exact) return;
  if (network_.size() > kLargestSearched) return;
  bound_ = refutation_bound(network_, propagation_, bound_, best_.value, effort_ / 13);
  spend_filtering();
}

/// Justifies the best schedules so far, which are the starts of the local search.
void Synthesizer::justify_best() {
  constexpr std::size_t kKept = 12;
  std::stable_sort(
      pool_.begin(), pool_.end(),
      [](const CandidateOrder& a, const CandidateOrder& b) { return a.value < b.value; });
  pool_.erase(std::unique(pool_.begin(), pool_.end(),
                          [](const CandidateOrder& a, const CandidateOrder& b) {
                            return a.value == b.value && a.starts == b.starts;
                          }),
              pool_.end());
  if (pool_.size() > kKept) pool_.resize(kKept);
  if (has_machine_caps_) return;
  const std::int64_t most = spent_ + effort_ / 6;
  for (CandidateOrder& candidate : pool_) {
    if (is_done() || spent_ >= most) return;
    candidate.starts =
        justify(network_, reversed_, builder_, reversed_builder_, std::move(candidate.starts));
    candidate.value = objective_of(network_, candidate.starts);
    spend(4 * kInsertVisits);
    if (candidate.value < best_.value) {
      best_ = candidate;
      best_.origin = "double justification";
    }
  }
}

/// Branch and bound for small networks.
void Synthesizer::branch() {
  constexpr int kLargestBranched = 200;
  if (is_done() || !period_.is_exact || has_machine_caps_ || network_.size() > kLargestBranched)
    return;
  ScheduleBranching branching(network_);
  const std::int64_t nodes = effort_ / (2 * kFilterVisits * network_.size());
  BranchingOutcome outcome = branching.improve(best_.starts, bound_, nodes);
  spend(kFilterVisits * outcome.nodes);
  if (objective_of(network_, outcome.starts) < best_.value)
    best_ = {objective_of(network_, outcome.starts), std::move(outcome.starts), "branch and bound"};
  bound_ = std::max(bound_, outcome.bound);
}

/// A short random walk to leave plateaus, on which tabu search has few moves.
void Synthesizer::walk() {
  if (has_machine_caps_ || is_done()) return;
  constexpr std::int64_t kVisits = 2 * kInsertVisits;
  JustificationWalk walk(network_, reversed_);
  const std::int64_t steps = (effort_ - spent_) / 20 / (kVisits * network_.size());
  Starts improved = walk.improve(best_.starts, {bound_, steps});
  spend(kVisits * walk.steps());
  const Ticks value = objective_of(network_, improved);
  if (value < best_.value) best_ = {value, std::move(improved), "justification walk"};
}

/// Half of the remaining effort for several starts, half for the best result.
void Synthesizer::search_locally() {
  constexpr std::size_t kStarts = 6;
  constexpr std::int64_t kVisits = 5, kCost = 2;  // 5 of its visits cost as much as 2 of others
  if (is_done()) return;
  std::stable_sort(
      pool_.begin(), pool_.end(),
      [](const CandidateOrder& a, const CandidateOrder& b) { return a.value < b.value; });
  TabuSearch tabu(network_);
  const auto improve = [&](const Starts& from, std::int64_t effort) {
    const std::int64_t before = tabu.visits();
    Starts improved = tabu.improve(from, {.goal = bound_, .most_visits = effort * kVisits / kCost});
    spent_ += (tabu.visits() - before) * kCost / kVisits;
    const Ticks value = objective_of(network_, improved);
    if (value < best_.value) best_ = {value, std::move(improved), "tabu search"};
  };
  const std::int64_t share = (effort_ - spent_) / static_cast<std::int64_t>(2 * kStarts);
  for (std::size_t i = 0; i < pool_.size() && i < kStarts && !is_done(); ++i)
    improve(i == 0 ? best_.starts : pool_[i].starts, share);
  if (!is_done()) improve(best_.starts, effort_ - spent_);
}

/// Raises the bound in addition to the effort of the search: by shaving if the best schedule may be
/// optimal.
void Synthesizer::prove() {
  constexpr std::int64_t kShare = 4, kSmallGap = 128;  // fractions of the effort and of the bound
  if (best_.value - bound_ > bound_ / kSmallGap) return raise_bound();
  if (best_.value <= bound_ || !period_.is_exact || network_.size() > kLargestSearched) return;
  bound_ = shaving_bound(network_, propagation_, bound_, best_.value, effort_ / kShare);
}

SynthesizedSchedule Synthesizer::result() {
  SynthesizedSchedule made;
  made.schedule = to_schedule(network_, request_.placement, best_.starts);
  made.timing = time_schedule(made.schedule, request_.times);
  made.value = request_.objective == ScheduleObjective::kMakespan ? made.timing.makespan
                                                                  : made.timing.period;
  made.lower_bound = std::min(bound_ - period_.offset, made.value);
  made.origin = best_.origin;
  return made;
}

}  // namespace

double gap_of(const SynthesizedSchedule& s) {
  return ratio(s.value - s.lower_bound, s.lower_bound);
}

std::optional<std::string> problem_of(const SynthesisRequest& request) {
  const std::size_t stages = request.placement.device_of_stage.size();
  if (request.microbatches < 1)
    return fmt::format("number of micro-batches must be at least 1, got {}", request.microbatches);
  if (request.placement.routes.size() != 1 || request.placement.routes[0].size() != stages)
    return "schedule synthesis requires a placement with one route";
  for (const auto* times :
       {&request.times.forward, &request.times.backward_input, &request.times.backward_weight})
    if (times->size() != stages)
      return fmt::format("expected {} times (one per stage), got {}", stages, times->size());
  if (request.caps.empty()) return std::nullopt;
  if (request.caps.size() != static_cast<std::size_t>(request.placement.devices))
    return fmt::format("expected {} caps (one per device), got {}", request.placement.devices,
                       request.caps.size());
  std::vector<int> stages_on(request.caps.size(), 0);
  for (const PipelineRankId device : request.placement.device_of_stage) ++stages_on[device.index()];
  for (std::size_t d = 0; d < request.caps.size(); ++d)
    if (request.caps[d] < stages_on[d])
      return fmt::format(
          "cap of {} stage-micro-batches is too small for device {}, which has {} stages",
          request.caps[d], d, stages_on[d]);
  return std::nullopt;
}

SynthesizedSchedule synthesize(const SynthesisRequest& request) {
  MW_CHECK(!problem_of(request));
  return Synthesizer(request).run();
}

Ticks lower_bound_of(const SynthesisRequest& request, Ticks known) {
  MW_CHECK(!problem_of(request));
  return Synthesizer(request).bound_below(known);
}

}  // namespace meshwright
