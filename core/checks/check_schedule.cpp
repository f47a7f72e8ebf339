/// Validates a schedule by the semantics of its actions, independently of the generators. A single
/// file of more than 400 lines, because all rules share one table of positions.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/schedule/schedule.hpp"

namespace meshwright {
namespace {

/// Larger schedules are rejected: the tables below have stages x micro-batches entries.
constexpr std::int64_t kMostCells = 1 << 23;
/// An invalid schedule usually repeats the same error many times.
constexpr std::size_t kMostProblems = 20;

constexpr int kPassCount = 6;
constexpr std::int32_t kAbsent = -1;

std::string text_of(const Action& action) { return to_text(std::span(&action, 1)); }
std::string plain_text(Action action) {
  action.overlaps_next = false;
  return text_of(action);
}

class ScheduleCheck {
 public:
  explicit ScheduleCheck(const Schedule& schedule) : schedule_(schedule) {}

  std::vector<std::string> run(std::span<const int> held_caps) {
    if (!has_valid_shape()) return std::move(problems_);
    find_positions();
    check_completeness();
    if (problems_.empty()) check_order_within_devices();
    if (problems_.empty()) check_for_deadlock();
    if (problems_.empty() && !held_caps.empty()) check_caps(held_caps);
    return std::move(problems_);
  }

 private:
  void report(std::string problem) {
    if (problems_.size() < kMostProblems) problems_.push_back(std::move(problem));
  }

  int stage_count() const { return static_cast<int>(schedule_.placement.device_of_stage.size()); }

  std::size_t cell(StageId stage, int microbatch) const {
    return static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(stage_count()) +
           stage.index();
  }
  std::size_t slot(StageId stage, Pass pass, int microbatch) const {
    return cell(stage, microbatch) * kPassCount + static_cast<std::size_t>(pass);
  }
  bool present(StageId stage, Pass pass, int microbatch) const {
    return position_[slot(stage, pass, microbatch)] != kAbsent;
  }
  int device_of(StageId stage) const {
    return schedule_.placement.device_of_stage[stage.index()].value;
  }
  const std::vector<StageId>& route_of(int microbatch) const {
    const int route = schedule_.route_of_microbatch[static_cast<std::size_t>(microbatch)];
    return schedule_.placement.routes[static_cast<std::size_t>(route)];
  }

  bool has_valid_shape();
  void check_routes();
  void check_action_range(int device, std::size_t position, const Action& action);
  void find_positions();
  void check_completeness();
  void check_cell(StageId stage, int microbatch);
  void check_order_within_devices();
  void check_slices(StageId stage, int microbatch);
  void check_output_cell(StageId stage, int microbatch);
  void check_pair(int device, std::size_t position);
  void check_for_deadlock();
  void report_deadlock(const std::vector<std::size_t>& next, const std::vector<char>& done);
  void check_caps(std::span<const int> held_caps);

  /// The passes that must have finished before `action` can start.
  std::vector<Action> inputs_of(const Action& action) const;
  void append_all_stages(Pass pass, const Action& action, std::vector<Action>& inputs) const {
    for (const StageId s : route_of(action.microbatch.value))
      inputs.push_back({s, pass, action.microbatch});
  }

