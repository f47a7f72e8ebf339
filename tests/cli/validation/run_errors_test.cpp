#include "cli/validation/run_errors.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "cli/validation/accuracy_baseline.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

/// Runs of one job with these measured and predicted times, in seconds.
struct SmallSet {
  explicit SmallSet(std::vector<std::pair<double, double>> times) {
    PublishedSet set;
    set.name = "small";
    set.models = {{"model", "", ""}};
    for (const auto& [measured, predicted] : times) {
      PublishedRun run;
      run.id = std::to_string(set.runs.size());
      run.step_time = Seconds(measured);
      set.runs.push_back(run);
      RunPrediction prediction;
      prediction.step_time = Seconds(predicted);
      predictions.push_back(prediction);
    }
    runs.sets.push_back(std::move(set));
    for (const PublishedRun& run : runs.sets[0].runs)
      runs.jobs.push_back({&runs.sets[0], &run, 0, 0});
  }
  LoadedRuns runs;
  std::vector<RunPrediction> predictions;
};

TEST(RunErrors, SummarizeRelativeErrorsOfStepTimes) {
  // errors -0.1, +0.3, -0.5, 0: magnitudes 0, 0.1, 0.3, 0.5
  const SmallSet set({{1, 0.9}, {1, 1.3}, {2, 1}, {4, 4}});
  const ErrorSummary s = summarize_times(compare_runs(set.runs, set.predictions));
  EXPECT_EQ(s.count, 4u);
  EXPECT_NEAR(s.mean, 0.225, 1e-12);
  EXPECT_NEAR(s.median, 0.2, 1e-12);
  EXPECT_NEAR(s.worst, -0.5, 1e-12);
  EXPECT_NEAR(s.bias, -0.075, 1e-12);
  EXPECT_FALSE(s.spearman);  // fewer than kFewestToRank
}

TEST(RunErrors, RegretIsTheSlowdownOfThePredictedBest) {
  // Predicted best: the second run, measured 3 s; the measured best takes 2 s.
  const SmallSet set({{2, 5}, {3, 4}, {4, 6}});
  const ErrorSummary s = summarize_times(compare_runs(set.runs, set.predictions));
  ASSERT_TRUE(s.mean_regret);
  EXPECT_NEAR(*s.mean_regret, 0.5, 1e-12);
  EXPECT_NEAR(*s.worst_regret, 0.5, 1e-12);
}

TEST(RunErrors, SpearmanComparesRanksWithTies) {
  const std::array<double, 5> a{1, 2, 3, 4, 5}, same{10, 20, 30, 40, 50}, back{5, 4, 3, 2, 1};
  EXPECT_NEAR(*spearman_correlation(a, same), 1, 1e-12);
  EXPECT_NEAR(*spearman_correlation(a, back), -1, 1e-12);
  // Ranks 0.5, 0.5, 2.5, 2.5, 4: products with (-2, -1, 0, 1, 2) of the deviations
  // (-1.5, -1.5, 0.5, 0.5, 2) are 3 + 1.5 + 0 + 0.5 + 4 = 9; squares 10 and 9.
  const std::array<double, 5> ties{1, 1, 2, 2, 3};
  EXPECT_NEAR(*spearman_correlation(a, ties), 9 / std::sqrt(90.0), 1e-12);
  const std::array<double, 5> constant{1, 1, 1, 1, 1};
  EXPECT_FALSE(spearman_correlation(a, constant));
}

TEST(RunErrors, LeaveOutTrapsAndRunsThatCannotBeSimulated) {
  SmallSet set({{1, 2}, {1, 2}, {1, 1}});
  set.runs.sets[0].runs[0].trap = "rounded";
  set.predictions[1].problems = {{"x.toml:1:1", "too large", ""}};
  const auto compared = compare_runs(set.runs, set.predictions);
  EXPECT_EQ(summarize_times(compared).count, 1u);
  EXPECT_EQ(summarize_times(compared).mean, 0);
}

TEST(RunErrors, JudgeOutOfMemoryPredictions) {
  SmallSet set({{1, 1}, {1, 1}, {1, 1}, {1, 1}});
  std::vector<PublishedRun>& runs = set.runs.sets[0].runs;
  runs[0].ran_out_of_memory = runs[1].ran_out_of_memory = true;
  set.predictions[0].fits_in_memory = set.predictions[2].fits_in_memory = false;
  runs[3].memory = Bytes(100);
  runs[3].memory_kind = MeasuredMemory::kDevice;
  set.predictions[3].device = Bytes(90);
  const MemorySummary s = summarize_memory(compare_runs(set.runs, set.predictions));
  EXPECT_EQ(s.out_of_memory, 2u);
  EXPECT_EQ(s.predicted_out_of_memory, 1u);
  EXPECT_EQ(s.ran, 2u);
  EXPECT_EQ(s.wrongly_out_of_memory, 1u);
  EXPECT_NEAR(s.errors.bias, -0.1, 1e-12);
}

TEST(AccuracyBaselines, ReportSetsThatGotWorse) {
  const AccuracyBaseline before{{"a", {.runs = 3, .memory_runs = 1, .time_error = 0.10}},
                                {"b", {.runs = 3, .memory_runs = 0, .time_error = 0.10}}};
  EXPECT_EQ(accuracy_baseline_from_json(to_json(before), "x"), before);
  EXPECT_TRUE(worse_sets(before, before).empty());
  AccuracyBaseline now = before;
  now["a"].time_error = 0.1049;  // within half a percentage point
  EXPECT_TRUE(worse_sets(now, before).empty());
  now["a"].time_error = 0.106;
  now["b"].runs = 2;
  EXPECT_EQ(worse_sets(now, before),
            (std::vector<std::string>{"a: mean error of the step time 10.6 %, before 10.0 %",
                                      "b: step time of 2 runs, before of 3"}));
}

/// Renew it with: meshwright validate --write-baseline models/published/accuracy.json
TEST(AccuracyBaselines, HoldForThePublishedRuns) {
  std::vector<PublishedSet> sets;
  for (const std::string& name : published_set_names())
    sets.push_back(published_set_from_toml(find_published_set(name)));
  const LoadedRuns runs = load_runs(std::move(sets));
  const std::vector<RunPrediction> predictions = predict_runs(runs);
  const AccuracyBaseline now = accuracy_of(compare_runs(runs, predictions));
  const std::string file = MESHWRIGHT_SOURCE_DIR "/models/published/accuracy.json";
  const AccuracyBaseline stored = accuracy_baseline_from_json(read_file(file), file);
  EXPECT_EQ(worse_sets(now, stored), std::vector<std::string>{});
  for (const auto& [name, accuracy] : now) EXPECT_TRUE(stored.contains(name)) << name;
}

TEST(PredictRuns, DoNotDependOnTheNumberOfThreadsAndTakeOtherCosts) {
  const auto load = [] {
    return load_runs({published_set_from_toml(find_published_set("korthikanti-2022"))});
  };
  const LoadedRuns runs = load();
  const std::vector<RunPrediction> one = predict_runs(runs, {.threads = 1});
  EXPECT_EQ(predict_runs(runs, {.threads = 3}), one);
  PredictionOptions options;
  options.change_device = [](DeviceModel& device) {
    device.memory_bandwidth = BytesPerSecond(1e12);
  };
  const std::vector<RunPrediction> slower = predict_runs(runs, options);
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_GT(slower[i].step_time.value, one[i].step_time.value) << i;
}

}  // namespace
}  // namespace meshwright
