/// Ranks that are processes with a GPU each: what lies in the memory of their queues travels by
/// NCCL, everything else by the messages of another communicator, which also carry what receivers
/// have to know beforehand.
///
/// Each group of ranks that the plan's collectives name has a communicator of NCCL of its own,
/// whose work stands in the queue's lane at work: all members reach their collectives in one order.
/// Each ordered pair of ranks that send to each other has one too, with a stream of its own, so
/// that a send waits for nobody but its receiver. Groups without one are served by messages. All
/// are split off one communicator of all ranks, where NCCL can do that: those without a common rank
/// at once.
///
/// The host never waits without an end: a communicator that has failed, a run that has failed
/// elsewhere, or a wait beyond the patience aborts all communicators.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "executor/communicator.hpp"
#include "executor/nccl.hpp"
#include "executor/rank_run.hpp"
#include "kernels/device_queue.hpp"

namespace meshwright {

/// Who needs communicators: the same on all ranks.
struct NcclGroups {
  std::set<std::vector<RankId>> groups;            ///< of two ranks or more, in ring order
  std::set<std::pair<RankId, RankId>> directions;  ///< from, to
};

/// Those of a plan's collectives, sends and rings.
NcclGroups nccl_groups_of(const RunnableGraph& runnable, const Strategy& strategy);

struct NcclOptions {
  const NcclTable& table;
  int device = 0;
  std::chrono::milliseconds patience = std::chrono::seconds(20);
  const std::atomic<bool>* must_stop = nullptr;  ///< the run has failed elsewhere
};

class NcclCommunicator final : public Communicator {
 public:
  /// Called by all ranks with equal groups, which meet here. Messages and queue outlive it; the
  /// queue waits by this object as long as it lives.
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
  bool carry_out(const GroupCall& call) override;
  void report(std::span<const std::byte> bytes) override { messages_.report(bytes); }

 private:
  /// One communicator of NCCL, and for those of pairs the stream of what it does.
  struct Line {
    void* nccl = nullptr;
    void* stream = nullptr;
  };
  /// In front of every message: how many bytes, and which way they come.
  struct Notice {
    std::int64_t size = 0;
    std::int64_t is_by_nccl = 0;
  };
  struct Arrival {
    Notice notice;
    MessageTimes times;
  };
  /// Who is to have a communicator of NCCL; the own line, if this rank is one of them.
  struct SharedLine {
    std::vector<RankId> members;
    Line* line = nullptr;
  };
  std::vector<SharedLine> shared_lines_of(const NcclGroups& groups);
  void split(std::span<const SharedLine> shared);
  void* join(std::span<const RankId> members, std::int32_t number);
  bool is_on_device(const void* memory, std::size_t size) const;
  Arrival take_notice(RankId from, MessageTag tag, std::size_t size);
  void receive_by_nccl(RankId from, void* to, Bytes size);
  bool all_to_all(void* nccl, const GroupCall& call);
  bool all_gather(void* nccl, const GroupCall& call);
  void hand_over(void* from_stream, void* to_stream);
  void wait_for(void* stream);
  void check_all();
  void abort_all() noexcept;
  void finish();
  template <class Visit>
  void for_each_line(Visit visit);

  Communicator& messages_;
  DeviceQueue& queue_;
  const NcclOptions options_;
  std::map<std::vector<RankId>, Line> groups_;
  std::map<RankId, Line> to_, from_;  ///< by peer
  std::vector<Line*> lines_;          ///< as they were made: in an order that all ranks share
};

}  // namespace meshwright
