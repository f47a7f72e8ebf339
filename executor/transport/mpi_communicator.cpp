#include "executor/transport/mpi_communicator.hpp"

#include <mpi.h>

#include <algorithm>
#include <thread>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr int kFrameTag = 1;
/// Frames are sent in pieces of this size: each completed piece is a heartbeat, and MPI message
/// sizes are limited to an int.
constexpr std::size_t kPiece = std::size_t{4} << 20;
/// Idle rounds that only yield the processor; later ones sleep.
constexpr int kBusyRounds = 200;
constexpr std::chrono::microseconds kPause{100};

}  // namespace

/// A frame being sent, in pieces.
struct MpiCommunicator::Outgoing {
  RankId to;
  bool shows_progress = true;
  std::vector<std::byte> bytes;       ///< header first
  std::vector<MPI_Request> pieces{};  ///< in progress, in order
  std::size_t left = 0;               ///< completed pieces
};

MpiCommunicator::MpiCommunicator(RankId rank, int rank_count, Beats& beats)
    : rank_(rank), beats_(beats), parsers_(static_cast<std::size_t>(rank_count)) {}
MpiCommunicator::~MpiCommunicator() = default;

void MpiCommunicator::send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                           const MessageTimes& times) {
  MW_CHECK(to.value >= 0 && to.value < rank_count());
  post(to, FrameKind::kMessage, tag, times, bytes);
}

void MpiCommunicator::post(RankId to, FrameKind kind, MessageTag tag, const MessageTimes& times,
                           std::span<const std::byte> bytes) {
  const FrameHeader header = header_of(kind, tag, times, bytes.size());
  Outgoing out{.to = to, .shows_progress = shows_progress(kind), .bytes = {}};
  out.bytes.reserve(header.size() + bytes.size());
  out.bytes.insert(out.bytes.end(), header.begin(), header.end());
  out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
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

FrameParser::Take MpiCommunicator::sorter(RankId from, const Take& take) {
  return [this, from, &take](Frame&& frame) {
    if (frame.kind == FrameKind::kMessage) {
      beats_.fetch_add(1, std::memory_order_relaxed);
      mailbox_.put(from, frame.tag, {std::move(frame.bytes), frame.times});
    } else {
      take(from, std::move(frame));
    }
  };
}

bool MpiCommunicator::start_sends(const Take& take) {
  std::vector<Outgoing> queue;
  {
    const std::lock_guard lock(mutex_);
    queue.swap(queue_);
    for (Outgoing& out : queue)
      if (out.to != rank_) under_way_.push_back(std::move(out));
  }
  for (const Outgoing& out : queue)  // frames moved out of it are empty
    if (out.to == rank_) parsers_[rank_.index()].parse(out.bytes, sorter(rank_, take));
  bool did_something = !queue.empty();
  for (Outgoing& out : under_way_) {
    if (out.pieces.empty()) start(out);
    did_something |= advance(out);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(under_way_, [](const Outgoing& out) { return out.left == out.pieces.size(); });
  return did_something;
}

/// MPI preserves the order of pieces between two processes.
void MpiCommunicator::start(Outgoing& out) {
  for (std::size_t first = 0; first < out.bytes.size(); first += kPiece) {
    MPI_Request& request = out.pieces.emplace_back();
    MPI_Isend(out.bytes.data() + first,
              static_cast<int>(std::min(kPiece, out.bytes.size() - first)), MPI_BYTE, out.to.value,
              kFrameTag, MPI_COMM_WORLD, &request);
  }
}

/// Returns true if pieces have completed.
bool MpiCommunicator::advance(Outgoing& out) {
  const std::size_t before = out.left;
  for (; out.left < out.pieces.size(); ++out.left) {
    int is_done = 0;
    MPI_Test(&out.pieces[out.left], &is_done, MPI_STATUS_IGNORE);
    if (is_done == 0) break;
    if (out.shows_progress) beats_.fetch_add(1, std::memory_order_relaxed);
  }
  return out.left > before;
}

bool MpiCommunicator::take_arrived(const Take& take) {
  bool did_something = false;
  for (;;) {
    int is_there = 0, size = 0;
    MPI_Status status{};
    MPI_Iprobe(MPI_ANY_SOURCE, kFrameTag, MPI_COMM_WORLD, &is_there, &status);
    if (is_there == 0) return did_something;
    did_something = true;
    MPI_Get_count(&status, MPI_BYTE, &size);
    const RankId from(status.MPI_SOURCE);
    FrameParser& parser = parsers_[from.index()];
    const auto count = static_cast<std::size_t>(size);
    const bool has_place = parser.missing().size() >= count;
    if (!has_place) piece_.resize(count);
    MPI_Recv(has_place ? parser.missing().data() : piece_.data(), size, MPI_BYTE, from.value,
             kFrameTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (count == kPiece) beats_.fetch_add(1, std::memory_order_relaxed);
    if (has_place)
      parser.filled(count, sorter(from, take));
    else
      parser.parse(std::span(piece_).first(count), sorter(from, take));
  }
}

/// A computing rank has its core to itself except for occasional polls.
void MpiCommunicator::move(const Take& take) {
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
