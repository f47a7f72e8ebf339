#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Every request with few devices, chunks and micro-batches.
std::vector<ScheduleRequest> small_requests() {
  std::vector<ScheduleRequest> requests;
  for (int p = 1; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = 1; m <= 14; ++m) {
        ScheduleRequest request;
        request.devices = p;
        request.chunks = v;
        request.microbatches = m;
        requests.push_back(request);
      }
  return requests;
}

std::string name_of(const ScheduleRule& rule, const ScheduleRequest& r) {
  return std::string(rule.name) + " p=" + std::to_string(r.devices) +
         " v=" + std::to_string(r.chunks) + " m=" + std::to_string(r.microbatches);
}

/// Requests accepted by the rule, including variations of its own options.
std::vector<ScheduleRequest> accepted_requests(const ScheduleRule& rule) {
  std::vector<ScheduleRequest> accepted;
  for (const ScheduleRequest& plain : small_requests()) {
    if (!rule.problem(plain)) accepted.push_back(plain);
    if (rule.name == "interleaved-1f1b")
      for (int group = 1; group <= plain.microbatches; ++group) {
        ScheduleRequest grouped = plain;
        grouped.microbatch_group = group;
        if (!rule.problem(grouped)) accepted.push_back(grouped);
      }
    for (int slices = 1; slices <= 4; ++slices) {
      ScheduleRequest sliced = plain;
      sliced.slices = slices;
      const bool takes_slices = rule.name == "seq1f1b" || rule.name == "terapipe";
      if (takes_slices && !rule.problem(sliced)) accepted.push_back(sliced);
    }
  }
  return accepted;
}

TEST(ScheduleRules, EverySmallScheduleIsValid) {
  for (const ScheduleRule& rule : schedule_rules()) {
    const auto requests = accepted_requests(rule);
    EXPECT_GE(requests.size(), 10u) << rule.name;
    for (const ScheduleRequest& request : requests) {
      SCOPED_TRACE(name_of(rule, request));
      const Schedule schedule = rule.generate(request);
      ASSERT_THAT(check_schedule(schedule), IsEmpty());
      ASSERT_EQ(schedule.name, rule.name);
      ASSERT_EQ(schedule.placement, rule.placement(request));
      ASSERT_EQ(schedule.microbatch_count, request.microbatches * request.slices.value_or(1));
    }
  }
}

TEST(ScheduleRules, EverySmallScheduleKeepsItsMemoryGuarantee) {
  for (const ScheduleRule& rule : schedule_rules())
    for (const ScheduleRequest& request : accepted_requests(rule)) {
      const Schedule schedule = rule.generate(request);
      const std::vector<double> peaks = peak_activations(schedule);
      for (int d = 0; d < request.devices; ++d)
        // Sums of chunks: 1e-9 covers the rounding of a third.
        ASSERT_LE(peaks[static_cast<std::size_t>(d)] / schedule.slices_per_microbatch,
                  rule.peak_activations(request, PipelineRankId(d)) + 1e-9)
            << name_of(rule, request) << " device " << d;
    }
}

// The search takes ScheduleRule::peak_activations for the peak of these schedules.
TEST(ScheduleRules, RulesThatReachTheirPeakDoSoOnEveryDevice) {
  int compared = 0;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (!rule.reaches_peak || !rule.worth_searching) continue;
    for (const ScheduleRequest& request : small_requests()) {
      if (rule.problem(request)) continue;
      const std::vector<double> peaks = peak_activations(rule.generate(request));
      for (int d = 0; d < request.devices; ++d, ++compared)
        ASSERT_NEAR(peaks[static_cast<std::size_t>(d)],
                    rule.peak_activations(request, PipelineRankId(d)), 1e-9)
            << name_of(rule, request) << " device " << d;
    }
  }
  EXPECT_GT(compared, 1000);
}

