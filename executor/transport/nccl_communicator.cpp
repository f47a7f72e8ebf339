#include "executor/transport/nccl_communicator.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <thread>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
/// Does not collide with other tags of the control channel, which count from 0.
constexpr std::int32_t kFirstIdTag = 1 << 20;
constexpr std::chrono::microseconds kEventPollingInterval{20};

Bytes size_of(const Vector& values) { return Bytes(values.size * bytes_per_element(values.dtype)); }

/// Greedily partitions the groups (by index) into rows of pairwise disjoint groups.
std::vector<std::vector<std::size_t>> rows_apart(
    std::span<const std::vector<RankId>* const> groups) {
  std::vector<std::vector<std::size_t>> rows;
  std::vector<std::set<RankId>> busy;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<RankId>& members = *groups[g];
    std::size_t row = 0;
    while (row < rows.size() &&
           std::ranges::any_of(members, [&](RankId rank) { return busy[row].contains(rank); }))
      ++row;
    if (row == rows.size()) {
      rows.emplace_back();
      busy.emplace_back();
    }
    rows[row].push_back(g);
    busy[row].insert(members.begin(), members.end());
  }
  return rows;
}

}  // namespace

/// The order is the same on all ranks.
std::vector<NcclCommunicator::SharedComm> NcclCommunicator::shared_comms_of(
    const NcclGroups& groups) {
  std::vector<SharedComm> shared;
  for (const std::vector<RankId>& members : groups.groups) {
    const bool is_mine = std::ranges::find(members, rank()) != members.end();
    shared.push_back({members, is_mine ? &groups_[members] : nullptr});
  }
  for (const auto& [from, to] : groups.directions) {
    Comm* comm = from == rank() ? &to_[to] : to == rank() ? &from_[from] : nullptr;
    if (comm != nullptr) comm->stream = queue_.device().create_stream();
    shared.push_back({{from, to}, comm});
  }
  return shared;
}

/// If groups are created one by one, all ranks use the same order, which prevents deadlocks: no
/// member of the first incomplete group waits for a later one.
NcclCommunicator::NcclCommunicator(Communicator& messages, DeviceQueue& queue,
                                   const NcclGroups& groups, const NcclOptions& options)
    : messages_(messages), queue_(queue), options_(options) {
  const std::vector<SharedComm> shared = shared_comms_of(groups);
  for (const SharedComm& group : shared)
    if (group.comm != nullptr) comms_.push_back(group.comm);
  try {
    if (shared.size() > 1 && options_.table.can_split()) {
      split(shared);
    } else {
      for (std::size_t c = 0; c < shared.size(); ++c)
        if (shared[c].comm != nullptr)
          shared[c].comm->nccl =
              join(shared[c].members, kFirstIdTag + static_cast<std::int32_t>(c));
    }
    connect(shared);
  } catch (...) {
    abort_all();
    for_each_comm([&](Comm& comm) {
      if (comm.nccl != nullptr) options_.table.leave(comm.nccl);
      if (comm.stream != nullptr) queue_.device().destroy_stream(comm.stream);
    });
    throw;
  }
  queue_.set_wait([this](void* stream) { wait_for(stream); });
}

/// The global communicator is not needed afterwards.
void NcclCommunicator::split(std::span<const SharedComm> shared) {
  std::vector<const std::vector<RankId>*> members;
  for (const SharedComm& group : shared) members.push_back(&group.members);
  void* all = join(all_ranks(rank_count()), kFirstIdTag);
  try {
    for (const std::vector<std::size_t>& row : rows_apart(members)) {
      NcclPlace place{.device = options_.device, .watchdog_timeout = options_.watchdog_timeout};
      int color = -1;
      for (std::size_t c = 0; c < row.size(); ++c) {
        const SharedComm& group = shared[row[c]];
        if (group.comm == nullptr) continue;
        color = static_cast<int>(c);
        place.ranks = static_cast<int>(group.members.size());
        place.rank =
            static_cast<int>(std::ranges::find(group.members, rank()) - group.members.begin());
      }
      void* made = options_.table.split(all, color, place);
      if (color >= 0) shared[row[static_cast<std::size_t>(color)]].comm->nccl = made;
    }
  } catch (...) {
    options_.table.abort(all);
    options_.table.leave(all);
    throw;
  }
  options_.table.leave(all);
}