  const Schedule& schedule_;
  std::vector<std::string> problems_;
  std::vector<std::int32_t> position_;  ///< by slot(), in the order of the stage's device
  std::vector<std::int32_t>
      route_index_;  ///< by cell(): index of the stage on the route, or kAbsent
};

bool ScheduleCheck::has_valid_shape() {
  const Placement& place = schedule_.placement;
  const std::int64_t m = schedule_.microbatch_count;
  if (place.devices < 1) report(fmt::format("expected at least 1 device, got {}", place.devices));
  if (m < 1) report(fmt::format("expected at least 1 micro-batch, got {}", m));
  if (!problems_.empty()) return false;
  if (schedule_.orders.size() != static_cast<std::size_t>(place.devices))
    report(fmt::format("expected {} orders (one per device), got {}", place.devices,
                       schedule_.orders.size()));
  if (schedule_.route_of_microbatch.size() != static_cast<std::size_t>(m))
    report(fmt::format("expected routes for {} micro-batches, got {}", m,
                       schedule_.route_of_microbatch.size()));
  if (place.part_of_stage.size() != place.device_of_stage.size())
    report(fmt::format("expected model parts for {} stages, got {}", place.device_of_stage.size(),
                       place.part_of_stage.size()));
  if (m * stage_count() > kMostCells)
    report(fmt::format("{} micro-batches x {} stages exceed the limit of {}", m, stage_count(),
                       kMostCells));
  const int slices = schedule_.slices_per_microbatch;
  if (slices < 1 || m % slices != 0)
    report(fmt::format("{} slices per micro-batch do not divide {} slices in total", slices, m));
  check_routes();
  const int barriers = schedule_.output_barriers;
  if (barriers < 0 || barriers > 2)
    report(fmt::format("expected 0, 1 or 2 barriers of the output layer, got {}", barriers));
  if (barriers > 0 && (place.routes.size() != 1 || stage_count() != place.devices))
    report(
        fmt::format("a sharded output layer requires one stage per device and one route, got {} "
                    "stages on {} devices and {} routes",
                    stage_count(), place.devices, place.routes.size()));
  if (!problems_.empty()) return false;
  for (int d = 0; d < place.devices; ++d) {
    const auto& order = schedule_.orders[static_cast<std::size_t>(d)];
    for (std::size_t i = 0; i < order.size(); ++i) check_action_range(d, i, order[i]);
  }
  return problems_.empty();
}

void ScheduleCheck::check_routes() {
  const Placement& place = schedule_.placement;
  for (std::size_t s = 0; s < place.device_of_stage.size(); ++s)
    if (const int d = place.device_of_stage[s].value; d < 0 || d >= place.devices)
      report(fmt::format("stage {}: device {} is out of range ({} devices)", s, d, place.devices));
  for (std::size_t r = 0; r < place.routes.size(); ++r) {
    std::vector<char> seen(place.device_of_stage.size(), 0);
    for (const StageId s : place.routes[r]) {
      if (s.value < 0 || s.value >= stage_count())
        report(fmt::format("route {}: stage {} is out of range ({} stages)", r, s.value,
                           stage_count()));
      else if (std::exchange(seen[s.index()], 1))
        report(fmt::format("route {} visits stage {} twice", r, s.value));
    }
  }
  for (std::size_t mb = 0; mb < schedule_.route_of_microbatch.size(); ++mb) {
    const int route = schedule_.route_of_microbatch[mb];
    if (route < 0 || route >= static_cast<int>(place.routes.size()))
      report(fmt::format("micro-batch {}: route {} is out of range ({} routes)", mb, route,
                         place.routes.size()));
  }
}

void ScheduleCheck::check_action_range(int device, std::size_t position, const Action& action) {
  const int stage = action.stage.value;
  const int microbatch = action.microbatch.value;
  if (stage < 0 || stage >= stage_count()) {
    report(fmt::format("device {}, action {} ({}): stage {} is out of range: expected 0 to {}",
                       device, position, plain_text(action), stage, stage_count() - 1));
  } else if (microbatch < 0 || microbatch >= schedule_.microbatch_count) {
    report(fmt::format(
        "device {}, action {} ({}): micro-batch {} is out of range: expected 0 to {}", device,
        position, plain_text(action), microbatch, schedule_.microbatch_count - 1));
  } else if (device_of(action.stage) != device) {
    report(fmt::format("device {}, action {} ({}): stage {} belongs to device {}", device, position,
                       plain_text(action), stage, device_of(action.stage)));
  }
}

void ScheduleCheck::find_positions() {
  const auto cells = static_cast<std::size_t>(schedule_.microbatch_count) *
                     static_cast<std::size_t>(stage_count());
  position_.assign(cells * kPassCount, kAbsent);
  route_index_.assign(cells, kAbsent);
  for (int mb = 0; mb < schedule_.microbatch_count; ++mb) {
    const auto& route = route_of(mb);
    for (std::size_t i = 0; i < route.size(); ++i)
      route_index_[cell(route[i], mb)] = static_cast<std::int32_t>(i);
  }
  for (int d = 0; d < schedule_.placement.devices; ++d) {
    const auto& order = schedule_.orders[static_cast<std::size_t>(d)];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Action& a = order[i];
      auto& known = position_[slot(a.stage, a.pass, a.microbatch.value)];
      if (known != kAbsent)
        report(fmt::format("device {}, action {} ({}): duplicate of action {}", d, i, plain_text(a),
                           known));
      else
        known = static_cast<std::int32_t>(i);
      if (a.overlaps_next) check_pair(d, i);
    }
  }
}

void ScheduleCheck::check_pair(int device, std::size_t position) {
  const auto& order = schedule_.orders[static_cast<std::size_t>(device)];
  const Action& first = order[position];
  if (position + 1 == order.size()) {
    report(fmt::format("device {}, action {} ({}): last action cannot overlap the next one", device,
                       position, plain_text(first)));
    return;
  }
  const Action& second = order[position + 1];
  if (second.overlaps_next)
    report(fmt::format("device {}, action {} ({}): more than two overlapping actions", device,
                       position + 1, plain_text(second)));
  const auto in_output = [](const Action& a) {
    return a.pass == Pass::kOutputScores || a.pass == Pass::kOutputGradient;
  };
  const bool one_forward = !in_output(first) && !in_output(second) &&
                           (first.pass == Pass::kForward) != (second.pass == Pass::kForward);
  if (!one_forward)
    report(
        fmt::format("device {}, action {}: {} overlaps {}; expected one forward and one backward",
                    device, position, plain_text(first), plain_text(second)));
}

/// Millions of passes can be missing from a file of a few bytes.
void ScheduleCheck::check_completeness() {
  for (int mb = 0; mb < schedule_.microbatch_count; ++mb)
    for (int s = 0; s < stage_count() && problems_.size() < kMostProblems; ++s) {
      check_cell(StageId(s), mb);
      check_output_cell(StageId(s), mb);
    }
}

void ScheduleCheck::check_output_cell(StageId stage, int mb) {
  for (const Pass pass : {Pass::kOutputScores, Pass::kOutputGradient}) {
    if (present(stage, pass, mb) == (schedule_.output_barriers > 0)) continue;
    report(fmt::format("device {}: {} {} (the output layer is {})", device_of(stage),
                       schedule_.output_barriers > 0 ? "missing" : "unexpected",
                       text_of({stage, pass, MicrobatchId(mb)}),
                       schedule_.output_barriers > 0 ? "sharded" : "not sharded"));
  }
}

void ScheduleCheck::check_cell(StageId stage, int mb) {
  const bool forward = present(stage, Pass::kForward, mb);
  const bool full = present(stage, Pass::kBackward, mb);
  const bool input = present(stage, Pass::kBackwardInput, mb);
  const bool weight = present(stage, Pass::kBackwardWeight, mb);
  const auto missing = [&](std::string_view what, std::string_view why) {
    report(fmt::format("device {}: missing {} of micro-batch {} on stage {}{}", device_of(stage),
                       what, mb, stage.value, why));
  };
  if (route_index_[cell(stage, mb)] == kAbsent) {
    if (forward || full || input || weight)
      report(
          fmt::format("device {}: micro-batch {} is processed on stage {}, which is not on its "
                      "route {}",
                      device_of(stage), mb, stage.value,
                      schedule_.route_of_microbatch[static_cast<std::size_t>(mb)]));
    return;
  }
  if (!forward) missing("forward (F)", "");
  if (full && (input || weight))
    report(
        fmt::format("device {}: backward of micro-batch {} on stage {} occurs both as B and as "
                    "{}",
                    device_of(stage), mb, stage.value,
                    input && weight ? "I and W"
                    : input         ? "I"
                                    : "W"));
  else if (!full && !input && !weight)
    missing("backward (B, or I and W)", "");
  else if (!full && !input)
    missing("input gradient (I)", ", but W is present");
  else if (!full && !weight)
    missing("weight gradient (W)", ", but I is present");
}

void ScheduleCheck::check_order_within_devices() {
  const auto in_order = [&](StageId stage, int mb, Pass before, Pass after) {
    if (!present(stage, before, mb) || !present(stage, after, mb)) return;
    const auto first = position_[slot(stage, before, mb)];
    const auto second = position_[slot(stage, after, mb)];
    if (first < second) return;
    report(fmt::format("device {}: {} (action {}) comes before {} (action {}), which it depends on",
                       device_of(stage), text_of({stage, after, MicrobatchId(mb)}), second,
                       text_of({stage, before, MicrobatchId(mb)}), first));
  };
  for (int mb = 0; mb < schedule_.microbatch_count; ++mb)
    for (const StageId s : route_of(mb)) {
      in_order(s, mb, Pass::kForward, Pass::kBackward);
      in_order(s, mb, Pass::kForward, Pass::kBackwardInput);
      in_order(s, mb, Pass::kBackwardInput, Pass::kBackwardWeight);
      in_order(s, mb, Pass::kOutputScores, Pass::kOutputGradient);
      if ((mb + 1) % schedule_.slices_per_microbatch != 0) check_slices(s, mb);
    }
}

/// Attention of a later slice reads the keys of earlier slices and contributes to their gradients.
void ScheduleCheck::check_slices(StageId stage, int mb) {
  const auto backward = [&](int slice) {
    const Pass pass =
        present(stage, Pass::kBackward, slice) ? Pass::kBackward : Pass::kBackwardInput;
    return position_[slot(stage, pass, slice)];
  };
  const auto forward = [&](int slice) { return position_[slot(stage, Pass::kForward, slice)]; };
  if (forward(mb) > forward(mb + 1))
    report(
        fmt::format("device {}: on stage {} the forward of slice {} comes before that of slice "
                    "{}, which provides its keys",
                    device_of(stage), stage.value, mb + 1, mb));
  if (backward(mb) < backward(mb + 1))
    report(
        fmt::format("device {}: on stage {} the backward of slice {} comes before that of slice "
                    "{}, which provides its gradients",
                    device_of(stage), stage.value, mb, mb + 1));
}

std::vector<Action> ScheduleCheck::inputs_of(const Action& action) const {
  const int mb = action.microbatch.value;
  const auto& route = route_of(mb);
  const auto place = static_cast<std::size_t>(route_index_[cell(action.stage, mb)]);
  std::vector<Action> inputs;
  if (action.pass == Pass::kForward) {
    if (place > 0) inputs.push_back({route[place - 1], Pass::kForward, action.microbatch});
  } else if (action.pass == Pass::kBackwardWeight) {
    inputs.push_back({action.stage, Pass::kBackwardInput, action.microbatch});
  } else if (action.pass == Pass::kOutputScores) {
    inputs.push_back({route.back(), Pass::kForward, action.microbatch});
  } else if (action.pass == Pass::kOutputGradient) {
    append_all_stages(Pass::kOutputScores, action, inputs);
  } else {
    inputs.push_back({action.stage, Pass::kForward, action.microbatch});
    if (place + 1 < route.size()) {
      const StageId next = route[place + 1];
      const Pass pass = present(next, Pass::kBackward, mb) ? Pass::kBackward : Pass::kBackwardInput;
      inputs.push_back({next, pass, action.microbatch});
    } else if (schedule_.output_barriers > 0) {
      append_all_stages(
          schedule_.output_barriers == 1 ? Pass::kOutputScores : Pass::kOutputGradient, action,
          inputs);
    }
  }
  return inputs;
}

/// Executes the orders without a clock: a device advances while its next action has its inputs.
/// Devices that cannot finish are deadlocked.
void ScheduleCheck::check_for_deadlock() {
  const auto devices = static_cast<std::size_t>(schedule_.placement.devices);
  std::vector<std::size_t> next(devices, 0);
  std::vector<char> done(position_.size(), 0);
  const auto is_ready = [&](const Action& action) {
    for (const Action& input : inputs_of(action))
      if (!done[slot(input.stage, input.pass, input.microbatch.value)]) return false;
    return true;
  };
  const auto try_step = [&](std::size_t d) {
    const auto& order = schedule_.orders[d];
    if (next[d] == order.size() || !is_ready(order[next[d]])) return false;
    const std::size_t count = order[next[d]].overlaps_next ? 2 : 1;
    if (count == 2 && !is_ready(order[next[d] + 1])) return false;
    for (std::size_t i = 0; i < count; ++i, ++next[d]) {
      const Action& a = order[next[d]];
      done[slot(a.stage, a.pass, a.microbatch.value)] = 1;
    }
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < devices; ++d)
      while (try_step(d)) moved = true;
  }
  report_deadlock(next, done);
}

