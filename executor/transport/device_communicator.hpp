/// Messages between ranks that are threads of one process and share one device: device memory is
/// copied on the device in stream order. Kernels never spin and the host never waits, so ranks
/// cannot block each other on the device. Host memory and message metadata go through the
/// underlying communicator.
#pragma once

#include "executor/transport/communicator.hpp"
#include "kernels/device/queue.hpp"

namespace meshwright {

class DeviceCommunicator final : public Communicator {
 public:
  /// Both must outlive it. The queues of all ranks belong to one device.
  DeviceCommunicator(Communicator& messages, DeviceQueue& queue)
      : messages_(messages), queue_(queue) {}
  RankId rank() const override { return messages_.rank(); }
  int rank_count() const override { return messages_.rank_count(); }
  void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
            const MessageTimes& times) override;
  MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) override;
  MessageTimes receive_into(const Vector& values, const MessageSource& source,
                            Reduction reduction) override;
  void copy(std::span<std::byte> to, std::span<const std::byte> from) override;
  void report(std::span<const std::byte> bytes) override { messages_.report(bytes); }

 private:
  /// Announced by the sender: the address of its copy and the event that marks it complete. The
  /// receiver frees both.
  struct Parcel {
    void* block = nullptr;  ///< null: the data follow as a host message
    void* copied = nullptr;
    std::int64_t size = 0;
  };
  struct Arrival {
    Parcel parcel;
    MessageTimes times;
  };
  bool is_on_device(std::span<const std::byte> bytes) const;
  Arrival take(RankId from, MessageTag tag, std::int64_t size);
  void receive_from_host(RankId from, MessageTag tag, std::span<std::byte> bytes);
  void free_parcel(const Parcel& parcel);

  Communicator& messages_;
  DeviceQueue& queue_;
};

}  // namespace meshwright
