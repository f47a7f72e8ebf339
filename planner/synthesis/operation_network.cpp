#include "planner/synthesis/operation_network.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr int kPasses = 3;

struct Arc {
  std::int32_t from = 0, to = 0;
  Ticks lag;
};

/// Precedences that follow from the cap of a device with n > 1 stages v_0 … v_{n-1}, in the order
/// of the route. Micro-batches of a (stage, pass) are in sequence, so from F on v_k of micro-batch
/// j until the first of its weight gradients, j holds k + 1 units or more. With
///   q = floor(cap / (k + 1)): when F on v_k of j starts, a weight gradient of j - q on v_0 … v_k
///   has
///     ended, or the q + 1 micro-batches j - q … j would hold more than the cap;
///   q = floor((cap - n) / (k + 1)) + 1: the same for v_0 … v_{n-1}: j - q holds n units at its
///   last
///     forward, and the q others k + 1 each, if they have started v_k by then;
///   q = cap - k: W of j - q on each of v_0 … v_k has ended, since j itself holds one unit on each
///     of the k others.
class MemoryArcs {
 public:
  MemoryArcs(const OperationNetwork& n, const std::vector<StageId>& route,
             std::span<const Ticks> lags)
      : n_(n), after_input_(route.size()) {
    own_.resize(at(n.machines));
    Ticks back;  // from the end of I on the last stage to the end of I on this one
    for (std::size_t i = route.size(); i-- > 0;) {
      const int s = route[i].value;
      if (i + 1 < route.size()) back += lags[i] + n.duration[at(n.id(1, s, 0))];
      after_input_[at(s)] = back;
      auto& own = own_[at(n.machine[at(n.id(0, s, 0))])];
      own.insert(own.begin(), s);
    }
  }

  void collect(std::span<const int> caps, std::vector<Arc>& arcs) const {
    for (std::size_t d = 0; d < caps.size(); ++d) {
      const int stages = static_cast<int>(own_[d].size());
      for (int k = 0; k < stages; ++k) {
        const int cap = caps[d];
        first_weight(d, k, k, cap / (k + 1), arcs);
        first_weight(d, k, stages - 1, (cap - stages) / (k + 1) + 1, arcs);
        for (int j = cap - k; j < n_.microbatches; ++j)
          for (int i = 0; i <= k; ++i)
            arcs.push_back(
                {n_.id(2, own_[d][at(i)], j - cap + k), n_.id(0, own_[d][at(k)], j), Ticks()});
      }
    }
  }

 private:
  /// F on v_k of j starts after the first weight gradient of j - q on v_0 … v_last.
  void first_weight(std::size_t d, int k, int last, int q, std::vector<Arc>& arcs) const {
    const int from = own_[d][at(last)];
    Ticks lag = Ticks::max();
    for (int i = 0; i <= last; ++i) {
      const int s = own_[d][at(i)];
      lag = std::min(
          lag, after_input_[at(s)] - after_input_[at(from)] + n_.duration[at(n_.id(2, s, 0))]);
    }
    for (int j = q; j < n_.microbatches; ++j)
      arcs.push_back({n_.id(1, from, j - q), n_.id(0, own_[d][at(k)], j), lag});
  }

  const OperationNetwork& n_;
  std::vector<Ticks> after_input_;     ///< by stage
  std::vector<std::vector<int>> own_;  ///< stages by device, in the order of the route
};

