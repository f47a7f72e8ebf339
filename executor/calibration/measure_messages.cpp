#include "executor/calibration/measure_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <stdexcept>

#include "core/base/check.hpp"
#include "executor/launch/launch.hpp"
#include "executor/tasks/rank_clock.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {
namespace {

constexpr MessageTag kProbeTag{Channel::kControl, 7};
constexpr int kSamples = 8;

Seconds seconds_since(std::chrono::steady_clock::time_point start) {
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  const auto failure = run_threads(ranks, [&](Communicator& communicator, RankProgress& progress) {
    progress.is_waiting = true;  // not for the watchdog
    body(communicator);
  });
  if (failure) throw std::runtime_error(failure->cause);
}

void synchronize(Communicator& communicator) {
  const std::vector<RankId> all = all_ranks(communicator.rank_count());
  RankGroup group(communicator, all, {Channel::kControl, 8});
  std::vector<std::byte> nothing(all.size());
  group.all_gather(nothing, 1, Ticks());
}

Seconds best_latency() {
  constexpr int kBatches = 16, kRoundTrips = 64;
  Seconds best(1);
  run_ranks(2, [&](Communicator& communicator) {
    std::array<std::byte, 8> message{};
    const RankId other(1 - communicator.rank().value);
    for (int batch = 0; batch < kBatches; ++batch) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kRoundTrips; ++i) {
        const bool sends_first = communicator.rank() == RankId(0);
        if (sends_first) communicator.send(other, kProbeTag, message, {});
        communicator.receive(other, kProbeTag, message);
        if (!sends_first) communicator.send(other, kProbeTag, message, {});
      }
      if (communicator.rank() == RankId(0))
        best = std::min(best, seconds_since(start) / (2.0 * kRoundTrips));
    }
  });
  return best;
}

/// Bandwidth of a large message by the CPU time of both sides, including copies.
BytesPerSecond median_bandwidth() {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  std::array<std::vector<Ticks>, 2> times;
  run_ranks(2, [&](Communicator& communicator) {
    std::vector<std::byte> message(kBytes, std::byte{1});
    const RankId other(1 - communicator.rank().value);
    for (int i = 0; i < kSamples; ++i) {
      synchronize(communicator);
      const Ticks start = thread_cpu_time();
      if (communicator.rank() == RankId(0))
        communicator.send(other, kProbeTag, message, {});
      else
        communicator.receive(other, kProbeTag, message);
      times[communicator.rank().index()].push_back(thread_cpu_time() - start);
    }
  });
  Ticks both;
  for (std::vector<Ticks>& side : times) {
    std::sort(side.begin(), side.end());
    both += side[side.size() / 2];
  }
  return Bytes(kBytes) / to_seconds(both);
}

using Call = std::function<void(RankGroup&, std::span<float>)>;

void all_to_all(RankGroup& group, std::span<float> values) {
  std::vector<float> arrived(values.size());
  std::vector<std::span<const std::byte>> sent;
  std::vector<std::span<std::byte>> received;
  const auto count = static_cast<std::int64_t>(values.size());
  for (int i = 0; i < group.size(); ++i) {
    const Block block = block_of(count, group.size(), i);
    const auto first = static_cast<std::size_t>(block.begin);
    const auto size = static_cast<std::size_t>(block.size());
    sent.push_back(std::as_bytes(values.subspan(first, size)));
    received.push_back(std::as_writable_bytes(std::span(arrived).subspan(first, size)));
  }
  group.all_to_all(sent, received, Ticks());
}

Call call_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return [](RankGroup& g, std::span<float> v) { g.all_reduce(v, Ticks()); };
    case CollectiveKind::kReduceScatter:
      return [](RankGroup& g, std::span<float> v) { g.reduce_scatter(v, Ticks()); };
    case CollectiveKind::kAllGather:
      return [](RankGroup& g, std::span<float> v) {
        g.all_gather(std::as_writable_bytes(v), sizeof(float), Ticks());
      };
    case CollectiveKind::kAllToAll:
      return all_to_all;
    case CollectiveKind::kBroadcast:
      return [](RankGroup& g, std::span<float> v) {
        g.broadcast(std::as_writable_bytes(v), 0, Ticks());
      };
    default:
      break;
  }
  MW_CHECK(false);
}

CollectiveCurve curve_of(CollectiveKind kind, int ranks) {
  constexpr std::int64_t kFirst = 1 << 10, kLast = 16 << 20, kFactor = 4;
  const Call call = call_of(kind);
  std::vector<CurvePoint> points;
  run_ranks(ranks, [&](Communicator& communicator) {
    const std::vector<RankId> all = all_ranks(ranks);
    for (std::int64_t bytes = kFirst; bytes <= kLast; bytes *= kFactor) {
      std::vector<float> values(static_cast<std::size_t>(bytes) / sizeof(float), 1.0F);
      std::vector<Seconds> times;
      for (int i = 0; i <= kSamples; ++i) {
        RankGroup group(communicator, all, kProbeTag);
        synchronize(communicator);
        const auto start = std::chrono::steady_clock::now();
        call(group, values);
        if (i > 0) times.push_back(seconds_since(start));  // the first one is a warm-up
      }
      std::sort(times.begin(), times.end());
      if (communicator.rank() == RankId(0)) points.push_back({Bytes(bytes), times[kSamples / 4]});
    }
  });
  return {.kind = kind,
          .ranks = ranks,
          .points = level_points(std::move(points)).points,
          .source = fmt::format("lower quartile of {} calls between threads", kSamples)};
}

}  // namespace

MessageFigures measure_messages() {
  return {.latency = best_latency(), .bandwidth = median_bandwidth()};
}

std::vector<CollectiveCurve> measure_collectives(int ranks) {
  std::vector<CollectiveCurve> curves;
  for (const CollectiveTraits& traits : kCollectives)
    if (traits.is_calibrated) curves.push_back(curve_of(traits.kind, ranks));
  return curves;
}

}  // namespace meshwright
