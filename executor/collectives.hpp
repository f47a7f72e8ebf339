/// Collectives, written once over messages: rings, as NCCL's bandwidth-bound algorithms.
///
/// A buffer of n elements falls into one block per member of ceil(n / members) elements, the last
/// ones shorter or empty. Sums are made in the order of the ring, which depends on nothing but the
/// place of the block: results are equal from run to run, bit by bit.
///
/// Every function takes the time at which this member is ready and returns when the last member
/// was: rings pass it along with the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/dtype.hpp"
#include "executor/communicator.hpp"

namespace meshwright {

/// Elements [begin, end) of a buffer.
struct Block {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Block&, const Block&) = default;
};
Block block_of(std::int64_t elements, int members, int index);

/// The members of one collective, by rank, in the order of the ring; all of them call the same
/// function. `tag` is theirs alone while it runs.
class RankGroup {
 public:
  /// The communicator's own rank must be among `members`.
  RankGroup(Communicator& communicator, std::vector<RankId> members, MessageTag tag);
  int size() const { return static_cast<int>(members_.size()); }
  int index() const { return index_; }  ///< of this rank among the members
  MessageTag tag() const { return tag_; }

  /// 2 (N - 1) messages of n / N elements.
  Ticks all_reduce(std::span<float> values, Ticks ready);
  /// bf16 sums are rounded at every step, as they travel in bf16.
  Ticks all_reduce(std::span<std::uint16_t> bf16_values, Ticks ready);
  Ticks all_reduce_max(std::span<float> values, Ticks ready);
  /// Block i of `values` becomes the sum over members of their block i at member i; the rest of the
  /// buffer holds partial sums afterwards.
  Ticks reduce_scatter(std::span<float> values, Ticks ready);
  Ticks reduce_scatter(std::span<std::uint16_t> bf16_values, Ticks ready);
  /// Block i comes from member i.
  Ticks all_gather(std::span<std::byte> buffer, std::int64_t element_bytes, Ticks ready);
  /// What member i sent to this one goes to received[i], which has the right size.
  Ticks all_to_all(std::span<const std::span<const std::byte>> sent,
                   std::span<const std::span<std::byte>> received, Ticks ready);
  /// From member `root`.
  Ticks broadcast(std::span<std::byte> bytes, int root, Ticks ready);
  /// One round of a ring all-reduce in which member i sends block (i - round) mod N to the next one
  /// and adds what arrives (rounds 0 to N - 2), or replaces with it (N - 1 to 2 N - 3).
  Ticks ring_add(std::span<float> values, int round, Ticks ready);
  Ticks ring_replace(std::span<std::byte> buffer, std::int64_t element_bytes, int round,
                     Ticks ready);
  /// Nothing travels but when each member was ready.
  Ticks meet(Ticks ready);

 private:
  Ticks reduce_blocks(const Vector& values, Ticks ready, Reduction reduction);
  Ticks scatter_sums(const Vector& values, Ticks ready);
  GroupCall call_of(GroupCall::Kind kind) const;
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