std::vector<Arc> collect_arcs(const OperationNetwork& n, const Placement& placement,
                              const StageTimes& times, std::span<const int> caps) {
  std::vector<Arc> arcs;
  const std::vector<StageId>& route = placement.routes.front();
  const bool one_stage_per_device = n.stages == n.machines;
  const auto lag_between = [&](StageId a, StageId b) {
    return placement.device_of_stage[a.index()] == placement.device_of_stage[b.index()]
               ? Ticks()
               : latency_between(times, a, b) + times.link_occupancy;
  };
  for (int j = 0; j < n.microbatches; ++j) {
    for (int s = 0; s < n.stages; ++s) {
      for (int pass = 0; pass < kPasses && j > 0; ++pass)
        arcs.push_back({n.id(pass, s, j - 1), n.id(pass, s, j), Ticks()});
      arcs.push_back({n.id(1, s, j), n.id(2, s, j), Ticks()});
      if (!one_stage_per_device || caps.empty()) continue;
      const auto device = placement.device_of_stage[static_cast<std::size_t>(s)].index();
      if (j >= caps[device]) arcs.push_back({n.id(2, s, j - caps[device]), n.id(0, s, j), Ticks()});
    }
    for (std::size_t i = 0; i + 1 < route.size(); ++i) {
      const Ticks lag = lag_between(route[i], route[i + 1]);
      arcs.push_back({n.id(0, route[i].value, j), n.id(0, route[i + 1].value, j), lag});
      arcs.push_back({n.id(1, route[i + 1].value, j), n.id(1, route[i].value, j), lag});
    }
    arcs.push_back({n.id(0, route.back().value, j), n.id(1, route.back().value, j), Ticks()});
  }
  if (one_stage_per_device) return arcs;
  std::vector<Ticks> lags;
  for (std::size_t i = 0; i + 1 < route.size(); ++i)
    lags.push_back(lag_between(route[i], route[i + 1]));
  MemoryArcs(n, route, lags).collect(caps, arcs);
  return arcs;
}

void store_arcs(OperationNetwork& n, const std::vector<Arc>& arcs) {
  const auto size = static_cast<std::size_t>(n.size());
  n.successor_begin.assign(size + 1, 0);
  n.predecessor_begin.assign(size + 1, 0);
  for (const Arc& arc : arcs) {
    ++n.successor_begin[static_cast<std::size_t>(arc.from) + 1];
    ++n.predecessor_begin[static_cast<std::size_t>(arc.to) + 1];
  }
  for (std::size_t i = 0; i < size; ++i) {
    n.successor_begin[i + 1] += n.successor_begin[i];
    n.predecessor_begin[i + 1] += n.predecessor_begin[i];
  }
  n.successors.resize(arcs.size());
  n.predecessors.resize(arcs.size());
  std::vector<std::int32_t> out(n.successor_begin), in(n.predecessor_begin);
  for (const Arc& arc : arcs) {
    n.successors[static_cast<std::size_t>(out[static_cast<std::size_t>(arc.from)]++)] = {arc.to,
                                                                                         arc.lag};
    n.predecessors[static_cast<std::size_t>(in[static_cast<std::size_t>(arc.to)]++)] = {arc.from,
                                                                                        arc.lag};
  }
}

/// Greatest common divisor of all durations and lags.
Ticks common_grain(const OperationNetwork& n) {
  std::int64_t grain = 0;
  for (const Ticks duration : n.duration) grain = std::gcd(grain, duration.value);
  for (const Precedence& arc : n.successors) grain = std::gcd(grain, arc.lag.value);
  return Ticks(std::max<std::int64_t>(grain, 1));
}

/// For each stage of the route, how many later stages (in the given direction) are on its device.
std::vector<int> visits_behind(const OperationNetwork& n, const Placement& placement,
                               bool forwards) {
  std::vector<StageId> route = placement.routes.front();
  if (!forwards) std::reverse(route.begin(), route.end());
  std::vector<int> visits(static_cast<std::size_t>(n.stages), 0);
  std::vector<int> seen(static_cast<std::size_t>(n.machines), 0);
  for (auto stage = route.rbegin(); stage != route.rend(); ++stage)
    visits[stage->index()] = seen[placement.device_of_stage[stage->index()].index()]++;
  return visits;
}

