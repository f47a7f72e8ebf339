#include "executor/mpi_communicator.hpp"

#include <mpi.h>

#include <algorithm>
#include <climits>
#include <thread>

#include "core/check.hpp"

namespace meshwright {
namespace {

constexpr int kTag = 1;
/// Rounds without a message in which only the processor is offered to others; then rounds last.
constexpr int kBusyRounds = 200;
constexpr std::chrono::microseconds kPause{100};

}  // namespace

/// Bytes with the header behind them, so that those that arrive lie at the start of their memory.
struct MpiCommunicator::Outgoing {
  RankId to;
  std::vector<std::byte> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

MpiCommunicator::MpiCommunicator(RankId rank, int rank_count)
    : rank_(rank), rank_count_(rank_count) {}
MpiCommunicator::~MpiCommunicator() = default;

void MpiCommunicator::send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                           const MessageTimes& times) {
  MW_CHECK(to.value >= 0 && to.value < rank_count_);
  post(to, FrameKind::kMessage, tag, times, bytes);
}

void MpiCommunicator::post(RankId to, FrameKind kind, MessageTag tag, const MessageTimes& times,
                           std::span<const std::byte> bytes) {
  MW_CHECK(bytes.size() < INT_MAX - kFrameHeaderSize);  // of one message of MPI
  const FrameHeader header = header_of(kind, tag, times, bytes.size());
  Outgoing out{.to = to, .bytes = {}};
  out.bytes.reserve(bytes.size() + header.size());
  out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  out.bytes.insert(out.bytes.end(), header.begin(), header.end());
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(out));
  }
  posted_.notify_one();
}

bool MpiCommunicator::is_idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && under_way_.empty();
}

namespace {

/// `bytes` with the header at their end.
Frame frame_of(std::vector<std::byte>&& bytes) {
  MW_CHECK(bytes.size() >= kFrameHeaderSize);
  FrameHeader header{};
  std::copy(bytes.end() - kFrameHeaderSize, bytes.end(), header.begin());
  bytes.resize(bytes.size() - kFrameHeaderSize);
  Frame frame = frame_from(header);
  frame.bytes = std::move(bytes);
  return frame;
}

}  // namespace

bool MpiCommunicator::start_sends(const std::function<void(RankId, Frame&&)>& take) {
  std::vector<Outgoing> queue;
  {
    const std::lock_guard lock(mutex_);
    queue.swap(queue_);
    for (Outgoing& out : queue)
      if (out.to != rank_) under_way_.push_back(std::move(out));
  }
  for (Outgoing& out : queue) {
    if (out.bytes.empty()) continue;  // moved: under way
    Frame frame = frame_of(std::move(out.bytes));
    if (frame.kind == FrameKind::kMessage)
      mailbox_.put(rank_, frame.tag, {std::move(frame.bytes), frame.times});
    else
      take(rank_, std::move(frame));
  }
  for (Outgoing& out : under_way_)
    if (out.request == MPI_REQUEST_NULL)
      MPI_Isend(out.bytes.data(), static_cast<int>(out.bytes.size()), MPI_BYTE, out.to.value, kTag,
                MPI_COMM_WORLD, &out.request);
  const bool did_something = !queue.empty();
  const std::lock_guard lock(mutex_);
  std::erase_if(under_way_, [](Outgoing& out) {
    int is_done = 0;
    MPI_Test(&out.request, &is_done, MPI_STATUS_IGNORE);
    return is_done != 0;
  });
  return did_something;
}

bool MpiCommunicator::take_arrived(const std::function<void(RankId, Frame&&)>& take) {
  bool did_something = false;
  for (;;) {
    int is_there = 0, size = 0;
    MPI_Status status{};
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &is_there, &status);
    if (is_there == 0) return did_something;
    did_something = true;
    MPI_Get_count(&status, MPI_BYTE, &size);
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    MPI_Recv(bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, kTag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    const RankId from(status.MPI_SOURCE);
    Frame frame = frame_of(std::move(bytes));
    if (frame.kind == FrameKind::kMessage)
      mailbox_.put(from, frame.tag, {std::move(frame.bytes), frame.times});
    else
      take(from, std::move(frame));
  }
}

/// A rank that computes has its core to itself but for a look every now and then.
void MpiCommunicator::move(const std::function<void(RankId, Frame&&)>& take) {
  const bool sent = start_sends(take);
  const bool took = take_arrived(take);
  idle_rounds_ = sent || took ? 0 : idle_rounds_ + 1;
  if (idle_rounds_ == 0) return;
  std::unique_lock lock(mutex_);
  if (idle_rounds_ < kBusyRounds && mailbox_.is_waited_for()) {
    lock.unlock();
    std::this_thread::yield();
    return;
  }
  posted_.wait_for(lock, kPause, [&] { return !queue_.empty(); });
}

}  // namespace meshwright
