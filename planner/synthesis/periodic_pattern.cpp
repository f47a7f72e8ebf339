#include "planner/synthesis/periodic_pattern.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {
constexpr int kForward = Dispatcher::kForward, kInput = Dispatcher::kInput,
              kWeight = Dispatcher::kWeight;
/// Counts like memory that all devices exceed all the time.
constexpr double kConflict = 100;
}  // namespace

PatternSearch::PatternSearch(const DispatchTask& task, int microbatches)
    : task_(task), copies_(microbatches) {
  for (int copy = 0; copy < copies_; ++copy)
    for (const auto* times :
         {&task.times.forward, &task.times.backward_input, &task.times.backward_weight})
      for (std::size_t s = 0; s < times->size(); ++s) {
        durations_.push_back((*times)[s].value);
        devices_.push_back(task.placement.device_of_stage[s].index());
      }
  const std::vector<StageId>& route = task.placement.routes.front();
  for (std::size_t i = 0; i + 1 < route.size(); ++i) {
    const bool is_same = task.placement.device_of_stage[route[i].index()] ==
                         task.placement.device_of_stage[route[i + 1].index()];
    lags_.push_back(
        is_same ? 0
                : (latency_between(task.times, route[i], route[i + 1]) + task.times.link_occupancy)
                      .value);
  }
  shape_.wait.assign(durations_.size(), 0);
  shape_.is_early.assign(durations_.size(), 1);
  starts_.resize(durations_.size());
  taken_.resize(task.limits.size());
  changes_.resize(task.limits.size());
  levels_.resize(task.limits.size());
}

std::optional<PeriodicPattern> PatternSearch::improve(Ticks least, int placements) {
  constexpr int kProbes = 8;
  constexpr std::int64_t kFinest = 256;  // fraction of the interval
  const int per_probe = std::max(1, placements / kProbes);
  std::int64_t low = least.value * copies_, high = 0;
  if (found_) {
    high = found_->interval.value;
  } else {
    for (const std::int64_t duration : durations_) high += duration;
    for (const std::int64_t lag : lags_) high += 2 * lag * copies_;
  }
  for (std::int64_t next = low; low < high && placements > 0; next = low + (high - low) / 2) {
    int left = std::min(per_probe, placements);
    placements -= left;
    const bool is_found = fits(next, left);
    placements += left;
    (is_found ? high : low) = next;
    if (high - low <= low / kFinest) break;
  }
  return found_;
}

bool PatternSearch::fits(std::int64_t interval, int& placements) {
  interval_ = interval;
  Shape current = shape_;
  double excess = excess_of(current);
  for (; excess > 0 && placements > 0; --placements) {
    Shape next = current;
    change(next);
    const double next_excess = excess_of(next);
    if (next_excess > excess) continue;
    excess = next_excess;
    current = std::move(next);
  }
  if (excess > 0) return false;
  excess_of(current);
  shape_ = std::move(current);
  keep();
  return true;
}

/// The pattern of the last placement.
void PatternSearch::keep() {
  found_ = PeriodicPattern{Ticks(interval_), copies_, {}};
  for (const std::int64_t start : starts_) found_->starts.emplace_back(start);
}

void PatternSearch::change(Shape& shape) {
  constexpr int kMostChanges = 3, kParts = 1024;
  for (std::uint32_t left = 1 + below(kMostChanges); left > 0; --left) {
    const std::size_t i = below(durations_.size());
    if (below(8) == 0) {
      shape.is_early[i] ^= 1;
    } else if (below(4) > 0) {
      shape.wait[i] = 0;
    } else {
      const std::int64_t most = below(3) == 0 ? interval_ : interval_ / 4;
      shape.wait[i] = most / kParts * below(kParts);
    }
  }
}

double PatternSearch::excess_of(const Shape& shape) {
  place_all(shape);
  return memory_excess() + (is_free_of_conflicts_ ? 0 : kConflict);
}