/// Among the ready operations the earliest micro-batch goes first, and within a micro-batch the
/// latest pass: with zero durations, memory is released before more is acquired.
void sort_topologically(OperationNetwork& n) {
  const auto by_microbatch = [&](std::int32_t a, std::int32_t b) {
    return std::tuple(n.microbatch_of(a), -n.pass_of(a), a) >
           std::tuple(n.microbatch_of(b), -n.pass_of(b), b);
  };
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, decltype(by_microbatch)> open(
      by_microbatch);
  std::vector<std::size_t> waiting(static_cast<std::size_t>(n.size()));
  for (std::int32_t o = 0; o < n.size(); ++o) {
    waiting[static_cast<std::size_t>(o)] = n.before(o).size();
    if (n.before(o).empty()) open.push(o);
  }
  n.topological_rank.resize(static_cast<std::size_t>(n.size()));
  while (!open.empty()) {
    const std::int32_t o = open.top();
    open.pop();
    n.topological_rank[static_cast<std::size_t>(o)] =
        static_cast<std::int32_t>(n.topological.size());
    n.topological.push_back(o);
    for (const Precedence& next : n.after(o))
      if (--waiting[static_cast<std::size_t>(next.operation)] == 0) open.push(next.operation);
  }
  MW_CHECK(n.topological.size() == static_cast<std::size_t>(n.size()));
}

}  // namespace

OperationNetwork make_operation_network(const Placement& placement, int microbatches,
                                        const StageTimes& times, std::span<const int> caps) {
  MW_CHECK(placement.routes.size() == 1);
  MW_CHECK(caps.empty() || caps.size() == static_cast<std::size_t>(placement.devices));
  OperationNetwork n;
  n.stages = static_cast<int>(placement.device_of_stage.size());
  n.microbatches = microbatches;
  n.machines = placement.devices;
  n.of_machine.resize(static_cast<std::size_t>(n.machines));
  const std::array<const std::vector<Ticks>*, kPasses> durations{
      &times.forward, &times.backward_input, &times.backward_weight};
  for (const int taken : {1, 0, -1})
    n.room.insert(n.room.end(), static_cast<std::size_t>(n.stages), taken);
  for (int pass = 0; pass < kPasses; ++pass)
    for (std::size_t s = 0; s < static_cast<std::size_t>(n.stages); ++s)
      for (int j = 0; j < microbatches; ++j) {
        const PipelineRankId device = placement.device_of_stage[s];
        n.of_machine[device.index()].push_back(n.size());
        n.duration.push_back((*durations[static_cast<std::size_t>(pass)])[s]);
        n.machine.push_back(device.value);
      }
  n.release.assign(static_cast<std::size_t>(n.machines), Ticks());
  n.tail = n.release;
  n.cap.assign(static_cast<std::size_t>(n.machines), std::nullopt);
  if (n.stages != n.machines)
    for (std::size_t d = 0; d < caps.size(); ++d) n.cap[d] = caps[d];
  n.later_visits = visits_behind(n, placement, true);
  n.earlier_visits = visits_behind(n, placement, false);
  store_arcs(n, collect_arcs(n, placement, times, caps));
  n.grain = common_grain(n);
  sort_topologically(n);
  return n;
}

void weigh(OperationNetwork& network, std::span<const int> held,
           std::span<const int> freed_by_input, std::span<const int> caps) {
  const auto stages = static_cast<std::size_t>(network.stages);
  MW_CHECK(!network.is_reversed);
  MW_CHECK(held.size() == stages && freed_by_input.size() == stages);
  MW_CHECK(caps.size() == network.cap.size());
  for (std::size_t s = 0; s < stages; ++s) {
    network.room[s] = held[s];
    network.room[stages + s] = -freed_by_input[s];
    network.room[2 * stages + s] = freed_by_input[s] - held[s];
  }
  network.cap.assign(caps.begin(), caps.end());
}

