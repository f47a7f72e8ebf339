#include "planner/synthesis/schedule_device_bounds.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/schedule/timing.hpp"
#include "planner/synthesis/schedule_memory_bounds.hpp"

namespace meshwright {
namespace {
constexpr std::size_t kMostStages = 4, kMostPasses = 3 * kMostStages;

/// The passes of a micro-batch on one device: F of its n stages in the order of the route, I of
/// them in reversed order, then their W, which nothing waits for.
struct DevicePasses {
  std::size_t stages = 0;
  std::array<std::int64_t, kMostPasses> duration{};
  /// From the end of one of the first 2n - 1 passes to the earliest start of the next one.
  std::array<std::int64_t, kMostPasses> lag{};
  std::array<std::int64_t, kMostPasses> room{};  ///< change of the memory in use
  std::int64_t head = 0;                         ///< before the first F
  /// From the end of any pass, and of the last I, to the objective.
  std::int64_t tail = 0, last_tail = 0;

  std::size_t chain() const { return 2 * stages; }
  std::size_t count() const { return 3 * stages; }
  std::size_t weight_of(std::size_t input) const { return chain() + (chain() - 1 - input); }
};

/// Durations along the whole route.
class Route {
 public:
  explicit Route(const DispatchTask& task) : task_(task), stages_(task.placement.routes.front()) {}

  DevicePasses passes_of(std::size_t device, ScheduleObjective objective) const;

 private:
  void set_tails(std::size_t first, ScheduleObjective objective, DevicePasses& passes) const;
  bool visits_once_before(std::size_t position) const {
    for (std::size_t i = 0; i < position; ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (is_on(j, task_.placement.device_of_stage[stage(i)].index())) return false;
    return true;
  }
  std::size_t stage(std::size_t i) const { return stages_[i].index(); }
  bool is_on(std::size_t i, std::size_t device) const {
    return task_.placement.device_of_stage[stage(i)].index() == device;
  }
  std::int64_t latency(std::size_t i) const {
    const auto& device = task_.placement.device_of_stage;
    if (device[stage(i)] == device[stage(i + 1)]) return 0;
    return latency_between(task_.times, stages_[i], stages_[i + 1]).value;
  }
  /// From the end of a pass on one position to the start of the same pass on another one.
  std::int64_t between(const std::vector<Ticks>& times, std::size_t from, std::size_t to) const {
    std::int64_t way = 0;
    for (std::size_t i = from; i < to; ++i) way += latency(i);
    for (std::size_t i = from + 1; i < to; ++i) way += times[stage(i)].value;
    return way;
  }

  const DispatchTask& task_;
  const std::vector<StageId>& stages_;
};

DevicePasses Route::passes_of(std::size_t device, ScheduleObjective objective) const {
  const StageTimes& times = task_.times;
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    if (is_on(i, device)) own.push_back(i);
  DevicePasses passes;
  passes.stages = own.size();
  if (own.empty() || own.size() > kMostStages) return passes;
  for (std::size_t k = 0; k < own.size(); ++k) {
    const std::size_t s = stage(own[k]), input = 2 * own.size() - 1 - k;
    passes.duration[k] = times.forward[s].value;
    passes.duration[input] = times.backward_input[s].value;
    passes.duration[passes.weight_of(input)] = times.backward_weight[s].value;
    passes.room[k] = task_.held[s];
    passes.room[input] = -task_.freed_by_input[s];
    passes.room[passes.weight_of(input)] = task_.freed_by_input[s] - task_.held[s];
    if (k == 0) continue;
    passes.lag[k - 1] = between(times.forward, own[k - 1], own[k]);
    passes.lag[input] = between(times.backward_input, own[k - 1], own[k]);
  }
  const std::size_t last = stages_.size() - 1, turn = own.back();
  std::int64_t& loop = passes.lag[own.size() - 1];
  if (turn < last)
    loop = between(times.forward, turn, last) + between(times.backward_input, turn, last) +
           times.forward[stage(last)].value + times.backward_input[stage(last)].value;
  set_tails(own.front(), objective, passes);
  return passes;
}

/// `first`: position of the first stage of the device. Each device that the route visits before it
/// returns to any starts with the first micro-batch, when that arrives: its period counts from
/// there.
void Route::set_tails(std::size_t first, ScheduleObjective objective, DevicePasses& passes) const {
  const StageTimes& times = task_.times;
  const bool is_period = objective == ScheduleObjective::kPeriod;
  std::vector<std::int64_t> arrivals(first + 1);
  for (std::size_t i = 0; i < first; ++i)
    arrivals[i + 1] = arrivals[i] + times.forward[stage(i)].value + latency(i);
  if (is_period && !visits_once_before(first)) return;
  passes.head = arrivals[first];
  if (is_period) passes.tail = -arrivals[first];
  passes.last_tail = passes.tail;
  std::int64_t way = 0;
  for (std::size_t i = first; i-- > 0;) {
    way += latency(i) + times.backward_input[stage(i)].value;
    const std::int64_t end = way + times.backward_weight[stage(i)].value;
    passes.last_tail = std::max(passes.last_tail, end - (is_period ? arrivals[i] : 0));
  }
}

/// Number of micro-batches that have started each pass.
using State = std::array<std::uint16_t, kMostPasses>;
struct HashState {
  std::size_t operator()(const State& state) const {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
    std::uint64_t hash = 0;
    for (const std::uint16_t count : state) hash = (hash ^ count) * kOdd;
    return static_cast<std::size_t>(hash ^ (hash >> 32));
  }
};

/// All states with the same number of started passes. The labels of a state are stored one after
/// another: when the device is free, the objective of what has started, and arrivals in the order
/// of passes and micro-batches.
struct Layer {
  std::vector<State> states;
  std::vector<std::vector<std::int64_t>> labels;  ///< by state
};

class DeviceProgram {
 public:
  DeviceProgram(const DevicePasses& passes, std::int64_t limit, int microbatches,
                const DeviceBoundLimits& limits)
      : passes_(passes), limit_(limit), microbatches_(microbatches), limits_(limits) {}

