#include "planner/synthesis/schedule_construction.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {
namespace {
constexpr int kForwardPass = 0, kWeightPass = 2;
}  // namespace

ScheduleBuilder::ScheduleBuilder(const OperationNetwork& network)
    : network_(network),
      waiting_(at(network.size())),
      ready_(at(network.size())),
      open_(at(network.machines)),
      free_(at(network.machines)),
      next_start_(at(network.machines)),
      held_(at(network.machines)),
      busy_(at(network.machines)) {}

/// True if there is room for this operation and for the later visits of its micro-batch to the
/// device. Without that reserve, first chunks would fill the memory and last chunks could never
/// run.
bool ScheduleBuilder::has_room(std::int32_t operation) const {
  const std::size_t machine = at(network_.machine[at(operation)]);
  const int taking_pass = network_.is_reversed ? kWeightPass : kForwardPass;
  if (!network_.cap[machine] || network_.pass_of(operation) != taking_pass) return true;
  const int reserve = network_.later_visits[at(network_.stage_of(operation))];
  return held_[machine] + 1 + reserve <= *network_.cap[machine];
}

void ScheduleBuilder::refresh(std::size_t machine) {
  next_start_[machine] = Ticks::max();
  for (const std::int32_t o : open_[machine])
    if (has_room(o))
      next_start_[machine] =
          std::min(next_start_[machine], std::max(ready_[at(o)], free_[machine]));
}

std::int32_t ScheduleBuilder::choose(std::size_t machine, std::span<const std::int64_t> priority,
                                     double patience) const {
  const Ticks soonest = next_start_[machine];
  Ticks first_end = Ticks::max();
  for (const std::int32_t o : open_[machine])
    if (has_room(o))
      first_end =
          std::min(first_end, std::max(ready_[at(o)], free_[machine]) + network_.duration[at(o)]);
  const Ticks limit =
      soonest +
      Ticks(static_cast<std::int64_t>(patience * static_cast<double>((first_end - soonest).value)));
  std::int32_t best = -1;
  for (const std::int32_t o : open_[machine]) {
    if (!has_room(o) || std::max(ready_[at(o)], free_[machine]) > limit) continue;
    if (best < 0 || std::pair(-priority[at(o)], o) < std::pair(-priority[at(best)], best)) best = o;
  }
  return best;
}

void ScheduleBuilder::put(std::int32_t operation, Starts& starts) {
  const std::size_t machine = at(network_.machine[at(operation)]);
  auto& open = open_[machine];
  open.erase(std::find(open.begin(), open.end(), operation));
  starts[at(operation)] = std::max(ready_[at(operation)], free_[machine]);
  const Ticks end = starts[at(operation)] + network_.duration[at(operation)];
  free_[machine] = end;
  const int pass = network_.pass_of(operation);
  if (pass == kForwardPass) held_[machine] += network_.is_reversed ? -1 : 1;
  if (pass == kWeightPass) held_[machine] += network_.is_reversed ? 1 : -1;
  for (const Precedence& next : network_.after(operation)) {
    const auto i = at(next.operation);
    ready_[i] = std::max(ready_[i], end + next.lag);
    if (--waiting_[i] == 0) {
      const std::size_t other = at(network_.machine[i]);
      open_[other].push_back(next.operation);
      if (other != machine) refresh(other);
    }
  }
  refresh(machine);
}

std::optional<Starts> ScheduleBuilder::dispatch(std::span<const std::int64_t> priority,
                                                double patience) {
  for (auto& open : open_) open.clear();
  std::fill(free_.begin(), free_.end(), Ticks());
  std::fill(held_.begin(), held_.end(), 0);
  for (std::int32_t o = 0; o < network_.size(); ++o) {
    waiting_[at(o)] = static_cast<std::int32_t>(network_.before(o).size());
    ready_[at(o)] = network_.release[at(network_.machine[at(o)])];
    if (waiting_[at(o)] == 0) open_[at(network_.machine[at(o)])].push_back(o);
  }
  for (std::size_t machine = 0; machine < open_.size(); ++machine) refresh(machine);
  Starts starts(at(network_.size()));
  for (int placed = 0; placed < network_.size(); ++placed) {
    const auto soonest = std::min_element(next_start_.begin(), next_start_.end());
    if (*soonest == Ticks::max()) return std::nullopt;
    const auto machine = static_cast<std::size_t>(soonest - next_start_.begin());
    put(choose(machine, priority, patience), starts);
  }
  return starts;
}

