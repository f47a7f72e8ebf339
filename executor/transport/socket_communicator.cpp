#include "executor/transport/socket_communicator.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {

SocketCommunicator::SocketCommunicator(RankId rank, RankSockets sockets, Beats& beats)
    : rank_(rank), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  MW_CHECK(wake_.get() >= 0);
  const auto peer_of = [&](FileDescriptor& socket) {
    const bool is_there = socket.get() >= 0;
    return Peer{is_there ? std::make_unique<FrameStream>(std::move(socket), &beats) : nullptr,
                is_there};
  };
  for (FileDescriptor& socket : sockets.peers) peers_.push_back(peer_of(socket));
  launcher_ = peer_of(sockets.launcher);
  thread_ = std::thread([this] { run(); });
}

SocketCommunicator::~SocketCommunicator() {
  ending_ = true;
  wake();
  thread_.join();
}

void SocketCommunicator::wake() {
  const std::uint64_t one = 1;
  // Fails only if the counter overflows, and then the thread is awake anyway.
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof(one));
}

void SocketCommunicator::send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                              const MessageTimes& times) {
  MW_CHECK(to.value >= 0 && to.value < rank_count());
  if (to == rank_) return mailbox_.put(rank_, tag, {{bytes.begin(), bytes.end()}, times});
  FrameStream& stream = *peers_[to.index()].stream;
  stream.send(FrameKind::kMessage, tag, times, bytes);
  if (stream.has_unsent()) wake();
}

MessageTimes SocketCommunicator::receive(RankId from, MessageTag tag, std::span<std::byte> bytes) {
  return mailbox_.take_into(from, tag, bytes);
}

void SocketCommunicator::tell(FrameKind kind, std::span<const std::byte> bytes) {
  launcher_.stream->send(kind, bytes);
  if (launcher_.stream->has_unsent()) wake();
}

void SocketCommunicator::give_up_launcher() {
  is_launcher_given_up_ = true;
  stop();
  wake();
}

void SocketCommunicator::take_from_launcher(Frame&& frame) {
  ++frames_of_launcher_;
  if (frame.kind == FrameKind::kFinished) {
    is_released_ = true;
  } else if (frame.kind == FrameKind::kStop && !is_stopped_) {
    stop_reason_ = std::move(frame.bytes);
    stop();
  }
}

void SocketCommunicator::stop() {
  is_stopped_ = true;
  mailbox_.close();
}

void SocketCommunicator::run() {
  try {
    while (wait_and_move()) {
    }
  } catch (const std::bad_alloc&) {
    is_out_of_memory_ = true;
    stop();
  }
}

bool SocketCommunicator::wait_and_move() {
  const bool ending = ending_.load();  // before checking for unsent data: none is added after
  bool has_unsent = false;
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  std::vector<Peer*> who;
  const auto add = [&](Peer& peer) {
    if (!peer.stream) return;
    const bool sends = peer.stream->has_unsent();
    has_unsent |= sends && (&peer == &launcher_ ? !is_launcher_given_up_ : !is_stopped_);
    const int events = (peer.is_open ? POLLIN : 0) | (sends ? POLLOUT : 0);
    if (events == 0) return;
    polled.push_back({peer.stream->fd(), static_cast<short>(events), 0});
    who.push_back(&peer);
  };
  for (Peer& peer : peers_) add(peer);
  add(launcher_);
  if (ending && !has_unsent) return false;

  ::poll(polled.data(), polled.size(), -1);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof(count));
  for (std::size_t i = 0; i < who.size(); ++i) {
    if (polled[i + 1].revents == 0) continue;
    Peer& peer = *who[i];
    peer.stream->send_rest();
    const bool is_launcher = &peer == &launcher_;
    const RankId from(is_launcher ? -1 : static_cast<std::int32_t>(&peer - peers_.data()));
    if (peer.is_open)
      peer.is_open = peer.stream->receive(
          [&](Frame&& frame) {
            if (is_launcher) return take_from_launcher(std::move(frame));
            mailbox_.put(from, frame.tag, {std::move(frame.bytes), frame.times});
          },
          /*is_heartbeat=*/!is_launcher);
    if (peer.is_open) continue;
    if (!is_launcher) {
      mailbox_.close_sender(from);
      continue;
    }
    stop();
    is_launcher_gone_ = true;
  }
  return true;
}

}  // namespace meshwright
