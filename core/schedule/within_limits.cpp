#include "core/schedule/within_limits.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/random.hpp"
#include "core/schedule/block_keys.hpp"
#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {
/// Random draws for a search.
class Draws {
 public:
  explicit Draws(std::uint32_t variation) {
    constexpr std::uint32_t kOdd = 2'654'435'769u;  // 2^32 over the golden ratio
    state_ ^= variation * kOdd;
    if (state_ == 0) state_ = kOdd;
  }
  std::uint32_t below(std::size_t count) {
    return static_cast<std::uint32_t>(xorshift32(state_) % static_cast<std::uint32_t>(count));
  }
  double fraction() { return xorshift32(state_) / 4294967296.0; }
  /// Between -most and most, small values more often.
  Ticks around(Ticks most, double factor) {
    const double drawn = fraction() + fraction() - 1;
    return Ticks(static_cast<std::int64_t>(static_cast<double>(most.value) * factor * drawn));
  }
  template <class Values>
  auto of(const Values& values) {
    return values[below(values.size())];
  }

 private:
  std::uint32_t state_ = 2'463'534'242u;
};

class LimitedSearcher {
 public:
  LimitedSearcher(const DispatchTask& task, const LimitedSearch& search);
  LimitedSchedule run();

 private:
  /// The figure to minimize, then the other one.
  std::pair<Ticks, Ticks> cost_of(const DispatchOutcome& outcome) const {
    return search_.figure == StepFigure::kPeriod ? std::pair(outcome.period, outcome.makespan)
                                                 : std::pair(outcome.makespan, outcome.period);
  }
  bool is_done() const { return best_cost_.first <= search_.goal || left_ <= 0; }
  bool try_rule();
  void plant(const Schedule& seed);
  void try_blocks(int until_left);
  void draw_waits(BlockShape& shape);
  void change_keys();
  void climb();

  const DispatchTask& task_;
  LimitedSearch search_;
  Dispatcher dispatcher_;
  Draws draws_;
  int left_;
  Ticks interval_;  ///< lower bound, see least_interval()
  DispatchRule rule_;
  std::vector<Ticks> keys_;  ///< start times of the current schedule of the local search
  std::pair<Ticks, Ticks> best_cost_{Ticks::max(), Ticks::max()};
  LimitedSchedule best_;
};

LimitedSearcher::LimitedSearcher(const DispatchTask& task, const LimitedSearch& search)
    : task_(task),
      search_(search),
      dispatcher_(task),
      draws_(search.variation),
      left_(search.dispatches),
      interval_(least_interval(task)) {}

/// True if the schedule is at least as good as the best one so far.
bool LimitedSearcher::try_rule() {
  --left_;
  // The makespan is at least the period, so a cutoff by the period is valid for both figures.
  const std::optional<DispatchOutcome> outcome = dispatcher_.run(rule_, best_cost_.first);
  if (!outcome || cost_of(*outcome) > best_cost_) return false;
  if (cost_of(*outcome) < best_cost_) {
    best_cost_ = cost_of(*outcome);
    best_ = {dispatcher_.schedule(), *outcome};
  }
  keys_ = dispatcher_.starts();
  return true;
}

bool keeps_limits(const DispatchTask& task, const Schedule& schedule) {
  for (std::size_t d = 0; d < schedule.orders.size(); ++d) {
    std::int64_t level = 0;
    for (const Action& a : schedule.orders[d]) {
      const std::size_t s = a.stage.index();
      if (a.pass == Pass::kForward) level += task.held[s];
      if (a.pass == Pass::kBackward) level -= task.held[s];
      if (a.pass == Pass::kBackwardInput) level -= task.freed_by_input[s];
      if (a.pass == Pass::kBackwardWeight) level -= task.held[s] - task.freed_by_input[s];
      if (level > task.limits[d]) return false;
    }
  }
  return true;
}

void LimitedSearcher::plant(const Schedule& seed) {
  if (keeps_limits(task_, seed)) {
    const ScheduleTiming timing = time_schedule(seed, task_.times);
    const DispatchOutcome outcome{timing.makespan, timing.period};
    if (cost_of(outcome) < best_cost_) {
      best_cost_ = cost_of(outcome);
      best_ = {seed, outcome};
      keys_ = keys_of(task_, seed);
    }
  }
  rule_.keys = keys_of(task_, seed);
  rule_.slack = Ticks();
  for (const double patience : {0.0, 0.5, 1.0}) {
    rule_.patience = patience;
    if (!is_done()) try_rule();
  }
}