Starts ScheduleBuilder::insert_by(std::span<const std::int64_t> key) {
  using Entry = std::pair<std::int64_t, std::int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  for (auto& busy : busy_) busy.clear();
  for (std::int32_t o = 0; o < network_.size(); ++o) {
    waiting_[at(o)] = static_cast<std::int32_t>(network_.before(o).size());
    ready_[at(o)] = network_.release[at(network_.machine[at(o)])];
    if (waiting_[at(o)] == 0) open.emplace(key[at(o)], o);
  }
  Starts starts(at(network_.size()));
  while (!open.empty()) {
    const std::int32_t o = open.top().second;
    open.pop();
    auto& busy = busy_[at(network_.machine[at(o)])];  // disjoint, ascending [start, end)
    const Ticks duration = network_.duration[at(o)];
    std::size_t k = busy.size();
    while (k > 0 && busy[k - 1].second > ready_[at(o)]) --k;
    Ticks start = std::max(ready_[at(o)], k > 0 ? busy[k - 1].second : Ticks());
    for (; k < busy.size() && busy[k].first < start + duration; ++k)
      start = std::max(start, busy[k].second);
    starts[at(o)] = start;
    if (k > 0 && busy[k - 1].second == start)
      busy[k - 1].second = start + duration;
    else
      busy.insert(busy.begin() + static_cast<std::ptrdiff_t>(k++), {start, start + duration});
    if (k < busy.size() && busy[k].first == busy[k - 1].second) {
      busy[k - 1].second = busy[k].second;
      busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(k));
    }
    for (const Precedence& next : network_.after(o)) {
      const auto i = at(next.operation);
      ready_[i] = std::max(ready_[i], start + duration + next.lag);
      if (--waiting_[i] == 0) open.emplace(key[i], next.operation);
    }
  }
  return starts;
}

std::optional<Starts> starts_of_orders(const OperationNetwork& network,
                                       const std::vector<std::vector<std::int32_t>>& orders) {
  const std::size_t size = at(network.size());
  std::vector<std::int32_t> follower(size, -1), waiting(size, 0), sequence;
  for (const auto& order : orders)
    for (std::size_t k = 0; k + 1 < order.size(); ++k) {
      follower[at(order[k])] = order[k + 1];
      ++waiting[at(order[k + 1])];
    }
  Starts starts(size);
  for (std::int32_t o = 0; o < network.size(); ++o) {
    waiting[at(o)] += static_cast<std::int32_t>(network.before(o).size());
    starts[at(o)] = network.release[at(network.machine[at(o)])];
    if (waiting[at(o)] == 0) sequence.push_back(o);
  }
  const auto arrive = [&](std::int32_t o, Ticks time) {
    starts[at(o)] = std::max(starts[at(o)], time);
    if (--waiting[at(o)] == 0) sequence.push_back(o);
  };
  // NOLINTNEXTLINE(modernize-loop-convert): arrive() appends to it
  for (std::size_t k = 0; k < sequence.size(); ++k) {
    const std::int32_t o = sequence[k];
    const Ticks end = starts[at(o)] + network.duration[at(o)];
    for (const Precedence& next : network.after(o)) arrive(next.operation, end + next.lag);
    if (follower[at(o)] >= 0) arrive(follower[at(o)], end);
  }
  if (sequence.size() != size) return std::nullopt;
  return starts;
}

std::vector<int> peak_held(const OperationNetwork& network, std::span<const Ticks> starts) {
  std::vector<int> peaks;
  for (std::vector<std::int32_t> order : network.of_machine) {
    sort_by_start(network, starts, order);
    int held = 0, peak = 0;
    for (const std::int32_t o : order) {
      const int pass = network.pass_of(o);
      held += pass == kForwardPass ? 1 : pass == kWeightPass ? -1 : 0;
      peak = std::max(peak, held);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

Starts mirrored(const OperationNetwork& network, std::span<const Ticks> starts) {
  const Ticks end = objective_of(network, starts);
  Starts result(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i)
    result[i] = end - (starts[i] + network.duration[i]);
  return result;
}

Starts justify(const OperationNetwork& network, const OperationNetwork& reversed_network,
               ScheduleBuilder& builder, ScheduleBuilder& reversed_builder, Starts starts) {
  constexpr int kMostRounds = 20;
  const auto keys_of = [](const Starts& times) {
    std::vector<std::int64_t> keys(times.size());
    for (std::size_t i = 0; i < times.size(); ++i) keys[i] = times[i].value;
    return keys;
  };
  Ticks value = objective_of(network, starts);
  for (int round = 0; round < kMostRounds; ++round) {
    const Starts right = reversed_builder.insert_by(keys_of(mirrored(network, starts)));
    Starts left = builder.insert_by(keys_of(mirrored(reversed_network, right)));
    const Ticks improved = objective_of(network, left);
    if (improved >= value) break;
    value = improved;
    starts = std::move(left);
  }
  return starts;
}

}  // namespace meshwright