  Ticks bound();

 private:
  struct Start {
    std::size_t pass = 0;
    std::int64_t start = 0, end = 0;
  };
  static constexpr std::size_t kFree = 0, kObjective = 1, kArrivals = 2;

  void extend(const State& state, const std::int64_t* label);
  void collect(const State& state, const std::int64_t* label);
  void put(const State& state, const std::int64_t* label, const Start& next);
  bool is_hopeless(const State& state) const;
  bool has_too_many_labels(std::size_t step, std::size_t steps) const;
  void add(const State& state);
  std::size_t size_of(const State& state) const { return kArrivals + arrivals_of(state); }
  /// Number of micro-batches in transit to a pass.
  std::size_t arrivals_of(const State& state) const {
    return static_cast<std::size_t>(state[0] - state[passes_.chain() - 1]);
  }

  const DevicePasses& passes_;
  std::int64_t limit_;
  int microbatches_;
  const DeviceBoundLimits& limits_;
  Layer layer_, next_;
  std::unordered_map<State, std::size_t, HashState> index_;  ///< of next_.states
  std::int64_t labels_ = 0;
  // Scratch.
  std::vector<Start> open_;
  std::vector<std::int64_t> child_;
};

/// Passes that can start next. A pass that would leave the device idle while a gradient could run
/// is not among them: the gradient takes nothing and delays nothing.
void DeviceProgram::collect(const State& state, const std::int64_t* label) {
  open_.clear();
  const std::int64_t free = label[kFree];
  const auto add_open = [&](std::size_t pass, std::int64_t start) {
    open_.push_back({pass, start, start + passes_.duration[pass]});
  };
  std::int64_t level = 0;
  for (std::size_t pass = 0; pass < passes_.count(); ++pass)
    level += passes_.room[pass] * state[pass];
  const std::int64_t* arrival = label + kArrivals;
  if (state[0] < microbatches_ && level + passes_.room[0] <= limit_) add_open(0, free);
  for (std::size_t pass = 1; pass < passes_.chain(); ++pass) {
    const int waiting = state[pass - 1] - state[pass];
    if (waiting > 0 && (pass >= passes_.stages || level + passes_.room[pass] <= limit_))
      add_open(pass, std::max(free, *arrival));
    arrival += waiting;
  }
  for (std::size_t input = passes_.stages; input < passes_.chain(); ++input)
    if (state[passes_.weight_of(input)] < state[input]) add_open(passes_.weight_of(input), free);
  const Start* soonest = nullptr;
  for (const Start& s : open_)
    if (s.pass >= passes_.stages && (soonest == nullptr || s.end < soonest->end)) soonest = &s;
  if (soonest == nullptr) return;
  const Start gradient = *soonest;
  std::erase_if(open_,
                [&](const Start& s) { return s.pass != gradient.pass && s.start >= gradient.end; });
}

void DeviceProgram::put(const State& state, const std::int64_t* label, const Start& next) {
  child_.assign({next.end, std::max(label[kObjective], next.end + passes_.tail)});
  const std::int64_t* arrival = label + kArrivals;
  for (std::size_t pass = 1; pass < passes_.chain(); ++pass) {
    const int waiting = state[pass - 1] - state[pass];
    for (int k = pass == next.pass ? 1 : 0; k < waiting; ++k)
      child_.push_back(std::max(arrival[k], next.end));
    if (next.pass + 1 == pass) child_.push_back(next.end + passes_.lag[next.pass]);
    arrival += waiting;
  }
  State after = state;
  ++after[next.pass];
  if (next.pass + 1 == passes_.chain() && after[next.pass] == microbatches_)
    child_[kObjective] = std::max(child_[kObjective], next.end + passes_.last_tail);
  if (!is_hopeless(after)) add(after);
}

bool DeviceProgram::is_hopeless(const State& state) const {
  std::int64_t end = child_[kFree] + passes_.tail;
  for (std::size_t pass = 0; pass < passes_.count(); ++pass)
    end += passes_.duration[pass] * (microbatches_ - state[pass]);
  return std::max(end, child_[kObjective]) >= limits_.known.value;
}

/// Memory fills in the first steps, so that the number of labels so far is below the average.
bool DeviceProgram::has_too_many_labels(std::size_t step, std::size_t steps) const {
  constexpr std::size_t kForesight = 8;  // fraction of the steps after which to extrapolate
  if (step * kForesight < steps) return labels_ > limits_.most_labels;
  return labels_ * static_cast<std::int64_t>(steps) >
         limits_.most_labels * static_cast<std::int64_t>(step);
}

/// Adds the label child_, unless another one dominates it; merges it with the closest one if there
/// are too many.
void DeviceProgram::add(const State& state) {
  ++labels_;
  const auto [entry, is_new] = index_.try_emplace(state, next_.states.size());
  if (is_new) {
    next_.states.push_back(state);
    next_.labels.push_back(child_);
    return;
  }
  std::vector<std::int64_t>& labels = next_.labels[entry->second];
  const std::size_t size = child_.size();
  std::int64_t closest = std::numeric_limits<std::int64_t>::max();
  std::size_t closest_begin = 0;
  for (std::size_t begin = 0; begin < labels.size();) {
    std::int64_t later = 0, earlier = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::int64_t difference = child_[i] - labels[begin + i];
      (difference > 0 ? later : earlier) += difference;
    }
    if (earlier == 0) return;
    if (later == 0) {
      std::copy(labels.end() - static_cast<std::ptrdiff_t>(size), labels.end(),
                labels.begin() + static_cast<std::ptrdiff_t>(begin));
      labels.resize(labels.size() - size);
      continue;
    }
    if (later - earlier < closest) {
      closest = later - earlier;
      closest_begin = begin;
    }
    begin += size;
  }
  if (labels.size() < size * static_cast<std::size_t>(limits_.labels_per_state)) {
    labels.insert(labels.end(), child_.begin(), child_.end());
    return;
  }
  for (std::size_t i = 0; i < size; ++i)
    labels[closest_begin + i] = std::min(labels[closest_begin + i], child_[i]);
}

void DeviceProgram::extend(const State& state, const std::int64_t* label) {
  collect(state, label);
  for (const Start& next : open_) put(state, label, next);
}

Ticks DeviceProgram::bound() {
  layer_.states.push_back({});
  layer_.labels.push_back({passes_.head, 0});
  const std::size_t steps = passes_.count() * static_cast<std::size_t>(microbatches_);
  for (std::size_t step = 0; step < steps; ++step) {
    next_.states.clear();
    next_.labels.clear();
    index_.clear();
    for (std::size_t i = 0; i < layer_.states.size(); ++i) {
      const std::size_t size = size_of(layer_.states[i]);
      for (std::size_t begin = 0; begin < layer_.labels[i].size(); begin += size)
        extend(layer_.states[i], layer_.labels[i].data() + begin);
    }
    std::swap(layer_, next_);
    if (has_too_many_labels(step + 1, steps)) return Ticks();
  }
  Ticks bound = limits_.known;
  for (const auto& labels : layer_.labels)
    for (std::size_t begin = 0; begin < labels.size(); begin += kArrivals)
      bound = std::min(bound, Ticks(labels[begin + kObjective]));
  return bound;
}

}  // namespace

Ticks device_bound(const DispatchTask& task, std::size_t device, ScheduleObjective objective,
                   const DeviceBoundLimits& limits) {
  const DevicePasses passes = Route(task).passes_of(device, objective);
  if (passes.stages == 0 || passes.stages > kMostStages) return Ticks();
  return DeviceProgram(passes, task.limits[device], task.microbatches, limits).bound();
}

Ticks device_bound(const DispatchTask& task, ScheduleObjective objective,
                   const DeviceBoundLimits& limits) {
  constexpr std::int64_t kQuickShare = 2;  // of half of the labels
  std::vector<std::pair<Ticks, std::size_t>> devices;
  for (std::size_t d = 0; d < task.limits.size(); ++d)
    devices.emplace_back(-memory_bound(task, d, objective), d);
  std::sort(devices.begin(), devices.end());
  DeviceBoundLimits quick = limits;
  quick.labels_per_state = 1;
  quick.most_labels = limits.most_labels / static_cast<std::int64_t>(2 * kQuickShare);
  Ticks bound;
  std::size_t best = devices.front().second;
  for (const auto& [unused, d] : devices) {
    const Ticks of_device = device_bound(task, d, objective, quick);
    if (of_device == Ticks()) break;  // the others take as long
    if (of_device <= bound) continue;
    bound = of_device;
    best = d;
  }
  DeviceBoundLimits rest = limits;
  rest.most_labels = limits.most_labels / 2;
  if (bound == Ticks()) rest.labels_per_state = 1;
  return std::max(bound, device_bound(task, best, objective, rest));
}

}  // namespace meshwright
