/// State of one rank that does not change during a run.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/model/model_graph.hpp"
#include "core/operators/shard_shape.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/rank_groups.hpp"
#include "executor/launch/rank_progress.hpp"
#include "executor/ranks/counted_memory.hpp"
#include "executor/ranks/joint_outputs.hpp"
#include "executor/ranks/kernel_pieces.hpp"
#include "executor/ranks/layer_sharding.hpp"
#include "executor/transport/communicator.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Angles of all positions of a sequence, see kernels/rotary.hpp.
struct KeptRotaryTable {
  std::int64_t count = 0;  ///< rotated elements of a head
  RotaryAngles angles = {};
  std::optional<QueryTemperature> temperature = {};
  OwnedMatrix values = {};  ///< fp32
};

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
  std::vector<LayerSharding> layers;
  AxisGroups groups;
  std::vector<JointOutputs> joint_outputs;  ///< by tensor
  Dtype dtype;                              ///< of activations and weights: fp32 or bf16
  DeviceQueue* queue;  ///< device queue that owns the tensors; null: tensors are on the host
  std::function<void(bool begins)> on_wait;  ///< see TaskActions; may be empty
  MemoryLedger memory;
  MemoryLedger host_memory;  ///< for optimizer state offloaded to the host

  const LayerSharding& sharding_of(LayerId layer) const { return layers[layer.index()]; }
  const Operator& op(OperatorId id) const { return model.operators[id.index()]; }
  const ActivationTensor& activation(TensorId id) const {
    return std::get<ActivationTensor>(model.tensors[id.index()].shape);
  }

  /// Runs a kernel with the scratch memory it needs; on the CPU long calls are split into pieces.
  template <class Arguments>
  void run(const KernelEntry<Arguments>& kernel, const Arguments& arguments) {
    const auto call = [&](const Arguments& piece) {
      kernel(launch_with(kernel.scratch_bytes(piece)), piece);
      progress.beats.fetch_add(1, std::memory_order_relaxed);
    };
    queue == nullptr ? in_pieces(arguments, PieceLimits(), call) : call(arguments);
  }
  /// Waits until the queue is empty. To be called before host memory is freed that the queue may
  /// still access.
  void wait() {
    if (queue != nullptr) queue->wait();
  }
  /// Copies between tensors and host memory in any direction, ordered with the kernels: the only
  /// way for the host to read or write tensors. Copies to the host are complete on return.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Copies of tensor or host memory on the host.
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
  /// A matrix that is not accounted in the ledger.
  OwnedMatrix uncounted(std::int64_t rows, std::int64_t columns, Dtype type) {
    return {uncounted_, MemoryClass::kWorking, rows, columns, type};
  }
  /// An fp32 vector, not accounted in the ledger.
  OwnedMatrix numbers(std::int64_t count) { return uncounted(1, count, Dtype::kFp32); }
  /// Kept from their first use on.
  std::vector<KeptRotaryTable>& rotary_tables() { return rotary_tables_; }
  OwnedMatrix matrix(MemoryClass what, std::int64_t rows, std::int64_t columns, Dtype type) {
    return {memory, what, rows, columns, type};
  }

 private:
  Launch launch_with(Bytes scratch);
  MemoryLedger uncounted_;
  Buffer scratch_;
  std::vector<KeptRotaryTable> rotary_tables_;
};

/// Host view of a tensor: in place if it is in host memory, otherwise a copy.
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
