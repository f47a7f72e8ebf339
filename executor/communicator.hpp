/// Messages between the ranks of a job: the one interface that threads, processes and MPI
/// implement.
///
/// Sends are buffered: they never wait for the receiver, so that carrying out a task graph in its
/// topological order cannot deadlock. Messages with one tag from one sender arrive in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "core/ids.hpp"
#include "core/units.hpp"

namespace meshwright {

/// What a message belongs to: equal on both sides, and used for nothing else at the same time.
enum class Channel : std::uint8_t { kPipeline, kTensor, kContext, kExpert, kData, kControl };
struct MessageTag {
  Channel channel = Channel::kPipeline;
  std::int32_t id = 0;  ///< pipeline: the send's task
  friend auto operator<=>(const MessageTag&, const MessageTag&) = default;
};

/// When the sender's clock says that its port was busy with the message.
struct MessageTimes {
  Ticks start, end;
  friend bool operator==(const MessageTimes&, const MessageTimes&) = default;
};

/// Rises with everything that a rank gets done, however little: what stands still for long hangs.
using Beats = std::atomic<std::int64_t>;

/// To be called in loops over the elements of parameters.
inline void beat_now_and_then(Beats& beats, std::size_t count) {
  constexpr std::size_t kSome = std::size_t{1} << 17;
  if (count % kSome == 0) beats.fetch_add(1, std::memory_order_relaxed);
}

/// A beat for every piece of a message that has left or arrived: a long one is no sign of a rank
/// that hangs.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual RankId rank() const = 0;
  virtual int rank_count() const = 0;
  /// Takes a copy of `bytes`.
  virtual void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                    const MessageTimes& times) = 0;
  /// Waits for the message, which must be as long as `bytes` (anything else is our bug). Throws
  /// PeerFailure when the run has failed elsewhere meanwhile.
  virtual MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) = 0;
  /// Results for whoever started the ranks (LaunchOptions::on_report), in order.
  virtual void report(std::span<const std::byte> bytes) = 0;
};

/// Another rank failed first; what it said is reported, not this.
class PeerFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace meshwright