/// NCCL connects a pair on its first transfer, which blocks until both members have called it. In a
/// ring, or at the turn of a bidirectional pipeline, every rank sends before it receives: a
/// deadlock if the pairs were not connected yet. So they connect here, in the same order on all
/// ranks.
void NcclCommunicator::connect(std::span<const SharedComm> shared) {
  const Bytes one(1);
  void* block = nullptr;
  for (const auto& [members, comm] : shared) {
    if (comm == nullptr || comm->stream == nullptr) continue;
    if (block == nullptr) {
      block = queue_.working_memory(one);
      queue_.device().wait_for_stream(queue_.stream());
    }
    NcclTransfer transfer;
    if (members.front() == rank())
      transfer.peer = 1, transfer.from = block, transfer.sent = one;
    else
      transfer.peer = 0, transfer.to = block, transfer.received = one;
    options_.table.exchange_all(comm->nccl, std::span(&transfer, 1), comm->stream);
    options_.table.wait(comm->nccl, comm->stream);
  }
  queue_.device().release(block, queue_.stream());
}

/// On a normal end all ranks leave together; after a failure there is no waiting for others.
NcclCommunicator::~NcclCommunicator() {
  bool has_failed = std::uncaught_exceptions() > 0;
  try {
    if (!has_failed) finish();
  } catch (const std::exception&) {
    has_failed = true;
  }
  if (has_failed) abort_all();
  for_each_comm([&](Comm& comm) {
    try {
      options_.table.leave(comm.nccl);
    } catch (const std::exception&) {  // the communicator is freed anyway
    }
    if (comm.stream != nullptr) queue_.device().destroy_stream(comm.stream);
  });
  queue_.set_wait({});
}

void NcclCommunicator::finish() {
  queue_.wait();
  for_each_comm([&](Comm& comm) {
    if (comm.stream != nullptr) wait_for(comm.stream);
  });
}

/// The first member creates the ID and sends it to the others.
void* NcclCommunicator::join(std::span<const RankId> members, std::int32_t number) {
  const MessageTag tag{Channel::kControl, number};
  NcclPlace place{.ranks = static_cast<int>(members.size()),
                  .device = options_.device,
                  .watchdog_timeout = options_.watchdog_timeout};
  if (members.front() == rank()) {
    place.id = options_.table.make_id();
    for (const RankId member : members.subspan(1))
      messages_.send(member, tag, std::as_bytes(std::span(place.id)), {});
  } else {
    messages_.receive(members.front(), tag, std::as_writable_bytes(std::span(place.id)));
  }
  place.rank = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  return options_.table.join(place);
}

template <class Visit>
void NcclCommunicator::for_each_comm(Visit visit) {
  for (Comm* comm : comms_) visit(*comm);
}

bool NcclCommunicator::is_on_device(const void* memory, std::size_t size) const {
  return queue_.holds(memory, Bytes(static_cast<std::int64_t>(size)));
}

// ---- waiting ----

void NcclCommunicator::abort_all() noexcept {
  for_each_comm([&](Comm& comm) {
    if (comm.nccl != nullptr) options_.table.abort(comm.nccl);
  });
}

void NcclCommunicator::check_all() {
  for_each_comm([&](Comm& comm) { options_.table.check(comm.nccl); });
  if (options_.must_stop != nullptr && *options_.must_stop)
    throw PeerFailure("another rank failed");
}

/// Polls often at first, since most waits are short.
void NcclCommunicator::wait_for(void* stream) {
  const DeviceTable& device = queue_.device();
  void* end = device.create_event();
  device.record(end, stream);
  const Clock::time_point limit = Clock::now() + options_.watchdog_timeout;
  try {
    while (!device.is_complete(end)) {
      check_all();
      if (Clock::now() > limit)
        throw RuntimeFailure({.where = "NCCL",
                              .what = "stream not finished after " +
                                      std::to_string(options_.watchdog_timeout.count()) +
                                      " ms: a peer is not responding",
                              .hint = ""});
      std::this_thread::sleep_for(kEventPollingInterval);
    }
  } catch (...) {
    abort_all();
    device.destroy_event(end);
    throw;
  }
  device.destroy_event(end);
}

/// Work enqueued on `to_stream` from now on runs after the work now on `from_stream`.
void NcclCommunicator::order_streams(void* from_stream, void* to_stream) {
  const DeviceTable& device = queue_.device();
  void* reached = device.create_event();
  device.record(reached, from_stream);
  device.wait(to_stream, reached);
  device.destroy_event(reached);  // freed once no stream waits for it
}

// ---- messages ----

