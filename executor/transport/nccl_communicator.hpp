/// Messages between processes with one GPU each: device memory is sent by NCCL, everything else,
/// including message metadata, by another communicator.
///
/// Each process group of the plan's collectives has its own NCCL communicator, whose work is
/// enqueued on the current lane of the queue: all members issue their collectives in the same
/// order. Each ordered pair of ranks that exchange messages has one too, with its own stream, so
/// that a send waits only for its receiver. Other groups use messages. All communicators are split
/// off a global one if NCCL supports it, disjoint groups in one call.
///
/// Every host wait is bounded: an asynchronous NCCL error, a failure on another rank or a timeout
/// aborts all communicators.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "executor/transport/communicator.hpp"
#include "executor/transport/nccl.hpp"
#include "kernels/device/queue.hpp"

namespace meshwright {

/// The groups and pairs that need NCCL communicators; equal on all ranks.
struct NcclGroups {
  std::set<std::vector<RankId>> groups;            ///< of at least two ranks, in ring order
  std::set<std::pair<RankId, RankId>> directions;  ///< from, to
};

struct NcclOptions {
  const NcclTable& table;
  int device = 0;
  std::chrono::milliseconds watchdog_timeout = std::chrono::seconds(20);
  const std::atomic<bool>* must_stop = nullptr;  ///< the run has failed on another rank
};

class NcclCommunicator final : public Communicator {
 public:
  /// Collective over all ranks, with equal groups. `messages` and `queue` must outlive it; during
  /// its lifetime it performs the waits of the queue.
  NcclCommunicator(Communicator& messages, DeviceQueue& queue, const NcclGroups& groups,
                   const NcclOptions& options);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override;

  RankId rank() const override { return messages_.rank(); }
  int rank_count() const override { return messages_.rank_count(); }
  void send(RankId to, MessageTag tag, std::span<const std::byte> bytes,
            const MessageTimes& times) override;
  MessageTimes receive(RankId from, MessageTag tag, std::span<std::byte> bytes) override;
  MessageTimes receive_into(const Vector& values, const MessageSource& source,
                            Reduction reduction) override;
  void copy(std::span<std::byte> to, std::span<const std::byte> from) override;
  bool run_collective(const GroupCall& call) override;
  void report(std::span<const std::byte> bytes) override { messages_.report(bytes); }

 private:
  /// An NCCL communicator and, for pairs, its stream.
  struct Comm {
    void* nccl = nullptr;
    void* stream = nullptr;
  };
  /// Precedes every message: its size, and whether the data come by NCCL.
  struct Header {
    std::int64_t size = 0;
    std::int64_t is_by_nccl = 0;
  };
  struct Arrival {
    Header header;
    MessageTimes times;
  };
  /// The members of an NCCL communicator to be created; `comm` is set if this rank is one of them.
  struct SharedComm {
    std::vector<RankId> members;
    Comm* comm = nullptr;
  };
  std::vector<SharedComm> shared_comms_of(const NcclGroups& groups);
  void split(std::span<const SharedComm> shared);
  void connect(std::span<const SharedComm> shared);
  void* join(std::span<const RankId> members, std::int32_t number);
  bool is_on_device(const void* memory, std::size_t size) const;
  Arrival receive_header(RankId from, MessageTag tag, std::size_t size);
  void receive_by_nccl(RankId from, void* to, Bytes size);
  bool all_to_all(void* nccl, const GroupCall& call);
  bool all_gather(void* nccl, const GroupCall& call);
  void order_streams(void* from_stream, void* to_stream);
  void wait_for(void* stream);
  void check_all();
  void abort_all() noexcept;
  void finish();
  template <class Visit>
  void for_each_comm(Visit visit);

  Communicator& messages_;
  DeviceQueue& queue_;
  const NcclOptions options_;
  std::map<std::vector<RankId>, Comm> groups_;
  std::map<RankId, Comm> to_, from_;  ///< by peer
  std::vector<Comm*> comms_;          ///< in creation order, which is the same on all ranks
};

}  // namespace meshwright
