/// What a training program costs beyond its kernels: host time, memory traffic of unfused
/// operators, extra memory; and what it can run. A profile describes one program and version and
/// belongs to no model. A default-constructed Trainer adds nothing and runs everything: ideally
/// fused kernels, launched in no time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/trainer/launch_target.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

/// Cost of one routine relative to a single fused kernel that reads its inputs and writes its
/// outputs once (core/operators/operators.hpp).
struct RoutineCost {
  double forward = 1;   ///< memory traffic of the forward pass / counted traffic
  double backward = 1;  ///< the same for the backward pass and the optimizer
  double launches = 1;  ///< kernels launched / counted launches
  friend bool operator==(const RoutineCost&, const RoutineCost&) = default;
};

/// Time of the host thread that launches a rank's kernels. The kernel k of a pass starts when the
/// device is done with kernel k - 1 and the host has launched it, so a pass of small kernels takes
/// as long as the host (simulator/engine/simulate.hpp).
struct HostCosts {
  Seconds per_kernel;           ///< Python, dispatcher and cudaLaunchKernel
  Seconds per_collective;       ///< also per message
  Seconds per_layer_forward;    ///< modules, checkpointing, random number state
  Seconds per_layer_backward;   ///< autograd
  Seconds per_step;             ///< data loading, logging, learning rate schedule
  bool cuda_graphs = false;     ///< passes are replayed: host time per pass, not per kernel
  bool messages_block = false;  ///< the host waits for received activations (Megatron-LM: p2p sync)
  /// The host reads how many tokens each expert received, and so waits for the device, before it
  /// launches a dropless dispatch.
  bool reads_expert_counts = false;
  friend bool operator==(const HostCosts&, const HostCosts&) = default;
};

/// How communication runs next to computation.
struct OverlapCosts {
  /// Parameter gathers and gradient reductions of sharded data parallelism: messages per layer and
  /// pass. 1: one flat buffer (FSDP); DeepSpeed ZeRO-3 sends every parameter on its own.
  int messages_per_layer = 1;
  /// Each of these messages is a list of tensors, one per rank, and PyTorch copies every tensor to
  /// or from a flat buffer by a kernel of its own (ProcessGroupNCCL.cpp: allgather(),
  /// reduce_scatter()).
  bool copies_by_rank = false;
  /// Multiprocessors that dispatch and combine of experts take from kernels of another micro-batch.
  int expert_multiprocessors = 0;
  friend bool operator==(const OverlapCosts&, const OverlapCosts&) = default;
};

/// Which fused attention a program uses.
enum class AttentionLibrary : std::uint8_t {
  kNewest,           ///< the fastest one for the device
  kFlashAttention2,  ///< also on newer devices
  kTriton,           ///< FlashAttention's first implementation in Triton
  kFlashAttention1
};

/// Where the weight gradients of micro-batches are added up.
struct GradientAccumulation {
  /// The GEMM adds into the gradient buffer (Megatron-LM --gradient-accumulation-fusion). Off: it
  /// writes 16-bit gradients.
  bool is_fused = true;
  /// Bytes per parameter that a kernel of its own moves to add them to those of earlier
  /// micro-batches: 6 in 16 bits, 10 to an fp32 buffer.
  int fp16_bytes = 0, bf16_bytes = 0;
  friend bool operator==(const GradientAccumulation&, const GradientAccumulation&) = default;
};

struct Trainer {
  std::string name = "ideal";
  std::string version;     ///< of the program that was described
  std::string generation;  ///< profile whose costs it shares: "pytorch-2021"
  std::array<RoutineCost, kRoutineCount> routines{};  ///< by Routine
  HostCosts host;
  OverlapCosts overlap;
  GradientAccumulation gradient_accumulation;
  TrainerMemory memory;
  AttentionLibrary attention = AttentionLibrary::kNewest;
  TrainerAbilities abilities;
  std::optional<LaunchTarget> launch;  ///< whose flags it takes; absent: launch_text() has none
  std::map<std::string, std::string> sources;  ///< "host.per_kernel" → source of the figure
  const RoutineCost& cost_of(Routine routine) const {
    return routines[static_cast<std::size_t>(routine)];
  }
  friend bool operator==(const Trainer&, const Trainer&) = default;
};

}  // namespace meshwright
