/// Closed forms from the papers, exact in Ticks, inside and outside of their domains.
#include "core/schedule/timing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace meshwright {
namespace {

struct Case {
  int p, m;
  std::int64_t f, b, w;
  std::int64_t total() const { return f + b + w; }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int p : {1, 2, 3, 4, 6, 8})
    for (const int m : {1, 2, 4, 8, 12, 16, 24})
      for (const auto& [f, b, w] : {std::tuple{10, 10, 10}, {10, 12, 8}, {12, 10, 6}, {10, 20, 4}})
        all.push_back({p, m, f, b, w});
  return all;
}

ScheduleRequest request_of(const Case& c, int chunks) {
  ScheduleRequest request;
  request.devices = c.p;
  request.chunks = chunks;
  request.microbatches = c.m;
  return request;
}

/// Times are given per device in units of 12 Ticks, which every number of chunks here divides.
constexpr std::int64_t kScale = 12;
Ticks scaled(std::int64_t units) { return Ticks(units * kScale); }

/// A chunk takes its share of the device's f, b, w.
ScheduleTiming time_of(std::string_view name, const Case& c, int chunks = 1,
                       std::int64_t latency = 0) {
  const ScheduleRule* rule = find_schedule_rule(name);
  const Schedule schedule = rule->generate(request_of(c, chunks));
  StageTimes times = uniform_times(static_cast<int>(schedule.placement.device_of_stage.size()),
                                   Ticks(c.f * kScale / chunks), Ticks(c.b * kScale / chunks),
                                   Ticks(c.w * kScale / chunks));
  times.latency = Ticks(latency * kScale);
  return time_schedule(schedule, times);
}

std::string text_of(const Case& c) {
  return testing::PrintToString(std::tuple(c.p, c.m, c.f, c.b, c.w));
}

TEST(ScheduleTiming, NaiveOnTwoDevicesIsHalfIdle) {
  EXPECT_DOUBLE_EQ(time_of("naive", {2, 4, 10, 10, 10}).makespan_bubble, 0.5);
  for (const Case& c : cases())
    EXPECT_EQ(time_of("naive", c).makespan, scaled(c.m * c.p * c.total())) << text_of(c);
}

TEST(ScheduleTiming, GPipeWithTwoDevicesAndTwoMicrobatchesIsAThirdIdle) {
  EXPECT_DOUBLE_EQ(time_of("gpipe", {2, 2, 10, 10, 10}).makespan_bubble, 1.0 / 3.0);
}

TEST(ScheduleTiming, GPipeAnd1F1BTakeMPlusPMinusOneRounds) {
  for (const Case& c : cases())
    for (const char* name : {"gpipe", "1f1b"})
      EXPECT_EQ(time_of(name, c).makespan, scaled((c.m + c.p - 1) * c.total()))
          << name << text_of(c);
}

// sum tF + sum tBW + (m - 1)(max tF + max tBW) + 2 (p - 1) c, tBW = tB + tW
TEST(ScheduleTiming, GPipeMatchesItsFormulaWithUnequalStagesAndLatency) {
  const std::vector<std::int64_t> f{7, 11, 5, 9}, b{8, 13, 12, 6}, w{4, 9, 3, 7};
  StageTimes times;
  std::int64_t sum = 0, longest_forward = 0, longest_backward = 0;
  for (std::size_t s = 0; s < 4; ++s) {
    times.forward.emplace_back(f[s]);
    times.backward_input.emplace_back(b[s]);
    times.backward_weight.emplace_back(w[s]);
    sum += f[s] + b[s] + w[s];
    longest_forward = std::max(longest_forward, f[s]);
    longest_backward = std::max(longest_backward, b[s] + w[s]);
  }
  times.latency = Ticks(3);
  for (int m = 1; m <= 12; ++m) {
    const Schedule schedule = find_schedule_rule("gpipe")->generate(request_of({4, m, 0, 0, 0}, 1));
    EXPECT_EQ(time_schedule(schedule, times).makespan,
              Ticks(sum + (m - 1) * (longest_forward + longest_backward) + 2 * 3 * 3))
        << m;
  }
}

// p divides m: (m + p - 1) T + (2 (p - 1)(m / p + 1) - 2) c for small c.
TEST(ScheduleTiming, OneForwardOneBackwardPaysLatencyEveryPMicrobatches) {
  for (const Case& c : cases())
    if (c.p > 1 && c.m % c.p == 0) {
      EXPECT_EQ(time_of("1f1b", c, 1, 1).makespan,
                scaled((c.m + c.p - 1) * c.total() + 2 * (c.p - 1) * (c.m / c.p + 1) - 2))
          << text_of(c);
    }
}

