#include <gtest/gtest.h>

#include <numeric>

#include "core/cost/cost_model.hpp"

namespace meshwright {
namespace {

/// Kernels last m seconds, collectives 10 s, messages 3 s after 2 s on the wire. Counts its calls.
class RoundCosts : public CostModel {
 public:
  Seconds time_of(const Kernel& kernel) const override {
    ++kernels_priced;
    return Seconds(static_cast<double>(kernel.m));
  }
  Seconds time_of(const Collective&) const override { return Seconds(10); }
  TransferCost cost_of(const Transfer&) const override { return {Seconds(3), Seconds(2)}; }
  std::string provenance() const override { return "test"; }
  mutable int kernels_priced = 0;
};

Kernel kernel(KernelKind kind, std::int64_t m) {
  Kernel k;
  k.kind = kind;
  k.m = m;
  k.flops = Flops(100.0);
  return k;
}
/// 2 x 25 scores x (1 + 1) = 100 FLOPs.
Kernel attention(std::int64_t m) {
  Kernel k = kernel(KernelKind::kAttention, m);
  k.n = 25, k.k = 1, k.value_size = 1;
  return k;
}
Ticks seconds(std::int64_t s) { return Ticks(s * kTicksPerSecond); }

std::vector<WorkPart> parts() {
  Collective gather;
  gather.axis = Axis::kTensor;
  return {{"block.B", {kernel(KernelKind::kGemm, 4), gather, attention(1)}, false},
          {"block.recompute", {kernel(KernelKind::kGemm, 2), gather}, true}};
}

// Three blocks: 3 * (4 + 10 + 1) and recomputation 3 * (2 + 10) = 81 s.
TEST(PriceWorks, SharesAddUpToTheDuration) {
  Work work;
  work.kind = TaskKind::kBackward;
  work.parts = {{0, 3}, {1, 3}};
  const RoundCosts costs;
  const WorkPrice price = price_works(parts(), {work, work, work}, costs).at(2);
  EXPECT_EQ(price.duration, seconds(81));
  EXPECT_EQ(price.kernels[static_cast<std::size_t>(KernelKind::kGemm)], seconds(12));
  EXPECT_EQ(price.kernels[static_cast<std::size_t>(KernelKind::kAttention)], seconds(3));
  EXPECT_EQ(price.recompute, seconds(6));
  EXPECT_EQ(price.communication[static_cast<std::size_t>(Axis::kTensor)], seconds(60));
  const Ticks sum =
      std::accumulate(price.kernels.begin(), price.kernels.end(), price.recompute) +
      std::accumulate(price.communication.begin(), price.communication.end(), Ticks());
  EXPECT_EQ(sum, price.duration);
  EXPECT_EQ(price.flops, Flops(900.0));
  EXPECT_EQ(costs.kernels_priced, 3);  // each distinct part once, however many works use it
}

/// Two seconds to launch a kernel or collective, five before every forward layer, three before
/// every backward layer.
class LaunchingCosts final : public RoundCosts {
 public:
  HostTimes host_times() const override {
    HostTimes host;
    host.per_kernel = host.per_collective = Seconds(2);
    host.per_layer_forward = Seconds(5);
    host.per_layer_backward = Seconds(3);
    return host;
  }
};

// One layer with kernels of 4, 10 (collective) and 1 s. Launched at 5 + 2, + 2, + 2 = 7, 9, 11 s:
// 7 -> 11 -> 21 -> 22 s. Two layers: the host is done with the first one at 11 s, the device at 22;
// the second takes until max(22 + 15, 11 + 22) = 37 s.
TEST(PriceWorks, FindsWhenTheDeviceIsDoneIfTheHostLaunchesEveryKernel) {
  Work once, twice;
  once.kind = twice.kind = TaskKind::kForward;
  once.parts = {{0, 1}};
  twice.parts = {{0, 2}};
  const auto prices = price_works(parts(), {once, twice}, LaunchingCosts());
  EXPECT_EQ(prices[0].duration, seconds(15));
  EXPECT_EQ(prices[0].host, seconds(11));
  EXPECT_EQ(prices[0].since_launch, seconds(22));
  EXPECT_EQ(prices[1].host, seconds(22));
  EXPECT_EQ(prices[1].since_launch, seconds(37));
  EXPECT_FALSE(prices[0].launch_waits);
}

// Kernels of 1 s are bound by the host: 5 + 2 + 1 = 8 s for the first layer, 7 s for each more.
TEST(PriceWorks, RepeatsLaunchBoundLayersAtThePaceOfTheHost) {
  Work work;
  work.kind = TaskKind::kForward;
  work.parts = {{0, 10}};
  const std::vector<WorkPart> small = {{"block.F", {kernel(KernelKind::kGemm, 1)}, false}};
  const WorkPrice price = price_works(small, {work}, LaunchingCosts()).front();
  EXPECT_EQ(price.duration, seconds(10));
  EXPECT_EQ(price.host, seconds(70));
  EXPECT_EQ(price.since_launch, seconds(8 + 9 * 7));
}

/// The same, and the host reads counts from the device.
class CountingCosts final : public RoundCosts {
 public:
  HostTimes host_times() const override {
    HostTimes host = LaunchingCosts().host_times();
    host.reads_counts = true;
    return host;
  }
};

// Kernels of 4, 1 and 3 s; before the second one the host waits for the first.
//   Device free early: launched at 7, 7 -> 11; the host goes on at 11: 13 -> 14, 15 -> 18.
//   Host early, device free at s: s -> s + 4; s + 6 -> s + 7, s + 8 -> s + 11: 3 s of stalls.
// Every further layer takes 5 + 2 + 4 + 2 + 2 = 15 s, as the host never runs ahead of it.
TEST(PriceWorks, StallsTheDeviceWhereTheHostReadsCounts) {
  Kernel dispatch = kernel(KernelKind::kMemoryBound, 1);
  dispatch.needs_counts = true;
  const std::vector<WorkPart> experts = {
      {"block.F",
       {kernel(KernelKind::kGemm, 4), dispatch, kernel(KernelKind::kGroupedGemm, 3)},
       false}};
  Work once, often;
  once.kind = often.kind = TaskKind::kForward;
  once.parts = {{0, 1}};
  often.parts = {{0, 10}};
  const auto prices = price_works(experts, {once, often}, CountingCosts());
  EXPECT_EQ(prices[0].duration, seconds(8));
  EXPECT_EQ(prices[0].host, seconds(15));
  EXPECT_EQ(prices[0].since_launch, seconds(18));
  EXPECT_EQ(prices[0].host_since_start, seconds(8));
  EXPECT_EQ(prices[0].stalls, seconds(3));
  EXPECT_EQ(prices[1].duration, seconds(80));
  EXPECT_EQ(prices[1].host, seconds(15 * 10));
  EXPECT_EQ(prices[1].since_launch, seconds(18 + 15 * 9));
  EXPECT_EQ(prices[1].host_since_start, seconds(8 + 15 * 9));
  EXPECT_EQ(prices[1].stalls, seconds(11 + 15 * 9 - 80));
  const WorkPrice without = price_works(experts, {once}, LaunchingCosts()).front();
  EXPECT_FALSE(without.host_since_start);
  EXPECT_EQ(without.stalls, Ticks());
}

TEST(PriceWorks, LaunchingTakesNoTimeByDefault) {
  Work work;
  work.kind = TaskKind::kForward;
  work.parts = {{0, 2}};
  const WorkPrice price = price_works(parts(), {work}, RoundCosts()).front();
  EXPECT_EQ(price.host, Ticks());
  EXPECT_EQ(price.since_launch, price.duration);
}

/// In a group of n ranks, the wait is 2 s per other rank plus one second per second of work.
class WaitingCosts final : public RoundCosts {
 public:
  Seconds wait_of(int ranks, Seconds work) const override {
    return Seconds(2.0 * (ranks - 1)) + work;
  }
};

// Kernels of 4 and 2 s, a collective of three ranks (10 s), a kernel of 1 s, a collective
// overlapped with a kernel of 8 s: 4 + 2 + (2 * 2 + 6) + 10 + 1 + (10 - 8) + 8. Work before the
// first synchronization does not count for the next one.
TEST(PriceWorks, LetsRanksWaitWhereTheyMeet) {
  Collective gather, hidden;
  gather.axis = hidden.axis = Axis::kTensor;
  gather.group.ranks = hidden.group.ranks = 3;
  hidden.overlap = {.kernels = 1, .pieces = 0};
  const auto gemm = [](std::int64_t m) { return kernel(KernelKind::kGemm, m); };
  const WorkPart part{"part", {gemm(4), gemm(2), gather, gemm(1), hidden, gemm(8)}, false};
  const WaitingCosts costs;
  EXPECT_EQ(waits_of_steps(part, price_steps(part, costs), costs),
            (std::vector<Ticks>{{}, {}, seconds(10), {}, {}, {}}));
  Work work;
  work.parts = {{0, 2}};
  const WorkPrice price = price_works({part}, {work}, costs).front();
  EXPECT_EQ(price.duration, seconds(2 * 37));
  EXPECT_EQ(price.communication[static_cast<std::size_t>(Axis::kTensor)], seconds(2 * 22));
}

// Causal attention of 2 x 8 queries and keys of size 4 and values of size 2: the kernel skips half
// of the scores, but its FLOPs count all: 2 x 2 x 8 x 8 x (4 + 2) forward, backward
// 2 x 2 x 8 x 8 x (3 x 4 + 2 x 2).
TEST(PriceWorks, CountsEveryScoreOfAttentionAsUtilisationDoes) {
  Kernel forward = attention(8);
  forward.causal = true;
  forward.batch = 2, forward.n = 8, forward.k = 4, forward.value_size = 2;
  Kernel backward = forward;
  backward.phase = Phase::kBackwardInput;
  Work work;
  work.kind = TaskKind::kForward;
  work.parts = {{0, 1}};
  const RoundCosts costs;
  EXPECT_EQ(price_works({{"F", {forward}, false}}, {work}, costs).at(0).flops, Flops(1536.0));
  EXPECT_EQ(price_works({{"B", {backward}, false}}, {work}, costs).at(0).flops, Flops(4096.0));
}

// Kernels of 8 s beside collectives of 10 s. In 4 pieces 6 s of the kernel hide 6 of the 10; if
// neither needs the other all 8 do; two kernels of 8 and 4 s hide the collective.
TEST(PriceWorks, HidesCollectivesBehindTheKernelsTheyName) {
  const auto visible = [](int kernels, int pieces) {
    Collective c;
    c.axis = Axis::kTensor;
    c.overlap = {.kernels = kernels, .pieces = pieces};
    const Kernel eight = kernel(KernelKind::kGemm, 8), four = kernel(KernelKind::kGemm, 4);
    std::vector<Step> steps{c, eight, four};
    if (kernels < 0) steps = {four, eight, c};
    Work work;
    work.parts = {{0, 1}};
    const WorkPrice price = price_works({{"part", steps, false}}, {work}, RoundCosts()).front();
    EXPECT_EQ(price.kernels[static_cast<std::size_t>(KernelKind::kGemm)], seconds(12));
    EXPECT_EQ(price.duration, seconds(12) + price.communication[0]);
    return price.communication[0];
  };
  EXPECT_EQ(visible(0, 0), seconds(10));
  EXPECT_EQ(visible(1, 4), seconds(4));
  EXPECT_EQ(visible(-1, 4), seconds(4));
  EXPECT_EQ(visible(1, 0), seconds(2));
  EXPECT_EQ(visible(2, 0), seconds(0));
  EXPECT_EQ(visible(2, 3), seconds(2));  // 12 - 12 / 3 = 8 of 10
}

/// Collectives take a fifth of the multiprocessors.
class SharingCosts final : public RoundCosts {
 public:
  double multiprocessor_share_of(const Collective&) const override { return 0.2; }
};

// Two collectives of 10 s next to another micro-batch leave kernels worth 8 s each. 30 s of kernels
// hide both but for 2 s each: 34 s in total. Of 12 s, 8 run during the first and 4 during the
// second one, which is exposed for the remaining 6: 12 + 2 + 6. A kernel next to its own collective
// is not counted again.
TEST(PriceWorks, HidesCollectivesBehindAnotherMicrobatch) {
  Collective exchange;
  exchange.axis = Axis::kExpert;
  exchange.overlap.other_microbatch = true;
  Collective gather;
  gather.axis = Axis::kTensor;
  gather.overlap = {.kernels = 1};
  const auto duration = [](const std::vector<Step>& steps) {
    Work work;
    work.parts = {{0, 1}};
    return price_works({{"part", steps, false}}, {work}, SharingCosts()).front().duration;
  };
  const auto gemm = [](std::int64_t m) { return kernel(KernelKind::kGemm, m); };
  EXPECT_EQ(duration({gemm(10), exchange, gemm(20), exchange}), seconds(34));
  EXPECT_EQ(duration({exchange, gemm(12), exchange}), seconds(20));
  EXPECT_EQ(duration({exchange, gather, gemm(12)}), seconds(10 + 12));
}

TEST(PriceWorks, PricesMessagesAndCollectives) {
  Work send, receive, collective;
  send.kind = TaskKind::kSend;
  receive.kind = TaskKind::kReceive;
  collective.kind = TaskKind::kCollective;
  collective.collective.axis = Axis::kData;
  const auto prices = price_works({}, {send, receive, collective}, RoundCosts());
  EXPECT_EQ(prices[0].duration, seconds(2));
  EXPECT_EQ(prices[0].latency, seconds(3));
  EXPECT_EQ(prices[1].duration, seconds(0));
  EXPECT_EQ(prices[2].duration, seconds(10));
  EXPECT_EQ(prices[2].communication[static_cast<std::size_t>(Axis::kData)], seconds(10));
}

}  // namespace
}  // namespace meshwright
