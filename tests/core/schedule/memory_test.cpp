/// Memory of schedules: activations on every device, versions and replicas of weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

struct Size {
  int p = 1, v = 1, m = 1, slices = 1;
};

ScheduleRequest request_of(const Size& s) {
  ScheduleRequest request;
  request.devices = s.p;
  request.chunks = s.v;
  request.microbatches = s.m;
  request.slices = s.slices;
  return request;
}

Schedule generate(std::string_view name, const Size& s) {
  const ScheduleRule* rule = find_schedule_rule(name);
  EXPECT_EQ(rule->problem(request_of(s)), std::nullopt) << name;
  return rule->generate(request_of(s));
}

/// Peaks of whole devices by the form `of_device`, exactly (but for rounding of thirds).
template <class Form>
void expect_peaks(std::string_view name, const Size& s, double freed, const Form& of_device) {
  const std::vector<double> peaks = peak_activations(generate(name, s), freed);
  for (int d = 0; d < s.p; ++d)
    EXPECT_NEAR(peaks[static_cast<std::size_t>(d)] / s.slices, of_device(d), 1e-9)
        << name << " p=" << s.p << " v=" << s.v << " m=" << s.m << " k=" << s.slices << " device "
        << d;
}

// The input gradient may free part of an activation: M_B = 1 before it, M_W = 1/4 after it.
constexpr double kFreed = 0.75;
constexpr double kKept = 1 - kFreed;

TEST(PeakActivations, MatchTheirClosedFormsOnEveryDevice) {
  for (const int p : {1, 2, 3, 4, 8})
    for (const int m : {2 * p, 3 * p, 4 * p}) {
      const Size one{p, 1, m};
      expect_peaks("naive", one, 0, [](int) { return 1; });
      expect_peaks("gpipe", one, 0, [&](int) { return m; });
      for (const char* name : {"1f1b", "pipedream", "pipedream-2bw"})
        expect_peaks(name, one, 0, [&](int d) { return p - d; });
      expect_peaks("zb-h1", one, kFreed, [&](int d) { return p - d + d * kKept; });
      expect_peaks("zb-h2", one, kFreed, [&](int d) { return 2 * p - 2 * d - 1 + 2 * d * kKept; });
      for (const int v : {2, 3, 4}) {
        const Size looped{p, v, m};
        expect_peaks("breadth-first", looped, 0, [&](int) { return m; });
        expect_peaks("interleaved-1f1b", looped, 0,
                     [&](int d) { return (2 * (p - 1 - d) + (v - 1) * p + 1) / double(v); });
      }
      for (const int k : {1, 2, 4}) {
        const Size sliced{p, 1, m, k};
        expect_peaks("terapipe", sliced, 0, [&](int) { return m; });
        expect_peaks("seq1f1b", sliced, 0, [&](int d) { return (p - 1 - d + k) / double(k); });
      }
      expect_peaks("zb-v", {p, 2, m}, 0, [&](int) { return p; });
      expect_peaks("dualpipev", {p, 2, m}, 0, [&](int) { return p + 0.5; });
      if (p % 2 == 0) expect_peaks("dualpipe", {p, 1, 2 * m}, 0, [&](int) { return p + 1; });
    }
}

// Half of the micro-batches of a unit go down, half up. A device at an end holds all that
// start there and the one that turns: p/2 + 1. In the middle those of both directions meet: p.
TEST(PeakActivations, OfChimeraLieBetweenHalfAndAll) {
  for (const int p : {2, 4, 8, 16}) {
    const std::vector<double> peaks = peak_activations(generate("chimera", {p, 1, 2 * p}));
    EXPECT_EQ(*std::min_element(peaks.begin(), peaks.end()), p / 2 + 1) << p;
    EXPECT_EQ(*std::max_element(peaks.begin(), peaks.end()), p) << p;
    EXPECT_EQ(peaks.front(), p / 2 + 1) << p;
    EXPECT_EQ(peaks[static_cast<std::size_t>(p / 2)], p) << p;
  }
}

// Backward uses the same weights as forward: one version per micro-batch in flight. 2BW accumulates
// over m >= p micro-batches and needs two.
TEST(WeightVersions, AreThoseOfTheMicrobatchesInFlight) {
  for (const int p : {1, 2, 4, 8})
    for (const int m : {p, 4 * p}) {
      const ScheduleRequest request = request_of({p, 1, m});
      const Schedule pipedream = generate("pipedream", {p, 1, m});
      const std::vector<int> in_flight = peak_held_microbatches(pipedream);
      for (int d = 0; d < p; ++d) {
        EXPECT_EQ(find_schedule_rule("pipedream")->weight_versions(request, PipelineRankId(d)),
                  in_flight[static_cast<std::size_t>(d)]);
        EXPECT_EQ(find_schedule_rule("pipedream-2bw")->weight_versions(request, PipelineRankId(d)),
                  2);
      }
    }
}

TEST(WeightVersions, AreOneWhereverThePipelineIsFlushed) {
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.name.starts_with("pipedream")) continue;
    for (int d = 0; d < 4; ++d)
      EXPECT_EQ(rule.weight_versions(request_of({4, 1, 8}), PipelineRankId(d)), 1) << rule.name;
  }
}

// Chimera and DualPipe hold two replicas of every model part, all others one.
TEST(WeightReplicas, AreTwoForBidirectionalSchedulesOnly) {
  for (const ScheduleRule& rule : schedule_rules())
    for (const int v : {1, 2}) {
      const ScheduleRequest request = request_of({4, v, 8});
      if (rule.problem(request)) continue;
      const Placement placement = rule.placement(request);
      const std::set<int> parts(placement.part_of_stage.begin(), placement.part_of_stage.end());
      const std::size_t replicas = placement.part_of_stage.size() / parts.size();
      EXPECT_EQ(replicas, rule.name == "chimera" || rule.name == "dualpipe" ? 2u : 1u) << rule.name;
    }
}

}  // namespace
}  // namespace meshwright
