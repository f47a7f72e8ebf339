/// A fake NCCL for ranks that are threads and a device on the host. The calling thread first
/// finishes the stream, then waits for the other members and enqueues the result on the stream. As
/// in NCCL, the first transfer between two members connects them, for which both must be in the
/// call; later a sender does not wait for its receiver.
/// Requirements are as strict as in NCCL: equal blocks, in-place addresses, matching sizes, device
/// memory (late_device.hpp hides it from other code).
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "executor/transport/nccl.hpp"
#include "kernels/bfloat16.hpp"
#include "tests/kernels/device/late_device.hpp"

namespace meshwright::fake_nccl {

/// Shared state of the members of one communicator.
struct Club {
  std::mutex mutex;
  std::condition_variable changed;
  int joined = 0, arrived = 0, left = 0;
  bool is_aborted = false;
  std::vector<std::vector<std::byte>> brought;                            ///< by member
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> way;  ///< from, to
  std::set<std::pair<int, int>> senders, receivers;                       ///< that have come
};
struct Member {
  std::shared_ptr<Club> club;
  NcclPlace place;
};

struct World {
  std::mutex mutex;
  std::map<NcclId, std::shared_ptr<Club>> clubs;
  int next_id = 0;
};
inline World& world() {
  static World all;
  return all;
}

/// Finishes the work enqueued before the call.
inline void come_to_the_end_of(void* stream) {
  if (stream != nullptr) late_device().wait_for_stream(stream);
}
template <class T>
T* seen(T* memory) {
  MW_CHECK(memory == nullptr || late::memory().holds(memory));
  return late::memory().seen(memory);
}

/// Delivers in stream order.
inline void deliver(void* stream, void* to, std::vector<std::byte> bytes) {
  const auto arrive = [to = seen(to), what = std::move(bytes)] {
    std::memcpy(to, what.data(), what.size());
  };
  stream == nullptr ? arrive() : late::put(stream, arrive);
}

inline Member& member(void* communicator) { return *static_cast<Member*>(communicator); }

template <class IsDone>
void wait(Member& me, std::unique_lock<std::mutex>& lock, IsDone is_done) {
  Club& club = *me.club;
  const bool came = club.changed.wait_for(lock, me.place.watchdog_timeout,
                                          [&] { return club.is_aborted || is_done(); });
  if (came && !club.is_aborted) return;
  club.is_aborted = true;
  club.changed.notify_all();
  throw RuntimeFailure({.where = "fake NCCL", .what = "a peer is missing", .hint = ""});
}

/// Every member contributes bytes and sees those of all.
template <class Use>
void share(Member& me, const void* from, std::int64_t bytes, Use use) {
  Club& club = *me.club;
  std::unique_lock lock(club.mutex);
  wait(me, lock, [&] { return club.left == 0; });  // the previous call has completed
  const auto* first = static_cast<const std::byte*>(from);
  club.brought.resize(static_cast<std::size_t>(me.place.ranks));
  club.brought[static_cast<std::size_t>(me.place.rank)].assign(first, first + bytes);
  if (++club.arrived == me.place.ranks) {
    club.arrived = 0;
    club.left = me.place.ranks;
    club.changed.notify_all();
  }
  wait(me, lock, [&] { return club.left > 0; });
  for (const auto& part : club.brought) MW_CHECK(static_cast<std::int64_t>(part.size()) == bytes);
  use(club.brought);
  --club.left;
  club.changed.notify_all();
}

inline float value_at(const std::vector<std::byte>& bytes, std::int64_t i, Dtype dtype) {
  if (dtype == Dtype::kFp32) return reinterpret_cast<const float*>(bytes.data())[i];
  return from_bf16(reinterpret_cast<const std::uint16_t*>(bytes.data())[i]);
}
inline void set_value(void* to, std::int64_t i, Dtype dtype, float value) {
  if (dtype == Dtype::kFp32)
    static_cast<float*>(to)[i] = value;
  else
    static_cast<std::uint16_t*>(to)[i] = to_bf16(value);
}
inline float combined(const std::vector<std::vector<std::byte>>& all, std::int64_t i, Dtype dtype,
                      Reduction reduction) {
  float sum = value_at(all.front(), i, dtype);
  for (std::size_t m = 1; m < all.size(); ++m) {
    const float more = value_at(all[m], i, dtype);
    sum = reduction == Reduction::kSum ? sum + more : std::max(sum, more);
  }
  return sum;
}

inline void exchange_all(void* communicator, std::span<const NcclTransfer> transfers,
                         void* stream) {
  come_to_the_end_of(stream);
  Member& me = member(communicator);
  Club& club = *me.club;
  std::unique_lock lock(club.mutex);
  for (const NcclTransfer& t : transfers) {
    MW_CHECK(t.peer != me.place.rank && t.peer >= 0 && t.peer < me.place.ranks);
    if (t.sent.value == 0) continue;
    const auto* first = static_cast<const std::byte*>(seen(t.from));
    club.way[{me.place.rank, t.peer}].emplace_back(first, first + t.sent.value);
  }
  for (const NcclTransfer& t : transfers) {
    if (t.sent.value > 0) club.senders.emplace(me.place.rank, t.peer);
    if (t.received.value > 0) club.receivers.emplace(t.peer, me.place.rank);
  }
  club.changed.notify_all();
  for (const NcclTransfer& t : transfers)
    if (t.sent.value > 0)
      wait(me, lock, [&] { return club.receivers.contains({me.place.rank, t.peer}); });
  for (const NcclTransfer& t : transfers) {
    if (t.received.value == 0) continue;
    auto& arrives = club.way[{t.peer, me.place.rank}];
    wait(me, lock, [&] { return !arrives.empty(); });
    MW_CHECK(static_cast<std::int64_t>(arrives.front().size()) == t.received.value);
    deliver(stream, t.to, std::move(arrives.front()));
    arrives.pop_front();
  }
}

const NcclTable& table();

/// Members of a color use the ID created by their first member.
inline void* split(void* communicator, int color, const NcclPlace& place) {
  struct Wish {
    int color, rank, ranks;
    NcclId id;
  };
  const Wish mine{color, place.rank, place.ranks, table().make_id()};
  NcclPlace joint = place;
  int members = 0;
  share(member(communicator), &mine, sizeof(mine), [&](const auto& all) {
    for (const std::vector<std::byte>& part : all) {
      Wish wish;
      std::memcpy(&wish, part.data(), sizeof(wish));
      if (wish.color != color) continue;
      MW_CHECK(wish.ranks == place.ranks || color < 0);
      if (wish.rank == 0) joint.id = wish.id;
      ++members;
    }
  });
  if (color < 0) return nullptr;
  MW_CHECK(members == place.ranks);
  return table().join(joint);
}

inline NcclTable make_table() {
  NcclTable t;
  t.missing = [] { return std::string(); };
  t.version = [] { return 22809; };
  t.make_id = [] {
    const std::lock_guard lock(world().mutex);
    NcclId id{};
    std::memcpy(id.data(), &++world().next_id, sizeof(int));
    return id;
  };
  t.join = [](const NcclPlace& place) -> void* {
    auto me = std::make_unique<Member>();
    me->place = place;
    {
      const std::lock_guard lock(world().mutex);
      std::shared_ptr<Club>& club = world().clubs[place.id];
      if (!club) club = std::make_shared<Club>();
      me->club = club;
    }
    std::unique_lock lock(me->club->mutex);
    ++me->club->joined;
    me->club->changed.notify_all();
    wait(*me, lock, [&] { return me->club->joined == place.ranks; });
    lock.unlock();
    return me.release();
  };
  t.can_split = [] { return true; };
  t.split = split;
  t.leave = [](void* communicator) { delete &member(communicator); };
  t.all_reduce = [](void* c, const void* from, void* to, std::int64_t count, Dtype dtype,
                    Reduction reduction, void* stream) {
    come_to_the_end_of(stream);
    std::vector<std::byte> result(static_cast<std::size_t>(count * bytes_per_element(dtype)));
    share(member(c), seen(from), count * bytes_per_element(dtype), [&](const auto& all) {
      for (std::int64_t i = 0; i < count; ++i)
        set_value(result.data(), i, dtype, combined(all, i, dtype, reduction));
    });
    deliver(stream, to, std::move(result));
  };
  t.reduce_scatter = [](void* c, const void* from, void* to, std::int64_t count, Dtype dtype,
                        void* stream) {
    come_to_the_end_of(stream);
    Member& me = member(c);
    const std::int64_t first = me.place.rank * count;
    std::vector<std::byte> result(static_cast<std::size_t>(count * bytes_per_element(dtype)));
    share(me, seen(from), me.place.ranks * count * bytes_per_element(dtype), [&](const auto& all) {
      for (std::int64_t i = 0; i < count; ++i)
        set_value(result.data(), i, dtype, combined(all, first + i, dtype, Reduction::kSum));
    });
    deliver(stream, to, std::move(result));
  };
  t.all_gather = [](void* c, const void* from, void* to, std::int64_t count, Dtype dtype,
                    void* stream) {
    come_to_the_end_of(stream);
    const std::int64_t bytes = count * bytes_per_element(dtype);
    std::vector<std::byte> result;
    share(member(c), seen(from), bytes, [&](const auto& all) {
      for (const std::vector<std::byte>& part : all)
        result.insert(result.end(), part.begin(), part.end());
    });
    deliver(stream, to, std::move(result));
  };
  t.exchange = [](void* c, int peer, const void* from, Bytes sent, void* to, Bytes received,
                  void* stream) {
    const NcclTransfer one{peer, from, sent, to, received};
    exchange_all(c, std::span(&one, 1), stream);
  };
  t.exchange_all = exchange_all;
  t.check = [](void* c) {
    Member& me = member(c);
    const std::lock_guard lock(me.club->mutex);
    if (me.club->is_aborted)
      throw RuntimeFailure({.where = "fake NCCL", .what = "aborted", .hint = ""});
  };
  t.abort = [](void* c) {
    Member& me = member(c);
    const std::lock_guard lock(me.club->mutex);
    me.club->is_aborted = true;
    me.club->changed.notify_all();
  };
  t.wait = [](void*, void* stream) { come_to_the_end_of(stream); };
  return t;
}

inline const NcclTable& table() {
  static const NcclTable fake = make_table();
  return fake;
}

}  // namespace meshwright::fake_nccl