/// Sends a copy, so that the rank can reuse the memory before the receiver is ready.
void NcclCommunicator::send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                            const MessageTimes& times) {
  const auto comm = to_.find(to);
  const Header header{std::ssize(bytes), !bytes.empty() && comm != to_.end() &&
                                             is_on_device(bytes.data(), bytes.size())};
  messages_.send(to, tag, std::as_bytes(std::span(&header, 1)), times);
  if (bytes.empty()) return;
  if (header.is_by_nccl == 0) {
    if (!is_on_device(bytes.data(), bytes.size())) return messages_.send(to, tag, bytes, times);
    std::vector<std::byte> on_host(bytes.size());
    queue_.read(on_host.data(), bytes.data(), Bytes(header.size));
    return messages_.send(to, tag, on_host, times);
  }
  const DeviceTable& device = queue_.device();
  const Bytes size(header.size);
  void* block = queue_.working_memory(size);
  queue_.copy(block, bytes.data(), size);
  order_streams(queue_.stream(), comm->second.stream);
  const NcclTransfer transfer{.peer = 1, .from = block, .sent = size};
  options_.table.exchange_all(comm->second.nccl, std::span(&transfer, 1), comm->second.stream);
  device.release(block, comm->second.stream);
}

NcclCommunicator::Arrival NcclCommunicator::receive_header(RankId from, MessageTag tag,
                                                           std::size_t size) {
  Arrival arrival;
  arrival.times =
      messages_.receive(from, tag, std::as_writable_bytes(std::span(&arrival.header, 1)));
  MW_CHECK(arrival.header.size == static_cast<std::int64_t>(size));
  return arrival;
}

/// Receives into device memory, ordered with the rank's kernels.
void NcclCommunicator::receive_by_nccl(RankId from, void* to, Bytes size) {
  const Comm& comm = from_.at(from);
  queue_.use(to, size, /*writes=*/true);
  order_streams(queue_.stream(), comm.stream);
  const NcclTransfer transfer{.peer = 0, .to = to, .received = size};
  options_.table.exchange_all(comm.nccl, std::span(&transfer, 1), comm.stream);
  order_streams(comm.stream, queue_.stream());
  queue_.note_work();
}

MessageTimes NcclCommunicator::receive(RankId from, MessageTag tag, std::span<std::byte> bytes) {
  const Arrival arrival = receive_header(from, tag, bytes.size());
  if (bytes.empty()) return arrival.times;
  const bool stays = is_on_device(bytes.data(), bytes.size());
  const Bytes size(arrival.header.size);
  if (arrival.header.is_by_nccl == 0) {
    std::vector<std::byte> on_host(stays ? bytes.size() : 0);
    messages_.receive(from, tag, stays ? std::span(on_host) : bytes);
    if (stays) queue_.write(bytes.data(), on_host.data(), size);
  } else if (stays) {
    receive_by_nccl(from, bytes.data(), size);
  } else {
    void* block = queue_.working_memory(size);
    receive_by_nccl(from, block, size);
    queue_.read(bytes.data(), block, size);
    queue_.device().release(block, queue_.stream());
  }
  return arrival.times;
}

MessageTimes NcclCommunicator::receive_into(const Vector& values, const MessageSource& source,
                                            Reduction reduction) {
  const Bytes size = size_of(values);
  if (size.value == 0 || !queue_.use(values.data, size, /*writes=*/true))
    return Communicator::receive_into(values, source, reduction);
  const Arrival arrival =
      receive_header(source.from, source.tag, static_cast<std::size_t>(size.value));
  const DeviceTable& device = queue_.device();
  void* block = queue_.working_memory(size);
  if (arrival.header.is_by_nccl != 0) {
    receive_by_nccl(source.from, block, size);
  } else {
    std::vector<std::byte> bytes(static_cast<std::size_t>(size.value));
    messages_.receive(source.from, source.tag, bytes);
    queue_.write(block, bytes.data(), size);
  }
  queue_.kernels().reduce(
      {.stream = queue_.stream()},
      {.reduction = reduction, .into = values, .from = {block, values.size, values.dtype}});
  queue_.note_work();
  device.release(block, queue_.stream());
  return arrival.times;
}

void NcclCommunicator::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (from.empty()) return;
  const bool into_tensor = is_on_device(to.data(), to.size());
  const bool from_tensor = is_on_device(from.data(), from.size());
  const Bytes size(std::ssize(from));
  if (into_tensor && from_tensor) return queue_.copy(to.data(), from.data(), size);
  if (into_tensor) return queue_.write(to.data(), from.data(), size);
  if (from_tensor) return queue_.read(to.data(), from.data(), size);
  Communicator::copy(to, from);
}

// ---- collectives ----