TEST(ScheduleTiming, LoopedSchedulesDivideTheBubbleByTheChunks) {
  for (const Case& c : cases())
    for (const int v : {2, 3, 4})
      for (const char* name : {"interleaved-1f1b", "breadth-first"})
        if (c.m % c.p == 0) {
          EXPECT_EQ(time_of(name, c, v).makespan * v, scaled((c.m * v + c.p - 1) * c.total()))
              << name << " v=" << v << text_of(c);
        }
}

TEST(ScheduleTiming, ZeroBubbleFormulasHoldInTheirDomain) {
  for (const Case& c : cases()) {
    if (c.w > std::min(c.f, c.b) || c.m < 2 * c.p) continue;
    const std::int64_t work = c.m * c.total();
    const ScheduleTiming h1 = time_of("zb-h1", c);
    EXPECT_EQ(h1.period, scaled(work + (c.p - 1) * (c.f + c.b - c.w))) << text_of(c);
    EXPECT_EQ(h1.makespan, h1.period) << text_of(c);
    EXPECT_EQ(time_of("zb-h2", c).period, scaled(work + (c.p - 1) * (c.f + c.b - 2 * c.w)))
        << text_of(c);
    if (c.f == c.b && c.b == c.w) {
      EXPECT_EQ(time_of("zb-h2", c).makespan, scaled(work + (c.p - 1) * c.f)) << text_of(c);
    }
  }
}

// Beyond tW <= min(tF, tB) the form of ZB-H1 is off: p = 4, m = 8, (10, 9, 12) would be 269.
TEST(ScheduleTiming, ZeroBubbleFormulaFailsWithLongWeightGradients) {
  EXPECT_NE(time_of("zb-h1", {4, 8, 10, 9, 12}).period, scaled(8 * 31 + 3 * (10 + 9 - 12)));
}

TEST(ScheduleTiming, OtherZeroBubbleFormulasFailOutsideTheirDomain) {
  const Case long_weights{4, 8, 10, 9, 12};
  EXPECT_NE(time_of("zb-h2", long_weights).period, scaled(8 * 31 + 3 * (10 + 9 - 2 * 12)));
  const Case few{8, 12, 10, 10, 10};  // m < 2p: not even the warm-up of ZB-H2 fits
  EXPECT_NE(time_of("zb-h2", few).period, scaled(12 * 30));
  const Case unequal{4, 8, 10, 14, 6};  // ZB-V asks for tF = tB
  EXPECT_NE(time_of("zb-v", unequal, 2).period, scaled(8 * 30 + 3 * (10 - 6)));
}

ScheduleTiming automatic(const Case& c, double cap, std::int64_t latency = 0) {
  ScheduleRequest request = request_of(c, 1);
  request.times = uniform_times(c.p, scaled(c.f), scaled(c.b), scaled(c.w));
  request.times->latency = scaled(latency);
  request.activation_cap = cap;
  return time_schedule(find_schedule_rule("zb-2p")->generate(request), *request.times);
}

// Zero Bubble, appendix H: m <= p and tW < tB: (m + p - 1)(tF + tB) + tW; 1F1B has tW each time.
TEST(ScheduleTiming, FewMicrobatchesHideAllWeightGradientsButOne) {
  for (const Case& c : cases())
    if (c.m <= c.p && c.w < c.b) {
      EXPECT_EQ(automatic(c, c.p).makespan, scaled((c.m + c.p - 1) * (c.f + c.b) + c.w))
          << text_of(c);
    }
}

/// Forwards on device 0 before its first backward.
int forwards_ahead(const Schedule& schedule) {
  const auto& order = schedule.orders[0];
  return static_cast<int>(std::find_if(order.begin(), order.end(),
                                       [](const Action& a) { return a.pass != Pass::kForward; }) -
                          order.begin());
}

// Zero Bubble, appendix B: the first input gradient is back after p tF + (p - 1)(tB + 2c); with k
// forwards before it, device 0 waits for (p - 1)(tB + 2c) + (p - k) tF at least.
TEST(ScheduleTiming, NoScheduleWaitsLessThanTheFirstBackwardAllows) {
  int tight = 0;
  for (const Case& c : cases())
    for (const std::int64_t latency : {0, 1, 5})
      for (const char* name : {"gpipe", "1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"}) {
        const Schedule schedule = find_schedule_rule(name)->generate(request_of(c, 1));
        StageTimes times = uniform_times(c.p, scaled(c.f), scaled(c.b), scaled(c.w));
        times.latency = scaled(latency);
        const Ticks least = scaled(c.m * c.total() + (c.p - 1) * (c.b + 2 * latency) +
                                   (c.p - forwards_ahead(schedule)) * c.f);
        const Ticks period = time_schedule(schedule, times).period;
        EXPECT_GE(period, least) << name << text_of(c);
        tight += period == least ? 1 : 0;
      }
  EXPECT_GT(tight, 100);
}

