#include "executor/transport/collectives.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

std::span<std::byte> bytes_of(const Vector& values, Block block) {
  return bytes_of(part_of(values, block.begin, block.size()));
}
std::span<std::byte> bytes_of(std::span<std::byte> bytes, Block block) {
  return bytes.subspan(static_cast<std::size_t>(block.begin),
                       static_cast<std::size_t>(block.size()));
}

Vector vector_of(std::span<float> values) {
  return {values.data(), std::ssize(values), Dtype::kFp32};
}
Vector vector_of(std::span<std::uint16_t> bf16_values) {
  return {bf16_values.data(), std::ssize(bf16_values), Dtype::kBf16};
}

}  // namespace

Block block_of(std::int64_t elements, int members, int index) {
  const std::int64_t size = divide_up(elements, members);
  return {std::min(elements, size * index), std::min(elements, size * (index + 1))};
}

RankGroup::RankGroup(Communicator& communicator, std::vector<RankId> members, MessageTag tag)
    : communicator_(communicator), members_(std::move(members)), tag_(tag) {
  const auto me = std::find(members_.begin(), members_.end(), communicator.rank());
  MW_CHECK(me != members_.end());
  index_ = static_cast<int>(me - members_.begin());
}

/// Block b starts at member b + 1, accumulates one contribution per member and ends at member b.
Ticks RankGroup::reduce_blocks(const Vector& values, Ticks ready, Reduction reduction) {
  const int n = size();
  for (int step = 1; step < n; ++step) {
    const Block sent = block_of(values.size, n, (index_ - step + n) % n);
    communicator_.send(next(), tag_, bytes_of(values, sent), {ready, ready});
    const Block kept = block_of(values.size, n, (index_ - step - 1 + 2 * n) % n);
    const MessageTimes times = communicator_.receive_into(part_of(values, kept.begin, kept.size()),
                                                          {previous(), tag_}, reduction);
    ready = std::max(ready, times.start);
  }
  return ready;
}

Ticks RankGroup::scatter_sums(const Vector& values, Ticks ready) {
  GroupCall call = call_of(CollectiveKind::kReduceScatter);
  call.values = values;
  return communicator_.run_collective(call) ? ready : reduce_blocks(values, ready, Reduction::kSum);
}

Ticks RankGroup::reduce_all(const Vector& values, Ticks ready, Reduction reduction) {
  GroupCall call = call_of(CollectiveKind::kAllReduce);
  call.values = values;
  call.reduction = reduction;
  if (communicator_.run_collective(call)) return ready;
  ready = reduce_blocks(values, ready, reduction);
  return all_gather(bytes_of(values), bytes_per_element(values.dtype), ready);
}

Ticks RankGroup::all_reduce(std::span<float> values, Ticks ready) {
  return reduce_all(vector_of(values), ready, Reduction::kSum);
}
Ticks RankGroup::all_reduce(std::span<std::uint16_t> bf16_values, Ticks ready) {
  return reduce_all(vector_of(bf16_values), ready, Reduction::kSum);
}
Ticks RankGroup::all_reduce_max(std::span<float> values, Ticks ready) {
  return reduce_all(vector_of(values), ready, Reduction::kMaximum);
}
Ticks RankGroup::reduce_scatter(std::span<float> values, Ticks ready) {
  return scatter_sums(vector_of(values), ready);
}
Ticks RankGroup::reduce_scatter(std::span<std::uint16_t> bf16_values, Ticks ready) {
  return scatter_sums(vector_of(bf16_values), ready);
}

GroupCall RankGroup::call_of(CollectiveKind kind) const {
  return {.kind = kind, .members = members_, .index = index_};
}

