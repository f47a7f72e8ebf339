/// Chimera and Hanayo. Their papers give the order as a figure; here it results from list
/// scheduling in unit time with the rule behind the figures: never idle while a pass is ready,
/// backwards first, later model parts first.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/schedule/generators.hpp"

namespace meshwright {

namespace {

constexpr int kNever = std::numeric_limits<int>::max();

struct ListLimits {
  int backward_slots;       ///< a forward takes one
  int in_flight_per_route;  ///< micro-batches between first forward and last backward
};

class ListScheduler {
 public:
  ListScheduler(Schedule schedule, ListLimits limits);
  Schedule run();

 private:
  /// Micro-batch `microbatch` at `place` of its route.
  struct Work {
    Action action;
    int route = 0;
    std::size_t place = 0;
  };
  std::size_t cell(StageId stage, int mb) const {
    return static_cast<std::size_t>(mb) * schedule_.placement.device_of_stage.size() +
           stage.index();
  }
  std::size_t device_of(StageId stage) const {
    return schedule_.placement.device_of_stage[stage.index()].index();
  }
  std::optional<Work> best_ready(std::size_t device, int now) const;
  void start(const Work& work, int now);

  Schedule schedule_;
  ListLimits limits_;
  std::vector<int> forward_ready_;              ///< by cell: slot from which F may start
  std::vector<int> backward_ready_;             ///< by cell: slot from which B may start
  std::vector<std::vector<int>> by_route_;      ///< micro-batches of a route, in order
  std::vector<std::vector<int>> next_forward_;  ///< by route and place: index into by_route_
  std::vector<std::vector<int>> next_backward_;
  std::vector<int> free_;
  std::size_t left_ = 0;
};

ListScheduler::ListScheduler(Schedule schedule, ListLimits limits)
    : schedule_(std::move(schedule)), limits_(limits) {
  const Placement& placement = schedule_.placement;
  const std::size_t cells =
      placement.device_of_stage.size() * static_cast<std::size_t>(schedule_.microbatch_count);
  forward_ready_.assign(cells, kNever);
  backward_ready_.assign(cells, kNever);
  by_route_.resize(placement.routes.size());
  for (int mb = 0; mb < schedule_.microbatch_count; ++mb) {
    const auto route =
        static_cast<std::size_t>(schedule_.route_of_microbatch[static_cast<std::size_t>(mb)]);
    by_route_[route].push_back(mb);
    forward_ready_[cell(placement.routes[route].front(), mb)] = 0;
    left_ += 2 * placement.routes[route].size();
  }
  for (const auto& route : placement.routes) {
    next_forward_.emplace_back(route.size(), 0);
    next_backward_.emplace_back(route.size(), 0);
  }
  free_.assign(static_cast<std::size_t>(placement.devices), 0);
}

std::optional<ListScheduler::Work> ListScheduler::best_ready(std::size_t device, int now) const {
  std::optional<Work> best;
  std::tuple<bool, std::size_t, int> best_rank;  // forward?, parts left to run, micro-batch
  const auto offer = [&](Pass pass, std::size_t r, std::size_t place, const std::vector<int>& next,
                         const std::vector<int>& ready) {
    const auto index = static_cast<std::size_t>(next[place]);
    if (index == by_route_[r].size()) return;
    const StageId stage = schedule_.placement.routes[r][place];
    const int mb = by_route_[r][index];
    if (ready[cell(stage, mb)] > now) return;
    const std::size_t last = schedule_.placement.routes[r].size() - 1;
    const bool forward = pass == Pass::kForward;
    const std::tuple rank(forward, forward ? last - place : place, mb);
    if (best && best_rank <= rank) return;
    best = Work{{stage, pass, MicrobatchId(mb)}, static_cast<int>(r), place};
    best_rank = rank;
  };
  for (std::size_t r = 0; r < by_route_.size(); ++r)
    for (std::size_t place = 0; place < next_forward_[r].size(); ++place) {
      if (device_of(schedule_.placement.routes[r][place]) != device) continue;
      offer(Pass::kBackward, r, place, next_backward_[r], backward_ready_);
      const int in_flight = next_forward_[r].front() - next_backward_[r].front();
      if (place > 0 || in_flight < limits_.in_flight_per_route)
        offer(Pass::kForward, r, place, next_forward_[r], forward_ready_);
    }
  return best;
}

void ListScheduler::start(const Work& work, int now) {
  const auto r = static_cast<std::size_t>(work.route);
  const auto& route = schedule_.placement.routes[r];
  const int mb = work.action.microbatch.value;
  const bool forward = work.action.pass == Pass::kForward;
  const int end = now + (forward ? 1 : limits_.backward_slots);
  const std::size_t device = device_of(work.action.stage);
  free_[device] = end;
  schedule_.orders[device].push_back(work.action);
  --left_;
  if (forward) {
    ++next_forward_[r][work.place];
    if (work.place + 1 < route.size())
      forward_ready_[cell(route[work.place + 1], mb)] = end;
    else
      backward_ready_[cell(work.action.stage, mb)] = end;
  } else {
    ++next_backward_[r][work.place];
    if (work.place > 0) backward_ready_[cell(route[work.place - 1], mb)] = end;
  }
}

Schedule ListScheduler::run() {
  for (int now = 0; left_ > 0; ++now)
    for (std::size_t d = 0; d < free_.size(); ++d) {
      if (free_[d] > now) continue;
      if (const auto work = best_ready(d, now)) start(*work, now);
    }
  return std::move(schedule_);
}

}  // namespace

/// Chimera (Li and Hoefler, arXiv:2107.06925): two pipelines in opposite directions, each with half
/// of every p micro-batches. In slots of one pass, micro-batch i of a direction goes forward on its
/// stage s at s + 2i and backward at 2p - 1 - s + 2i: the directions never meet, neither inside a
/// unit of p micro-batches nor when the next unit starts after its 2p slots of work ("direct
/// concatenation").
Schedule generate_chimera(const ScheduleRequest& request) {
  const int p = request.devices;
  const int m = request.microbatches;
  Schedule schedule = empty_schedule("chimera", bidirectional_placement(p), m);
  for (int mb = 0; mb < m; ++mb)
    schedule.route_of_microbatch[static_cast<std::size_t>(mb)] = mb % p < p / 2 ? 0 : 1;
  std::vector<std::vector<std::pair<int, Action>>> timed(schedule.orders.size());
  for (int mb = 0; mb < m; ++mb) {
    const int start = 2 * (mb / p * p) + 2 * (mb % (p / 2));
    const auto& route = schedule.placement.routes[mb % p < p / 2 ? 0 : 1];
    for (int s = 0; s < p; ++s) {
      const StageId stage = route[static_cast<std::size_t>(s)];
      auto& device = timed[schedule.placement.device_of_stage[stage.index()].index()];
      device.push_back({start + s, {stage, Pass::kForward, MicrobatchId(mb)}});
      device.push_back({start + 2 * p - 1 - s, {stage, Pass::kBackward, MicrobatchId(mb)}});
    }
  }
  for (std::size_t d = 0; d < timed.size(); ++d) {
    std::sort(timed[d].begin(), timed[d].end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [slot, action] : timed[d]) schedule.orders[d].push_back(action);
  }
  return schedule;
}

/// Hanayo (Liu et al., arXiv:2308.15762): W waves are 2 W chunks that run down and up the devices.
Schedule generate_hanayo(const ScheduleRequest& request) {
  Schedule schedule = empty_schedule("hanayo", wave_placement(request.devices, request.chunks),
                                     request.microbatches);
  return ListScheduler(std::move(schedule),
                       {.backward_slots = 2, .in_flight_per_route = request.devices})
      .run();
}

}  // namespace meshwright
