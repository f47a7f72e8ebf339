/// Every row of public schedulers for two stages per device in a V, against the front at the same
/// cap: tests/core/schedule/data/pipeline_schedule_grid.csv (v-half-greedy, v-min-greedy,
/// zb-v-heuristic) and tests/planner/data/adaptive_v.csv. They minimize the period, which is
/// compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "planner/synthesis/schedule_front.hpp"
#include "tests/core/schedule/schedule_vectors.hpp"
#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

struct PeerRow {
  FrontRequest request;
  Ticks period;
  std::string text;
};

/// Rounding of the tables: six decimals of a millisecond.
const Ticks kRounding = milliseconds("0.000001");

FrontRequest v_request(int devices, int microbatches, const StageTimes& times) {
  FrontRequest request;
  request.placement = wave_placement(devices, 2);
  request.microbatches = microbatches;
  request.times = times;
  request.objective = ScheduleObjective::kPeriod;
  request.dispatches_per_cap = 800;
  return request;
}

std::vector<PeerRow> grid_rows(const std::string& algorithm) {
  std::vector<PeerRow> rows;
  for (const VectorRow& cells : read_vectors("pipeline_schedule_grid.csv")) {
    if (cells.at("algorithm") != algorithm) continue;
    const int p = std::stoi(cells.at("p")), m = std::stoi(cells.at("m"));
    PeerRow& row = rows.emplace_back();
    row.request = v_request(p, m, times_of(cells, p, 2));
    row.period = milliseconds(cells.at("period"));
    row.text = algorithm + " p=" + cells.at("p") + " m=" + cells.at("m") + " tF=" + cells.at("tF");
    const auto cap = static_cast<int>(std::lround(2 * std::stod(cells.at("peak"))));
    row.request.caps = {cap};
    if (algorithm != "zb-v-heuristic") continue;
    // Half of the memory comes back with the input gradient.
    row.request.held.assign(row.request.times.forward.size(), 2);
    row.request.freed_by_input.assign(row.request.held.size(), 1);
    row.request.caps = {2 * cap};
  }
  return rows;
}

std::vector<PeerRow> adaptive_rows() {
  std::vector<PeerRow> rows;
  for (const auto& cells : read_case_rows("adaptive_v.csv")) {
    const int p = std::stoi(cells[0]);
    StageTimes times = uniform_times(2 * p, milliseconds(cells[2]) / 2, milliseconds(cells[3]) / 2,
                                     milliseconds(cells[4]) / 2);
    times.latency = milliseconds(cells[5]);
    PeerRow& row = rows.emplace_back();
    row.request = v_request(p, std::stoi(cells[1]), times);
    row.request.caps = {std::stoi(cells[6])};
    row.period = milliseconds(cells[7]);
    row.text = "adaptive p=" + cells[0] + " m=" + cells[1] + " tF=" + cells[2] + " cap=" + cells[6];
  }
  return rows;
}

/// Limits of the comparison of a table.
struct Limits {
  std::size_t rows;
  int longer;    ///< rows
  double worst;  ///< relative difference
};

void expect_rarely_longer(const std::vector<PeerRow>& rows, const Limits& limits) {
  ASSERT_EQ(rows.size(), limits.rows);
  int shorter = 0, equal = 0, longer = 0;
  double worst = 0, sum = 0;  // of the relative differences
  for (const PeerRow& row : rows) {
    const Ticks ours = memory_time_front(row.request).front().value;
    const double difference = ratio(ours - row.period, row.period);
    sum += difference;
    worst = std::max(worst, difference);
    if (ours > row.period + kRounding) {
      ++longer;
      std::printf("longer by %.3f %%: %s\n", 100 * difference, row.text.c_str());
    } else {
      ++(ours + kRounding < row.period ? shorter : equal);
    }
  }
  std::printf("%d shorter, %d equal, %d longer; mean %+.3f %%, worst %+.3f %%\n", shorter, equal,
              longer, 100 * sum / static_cast<double>(rows.size()), 100 * worst);
  EXPECT_LE(longer, limits.longer);
  EXPECT_LE(worst, limits.worst);
}

TEST(MemoryTimeFrontAndPeers, IsRarelyLongerThanVMinByGreed) {
  expect_rarely_longer(grid_rows("v-min-greedy"), {.rows = 55, .longer = 4, .worst = 0.001});
}

TEST(MemoryTimeFrontAndPeers, IsRarelyLongerThanVHalfByGreed) {
  expect_rarely_longer(grid_rows("v-half-greedy"), {.rows = 69, .longer = 2, .worst = 0.005});
}

TEST(MemoryTimeFrontAndPeers, IsCloseToTheHeuristicOfZbV) {
  expect_rarely_longer(grid_rows("zb-v-heuristic"), {.rows = 55, .longer = 14, .worst = 0.005});
}

TEST(MemoryTimeFrontAndPeers, IsRarelyLongerThanTheAdaptiveScheduler) {
  expect_rarely_longer(adaptive_rows(), {.rows = 20, .longer = 1, .worst = 0.018});
}

}  // namespace
}  // namespace meshwright
