/// What a training program allocates on a device in addition to the tensors of the model, and how
/// it communicates between them: what lower() needs to know of it. Facts of the program and its
/// version, never of a model or a run. A default-constructed TrainerMemory is an idealized program.
///
/// Three figures of one rank, smallest first (PyTorch's names):
///   allocated  tensors: parameters, gradients, optimizer state, activations, buffers
///   reserved   allocated plus what the caching allocator holds and cannot use: allocator_slack.
///              It returns such memory to the device before it reports that memory is exhausted.
///   device     reserved plus CUDA context and communicators, which are outside the allocator; this
///              is what nvidia-smi shows and what has to fit
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/dtype.hpp"
#include "core/base/units.hpp"

namespace meshwright {

/// Copies of the logits of one rank that are alive at the same time.
struct LossCopies {
  int fp32 = 0;
  int stored = 0;  ///< in the type of the activations, 16 bits in mixed precision
  friend bool operator==(const LossCopies&, const LossCopies&) = default;
};

/// Logits and their derivatives in the three moments of a loss. Defaults: Megatron-LM's
/// vocab_parallel_cross_entropy, which casts the logits to fp32 once, turns the copy into the
/// softmax and then into its gradient in place (megatron/core/tensor_parallel/cross_entropy.py).
struct LossMemory {
  LossCopies forward{.fp32 = 1, .stored = 1};   ///< most during the loss
  LossCopies kept{.fp32 = 1, .stored = 0};      ///< until its backward pass
  LossCopies backward{.fp32 = 1, .stored = 1};  ///< most during its backward pass
  friend bool operator==(const LossMemory&, const LossMemory&) = default;
};

/// Where the gradient of a weight matrix goes before it is added to the gradient buffer.
enum class WeightGradientMemory : std::uint8_t {
  kNone,       ///< the GEMM accumulates into the buffer
  kTemporary,  ///< a tensor of the weight's type, freed once it is added
  /// The GEMM of a block accumulates into the buffer, but autograd is given a tensor of the
  /// weight's type and shape that is never freed, one per distinct shape (Transformer Engine,
  /// get_dummy_wgrad() in pytorch/module/base.py). Embedding and head: as kTemporary.
  kCachedByShape
};

struct TrainerMemory {
  LossMemory loss = {};          ///< if every tensor rank computes the loss over all words
  LossMemory sharded_loss = {};  ///< if the words are sharded over the tensor ranks

  WeightGradientMemory weight_gradients = WeightGradientMemory::kNone;
  /// The backward pass of the head frees the logits before the blocks run theirs. Off: the peaks of
  /// both are added, an upper bound.
  bool frees_logits_before_blocks = false;
  /// Without --deallocate-pipeline-outputs: an activation sent to the next stage is held until its
  /// gradient arrives.
  bool holds_sent_activations = false;
  /// Without sequence parallelism: each tensor rank sends its part of an activation to the next
  /// stage, which gathers the parts (Megatron-LM --scatter-gather-tensors-in-pipeline). Off: each
  /// sends all of it.
  bool sends_slices = false;
  /// The backward pass of a column-parallel GEMM gathers its input next to the GEMM of the input
  /// gradient, and reduces that gradient next to the GEMM of the weight gradient (Megatron-LM
  /// without --no-async-tensor-model-parallel-allreduce).
  bool overlaps_gradient_reduction = false;

  /// Routing weights scale the activations inside the experts, so that the experts' outputs are not
  /// saved for the gradient of the weights (Megatron-LM since core 0.12).
  bool weighs_expert_activations = false;

  /// Bytes per parameter of the gradient buffers. 6: 16-bit gradients and an fp32 sum of them.
  int fp16_gradient_bytes = 4;
  int bf16_gradient_bytes = 4;  ///< also for fp8
  /// FSDP: sharded parameters are fp32 and serve as master weights; the 16-bit copies exist only
  /// while gathered.
  bool has_fp32_shards = false;
  /// ZeRO 2 and 3: bytes per parameter of a unit's gradients before they are reduced.
  int unreduced_gradient_bytes = 4;
  /// ZeRO 2 and 3: largest number of parameters gathered or reduced at a time; 0: a whole layer.
  /// Layers are gathered ahead of their use only within this number (DeepSpeed
  /// runtime/zero/partitioned_param_coordinator.py: max_params_to_prefetch).
  std::int64_t most_gathered_parameters = 0;
  /// FSDP: embedding and head are parameters of the root unit, which is not resharded between
  /// their forward and their backward passes.
  bool keeps_ends_gathered = false;

  Bytes workspace = {};        ///< allocated once: cuBLAS, Transformer Engine, gradient buckets
  double allocator_slack = 0;  ///< reserved / allocated - 1
  /// CUDA context with the loaded kernels. Absent: DeviceModel::reserved_memory stands for
  /// everything outside the allocator, communicators included.
  std::optional<Bytes> context = {};
  /// NCCL buffers of each communicator of a rank; counted only if `context` is set.
  Bytes communicator = {};
  friend bool operator==(const TrainerMemory&, const TrainerMemory&) = default;
};

/// Bytes per parameter of the gradient buffers.
constexpr std::int64_t gradient_bytes(const TrainerMemory& memory, Dtype dtype) {
  constexpr std::int64_t kFp32 = 4;
  switch (dtype) {
    case Dtype::kFp32:
    case Dtype::kTf32:
      return kFp32;
    case Dtype::kFp16:
      return memory.fp16_gradient_bytes;
    case Dtype::kBf16:
    case Dtype::kFp8:
    case Dtype::kNvfp4:
      break;
  }
  return memory.bf16_gradient_bytes;
}

}  // namespace meshwright