TEST(ScheduleTiming, ZbVHasABubbleOfPMinusOneTimesFMinusW) {
  for (const Case& c : cases())
    if (c.f == c.b && c.w <= c.f && c.m >= 2 * c.p) {
      EXPECT_EQ(time_of("zb-v", c, 2).period, scaled(c.m * c.total() + (c.p - 1) * (c.f - c.w)))
          << text_of(c);
    }
}

TEST(ScheduleTiming, DualPipeFormulaHoldsForEqualForwardAndInputGradient) {
  for (const int p : {2, 4, 6, 8})
    for (const int w : {4, 10}) {
      const Case c{p, 2 * p, 10, 10, w};
      const std::int64_t full = c.b + c.w;
      // (p/2 - 1)(FB + B - 3W) with FB = F + B, B the whole backward
      EXPECT_EQ(time_of("dualpipe", c).makespan,
                scaled(c.m * c.total() + (p / 2 - 1) * (c.f + full + full - 3 * c.w)))
          << text_of(c);
      // DualPipeV: (p - 1) of the same in chunk times
      EXPECT_EQ(time_of("dualpipev", c, 2).makespan * 2,
                scaled(2 * c.m * c.total() + (p - 1) * (c.f + full + full - 3 * c.w)))
          << text_of(c);
    }
}

// The published form says 78 for both; the bubbles are 72 and 84.
TEST(ScheduleTiming, DualPipeFormulaFailsForUnequalInputGradients) {
  EXPECT_EQ(time_of("dualpipe", {8, 20, 10, 12, 8}).makespan, scaled(20 * 30 + 72));
  EXPECT_EQ(time_of("dualpipe", {8, 20, 12, 10, 6}).makespan, scaled(20 * 28 + 84));
}

// tF = tBW: (D - 2) / (2N + D - 2) for all N. tBW = 2 tF: (D - 2) / (1.5N + D - 2) for N = D only;
// concatenated units are far worse (D = 8: 3/11 and 5/21 instead of 0.200 and 0.111).
TEST(ScheduleTiming, ChimeraFormulasHold) {
  for (const int d : {4, 8, 16}) {
    for (const int k : {1, 2, 4})
      EXPECT_DOUBLE_EQ(time_of("chimera", {d, k * d, 2, 1, 1}).makespan_bubble,
                       (d - 2.0) / (2.0 * k * d + d - 2.0));
    EXPECT_DOUBLE_EQ(time_of("chimera", {d, d, 1, 1, 1}).makespan_bubble,
                     (d - 2.0) / (1.5 * d + d - 2.0));
  }
  EXPECT_NEAR(time_of("chimera", {4, 8, 1, 1, 1}).makespan_bubble, 0.200, 5e-4);
  EXPECT_NEAR(time_of("chimera", {4, 16, 1, 1, 1}).makespan_bubble, 0.172, 5e-4);
  EXPECT_DOUBLE_EQ(time_of("chimera", {8, 16, 1, 1, 1}).makespan_bubble, 3.0 / 11.0);
  EXPECT_DOUBLE_EQ(time_of("chimera", {8, 32, 1, 1, 1}).makespan_bubble, 5.0 / 21.0);
  EXPECT_NEAR(time_of("chimera", {16, 32, 1, 1, 1}).makespan_bubble, 0.304, 5e-4);
  EXPECT_NEAR(time_of("chimera", {16, 64, 1, 1, 1}).makespan_bubble, 0.267, 5e-4);
}

// List scheduling at m = P, tB = 2 tF; the paper's (2P - 2) / (3PW + P - 1) is close by:
// .400 .222 .118 and .452 .255 .136.
TEST(ScheduleTiming, HanayoShrinksTheBubbleWithItsWaves) {
  const std::vector<std::pair<int, std::vector<double>>> expected{{4, {.333, .213, .119}},
                                                                  {8, {.368, .238, .135}}};
  for (const auto& [p, bubbles] : expected)
    for (int i = 0; i < 3; ++i) {
      const int chunks = 2 << i;
      const Schedule schedule =
          find_schedule_rule("hanayo")->generate(request_of({p, p, 0, 0, 0}, chunks));
      const ScheduleTiming timing =
          time_schedule(schedule, uniform_times(p * chunks, Ticks(1), Ticks(1), Ticks(1)));
      EXPECT_NEAR(timing.makespan_bubble, bubbles[static_cast<std::size_t>(i)], 5e-4) << p << i;
    }
}