// And bounds the peaks of the others by those of a schedule with three micro-batches per device.
TEST(ScheduleRules, PeaksNoLongerGrowAfterThreeMicroBatchesPerDevice) {
  int compared = 0;
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.reaches_peak || !rule.worth_searching) continue;
    for (ScheduleRequest request : small_requests()) {
      if (request.microbatches != 1 || request.devices == 1) continue;
      std::vector<double> last;
      for (int m = 1; m <= 5 * request.devices; ++m) {
        request.microbatches = m;
        if (rule.problem(request)) continue;
        const std::vector<double> peaks = peak_activations(rule.generate(request));
        for (std::size_t d = 0; d < last.size(); ++d, ++compared) {
          ASSERT_GE(peaks[d], last[d] - 1e-9) << name_of(rule, request) << " device " << d;
          if (m > 3 * request.devices) {
            ASSERT_LE(peaks[d], last[d] + 1e-9) << name_of(rule, request) << " device " << d;
          }
        }
        last = peaks;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

// The guaranteed peak must be reached by at least one request.
TEST(ScheduleRules, EveryGuaranteeIsReachedOnSomeDevice) {
  for (const ScheduleRule& rule : schedule_rules()) {
    int reached = 0;
    for (const ScheduleRequest& request : accepted_requests(rule)) {
      const Schedule schedule = rule.generate(request);
      const std::vector<double> peaks = peak_activations(schedule);
      for (int d = 0; d < request.devices; ++d)
        if (peaks[static_cast<std::size_t>(d)] / schedule.slices_per_microbatch >=
            rule.peak_activations(request, PipelineRankId(d)) - 1e-9)
          ++reached;
    }
    EXPECT_GT(reached, 0) << rule.name;
  }
}

TEST(ScheduleRules, EveryRowIsComplete) {
  for (const ScheduleRule& rule : schedule_rules()) {
    EXPECT_FALSE(rule.name.empty());
    EXPECT_FALSE(rule.summary.empty()) << rule.name;
    EXPECT_FALSE(rule.source.empty()) << rule.name;
    EXPECT_EQ(find_schedule_rule(rule.name), &rule);
    EXPECT_GE(rule.weight_versions({}, PipelineRankId(0)), 1) << rule.name;
  }
  EXPECT_EQ(find_schedule_rule("2f2b"), nullptr);
}

std::string problem_of(std::string_view name, int p, int v, int m,
                       std::optional<int> group = std::nullopt) {
  ScheduleRequest request;
  request.devices = p;
  request.chunks = v;
  request.microbatches = m;
  request.microbatch_group = group;
  return find_schedule_rule(name)->problem(request).value_or("");
}

TEST(ScheduleRules, ProblemsNameValuesAndAValidAlternative) {
  EXPECT_EQ(problem_of("1f1b", 0, 1, 4), "requires at least 1 device, got 0");
  EXPECT_EQ(problem_of("1f1b", 4, 1, 0), "requires at least 1 micro-batch, got 0");
  EXPECT_EQ(problem_of("1f1b", 4, 2, 8),
            "requires 1 chunk per device, got 2; use interleaved-1f1b for several");
  EXPECT_EQ(problem_of("interleaved-1f1b", 4, 2, 10),
            "10 micro-batches are not a multiple of 4 devices; use 8 or 12");
  EXPECT_EQ(problem_of("interleaved-1f1b", 4, 2, 3),
            "3 micro-batches are not a multiple of 4 devices; use 4");
  EXPECT_EQ(problem_of("interleaved-1f1b", 4, 2, 8, 3),
            "micro-batch group size 3 is out of range: expected 4 (devices) to 8 (micro-batches)");
  EXPECT_EQ(problem_of("interleaved-1f1b", 4, 2, 14, 6),
            "14 micro-batches in groups of 6 leave a last group of 2; expected 0 or at least 4 "
            "(devices)");
  EXPECT_EQ(problem_of("interleaved-1f1b", 4, 2, 14, 5), "");
  EXPECT_EQ(problem_of("dualpipe", 5, 1, 20),
            "requires an even number of devices, got 5; use 4 or 6");
  EXPECT_EQ(problem_of("dualpipe", 8, 1, 14),
            "requires an even number of micro-batches, at least 16 (2 x 8 devices), got 14");
  EXPECT_EQ(problem_of("dualpipev", 4, 2, 7),
            "requires at least 8 micro-batches (2 x 4 devices), got 7");
  EXPECT_EQ(problem_of("dualpipev", 4, 1, 8), "requires 2 chunks per device, got 1");
  EXPECT_THAT(problem_of("gpipe", 1'000'000, 1, 1'000'000),
              HasSubstr("exceed the limit of 67108864 actions"));
}

}  // namespace
}  // namespace meshwright
