#include "executor/transport/frame_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "executor/transport/wire.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 16;
/// Bytes moved per call, so that no stream starves the others and long messages produce heartbeats.
constexpr std::size_t kFairShare = std::size_t{4} << 20;
/// Address space for a frame before its bytes arrive: whoever sent the header may not send them.
constexpr std::size_t kMostReserved = std::size_t{1} << 30;

bool is_valid(const Frame& frame) {
  return frame.kind <= kLastFrameKind && frame.tag.channel <= Channel::kControl;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::array<FileDescriptor, 2> socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    throw RuntimeFailure(
        {"--ranks", fmt::format("cannot create socket: {}", std::generic_category().message(errno)),
         "raise the limit of open files (ulimit -n), or use fewer ranks"});
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

FrameHeader header_of(FrameKind kind, MessageTag tag, const MessageTimes& times, std::size_t size) {
  ByteWriter writer;
  writer.number(static_cast<std::uint64_t>(size));
  writer.number(times.start.value);
  writer.number(times.end.value);
  writer.number(tag.id);
  writer.number(static_cast<std::uint8_t>(tag.channel));
  writer.number(static_cast<std::uint8_t>(kind));
  FrameHeader header{};
  const std::vector<std::byte> bytes = writer.take();
  std::copy(bytes.begin(), bytes.end(), header.begin());
  return header;
}

Frame frame_from(const FrameHeader& header) {
  ByteReader reader(header);
  static_cast<void>(reader.number<std::uint64_t>());
  Frame frame;
  frame.times.start = Ticks(reader.number<std::int64_t>());
  frame.times.end = Ticks(reader.number<std::int64_t>());
  frame.tag.id = reader.number<std::int32_t>();
  frame.tag.channel = static_cast<Channel>(reader.number<std::uint8_t>());
  frame.kind = static_cast<FrameKind>(reader.number<std::uint8_t>());
  return frame;
}

std::size_t size_from(const FrameHeader& header) {
  return ByteReader(header).number<std::uint64_t>();
}

/// Returns the number of bytes accepted; all of them if the other end has closed.
std::size_t FrameStream::send_now(std::span<const std::byte> first,
                                  std::span<const std::byte> second, bool is_heartbeat) {
  std::size_t taken = 0;
  while (!is_broken_ && taken < first.size() + second.size()) {
    const auto rest = [&](std::span<const std::byte> part, std::size_t before) {
      const auto from = part.subspan(std::min(part.size(), taken - std::min(taken, before)));
      const std::size_t size = std::min(from.size(), kFairShare);
      return iovec{const_cast<std::byte*>(from.data()), size};  // sendmsg() only reads
    };
    std::array<iovec, 2> parts{rest(first, 0), rest(second, first.size())};
    if (parts[0].iov_len == kFairShare) parts[1].iov_len = 0;  // the first part is not complete
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t n = ::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == ENOBUFS)) return taken;
    is_broken_ = n < 0;
    if (is_broken_) break;
    taken += static_cast<std::size_t>(n);
    if (is_heartbeat) beat();
  }
  return is_broken_ ? first.size() + second.size() : taken;
}

void FrameStream::send(FrameKind kind, MessageTag tag, const MessageTimes& times,
                       std::span<const std::byte> bytes) {
  const FrameHeader header = header_of(kind, tag, times, bytes.size());
  const std::lock_guard lock(mutex_);
  if (sent_ > unsent_.size() / 2) {
    unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  const bool is_heartbeat = shows_progress(kind);
  const std::size_t taken = unsent_.empty() ? send_now(header, bytes, is_heartbeat) : 0;
  const auto keep = [&](std::span<const std::byte> part, std::size_t before) {
    auto from = part.subspan(std::min(part.size(), taken - std::min(taken, before)));
    if (from.size() > kFairShare) unsent_.reserve(unsent_.size() + from.size());
    while (!from.empty()) {
      const auto piece = from.first(std::min(from.size(), kFairShare));
      unsent_.insert(unsent_.end(), piece.begin(), piece.end());
      from = from.subspan(piece.size());
      if (is_heartbeat) beat();
    }
  };
  keep(header, 0);
  keep(bytes, header.size());
}

bool FrameStream::has_unsent() const {
  const std::lock_guard lock(mutex_);
  return !unsent_.empty();
}

void FrameStream::send_rest() {
  const std::lock_guard lock(mutex_);
  sent_ += send_now(std::span(unsent_).subspan(sent_), {});
  if (sent_ < unsent_.size()) return;
  unsent_ = {};
  sent_ = 0;
}

bool FrameStream::receive(const FrameParser::Take& take, bool is_heartbeat) {
  buffer_.resize(kBufferSize);
  for (std::size_t total = 0; total < kFairShare;) {
    const std::span<std::byte> missing = parser_.missing();
    const bool is_long = missing.size() >= kBufferSize;
    const std::span<std::byte> to = is_long ? missing : std::span(buffer_);
    const ssize_t n = ::recv(fd(), to.data(), to.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    const auto size = static_cast<std::size_t>(n);
    total += size;
    if (is_heartbeat) beat();
    try {
      is_long ? parser_.filled(size, take) : parser_.parse(to.first(size), take);
    } catch (const InvalidFrame&) {
      return false;
    }
  }
  return true;
}

/// In steps: zeroing fresh memory for all of a long frame at once would delay heartbeats.
void FrameParser::make_room() {
  constexpr std::size_t kStep = std::size_t{16} << 20;
  if (frame_size_ == frame_.bytes.size())
    frame_.bytes.resize(std::min(expected_, frame_size_ + kStep));
}

std::span<std::byte> FrameParser::missing() {
  if (header_size_ < kFrameHeaderSize) return {};
  make_room();
  return std::span(frame_.bytes).subspan(frame_size_);
}

void FrameParser::filled(std::size_t size, const Take& take) {
  frame_size_ += size;
  parse({}, take);
}

void FrameParser::parse(std::span<const std::byte> bytes, const Take& take) {
  for (;;) {
    if (header_size_ < kFrameHeaderSize) {
      const std::size_t n = std::min(bytes.size(), kFrameHeaderSize - header_size_);
      std::copy_n(bytes.begin(), n, header_.begin() + static_cast<std::ptrdiff_t>(header_size_));
      header_size_ += n;
      bytes = bytes.subspan(n);
      if (header_size_ < kFrameHeaderSize) return;
      frame_ = frame_from(header_);
      expected_ = size_from(header_);
      if (!is_valid(frame_) || expected_ > kLargestFrame) throw InvalidFrame();
      frame_.bytes.reserve(std::min(expected_, kMostReserved));
      frame_size_ = 0;
    }
    while (frame_size_ < expected_ && !bytes.empty()) {
      make_room();
      const std::size_t n = std::min(bytes.size(), frame_.bytes.size() - frame_size_);
      std::copy_n(bytes.begin(), n,
                  frame_.bytes.begin() + static_cast<std::ptrdiff_t>(frame_size_));
      frame_size_ += n;
      bytes = bytes.subspan(n);
    }
    if (frame_size_ < expected_) return;
    header_size_ = 0;
    take(std::move(frame_));
  }
}

}  // namespace meshwright
