/// All kernels of one back end as a table of functions, chosen at run time. The GPU's table comes
/// from a plug-in (`extern "C"`); those of the CPU are always available.
///
///   const KernelTable& kernels = kernel_table(Backend::kCpu);
///   kernels.gemm(launch, {.a = x, .b = weight, .c = y});
///
/// Results are deterministic: they depend on the arguments and the back end only, since every sum
/// has a fixed order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/activation.hpp"
#include "kernels/attention.hpp"
#include "kernels/bucket.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/dropout.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/embedding.hpp"
#include "kernels/float8.hpp"
#include "kernels/gemm.hpp"
#include "kernels/launch.hpp"
#include "kernels/moe_gate.hpp"
#include "kernels/norm.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/permute.hpp"
#include "kernels/rotary.hpp"

namespace meshwright {

enum class Backend : std::uint8_t {
  kReference,  ///< plain loops, sums in double; the other back ends are tested against it
  kCpu,        ///< vectorized; runs on the calling thread
  kCuda        ///< from the GPU plug-in
};
std::string_view name_of(Backend backend);  ///< "reference", "cpu", "cuda"

struct KernelTable {
  Backend backend = Backend::kReference;

  KernelEntry<Gemm> gemm;
  KernelEntry<GroupedGemm> grouped_gemm;
  KernelEntry<GroupedGemmWeight> grouped_gemm_weight;

  KernelEntry<AttentionForward> attention_forward;
  KernelEntry<AttentionMerge> attention_merge;
  KernelEntry<AttentionDelta> attention_delta;
  KernelEntry<AttentionBackward> attention_backward;
  KernelEntry<AttentionSinks> attention_sinks;
  KernelEntry<AttentionSinksGradient> attention_sinks_gradient;

  KernelEntry<NormForward> norm_forward;
  KernelEntry<NormBackwardInput> norm_backward_input;
  KernelEntry<NormBackwardWeight> norm_backward_weight;

  KernelEntry<ActivationForward> activation_forward;
  KernelEntry<ActivationBackward> activation_backward;
  KernelEntry<RotaryTable> rotary_table;
  KernelEntry<Rotary> rotary;
  KernelEntry<CopyHeads> copy_heads;

  KernelEntry<EmbeddingForward> embedding_forward;
  KernelEntry<EmbeddingBackward> embedding_backward;

  KernelEntry<CrossEntropyMaximum> cross_entropy_maximum;
  KernelEntry<CrossEntropySum> cross_entropy_sum;
  KernelEntry<CrossEntropyLoss> cross_entropy_loss;
  KernelEntry<CrossEntropyForward> cross_entropy_forward;
  KernelEntry<CrossEntropyGradient> cross_entropy_gradient;

  KernelEntry<Add> add;
  KernelEntry<BiasAdd> bias_add;
  KernelEntry<BiasGradient> bias_gradient;
  KernelEntry<GroupedBiasGradient> grouped_bias_gradient;
  KernelEntry<RowGateForward> row_gate_forward;
  KernelEntry<RowGateBackward> row_gate_backward;
  KernelEntry<DropoutForward> dropout_forward;
  KernelEntry<DropoutBackward> dropout_backward;
  KernelEntry<RoundToFloat8> round_to_float8;
  KernelEntry<Reduce> reduce;
  KernelEntry<Cast> cast;
  KernelEntry<Fill> fill;
  KernelEntry<Total> total;
  KernelEntry<MeanSquaredErrorForward> mean_squared_error_forward;
  KernelEntry<MeanSquaredErrorGradient> mean_squared_error_gradient;

  KernelEntry<GateForward> gate_forward;
  KernelEntry<GateLoad> gate_load;
  KernelEntry<GateAuxiliaryLoss> gate_auxiliary_loss;
  KernelEntry<GateBackward> gate_backward;

  KernelEntry<SortByExpert> sort_by_expert;
  KernelEntry<GatherRows> gather_rows;
  KernelEntry<CombineRows> combine_rows;
  KernelEntry<CombineWeightGradient> combine_weight_gradient;

  KernelEntry<AdamW> adamw;
  KernelEntry<Sgd> sgd;
  KernelEntry<SquaredNorm> squared_norm;
  KernelEntry<ClipScale> clip_scale;

  KernelEntry<PackBucket> pack_bucket;
  KernelEntry<UnpackBucket> unpack_bucket;
};

/// The table of kReference or kCpu. kCpu selects the code for this processor once.
const KernelTable& kernel_table(Backend backend);

/// What kCpu uses here, for reports: "matrix products by Eigen, vector code for avx2, one thread".
std::string kernels_summary();

}  // namespace meshwright
