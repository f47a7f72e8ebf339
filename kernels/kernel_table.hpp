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

#include "core/base/hash.hpp"
#include "kernels/activation.hpp"
#include "kernels/attention.hpp"
#include "kernels/backend.hpp"
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

/// The list of all kernels, from which tables, declarations and wrappers come. Each family's header
/// has its rows: name and arguments. The order is that of KernelTable, which the GPU plug-in
/// shares.
#define MESHWRIGHT_KERNELS(X)         \
  MESHWRIGHT_GEMM_KERNELS(X)          \
  MESHWRIGHT_ATTENTION_KERNELS(X)     \
  MESHWRIGHT_NORM_KERNELS(X)          \
  MESHWRIGHT_ACTIVATION_KERNELS(X)    \
  MESHWRIGHT_ROTARY_KERNELS(X)        \
  MESHWRIGHT_EMBEDDING_KERNELS(X)     \
  MESHWRIGHT_CROSS_ENTROPY_KERNELS(X) \
  MESHWRIGHT_ELEMENTWISE_KERNELS(X)   \
  MESHWRIGHT_DROPOUT_KERNELS(X)       \
  MESHWRIGHT_FLOAT8_KERNELS(X)        \
  MESHWRIGHT_MOE_GATE_KERNELS(X)      \
  MESHWRIGHT_PERMUTE_KERNELS(X)       \
  MESHWRIGHT_OPTIMIZER_KERNELS(X)     \
  MESHWRIGHT_BUCKET_KERNELS(X)

struct KernelTable {
  Backend backend = Backend::kReference;
#define MESHWRIGHT_ENTRY(name, Arguments) KernelEntry<Arguments> name;
  MESHWRIGHT_KERNELS(MESHWRIGHT_ENTRY)
#undef MESHWRIGHT_ENTRY
};

/// Equal in a program and a GPU plug-in whose tables have the same kernels in the same order, with
/// arguments of the same sizes.
constexpr std::uint64_t kernel_list_hash() {
  std::uint64_t hash = kFnv1aStart;
#define MESHWRIGHT_HASH(name, Arguments) \
  hash = fnv1a_next(fnv1a(#name " " #Arguments " ", hash), sizeof(Arguments));
  MESHWRIGHT_KERNELS(MESHWRIGHT_HASH)
#undef MESHWRIGHT_HASH
  return hash;
}

/// Declares run() of every kernel in the namespace of a back end. A function without a definition
/// is a link error. A back end also declares scratch(arguments) of its kernels with working memory.
#define MESHWRIGHT_DECLARE_RUN(name, Arguments) void run(const Launch& launch, const Arguments& a);

/// The table of kReference or kCpu. kCpu selects the code for this processor once.
const KernelTable& kernel_table(Backend backend);

/// What kCpu uses here, for reports: "matrix products by Eigen, vector code for avx2, one thread".
std::string kernels_summary();

}  // namespace meshwright
