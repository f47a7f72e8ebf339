/// Cases for the tests of schedule synthesis: tables of tests/planner/data, small random requests
/// from printed seeds, and the exhaustive search that checks both bounds and searches.
#pragma once

#include <array>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "planner/synthesis/schedule_synthesis.hpp"

namespace meshwright {

/// Times of the tables are integers without a unit; here one of them is a nanosecond.
inline Ticks table_time(double value) { return Ticks(static_cast<std::int64_t>(value * 1000)); }

/// Cells of every row, without comment lines (#) and header.
inline std::vector<std::vector<std::string>> read_case_rows(const std::string& file) {
  std::ifstream in(std::string(MESHWRIGHT_SOURCE_DIR) + "/tests/planner/data/" + file);
  if (!in) throw std::runtime_error("cannot read " + file);
  std::vector<std::vector<std::string>> rows;
  bool is_header = true;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    if (std::exchange(is_header, false)) continue;
    std::istringstream cells(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return rows;
}

inline std::vector<Ticks> table_times(const std::string& cell) {
  std::istringstream in(cell);
  std::vector<Ticks> times;
  for (double value = 0; in >> value;) times.push_back(table_time(value));
  return times;
}

/// The request of a row of unequal_stages.csv.
inline SynthesisRequest unequal_stages_request(const std::vector<std::string>& row,
                                               ScheduleObjective objective) {
  SynthesisRequest request;
  request.microbatches = std::stoi(row[0]);
  request.times.forward = table_times(row[4]);
  request.times.backward_input = table_times(row[5]);
  request.times.backward_weight = table_times(row[6]);
  request.times.latency = table_time(std::stod(row[3]));
  const std::size_t stages = request.times.forward.size();
  request.placement = looped_placement(static_cast<int>(stages), 1);
  request.caps.assign(stages, std::stoi(row[2]));
  request.objective = objective;
  return request;
}

/// 240 pipelines of 4 to 32 stages with 2, 4 and 8 micro-batches per stage: equal times, the times
/// of Zero Bubble's table 9, times that differ by 10 or 30 %, a heavy last stage; room for
/// 1, 1.25, 1.5 and 2 times as many micro-batches as stages.
inline std::vector<SynthesisRequest> pipelines_up_to_32_stages() {
  struct Kind {
    int forward, input, weight, percent, latency;
    bool last_is_heavy;
  };
  constexpr Kind kKinds[] = {{100, 100, 100, 0, 5, false},
                             {185, 181, 93, 0, 6, false},
                             {100, 100, 70, 10, 5, false},
                             {100, 100, 70, 30, 5, false},
                             {100, 100, 70, 0, 5, true}};
  std::mt19937 random(1);
  const auto near = [&](int time, int percent) {
    if (percent == 0) return table_time(time);
    const int permille = 1000 - 10 * percent + static_cast<int>(random() % (20U * percent + 1U));
    return table_time(time * permille / 1000);
  };
  std::vector<SynthesisRequest> requests;
  for (const int devices : {4, 8, 16, 32})
    for (const int microbatches : {2 * devices, 4 * devices, 8 * devices})
      for (const Kind& kind : kKinds)
        for (const int quarters : {4, 5, 6, 8}) {
          SynthesisRequest& request = requests.emplace_back();
          request.placement = looped_placement(devices, 1);
          request.microbatches = microbatches;
          for (int s = 0; s < devices; ++s) {
            request.times.forward.push_back(near(kind.forward, kind.percent));
            request.times.backward_input.push_back(near(kind.input, kind.percent));
            request.times.backward_weight.push_back(near(kind.weight, kind.percent));
          }
          if (kind.last_is_heavy) {
            request.times.forward.back() = table_time(140);
            request.times.backward_input.back() = table_time(135);
            request.times.backward_weight.back() = table_time(100);
          }
          request.times.latency = table_time(kind.latency);
          request.caps.assign(static_cast<std::size_t>(devices), devices * quarters / 4);
        }
  return requests;
}

/// One or two chunks per device in a line, a loop or a V, times 0 to 9, sometimes a latency, caps
/// from the least possible one up, sometimes none.
inline SynthesisRequest random_request(std::uint32_t seed, Placement placement, int microbatches) {
  std::mt19937 random(seed);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  SynthesisRequest request;
  request.placement = std::move(placement);
  request.microbatches = microbatches;
  const int stages = static_cast<int>(request.placement.device_of_stage.size());
  const int chunks = stages / request.placement.devices;
  for (int s = 0; s < stages; ++s) {
    request.times.forward.push_back(table_time(draw(1, 9)));
    request.times.backward_input.push_back(table_time(draw(1, 9)));
    request.times.backward_weight.push_back(table_time(draw(0, 9)));
  }
  request.times.latency = table_time(draw(0, 1) * draw(1, 4));
  if (draw(0, 3) > 0)
    for (int d = 0; d < request.placement.devices; ++d)
      request.caps.push_back(draw(chunks, chunks * microbatches));
  return request;
}

/// Every order of one device with F before I before W of a stage-micro-batch, micro-batches of a
/// pass in sequence (they are equal), within the route and the cap. Depth first.
class DeviceOrders {
 public:
  DeviceOrders(const SynthesisRequest& request, int device) : request_(request), device_(device) {
    for (const StageId stage : request.placement.routes.front())
      if (request.placement.device_of_stage[stage.index()].value == device)
        stages_.push_back(stage);
    done_.assign(stages_.size(), {0, 0, 0});
    extend();
  }
  std::vector<std::vector<Action>> all;

 private:
  void extend() {
    bool is_complete = true;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      for (std::size_t pass = 0; pass < 3; ++pass) {
        if (done_[s][pass] == request_.microbatches) continue;
        is_complete = false;
        if (!may_follow(s, pass)) continue;
        constexpr Pass kPasses[] = {Pass::kForward, Pass::kBackwardInput, Pass::kBackwardWeight};
        order_.push_back({stages_[s], kPasses[pass], MicrobatchId(done_[s][pass]), false});
        ++done_[s][pass];
        extend();
        --done_[s][pass];
        order_.pop_back();
      }
    if (is_complete) all.push_back(order_);
  }
  bool may_follow(std::size_t s, std::size_t pass) const {
    const int j = done_[s][pass];
    if (pass > 0 && done_[s][pass - 1] <= j) return false;
    if (pass == 0 && s > 0 && done_[s - 1][0] <= j) return false;
    if (pass == 1 && s + 1 < stages_.size() && done_[s + 1][1] <= j) return false;
    if (pass > 0 || request_.caps.empty()) return true;
    int held = 0;
    for (const auto& done : done_) held += done[0] - done[2];
    return held + 1 <= request_.caps[static_cast<std::size_t>(device_)];
  }

  const SynthesisRequest& request_;
  int device_;
  std::vector<StageId> stages_;
  std::vector<std::array<int, 3>> done_;
  std::vector<Action> order_;
};

/// Calls `visit` with every schedule without deadlock.
inline void for_every_schedule(const SynthesisRequest& request,
                               const std::function<void(const Schedule&)>& visit) {
  std::vector<std::vector<std::vector<Action>>> orders;
  for (int d = 0; d < request.placement.devices; ++d)
    orders.push_back(DeviceOrders(request, d).all);
  Schedule schedule;
  schedule.name = "every";
  schedule.microbatch_count = request.microbatches;
  schedule.placement = request.placement;
  schedule.route_of_microbatch.assign(static_cast<std::size_t>(request.microbatches), 0);
  schedule.orders.resize(orders.size());
  const std::function<void(std::size_t)> choose = [&](std::size_t device) {
    if (device == orders.size()) {
      if (check_schedule(schedule).empty()) visit(schedule);
      return;
    }
    for (const auto& order : orders[device]) {
      schedule.orders[device] = order;
      choose(device + 1);
    }
  };
  choose(0);
}

}  // namespace meshwright