void ScheduleCheck::report_deadlock(const std::vector<std::size_t>& next,
                                    const std::vector<char>& done) {
  std::size_t device = 0;
  while (device < next.size() && next[device] == schedule_.orders[device].size()) ++device;
  if (device == next.size()) return;
  std::string chain;
  std::vector<char> visited(next.size(), 0);
  while (!std::exchange(visited[device], 1)) {
    const auto& order = schedule_.orders[device];
    std::vector<Action> waiting{order[next[device]]};
    if (waiting[0].overlaps_next) waiting.push_back(order[next[device] + 1]);
    for (const Action& action : waiting) {
      const auto inputs = inputs_of(action);
      const auto open = std::find_if(inputs.begin(), inputs.end(), [&](const Action& i) {
        return !done[slot(i.stage, i.pass, i.microbatch.value)];
      });
      if (open == inputs.end()) continue;
      const auto where = position_[slot(open->stage, open->pass, open->microbatch.value)];
      const int there = device_of(open->stage);
      chain += fmt::format(
          "{}device {} is blocked at action {} ({}) and waits for {}, action {} of "
          "device {}",
          chain.empty() ? "" : "; ", device, next[device], plain_text(action), text_of(*open),
          where, there);
      device = static_cast<std::size_t>(there);
      break;
    }
  }
  report(fmt::format("deadlock: {}", chain));
}

