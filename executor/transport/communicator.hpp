/// Point-to-point messages between the ranks of a job; implemented for threads, processes, MPI and
/// NCCL.
///
/// Sends are buffered and never wait for the receiver, so running a task graph in topological order
/// cannot deadlock. Messages with the same sender and tag arrive in order.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "kernels/elementwise.hpp"

namespace meshwright {

/// Identifies a message: equal on both sides and unique among concurrent transfers.
enum class Channel : std::uint8_t {
  kPipeline,
  kTensor,  ///< the first of one per Axis
  kData = kTensor + static_cast<int>(Axis::kData),
  kControl
};
/// Of collectives; those of the pipeline axis are at the end of a step.
constexpr Channel channel_of(Axis axis) {
  if (axis == Axis::kPipeline) return Channel::kData;
  return static_cast<Channel>(static_cast<int>(Channel::kTensor) + static_cast<int>(axis));
}
static_assert(channel_of(Axis::kData) == Channel::kData);
struct MessageTag {
  Channel channel = Channel::kPipeline;
  std::int32_t id = 0;  ///< pipeline: task ID of the send
  friend auto operator<=>(const MessageTag&, const MessageTag&) = default;
};

/// When the sender's port was busy with the message, by the sender's clock.
struct MessageTimes {
  Ticks start, end;
  friend bool operator==(const MessageTimes&, const MessageTimes&) = default;
};

struct MessageSource {
  RankId from;
  MessageTag tag;
};

/// A whole collective over `members`, in the order of their blocks; mirrors the functions of
/// RankGroup.
struct GroupCall {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::span<const RankId> members = {};
  int index = 0;                                       ///< of this rank among `members`
  Vector values = {};                                  ///< for reductions
  Reduction reduction = Reduction::kSum;               ///< for kAllReduce
  std::span<std::byte> bytes = {};                     ///< for kAllGather and kBroadcast
  std::int64_t element_bytes = 1;                      ///< for kAllGather
  std::span<const std::span<const std::byte>> sent{};  ///< for kAllToAll, by member; `received` too
  std::span<const std::span<std::byte>> received{};
  int root = 0;  ///< for kBroadcast
};

/// Heartbeat counter, incremented for every unit of progress of a rank. The watchdog declares a run
/// hung when no counter changes for the watchdog timeout.
using Beats = std::atomic<std::int64_t>;

/// How often launchers look at their ranks, and waiting ranks for a request to stop.
inline constexpr std::chrono::milliseconds kPollingInterval{50};

/// To be called in loops over parameter elements.
inline void beat_occasionally(Beats& beats, std::size_t count) {
  constexpr std::size_t kSome = std::size_t{1} << 17;
  if (count % kSome == 0) beats.fetch_add(1, std::memory_order_relaxed);
}

/// Implementations emit a heartbeat for every piece of a message sent or received, so that a rank
/// moving a long message is not taken for hung.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual RankId rank() const = 0;
  virtual int rank_count() const = 0;
  /// Copies `bytes`.
  virtual void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                    const MessageTimes& times) = 0;
  /// Waits for the message, whose size must equal that of `bytes` (anything else is our bug).
  /// Throws PeerFailure if another rank fails meanwhile.
  virtual MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) = 0;
  /// Reduces a message of the same size into `values`: sum or maximum. bf16 values are added in
  /// fp32 and rounded once.
  virtual MessageTimes receive_into(const Vector& values, const MessageSource& source,
                                    Reduction reduction);
  /// A local copy, ordered with the messages; both sides have the same size.
  virtual void copy(std::span<std::byte> to, std::span<const std::byte> from);
  /// Runs a whole collective natively. True: done, or enqueued in stream order. False, on all
  /// members alike: the caller must compose it from messages.
  virtual bool run_collective([[maybe_unused]] const GroupCall& call) { return false; }
  /// Delivers results to the launcher (LaunchOptions::on_report), in order.
  virtual void report(std::span<const std::byte> bytes) = 0;
};

/// The ranks 0 to count - 1.
std::vector<RankId> all_ranks(int count);

/// This rank stopped because another one failed; the failure of that rank is reported instead.
class PeerFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace meshwright
