#include "executor/transport/common_clock.hpp"

#include <fstream>
#include <span>

#include "core/base/hash.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {
namespace {

constexpr MessageTag kMomentTag{Channel::kControl, 0}, kClockTag{Channel::kControl, 9};
constexpr int kRoundTrips = 8, kMomentsBetween = 100;

template <class T>
void send(Communicator& to_rank, RankId to, const T& value) {
  to_rank.send(to, kClockTag, std::as_bytes(std::span(&value, 1)), {});
}
template <class T>
T receive(Communicator& communicator, RankId from) {
  T value{};
  communicator.receive(from, kClockTag, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace

CommonClock::Source CommonClock::this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return {boot, [] { return std::chrono::steady_clock::now(); }};
}

CommonClock::CommonClock(Communicator& communicator, Source source)
    : communicator_(communicator), source_(std::move(source)) {}

/// Rank 0 answers one rank after the other.
void CommonClock::measure() {
  using Nanoseconds = std::chrono::nanoseconds;
  const std::uint64_t host = fnv1a(source_.host);
  const RankId first(0);
  if (communicator_.rank() == first) {
    for (const RankId other : all_ranks(communicator_.rank_count())) {
      if (other == first || receive<std::uint64_t>(communicator_, other) == host) {
        if (other != first) send(communicator_, other, std::uint8_t{0});
        continue;
      }
      send(communicator_, other, std::uint8_t{1});
      for (int i = 0; i < kRoundTrips; ++i) {
        receive<std::uint8_t>(communicator_, other);
        send(communicator_, other, Nanoseconds(source_.now().time_since_epoch()));
      }
    }
    return;
  }
  send(communicator_, first, host);
  if (receive<std::uint8_t>(communicator_, first) == 0) return;
  Nanoseconds fastest = Nanoseconds::max();
  for (int i = 0; i < kRoundTrips; ++i) {
    const Nanoseconds start = source_.now().time_since_epoch();
    send(communicator_, first, std::uint8_t{0});
    const auto there = receive<Nanoseconds>(communicator_, first);
    const Nanoseconds end = source_.now().time_since_epoch();
    if (end - start >= fastest) continue;
    fastest = end - start;
    ahead_ = there - (start + fastest / 2);
  }
}

CommonClock::Moment CommonClock::agree() {
  if (moments_++ % kMomentsBetween == 0) measure();
  RankGroup all(communicator_, all_ranks(communicator_.rank_count()), kMomentTag);
  std::chrono::nanoseconds chosen = source_.now().time_since_epoch();
  all.broadcast(std::as_writable_bytes(std::span(&chosen, 1)), 0, Ticks());
  return Moment(chosen - ahead_);
}

}  // namespace meshwright
