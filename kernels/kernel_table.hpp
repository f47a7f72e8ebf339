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

/// What a back end has for a kernel: run(launch, arguments) alone, also scratch(arguments), or the
/// reference kernel.
enum class KernelCode : std::uint8_t { kRun, kScratch, kReference };

/// The list of all kernels, from which tables, declarations and wrappers come: name, arguments, and
/// what the CPU and CUDA back ends have; the reference kernels never need working memory. The
/// order is that of KernelTable, which the GPU plug-in shares.
// clang-format off
#define MESHWRIGHT_KERNELS(X)                                                      \
  X(gemm,                       Gemm,                       kScratch,    kScratch) \
  X(grouped_gemm,               GroupedGemm,                kScratch,    kRun)     \
  X(grouped_gemm_weight,        GroupedGemmWeight,          kScratch,    kRun)     \
  X(attention_forward,          AttentionForward,           kScratch,    kRun)     \
  X(attention_merge,            AttentionMerge,             kRun,        kRun)     \
  X(attention_delta,            AttentionDelta,             kRun,        kRun)     \
  X(attention_backward,         AttentionBackward,          kScratch,    kRun)     \
  X(attention_sinks,            AttentionSinks,             kRun,        kRun)     \
  X(attention_sinks_gradient,   AttentionSinksGradient,     kRun,        kRun)     \
  X(norm_forward,               NormForward,                kRun,        kRun)     \
  X(norm_backward_input,        NormBackwardInput,          kRun,        kRun)     \
  X(norm_backward_weight,       NormBackwardWeight,         kRun,        kScratch) \
  X(activation_forward,         ActivationForward,          kRun,        kRun)     \
  X(activation_backward,        ActivationBackward,         kRun,        kRun)     \
  X(rotary_table,               RotaryTable,                kReference,  kRun)     \
  X(rotary,                     Rotary,                     kRun,        kRun)     \
  X(copy_heads,                 CopyHeads,                  kRun,        kRun)     \
  X(embedding_forward,          EmbeddingForward,           kRun,        kRun)     \
  X(embedding_backward,         EmbeddingBackward,          kRun,        kScratch) \
  X(cross_entropy_maximum,      CrossEntropyMaximum,        kRun,        kRun)     \
  X(cross_entropy_sum,          CrossEntropySum,            kRun,        kRun)     \
  X(cross_entropy_loss,         CrossEntropyLoss,           kReference,  kRun)     \
  X(cross_entropy_forward,      CrossEntropyForward,        kRun,        kRun)     \
  X(cross_entropy_gradient,     CrossEntropyGradient,       kRun,        kRun)     \
  X(add,                        Add,                        kRun,        kRun)     \
  X(bias_add,                   BiasAdd,                    kRun,        kRun)     \
  X(bias_gradient,              BiasGradient,               kRun,        kScratch) \
  X(grouped_bias_gradient,      GroupedBiasGradient,        kRun,        kRun)     \
  X(row_gate_forward,           RowGateForward,             kRun,        kRun)     \
  X(row_gate_backward,          RowGateBackward,            kRun,        kRun)     \
  X(dropout_forward,            DropoutForward,             kRun,        kRun)     \
  X(dropout_backward,           DropoutBackward,            kRun,        kRun)     \
  X(round_to_float8,            RoundToFloat8,              kRun,        kRun)     \
  X(reduce,                     Reduce,                     kRun,        kRun)     \
  X(cast,                       Cast,                       kRun,        kRun)     \
  X(fill,                       Fill,                       kRun,        kRun)     \
  X(total,                      Total,                      kRun,        kScratch) \
  X(mean_squared_error_forward, MeanSquaredErrorForward,    kRun,        kRun)     \
  X(mean_squared_error_gradient, MeanSquaredErrorGradient,  kRun,        kRun)     \
  X(gate_forward,               GateForward,                kRun,        kRun)     \
  X(gate_load,                  GateLoad,                   kRun,        kScratch) \
  X(gate_auxiliary_loss,        GateAuxiliaryLoss,          kReference,  kRun)     \
  X(gate_backward,              GateBackward,               kRun,        kRun)     \
  X(sort_by_expert,             SortByExpert,               kRun,        kScratch) \
  X(gather_rows,                GatherRows,                 kRun,        kRun)     \
  X(combine_rows,               CombineRows,                kRun,        kRun)     \
  X(combine_weight_gradient,    CombineWeightGradient,      kRun,        kRun)     \
  X(adamw,                      AdamW,                      kRun,        kRun)     \
  X(sgd,                        Sgd,                        kRun,        kRun)     \
  X(squared_norm,               SquaredNorm,                kRun,        kScratch) \
  X(clip_scale,                 ClipScale,                  kReference,  kRun)     \
  X(pack_bucket,                PackBucket,                 kRun,        kRun)     \
  X(unpack_bucket,              UnpackBucket,               kRun,        kRun)
// clang-format on

struct KernelTable {
  Backend backend = Backend::kReference;
#define MESHWRIGHT_ENTRY(name, Arguments, cpu, cuda) KernelEntry<Arguments> name;
  MESHWRIGHT_KERNELS(MESHWRIGHT_ENTRY)
#undef MESHWRIGHT_ENTRY
};

/// Declares run() and scratch() of every kernel in the namespace of a back end. A function
/// without a definition is a link error.
#define MESHWRIGHT_DECLARE_RUN(name, Arguments, cpu, cuda) \
  void run(const Launch& launch, const Arguments& a);
#define MESHWRIGHT_DECLARE_SCRATCH(name, Arguments, cpu, cuda) Bytes scratch(const Arguments& a);

/// The table of kReference or kCpu. kCpu selects the code for this processor once.
const KernelTable& kernel_table(Backend backend);

/// What kCpu uses here, for reports: "matrix products by Eigen, vector code for avx2, one thread".
std::string kernels_summary();

}  // namespace meshwright
