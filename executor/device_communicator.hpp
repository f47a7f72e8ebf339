/// Messages between ranks that share one device: what lies in the memory of their queues travels
/// there, in the order of their streams. Nothing spins on the device and no host waits for it, so
/// ranks cannot stop each other there. Between ranks of one process; what lies elsewhere, and who
/// is meant by what, goes by other messages.
#pragma once

#include "executor/communicator.hpp"
#include "kernels/device_queue.hpp"

namespace meshwright {

class DeviceCommunicator final : public Communicator {
 public:
  /// Both outlive it. The ranks' queues are of one device.
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
  /// What the sender tells: where its copy lies and when it is there. Who receives lets both go.
  struct Parcel {
    void* block = nullptr;  ///< null: the bytes follow as a message
    void* is_there = nullptr;
    std::int64_t size = 0;
  };
  struct Arrival {
    Parcel parcel;
    MessageTimes times;
  };
  bool is_on_device(std::span<const std::byte> bytes) const;
  Arrival take(RankId from, MessageTag tag, std::int64_t size);
  void receive_from_host(RankId from, MessageTag tag, std::span<std::byte> bytes);
  void let_go(const Parcel& parcel);

  Communicator& messages_;
  DeviceQueue& queue_;
};

}  // namespace meshwright
