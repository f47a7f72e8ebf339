#include "executor/runs/same_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "executor/runs/measured_timeline.hpp"
#include "tests/executor/launch/on_ranks.hpp"

namespace meshwright {
namespace {

/// Why three ranks do not run together if rank 2 has these settings; empty: they do.
std::string complaint_about(const RunSettings& of_last) {
  const RunSettings settings{{"--seed", "1"}, {"version", "0.1.0"}};
  const auto texts = on_ranks<char>(RankKind::kThreads, 3, [&](Communicator& communicator) {
    std::string text;
    try {
      check_same_run(communicator, communicator.rank() == RankId(2) ? of_last : settings);
    } catch (const InputError& error) {
      const Diagnostic& first = error.diagnostics().front();
      text = first.where + ": " + first.what;
    }
    return std::vector<char>(text.begin(), text.end());
  });
  EXPECT_TRUE(texts[1].empty());
  return {texts[2].begin(), texts[2].end()};
}

TEST(SameRun, NamesWhatDiffers) {
  EXPECT_EQ(complaint_about({{"--seed", "1"}, {"version", "0.1.0"}}), "");
  EXPECT_EQ(complaint_about({{"--seed", "2"}, {"version", "0.1.0"}}),
            "--seed: is 2 on this rank, but 1 on rank 0");
  EXPECT_EQ(complaint_about({{"--seed", "1"}}),
            "version: is not set on this rank, but 0.1.0 on rank 0");
  EXPECT_EQ(complaint_about({{"--eps", "1"}, {"--seed", "1"}, {"version", "0.1.0"}}),
            "--eps: is 1 on this rank, but not set on rank 0");
}

TEST(MedianTimes, KeepsThoseOfStepsNextToTheMedian) {
  constexpr int kSteps = 1000;
  MedianTimes times;
  std::vector<MeasuredStep> steps;
  std::size_t most = 0;
  for (int i = 0; i < kSteps; ++i) {
    MeasuredStep& step = steps.emplace_back();
    step.duration = Ticks(1'000'000 + i * 7919 % kSteps);  // all residues once
    step.times.start.resize(10);
    times.thin(steps);
    const auto kept = std::ranges::count_if(
        steps, [](const MeasuredStep& each) { return !each.times.start.empty(); });
    most = std::max(most, static_cast<std::size_t>(kept));
  }
  EXPECT_LE(most, 64u);
  const bool has_median = std::ranges::any_of(steps, [](const MeasuredStep& step) {
    return !step.times.start.empty() && step.duration >= Ticks(1'000'480) &&
           step.duration <= Ticks(1'000'520);
  });
  EXPECT_TRUE(has_median);
}

}  // namespace
}  // namespace meshwright
