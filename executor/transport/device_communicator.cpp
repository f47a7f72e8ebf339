#include "executor/transport/device_communicator.hpp"

#include <vector>

#include "core/base/check.hpp"

namespace meshwright {

bool DeviceCommunicator::is_on_device(std::span<const std::byte> bytes) const {
  return !bytes.empty() && queue_.holds(bytes.data(), Bytes(std::ssize(bytes)));
}

/// Sends a copy made in the sender's stream, so that the sender can reuse its memory at once.
void DeviceCommunicator::send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
                              const MessageTimes& times) {
  Parcel parcel{.size = std::ssize(bytes)};
  if (is_on_device(bytes)) {
    const DeviceTable& device = queue_.device();
    parcel.block = queue_.working_memory(Bytes(parcel.size));
    queue_.copy(parcel.block, bytes.data(), Bytes(parcel.size));
    parcel.copied = device.create_event();
    device.record(parcel.copied, queue_.stream());
  }
  messages_.send(to, tag, std::as_bytes(std::span(&parcel, 1)), times);
  if (parcel.block == nullptr && !bytes.empty()) messages_.send(to, tag, bytes, times);
}

/// From here on the stream waits for the data if they are on the device.
DeviceCommunicator::Arrival DeviceCommunicator::take(RankId from, MessageTag tag,
                                                     std::int64_t size) {
  Arrival arrival;
  arrival.times =
      messages_.receive(from, tag, std::as_writable_bytes(std::span(&arrival.parcel, 1)));
  MW_CHECK(arrival.parcel.size == size);
  if (arrival.parcel.block != nullptr) queue_.device().wait(queue_.stream(), arrival.parcel.copied);
  return arrival;
}

/// Frees the block in stream order, after its use.
void DeviceCommunicator::free_parcel(const Parcel& parcel) {
  queue_.device().release(parcel.block, queue_.stream());
  if (parcel.copied != nullptr) queue_.device().destroy_event(parcel.copied);
}

MessageTimes DeviceCommunicator::receive(RankId from, MessageTag tag, std::span<std::byte> bytes) {
  const Arrival arrival = take(from, tag, std::ssize(bytes));
  if (bytes.empty()) return arrival.times;
  if (arrival.parcel.block == nullptr) {
    receive_from_host(from, tag, bytes);
    return arrival.times;
  }
  const Bytes size(std::ssize(bytes));
  if (is_on_device(bytes))
    queue_.copy(bytes.data(), arrival.parcel.block, size);
  else
    queue_.read(bytes.data(), arrival.parcel.block, size);
  free_parcel(arrival.parcel);
  return arrival.times;
}

void DeviceCommunicator::receive_from_host(RankId from, MessageTag tag,
                                           std::span<std::byte> bytes) {
  if (!is_on_device(bytes)) {
    messages_.receive(from, tag, bytes);
    return;
  }
  std::vector<std::byte> arrived(bytes.size());
  messages_.receive(from, tag, arrived);
  queue_.write(bytes.data(), arrived.data(), Bytes(std::ssize(bytes)));
}

MessageTimes DeviceCommunicator::receive_into(const Vector& values, const MessageSource& source,
                                              Reduction reduction) {
  const Bytes size(values.size * bytes_per_element(values.dtype));
  if (!queue_.use(values.data, size, /*writes=*/true))
    return Communicator::receive_into(values, source, reduction);
  const Arrival arrival = take(source.from, source.tag, size.value);
  if (size.value == 0) return arrival.times;
  const KernelEntry<Reduce>& kernel = queue_.kernels().reduce;
  Parcel parcel = arrival.parcel;
  std::vector<std::byte> bytes;
  if (parcel.block == nullptr) {
    bytes.resize(static_cast<std::size_t>(size.value));
    messages_.receive(source.from, source.tag, bytes);
    parcel.block = queue_.working_memory(size);
    queue_.write(parcel.block, bytes.data(), size);
  }
  queue_.run_in_turn([&] {
    kernel({.stream = queue_.stream()}, {.reduction = reduction,
                                         .into = values,
                                         .from = {parcel.block, values.size, values.dtype}});
  });
  free_parcel(parcel);
  return arrival.times;
}

void DeviceCommunicator::copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (from.empty()) return;
  const Bytes size(std::ssize(from));
  if (is_on_device(to) && is_on_device(from)) return queue_.copy(to.data(), from.data(), size);
  if (is_on_device(to)) return queue_.write(to.data(), from.data(), size);
  if (is_on_device(from)) return queue_.read(to.data(), from.data(), size);
  Communicator::copy(to, from);
}

}  // namespace meshwright
