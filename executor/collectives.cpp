#include "executor/collectives.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "kernels/bfloat16.hpp"

namespace meshwright {
namespace {

template <class T>
std::span<std::byte> bytes_of(std::span<T> values, Block block) {
  return std::as_writable_bytes(values.subspan(static_cast<std::size_t>(block.begin),
                                               static_cast<std::size_t>(block.size())));
}

constexpr auto kSum = [](float a, float b) { return a + b; };
constexpr auto kMax = [](float a, float b) { return std::max(a, b); };
constexpr auto kBf16Sum = [](std::uint16_t a, std::uint16_t b) {
  return to_bf16(from_bf16(a) + from_bf16(b));
};

}  // namespace

Block block_of(std::int64_t elements, int members, int index) {
  const std::int64_t size = (elements + members - 1) / members;
  return {std::min(elements, size * index), std::min(elements, size * (index + 1))};
}

RankGroup::RankGroup(Communicator& communicator, std::vector<RankId> members, MessageTag tag)
    : communicator_(communicator), members_(std::move(members)), tag_(tag) {
  const auto me = std::find(members_.begin(), members_.end(), communicator.rank());
  MW_CHECK(me != members_.end());
  index_ = static_cast<int>(me - members_.begin());
}

/// Block b starts at member b + 1, collects one share at every member and ends at member b.
template <class T, class Combine>
Ticks RankGroup::reduce_blocks(std::span<T> values, Ticks ready, Combine combine) {
  const int n = size();
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<T> incoming(static_cast<std::size_t>(block_of(count, n, 0).size()));
  for (int step = 1; step < n; ++step) {
    const Block sent = block_of(count, n, (index_ - step + n) % n);
    communicator_.send(next(), tag_, bytes_of(values, sent), {ready, ready});
    const Block kept = block_of(count, n, (index_ - step - 1 + 2 * n) % n);
    const MessageTimes times =
        communicator_.receive(previous(), tag_, bytes_of(std::span(incoming), {0, kept.size()}));
    ready = std::max(ready, times.start);
    for (std::int64_t i = 0; i < kept.size(); ++i) {
      T& mine = values[static_cast<std::size_t>(kept.begin + i)];
      mine = combine(incoming[static_cast<std::size_t>(i)], mine);
    }
  }
  return ready;
}

template <class T, class Combine>
Ticks RankGroup::reduce_all(std::span<T> values, Ticks ready, Combine combine) {
  ready = reduce_blocks(values, ready, combine);
  return all_gather(std::as_writable_bytes(values), sizeof(T), ready);
}

Ticks RankGroup::all_reduce(std::span<float> values, Ticks ready) {
  return reduce_all(values, ready, kSum);
}
Ticks RankGroup::all_reduce(std::span<std::uint16_t> bf16_values, Ticks ready) {
  return reduce_all(bf16_values, ready, kBf16Sum);
}
Ticks RankGroup::all_reduce_max(std::span<float> values, Ticks ready) {
  return reduce_all(values, ready, kMax);
}
Ticks RankGroup::reduce_scatter(std::span<float> values, Ticks ready) {
  return reduce_blocks(values, ready, kSum);
}
Ticks RankGroup::reduce_scatter(std::span<std::uint16_t> bf16_values, Ticks ready) {
  return reduce_blocks(bf16_values, ready, kBf16Sum);
}

Ticks RankGroup::all_gather(std::span<std::byte> buffer, std::int64_t element_bytes, Ticks ready) {
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
  const MessageTimes mine{ready, ready};
  const auto me = static_cast<std::size_t>(index_);
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (i != me) communicator_.send(members_[i], tag_, sent[i], mine);
  MW_CHECK(sent[me].size() == received[me].size());
  std::copy(sent[me].begin(), sent[me].end(), received[me].begin());
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (i != me)
      ready = std::max(ready, communicator_.receive(members_[i], tag_, received[i]).start);
  return ready;
}

/// Straight to everybody: one wake-up until all know, where a ring would take one for each member.
Ticks RankGroup::meet(Ticks ready) {
  for (const RankId member : members_)
    if (member != communicator_.rank()) communicator_.send(member, tag_, {}, {ready, ready});
  Ticks latest = ready;
  for (const RankId member : members_)
    if (member != communicator_.rank())
      latest = std::max(latest, communicator_.receive(member, tag_, {}).start);
  return latest;
}

// Neighbours alone would not learn when members further away were ready.
Ticks RankGroup::ring_add(std::span<float> values, int round, Ticks ready) {
  ready = meet(ready);
  const int n = size();
  const auto count = static_cast<std::int64_t>(values.size());
  const Block sent = block_of(count, n, (index_ - round + 2 * n) % n);
  const Block kept = block_of(count, n, (index_ - round - 1 + 2 * n) % n);
  communicator_.send(next(), tag_, bytes_of(values, sent), {ready, ready});
  std::vector<float> incoming(static_cast<std::size_t>(kept.size()));
  communicator_.receive(previous(), tag_, std::as_writable_bytes(std::span(incoming)));
  for (std::size_t i = 0; i < incoming.size(); ++i)
    values[static_cast<std::size_t>(kept.begin) + i] += incoming[i];
  return ready;
}

Ticks RankGroup::ring_replace(std::span<std::byte> buffer, std::int64_t element_bytes, int round,
                              Ticks ready) {
  ready = meet(ready);
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

/// The root needs to know when the others were ready, as they wait for it and it for them.
Ticks RankGroup::broadcast(std::span<std::byte> bytes, int root, Ticks ready) {
  ready = meet(ready);
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