/// Waits in sixths of the interval, like the blocks of the paper. In every other shape,
/// corresponding sweeps have the same wait; otherwise waits are independent.
void LimitedSearcher::draw_waits(BlockShape& shape) {
  constexpr std::array<int, 8> kSixths{0, 0, 1, 1, 2, 3, 4, 6};
  constexpr std::array<int, 3> kFewSixths{0, 1, 1};
  const std::size_t sweeps =
      2 * task_.held.size() / static_cast<std::size_t>(task_.placement.devices);
  const bool is_short = draws_.below(2) == 0;
  shape.wait.clear();
  for (std::size_t i = 0; i < sweeps; ++i) {
    const int sixths = is_short ? draws_.of(kFewSixths) : draws_.of(kSixths);
    shape.wait.push_back(interval_ * sixths / 6);
  }
}

void LimitedSearcher::try_blocks(int until_left) {
  constexpr std::array<int, 6> kIntervalPercent{90, 100, 100, 110, 125, 150};
  constexpr std::array<int, 4> kWeightWaits{0, 0, 1, 200};  // in half intervals
  BlockShape shape;
  while (left_ > until_left && !is_done()) {
    shape.interval = interval_ * draws_.of(kIntervalPercent) / 100;
    draw_waits(shape);
    shape.weight_wait = interval_ * draws_.of(kWeightWaits) / 2;
    rule_.keys = repeated_block_keys(task_, shape);
    rule_.patience = draws_.below(2) * 0.7;
    const std::uint32_t order = draws_.below(4);
    rule_.slack = order < 2 ? Ticks() : order == 2 ? interval_ / 2 : Ticks::max();
    try_rule();
  }
}

/// Shifts all operations of one pass (of a stage, of a sweep with a slope, of a device, or of all
/// stages) to earlier or later times, for all micro-batches or a range of them.
void LimitedSearcher::change_keys() {
  const auto m = static_cast<std::size_t>(task_.microbatches);
  const auto devices = static_cast<std::size_t>(task_.placement.devices);
  const std::vector<StageId>& route = task_.placement.routes.front();
  std::size_t first = 0, last = m;
  if (draws_.below(2) == 0) {
    first = draws_.below(m);
    last = std::min(m, first + 1 + draws_.below(draws_.below(2) == 0 ? 4 : m));
    if (const std::uint32_t end = draws_.below(4); end == 0)
      first = 0;
    else if (end == 1)
      last = m;
  }
  const int pass = static_cast<int>(draws_.below(3));
  Ticks shift = draws_.around(interval_, draws_.below(2) == 0 ? 0.5 : 2.0);
  const auto move = [&](StageId stage) {
    for (std::size_t j = first; j < last; ++j)
      rule_.keys[dispatcher_.operation(pass, stage.value, static_cast<std::int32_t>(j))] += shift;
  };
  const double kind = draws_.fraction();
  if (kind < 0.4) {
    move(draws_.of(route));
  } else if (kind < 0.7) {
    const std::size_t sweep = draws_.below(route.size() / devices);
    const Ticks slope = draws_.around(interval_, 0.2);
    for (std::size_t i = 0; i < devices; ++i, shift += slope) move(route[sweep * devices + i]);
  } else if (kind < 0.85) {
    const PipelineRankId device(static_cast<std::int32_t>(draws_.below(devices)));
    for (const StageId stage : route)
      if (task_.placement.device_of_stage[stage.index()] == device) move(stage);
  } else {
    for (const StageId stage : route) move(stage);
  }
}

void LimitedSearcher::climb() {
  while (!is_done()) {
    rule_.keys = keys_;
    rule_.patience = draws_.below(3) > 0 ? 0.5 * draws_.below(3) : 1.2 * draws_.fraction();
    rule_.slack = draws_.below(4) > 0 ? Ticks() : interval_ * draws_.below(100) / 100;
    const std::uint32_t changes = 1 + draws_.below(2);
    for (std::uint32_t i = 0; i < changes; ++i) change_keys();
    try_rule();
  }
}

LimitedSchedule LimitedSearcher::run() {
  for (const Schedule& seed : search_.seeds) plant(seed);
  try_blocks(left_ * 3 / 5);
  climb();
  return std::move(best_);
}

}  // namespace

LimitedSchedule schedule_within_limits(const DispatchTask& task, const LimitedSearch& search) {
  MW_CHECK(search.dispatches > 0);
  return LimitedSearcher(task, search).run();
}

}  // namespace meshwright
