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
#include "kernels/elementwise.hpp"

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

struct MessageSource {
  RankId from;
  MessageTag tag;
};

/// A collective as a whole, on `members` in the order of their blocks: see RankGroup, whose
/// functions these are.
struct GroupCall {
  enum class Kind : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kBroadcast };
  Kind kind = Kind::kAllReduce;
  std::span<const RankId> members = {};
  int index = 0;                                       ///< of this rank among them
  Vector values = {};                                  ///< of the reductions
  Reduction reduction = Reduction::kSum;               ///< of kAllReduce
  std::span<std::byte> bytes = {};                     ///< of kAllGather and kBroadcast
  std::int64_t element_bytes = 1;                      ///< of kAllGather
  std::span<const std::span<const std::byte>> sent{};  ///< of kAllToAll, by member, as is the next
  std::span<const std::span<std::byte>> received{};
  int root = 0;  ///< of kBroadcast
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
  /// Combines what is in `values` with a message as long: message + value, or the larger. bf16 is
  /// added in fp32 and rounded once.
  virtual MessageTimes receive_into(const Vector& values, const MessageSource& source,
                                    Reduction reduction);
  /// A message to oneself, as it were: in order with the others, and of the same length.
  virtual void copy(std::span<std::byte> to, std::span<const std::byte> from);
  /// True: it has been carried out, or will be in the order of a stream. False, on all members
  /// alike: it has to be made of messages.
  virtual bool carry_out([[maybe_unused]] const GroupCall& call) { return false; }
  /// Results for whoever started the ranks (LaunchOptions::on_report), in order.
  virtual void report(std::span<const std::byte> bytes) = 0;
};

/// Another rank failed first; what it said is reported, not this.
class PeerFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace meshwright
