/// Measured 1F1B steps against predictions from the measured times of their stages: only the
/// schedule is predicted. Message times are those of the cost model of a DGX A100; nothing is
/// fitted to these rows. The optimizer step and the start of the iteration are only part of the
/// measurement, so the prediction is slightly too short.
#include <gtest/gtest.h>

#include <cmath>

#include "core/schedule/timing.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "tests/simulator/csv_rows.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright::testing {
namespace {

constexpr std::int64_t kTicksPerMicrosecond = 1'000'000;
constexpr int kHidden = 3072, kMicrobatches = 128, kBytesPerElement = 2;

std::vector<Ticks> microseconds(const std::string& words) {
  std::vector<Ticks> times;
  std::istringstream stream(words);
  for (std::int64_t us = 0; stream >> us;) times.emplace_back(us * kTicksPerMicrosecond);
  return times;
}

/// An activation [1, T, H] from one GPU to another of the node.
Ticks message_time(const CsvRow& row) {
  const auto model = make_device_cost_model(cluster_of(dgx_a100(), 1));
  const TransferCost cost =
      model->cost_of({.bytes = Bytes(std::stoll(row.at("sequence")) * kHidden * kBytesPerElement)});
  return to_ticks(cost.latency + cost.occupancy);
}

/// Backwards are not split: all of their time counts as input gradient.
StageTimes stage_times_of(const CsvRow& row) {
  StageTimes times;
  times.forward = microseconds(row.at("forward_us"));
  times.backward_input = microseconds(row.at("backward_us"));
  times.backward_weight.assign(times.forward.size(), Ticks());
  times.latency = message_time(row);
  return times;
}

struct Errors {
  int rows = 0;
  double sum = 0, worst = 0;
  void add(const CsvRow& row, Ticks predicted) {
    const double step = std::stod(row.at("step_s"));
    const double error = to_seconds(predicted).value / step - 1;
    ++rows, sum += error;
    worst = std::max(worst, std::abs(error));
    std::cout << "line " << row.at("line") << ' ' << row.at("split") << ' ' << row.at("sequence")
              << ' ' << row.at("vocabulary") << ": measured " << step << " s, predicted "
              << to_seconds(predicted).value << " s, " << 100 * error << " %\n";
  }
};

TEST(VocabularyParallelismRuns, PlainOneForwardOneBackwardIsPredictedFromItsStageTimes) {
  Errors errors;
  for (const CsvRow& row : csv_rows("vocabulary_parallelism.csv")) {
    if (row.at("split") != "baseline" && row.at("split") != "redis") continue;
    const StageTimes times = stage_times_of(row);
    const ScheduleRule* rule = find_schedule_rule("1f1b");
    ASSERT_NE(rule, nullptr);
    ScheduleRequest request;
    request.devices = static_cast<int>(times.forward.size());
    request.microbatches = kMicrobatches;
    const Schedule schedule = rule->generate(request);
    errors.add(row, time_schedule(schedule, times).makespan);
  }
  EXPECT_EQ(errors.rows, 16);
  EXPECT_LT(std::abs(errors.sum / errors.rows), 0.015);
  EXPECT_LT(errors.worst, 0.03);
}

std::vector<Ticks> sums(std::vector<Ticks> a, const std::vector<Ticks>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

/// Of the three products of the output layer S makes `in_scores`, T the rest.
void split_output(const CsvRow& row, int in_scores, StageTimes& times) {
  constexpr int kProducts = 3;  // scores, gradient of the input, gradient of the weights
  for (const Ticks both : microseconds(row.at("output_us"))) {
    times.output_scores.push_back(both * in_scores / kProducts);
    times.output_gradients.push_back(both - times.output_scores.back());
  }
}

// The embedding's share counts towards F and B of its device; barriers cost one all-reduce.
TEST(VocabularyParallelismRuns, SplitVocabularyIsPredictedFromItsPassTimes) {
  Errors errors;
  for (const CsvRow& row : csv_rows("vocabulary_parallelism.csv")) {
    const bool one_barrier = row.at("split") == "vocab-2";
    if (!one_barrier && row.at("split") != "vocab-1") continue;
    ScheduleRequest request;
    request.times = stage_times_of(row);
    StageTimes& times = *request.times;
    times.forward = sums(times.forward, microseconds(row.at("input_forward_us")));
    times.backward_input = sums(times.backward_input, microseconds(row.at("input_backward_us")));
    split_output(row, one_barrier ? 2 : 1, times);
    times.barrier = microseconds(row.at("all_reduce_us")).front();
    request.devices = static_cast<int>(times.forward.size());
    request.microbatches = kMicrobatches;
    const Schedule schedule =
        find_schedule_rule(one_barrier ? "vocab-1f1b" : "vocab-1-1f1b")->generate(request);
    errors.add(row, time_schedule(schedule, times).makespan);
  }
  EXPECT_EQ(errors.rows, 16);
  EXPECT_LT(std::abs(errors.sum / errors.rows), 0.01);
  EXPECT_LT(errors.worst, 0.02);
}

}  // namespace
}  // namespace meshwright::testing
