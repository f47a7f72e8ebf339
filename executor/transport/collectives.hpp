/// Collectives on top of point-to-point messages: ring algorithms, like NCCL's bandwidth-bound
/// ones.
///
/// A buffer of n elements is split into one block per member of ceil(n / members) elements; the
/// last blocks may be shorter or empty. Sums are accumulated in ring order, which depends only on
/// the position of the block, so results are bitwise reproducible.
///
/// Every function takes the time at which this member is ready and returns the time at which the
/// last member was; the rings pass it along with the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/dtype.hpp"
#include "executor/transport/communicator.hpp"

namespace meshwright {

/// Elements [begin, end) of a buffer.
struct Block {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Block&, const Block&) = default;
};
Block block_of(std::int64_t elements, int members, int index);

/// A process group: its ranks in ring order. All members call the same function; nothing else uses
/// `tag` while it runs.
class RankGroup {
 public:
  /// The communicator's own rank must be among `members`.
  RankGroup(Communicator& communicator, std::vector<RankId> members, MessageTag tag);
  int size() const { return static_cast<int>(members_.size()); }
  int index() const { return index_; }  ///< of this rank among the members
  MessageTag tag() const { return tag_; }

  /// Sends 2 (N - 1) messages of n / N elements.
  Ticks all_reduce(std::span<float> values, Ticks ready);
  /// bf16 sums are rounded at every step, since they are sent in bf16.
  Ticks all_reduce(std::span<std::uint16_t> bf16_values, Ticks ready);
  Ticks all_reduce_max(std::span<float> values, Ticks ready);
  /// Member i ends up with the sum of all members' block i in its own block i; the rest of the
  /// buffer holds partial sums.
  Ticks reduce_scatter(std::span<float> values, Ticks ready);
  Ticks reduce_scatter(std::span<std::uint16_t> bf16_values, Ticks ready);
  /// Member i contributes block i.
  Ticks all_gather(std::span<std::byte> buffer, std::int64_t element_bytes, Ticks ready);
  /// Data from member i is written to received[i], which must have the right size.
  Ticks all_to_all(std::span<const std::span<const std::byte>> sent,
                   std::span<const std::span<std::byte>> received, Ticks ready);
  /// From member `root`.
  Ticks broadcast(std::span<std::byte> bytes, int root, Ticks ready);
  /// One round of a ring all-reduce: member i sends block (i - round) mod N to the next member and
  /// adds the block that arrives (rounds 0 to N - 2), or overwrites its own with it (rounds N - 1
  /// to 2 N - 3).
  Ticks ring_add(std::span<float> values, int round, Ticks ready);
  Ticks ring_replace(std::span<std::byte> buffer, std::int64_t element_bytes, int round,
                     Ticks ready);
  /// Exchanges nothing but the times at which the members are ready.
  Ticks synchronize(Ticks ready);

 private:
  Ticks reduce_blocks(const Vector& values, Ticks ready, Reduction reduction);
  Ticks scatter_sums(const Vector& values, Ticks ready);
  GroupCall call_of(CollectiveKind kind) const;
  Ticks reduce_all(const Vector& values, Ticks ready, Reduction reduction);
  RankId next() const { return members_[static_cast<std::size_t>((index_ + 1) % size())]; }
  RankId previous() const {
    return members_[static_cast<std::size_t>((index_ + size() - 1) % size())];
  }

  Communicator& communicator_;
  std::vector<RankId> members_;
  MessageTag tag_;
  int index_ = -1;
};

}  // namespace meshwright
