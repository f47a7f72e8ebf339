/// What stays the same for one rank throughout a run.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/model_graph.hpp"
#include "core/operator_work.hpp"
#include "core/plan.hpp"
#include "core/rank_groups.hpp"
#include "executor/communicator.hpp"
#include "executor/counted_memory.hpp"
#include "executor/kernel_pieces.hpp"
#include "executor/launch.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

Channel channel_of(Axis axis);

class RankContext {
 public:
  RankContext(const ModelGraph& model, const Plan& plan, Communicator& communicator,
              const KernelTable& kernels, RankProgress& progress, DeviceQueue* queue = nullptr);

  const ModelGraph& model;
  const Strategy& strategy;
  Communicator& communicator;
  const KernelTable& kernels;
  RankProgress& progress;
  RankId rank;
  RankCoordinate at;
  ShardShape shard;
  LocalTokens tokens;
  AxisGroups groups;
  Dtype dtype;         ///< of activations and weights: fp32 or bf16
  DeviceQueue* queue;  ///< of queued kernels, which tensors lie with; null: other kernels
  std::function<void(bool begins)> tell_of_waits;  ///< see TaskActions; may be empty
  MemoryLedger memory;
  MemoryLedger host_memory;  ///< of the processor: optimizer state that does not stay here

  const Operator& op(OperatorId id) const { return model.operators[id.index()]; }
  const ActivationTensor& activation(TensorId id) const {
    return std::get<ActivationTensor>(model.tensors[id.index()].shape);
  }

  /// Runs a kernel with the scratch memory it asks for: on a processor in pieces, if it may take
  /// long.
  template <class Arguments>
  void run(const KernelEntry<Arguments>& kernel, const Arguments& arguments) {
    const auto call = [&](const Arguments& piece) {
      kernel(launch_with(kernel.scratch_bytes(piece)), piece);
      progress.beats.fetch_add(1, std::memory_order_relaxed);
    };
    queue == nullptr ? in_pieces(arguments, PieceLimits(), call) : call(arguments);
  }
  /// Until all that was put on the queue is done: before something on the host goes that a queue
  /// still works with.
  void wait() {
    if (queue != nullptr) queue->wait();
  }
  /// In order with the kernels, between tensors and the host either way: the one way for the host
  /// to see tensors or to change them. What comes to the host is there at once.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Of tensors, or of what lies on the host already.
  template <class T>
  std::vector<T> on_host(std::span<const T> values) {
    std::vector<T> host(values.size());
    copy(host.data(), values.data(), values.size_bytes());
    return host;
  }
  std::vector<float> on_host(std::span<float> values) {
    return on_host(std::span<const float>(values));
  }
  float on_host(const float* number) { return on_host(std::span(number, 1)).front(); }
  /// Of memory that nobody counts.
  OwnedMatrix uncounted(std::int64_t rows, std::int64_t columns, Dtype type) {
    return {uncounted_, MemoryClass::kWorking, rows, columns, type};
  }
  /// fp32 numbers of rows or tokens, for kernels; not counted.
  OwnedMatrix numbers(std::int64_t count) { return uncounted(1, count, Dtype::kFp32); }
  OwnedMatrix matrix(MemoryClass what, std::int64_t rows, std::int64_t columns, Dtype type) {
    return {memory, what, rows, columns, type};
  }

 private:
  Launch launch_with(Bytes scratch);
  MemoryLedger uncounted_;
  Buffer scratch_;
};

/// Tensors as the host reads them: in place where they lie there, else a copy.
template <class T>
class HostView {
 public:
  HostView(RankContext& rank, std::span<const T> values) : values_(values) {
    if (rank.queue != nullptr) values_ = copy_ = rank.on_host(values);
  }
  HostView(const HostView&) = delete;
  HostView& operator=(const HostView&) = delete;
  std::span<const T> values() const { return values_; }

 private:
  std::vector<T> copy_;
  std::span<const T> values_;
};

}  // namespace meshwright