TEST(ScheduleTiming, VSchedulesReachTheirGuaranteedPeak) {
  for (const auto& [p, minimum, half] : {std::tuple{4, 2, 3}, {8, 4, 5}, {16, 6, 9}}) {
    const Case c{p, 4 * p, 10, 10, 10};
    const auto peak = [&](const char* name) {
      const auto peaks = time_of(name, c, 2).peak_activations;
      return *std::max_element(peaks.begin(), peaks.end());
    };
    EXPECT_EQ(peak("v-min"), minimum);
    EXPECT_EQ(peak("v-half"), half);
    EXPECT_EQ(peak("zb-v"), p);
  }
}

// k slices: m T + (p - 1) T / k; TeraPipe (m k + p - 1) T / k. Times are per slice.
TEST(ScheduleTiming, SlicesDivideTheBubble) {
  for (const char* name : {"seq1f1b", "terapipe"})
    for (const int k : {1, 2, 4})
      for (const int p : {1, 2, 4, 8}) {
        ScheduleRequest request = request_of({p, 8, 0, 0, 0}, 1);
        request.slices = k;
        const Schedule schedule = find_schedule_rule(name)->generate(request);
        EXPECT_EQ(time_schedule(schedule, uniform_times(p, Ticks(3), Ticks(4), Ticks(2))).makespan,
                  Ticks((8 * k + p - 1) * 9))
            << name << k << p;
      }
}

// No flush: in the steady state device 0 ends a micro-batch every max (tF + tB + tW).
TEST(ScheduleTiming, PipeDreamRunsAtTheSpeedOfItsSlowestStage) {
  StageTimes times = uniform_times(4, Ticks(10), Ticks(10), Ticks(10));
  times.forward[2] = Ticks(14);
  const Schedule schedule =
      find_schedule_rule("pipedream")->generate(request_of({4, 64, 0, 0, 0}, 1));
  const ScheduleTiming timing = time_schedule(schedule, times);
  const auto& ends = timing.ends[0];  // F at even, B at odd places once warm: 3 forwards ahead
  const std::size_t warm = 3 + 2 * 20 + 1;
  ASSERT_EQ(schedule.orders[0][warm].pass, Pass::kBackward);
  for (std::size_t i = warm; i + 2 < 3 + 2 * 50; i += 2)
    EXPECT_EQ(ends[i + 2] - ends[i], Ticks(34));
  const ScheduleRule* rule = find_schedule_rule("pipedream");
  EXPECT_EQ(rule->weight_versions(request_of({4, 64, 0, 0, 0}, 1), PipelineRankId(0)), 4);
  EXPECT_EQ(rule->weight_versions(request_of({4, 64, 0, 0, 0}, 1), PipelineRankId(3)), 1);
}

// Two messages of one link, 2 ticks apart by work: F0 ends at 2, F1 at 4. A link busy for 5 ticks
// lets the second start at 7; latency 1.
TEST(ScheduleTiming, ABusyLinkDelaysTheNextMessage) {
  const Schedule gpipe = find_schedule_rule("gpipe")->generate(request_of({2, 2, 0, 0, 0}, 1));
  StageTimes times = uniform_times(2, Ticks(2), Ticks(1), Ticks(1));
  times.latency = Ticks(1);
  times.link_occupancy = Ticks(5);
  const ScheduleTiming timing = time_schedule(gpipe, times);
  EXPECT_EQ(timing.starts[1][0], Ticks(3));
  EXPECT_EQ(timing.starts[1][1], Ticks(8));
}

TEST(ScheduleTiming, AnOverlappedPairCanTakeLessThanItsPasses) {
  const Schedule dualpipev =
      find_schedule_rule("dualpipev")->generate(request_of({4, 10, 0, 0, 0}, 2));
  StageTimes times = uniform_times(8, Ticks(1), Ticks(1), Ticks(1));
  times.overlapped_pair.assign(8, Ticks(2));
  const ScheduleTiming timing = time_schedule(dualpipev, times);
  EXPECT_LT(timing.makespan, Ticks(66));
  for (std::size_t i = 0; i < dualpipev.orders[0].size(); ++i)
    if (dualpipev.orders[0][i].overlaps_next) {
      EXPECT_EQ(timing.ends[0][i] - timing.starts[0][i], Ticks(2));
    }
}

}  // namespace
}  // namespace meshwright