void PatternSearch::place_all(const Shape& shape) {
  const std::vector<StageId>& route = task_.placement.routes.front();
  for (auto& slots : taken_) slots.clear();
  is_free_of_conflicts_ = true;
  for (int copy = 0; copy < copies_; ++copy) {
    std::int64_t ready = interval_ * copy / copies_;
    for (std::size_t i = 0; i < route.size(); ++i) {
      ready = place(shape, index(copy, kForward, route[i].index()), ready);
      if (i < lags_.size()) ready += lags_[i];
    }
    for (std::size_t i = route.size(); i-- > 0;) {
      const std::size_t weight = index(copy, kWeight, route[i].index());
      ready = place(shape, index(copy, kInput, route[i].index()), ready);
      if (shape.is_early[weight] != 0) place(shape, weight, ready);
      if (i > 0) ready += lags_[i - 1];
    }
  }
  for (int copy = 0; copy < copies_; ++copy)
    for (std::size_t i = route.size(); i-- > 0;) {
      const std::size_t input = index(copy, kInput, route[i].index());
      const std::size_t weight = index(copy, kWeight, route[i].index());
      if (shape.is_early[weight] == 0) place(shape, weight, starts_[input] + durations_[input]);
    }
}

/// The end of the pass in the first free slot after `ready` and its wait.
std::int64_t PatternSearch::place(const Shape& shape, std::size_t pass, std::int64_t ready) {
  auto& taken = taken_[devices_[pass]];
  const std::int64_t first = ready + shape.wait[pass], length = durations_[pass];
  std::int64_t start = first;
  for (bool is_free = false; !is_free;) {
    is_free = true;
    if (start >= first + interval_) {
      is_free_of_conflicts_ = false;
      start = first;
      break;
    }
    for (const Slot& other : taken) {
      std::int64_t offset = start % interval_ - other.phase;
      if (offset < 0) offset += interval_;
      const bool starts_inside = offset < other.length;
      if (!starts_inside && offset + length <= interval_) continue;
      start += starts_inside ? other.length - offset : interval_ - offset + other.length;
      is_free = false;
    }
  }
  taken.push_back({start % interval_, length});
  starts_[pass] = start;
  return start + length;
}

/// Changes the level of a device at `time`, and at all times that are a multiple of the interval
/// later.
void PatternSearch::count(std::size_t device, std::int64_t time, std::int64_t amount) {
  levels_[device] -= amount * (time / interval_);
  const std::int64_t phase = time % interval_;
  if (phase == 0)
    levels_[device] += amount;
  else
    changes_[device].push_back({phase, amount});
}

/// Sum over devices of the mean memory in use above the limit.
double PatternSearch::memory_excess() {
  std::fill(levels_.begin(), levels_.end(), 0);
  for (auto& changes : changes_) changes.clear();
  for (int copy = 0; copy < copies_; ++copy)
    for (std::size_t s = 0; s < task_.held.size(); ++s) {
      const std::size_t device = task_.placement.device_of_stage[s].index();
      const auto start = [&](int pass) { return starts_[index(copy, pass, s)]; };
      const auto end = [&](int pass) { return start(pass) + durations_[index(copy, pass, s)]; };
      count(device, start(kForward), task_.held[s]);
      if (task_.freed_by_input[s] > 0) count(device, end(kInput), -task_.freed_by_input[s]);
      count(device, end(kWeight), task_.freed_by_input[s] - task_.held[s]);
    }
  double excess = 0;
  for (std::size_t device = 0; device < levels_.size(); ++device) {
    auto& changes = changes_[device];
    std::sort(changes.begin(), changes.end());
    changes.push_back({interval_, 0});
    std::int64_t last = 0, level = levels_[device];
    for (const Change& change : changes) {
      const std::int64_t above = level - task_.limits[device];
      if (above > 0)
        excess += static_cast<double>(change.phase - last) * static_cast<double>(above);
      last = change.phase;
      level += change.amount;
    }
  }
  return excess / static_cast<double>(interval_);
}

std::vector<Ticks> keys_of(const DispatchTask& task, const PeriodicPattern& pattern) {
  const auto m = static_cast<std::size_t>(task.microbatches);
  const auto copies = static_cast<std::size_t>(pattern.microbatches);
  const std::size_t passes = pattern.starts.size() / copies;
  std::vector<Ticks> keys;
  keys.reserve(passes * m);
  for (std::size_t pass = 0; pass < passes; ++pass) {
    for (std::size_t j = 0; j < m; ++j)
      keys.push_back(pattern.starts[j % copies * passes + pass] +
                     pattern.interval * static_cast<std::int64_t>(j / copies));
    std::sort(keys.end() - static_cast<std::ptrdiff_t>(m), keys.end());
  }
  return keys;
}

}  // namespace meshwright