PeriodObjective aim_at_period(OperationNetwork& network) {
  PeriodObjective objective;
  const std::vector<Ticks> heads = earliest_starts(network);
  std::vector<Ticks> first(static_cast<std::size_t>(network.machines), Ticks::max());
  // The first micro-batch is first on every device, as long as it has visited no device twice.
  std::vector<char> is_fixed(heads.size(), 0);
  int fixed = 0;
  for (const std::int32_t o : network.topological) {
    const auto i = static_cast<std::size_t>(o);
    Ticks& start = first[static_cast<std::size_t>(network.machine[i])];
    start = std::min(start, heads[i]);
    const auto stage = static_cast<std::size_t>(network.stage_of(o));
    if (network.pass_of(o) != 0 || network.microbatch_of(o) != 0) continue;
    if (network.earlier_visits[stage] != 0) continue;
    is_fixed[i] = 1;
    for (const Precedence& p : network.before(o))
      if (!is_fixed[static_cast<std::size_t>(p.operation)]) is_fixed[i] = 0;
    fixed += is_fixed[i];
  }
  objective.is_exact = fixed == network.machines;
  objective.offset = *std::max_element(first.begin(), first.end());
  for (std::size_t d = 0; d < first.size(); ++d) network.tail[d] = objective.offset - first[d];
  return objective;
}

OperationNetwork reversed(const OperationNetwork& network) {
  OperationNetwork mirrored = network;
  std::swap(mirrored.successors, mirrored.predecessors);
  std::swap(mirrored.successor_begin, mirrored.predecessor_begin);
  std::swap(mirrored.release, mirrored.tail);
  std::swap(mirrored.later_visits, mirrored.earlier_visits);
  mirrored.is_reversed = !network.is_reversed;
  std::reverse(mirrored.topological.begin(), mirrored.topological.end());
  for (std::int32_t& rank : mirrored.topological_rank) rank = network.size() - 1 - rank;
  return mirrored;
}

std::vector<Ticks> earliest_starts(const OperationNetwork& network) {
  std::vector<Ticks> start(static_cast<std::size_t>(network.size()));
  for (const std::int32_t o : network.topological) {
    const auto i = static_cast<std::size_t>(o);
    start[i] = std::max(start[i], network.release[static_cast<std::size_t>(network.machine[i])]);
    for (const Precedence& next : network.after(o)) {
      Ticks& later = start[static_cast<std::size_t>(next.operation)];
      later = std::max(later, start[i] + network.duration[i] + next.lag);
    }
  }
  return start;
}

Ticks objective_of(const OperationNetwork& network, std::span<const Ticks> starts) {
  Ticks objective;
  for (std::size_t i = 0; i < starts.size(); ++i)
    objective = std::max(objective, starts[i] + network.duration[i] +
                                        network.tail[static_cast<std::size_t>(network.machine[i])]);
  return objective;
}

void sort_by_start(const OperationNetwork& network, std::span<const Ticks> starts,
                   std::vector<std::int32_t>& operations) {
  std::sort(operations.begin(), operations.end(), [&](std::int32_t a, std::int32_t b) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    return std::tuple(starts[i], network.duration[i], network.topological_rank[i]) <
           std::tuple(starts[j], network.duration[j], network.topological_rank[j]);
  });
}

Schedule to_schedule(const OperationNetwork& network, const Placement& placement,
                     std::span<const Ticks> starts) {
  constexpr std::array<Pass, kPasses> kPassOf{Pass::kForward, Pass::kBackwardInput,
                                              Pass::kBackwardWeight};
  Schedule schedule;
  schedule.name = "auto";
  schedule.microbatch_count = network.microbatches;
  schedule.placement = placement;
  schedule.route_of_microbatch.assign(static_cast<std::size_t>(network.microbatches), 0);
  for (std::vector<std::int32_t> order : network.of_machine) {
    sort_by_start(network, starts, order);
    std::vector<Action>& actions = schedule.orders.emplace_back();
    for (const std::int32_t o : order)
      actions.push_back({StageId(network.stage_of(o)),
                         kPassOf[static_cast<std::size_t>(network.pass_of(o))],
                         MicrobatchId(network.microbatch_of(o)), false});
  }
  return schedule;
}

}  // namespace meshwright