Ticks RankGroup::all_gather(std::span<std::byte> buffer, std::int64_t element_bytes, Ticks ready) {
  GroupCall call = call_of(CollectiveKind::kAllGather);
  call.bytes = buffer;
  call.element_bytes = element_bytes;
  if (communicator_.run_collective(call)) return ready;
  const int n = size();
  const std::int64_t count = static_cast<std::int64_t>(buffer.size()) / element_bytes;
  const auto block = [&](int index) {
    const Block elements = block_of(count, n, (index + 2 * n) % n);
    return bytes_of(buffer, {elements.begin * element_bytes, elements.end * element_bytes});
  };
  for (int step = 0; step + 1 < n; ++step) {
    communicator_.send(next(), tag_, block(index_ - step), {ready, ready});
    const MessageTimes times = communicator_.receive(previous(), tag_, block(index_ - step - 1));
    ready = std::max(ready, times.start);
  }
  return ready;
}

Ticks RankGroup::all_to_all(std::span<const std::span<const std::byte>> sent,
                            std::span<const std::span<std::byte>> received, Ticks ready) {
  MW_CHECK(sent.size() == members_.size() && received.size() == members_.size());
  GroupCall call = call_of(CollectiveKind::kAllToAll);
  call.sent = sent;
  call.received = received;
  if (communicator_.run_collective(call)) return ready;
  const MessageTimes mine{ready, ready};
  const auto me = static_cast<std::size_t>(index_);
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (i != me) communicator_.send(members_[i], tag_, sent[i], mine);
  MW_CHECK(sent[me].size() == received[me].size());
  communicator_.copy(received[me], sent[me]);
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (i != me)
      ready = std::max(ready, communicator_.receive(members_[i], tag_, received[i]).start);
  return ready;
}

/// Sends directly to all members: one wake-up of latency instead of one per member as in a ring.
Ticks RankGroup::synchronize(Ticks ready) {
  for (const RankId member : members_)
    if (member != communicator_.rank()) communicator_.send(member, tag_, {}, {ready, ready});
  Ticks latest = ready;
  for (const RankId member : members_)
    if (member != communicator_.rank())
      latest = std::max(latest, communicator_.receive(member, tag_, {}).start);
  return latest;
}

// Neighbors alone would not learn when more distant members were ready.
Ticks RankGroup::ring_add(std::span<float> values, int round, Ticks ready) {
  ready = synchronize(ready);
  const int n = size();
  const auto count = static_cast<std::int64_t>(values.size());
  const Block sent = block_of(count, n, (index_ - round + 2 * n) % n);
  const Block kept = block_of(count, n, (index_ - round - 1 + 2 * n) % n);
  const Vector all = vector_of(values);
  communicator_.send(next(), tag_, bytes_of(all, sent), {ready, ready});
  communicator_.receive_into(part_of(all, kept.begin, kept.size()), {previous(), tag_},
                             Reduction::kSum);
  return ready;
}

Ticks RankGroup::ring_replace(std::span<std::byte> buffer, std::int64_t element_bytes, int round,
                              Ticks ready) {
  ready = synchronize(ready);
  const int n = size();
  const std::int64_t count = static_cast<std::int64_t>(buffer.size()) / element_bytes;
  const auto block = [&](int index) {
    const Block elements = block_of(count, n, (index + 2 * n) % n);
    return bytes_of(buffer, {elements.begin * element_bytes, elements.end * element_bytes});
  };
  communicator_.send(next(), tag_, block(index_ - round), {ready, ready});
  communicator_.receive(previous(), tag_, block(index_ - round - 1));
  return ready;
}

/// The root must learn when the others were ready, because all wait for each other.
Ticks RankGroup::broadcast(std::span<std::byte> bytes, int root, Ticks ready) {
  GroupCall call = call_of(CollectiveKind::kBroadcast);
  call.bytes = bytes;
  call.root = root;
  if (communicator_.run_collective(call)) return ready;
  ready = synchronize(ready);
  const RankId from = members_[static_cast<std::size_t>(root)];
  if (index_ != root) {
    communicator_.receive(from, tag_, bytes);
    return ready;
  }
  for (const RankId member : members_)
    if (member != from) communicator_.send(member, tag_, bytes, {ready, ready});
  return ready;
}

}  // namespace meshwright