void ScheduleCheck::check_caps(std::span<const int> held_caps) {
  if (held_caps.size() != schedule_.orders.size()) {
    report(fmt::format("expected {} caps (one per device), got {}", schedule_.orders.size(),
                       held_caps.size()));
    return;
  }
  for (std::size_t d = 0; d < schedule_.orders.size(); ++d) {
    int held = 0;
    for (std::size_t i = 0; i < schedule_.orders[d].size(); ++i) {
      const Action& a = schedule_.orders[d][i];
      // The forward of a pair acquires its activation before the backward releases one.
      const bool forward = a.pass == Pass::kForward;
      const int at_most = held + (forward || a.overlaps_next ? 1 : 0);
      if (forward) ++held;
      if (a.pass == Pass::kBackward || a.pass == Pass::kBackwardWeight) --held;
      if (at_most <= held_caps[d]) continue;
      report(
          fmt::format("device {}, action {} ({}): holds {} stage micro-batches, more than its "
                      "cap of {}",
                      d, i, plain_text(a), at_most, held_caps[d]));
      break;
    }
  }
}

}  // namespace

std::vector<std::string> check_schedule(const Schedule& schedule) {
  return ScheduleCheck(schedule).run({});
}

std::vector<std::string> check_schedule(const Schedule& schedule, std::span<const int> held_caps) {
  return ScheduleCheck(schedule).run(held_caps);
}

}  // namespace meshwright