/// Handles collectives on memory of the queue, which is a property of all members or none; empty
/// ones need no work.
bool NcclCommunicator::run_collective(const GroupCall& call) {
  const auto found = groups_.find({call.members.begin(), call.members.end()});
  if (found == groups_.end()) return false;
  void* nccl = found->second.nccl;
  const auto members = static_cast<std::int64_t>(call.members.size());
  const Vector& v = call.values;
  switch (call.kind) {
    case CollectiveKind::kAllToAll:
      return all_to_all(nccl, call);
    case CollectiveKind::kAllGather:
      return all_gather(nccl, call);
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter: {
      if (v.size == 0) return true;
      if (!queue_.use(v.data, size_of(v), /*writes=*/true)) return false;
      queue_.note_work();
      // ncclReduceScatter needs equal blocks; unequal ones are all-reduced.
      if (call.kind == CollectiveKind::kAllReduce || v.size % members != 0) {
        options_.table.all_reduce(nccl, v.data, v.data, v.size, v.dtype, call.reduction,
                                  queue_.stream());
        return true;
      }
      const std::int64_t block = v.size / members;
      options_.table.reduce_scatter(nccl, v.data, part_of(v, block * call.index, block).data, block,
                                    v.dtype, queue_.stream());
      return true;
    }
    case CollectiveKind::kBroadcast: {
      if (call.bytes.empty()) return true;
      const Bytes size(std::ssize(call.bytes));
      if (!queue_.use(call.bytes.data(), size, call.index != call.root)) return false;
      std::vector<NcclTransfer> transfers;
      if (call.index != call.root)
        transfers.push_back({.peer = call.root, .to = call.bytes.data(), .received = size});
      for (int peer = 0; call.index == call.root && peer < members; ++peer)
        if (peer != call.root)
          transfers.push_back({.peer = peer, .from = call.bytes.data(), .sent = size});
      queue_.note_work();
      options_.table.exchange_all(nccl, transfers, queue_.stream());
      return true;
    }
    default:
      return false;
  }
}

/// Equal blocks are gathered in place; otherwise every member sends its block to all others.
bool NcclCommunicator::all_gather(void* nccl, const GroupCall& call) {
  if (call.bytes.empty()) return true;
  if (!queue_.use(call.bytes.data(), Bytes(std::ssize(call.bytes)), /*writes=*/true)) return false;
  const int members = static_cast<int>(call.members.size());
  MW_CHECK(members > 0);
  const std::int64_t elements = std::ssize(call.bytes) / call.element_bytes;
  const auto block = [&](int index) {
    const Block b = block_of(elements, members, index);
    return call.bytes.subspan(static_cast<std::size_t>(b.begin * call.element_bytes),
                              static_cast<std::size_t>(b.size() * call.element_bytes));
  };
  const std::span<std::byte> own = block(call.index);
  queue_.note_work();
  std::vector<NcclTransfer> transfers;
  for (int peer = 0; peer < members; ++peer)
    if (peer != call.index)
      transfers.push_back({peer, own.data(), Bytes(std::ssize(own)), block(peer).data(),
                           Bytes(std::ssize(block(peer)))});
  // In units of bf16, since NCCL copies any two bytes unchanged.
  if (elements % members == 0 && own.size() % 2 == 0)
    options_.table.all_gather(nccl, own.data(), call.bytes.data(), std::ssize(own) / 2,
                              Dtype::kBf16, queue_.stream());
  else
    options_.table.exchange_all(nccl, transfers, queue_.stream());
  return true;
}

bool NcclCommunicator::all_to_all(void* nccl, const GroupCall& call) {
  std::vector<NcclTransfer> transfers;
  for (std::size_t i = 0; i < call.members.size(); ++i) {
    const std::span<const std::byte> out = call.sent[i];
    const std::span<std::byte> in = call.received[i];
    const Bytes out_size(std::ssize(out)), in_size(std::ssize(in));
    if (!out.empty() && !queue_.use(out.data(), out_size, /*writes=*/false)) return false;
    if (!in.empty() && !queue_.use(in.data(), in_size, /*writes=*/true)) return false;
    if (static_cast<int>(i) != call.index && out.size() + in.size() > 0)
      transfers.push_back({static_cast<int>(i), out.data(), out_size, in.data(), in_size});
  }
  const auto me = static_cast<std::size_t>(call.index);
  MW_CHECK(call.sent[me].size() == call.received[me].size());
  copy(call.received[me], call.sent[me]);
  queue_.note_work();
  if (!transfers.empty()) options_.table.exchange_all(nccl, transfers, queue_.stream());
  return true;
}

}  // namespace meshwright
