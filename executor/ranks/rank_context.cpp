#include "executor/ranks/rank_context.hpp"

#include <cstring>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

Dtype storage_of(Dtype dtype) {
  MW_CHECK(dtype == Dtype::kFp32 || dtype == Dtype::kBf16);  // check_runnable() refuses others
  return dtype;
}

}  // namespace

RankContext::RankContext(const ModelGraph& model_graph, const Plan& plan, Communicator& messages,
                         const KernelTable& table, RankProgress& moves, DeviceQueue* device_queue)
    : model(model_graph),
      strategy(plan.strategy),
      communicator(messages),
      kernels(table),
      progress(moves),
      rank(messages.rank()),
      at(coordinate_of(plan.strategy.degrees, messages.rank(),
                       plan.strategy.model_parallelism.order)),
      shard(shard_shape_of(plan.strategy)),
      tokens(local_tokens(shard)),
      layers(layer_shardings_of(model, strategy, at)),
      groups(axis_groups_of(plan.strategy, messages.rank())),
      joint_outputs(joint_outputs_of(model_graph, layers)),
      dtype(storage_of(plan.strategy.dtype)),
      queue(device_queue),
      memory(queue),
      uncounted_(queue) {}

void RankContext::copy(void* to, const void* from, std::size_t bytes) {
  const Bytes size(static_cast<std::int64_t>(bytes));
  const bool into_tensor = queue != nullptr && queue->holds(to, size);
  const bool from_tensor = queue != nullptr && queue->holds(from, size);
  if (into_tensor && from_tensor) return queue->copy(to, from, size);
  if (into_tensor) return queue->write(to, from, size);
  if (from_tensor) return queue->read(to, from, size);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

Launch RankContext::launch_with(Bytes scratch) {
  if (scratch > scratch_.size()) scratch_ = Buffer(uncounted_, MemoryClass::kWorking, scratch);
  return {.stream = queue, .scratch = scratch_.data(), .scratch_size = scratch};
}

}  // namespace meshwright
