// Products of all experts by CUTLASS's grouped kernels for Hopper (wgmma, bulk tensor copies), part
// of the plug-in if it was built with CUTLASS's headers (-DCUTLASS_DIR). The sizes of the experts
// stay on the device: a kernel writes the list of problems, with the strides and addresses of each.
// Sums have a fixed order.
#include "kernels/cuda/grouped_gemm.hpp"

// Warnings of CUTLASS's headers are not ours.
#pragma nv_diag_suppress 20012, 20013, 20014, 20015, 186, 177
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/version.h>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/dispatch_policy.hpp>
#include <cutlass/gemm/group_array_problem_shape.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "core/base/error.hpp"
#include "kernels/cuda/kernels.hpp"

namespace meshwright::cuda {
namespace {

using Bf16 = cutlass::bfloat16_t;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;
using Problem = cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>;

/// Result = A B (+ result); A and B of bf16, in rows or in columns.
template <class LayoutOfA, class LayoutOfB, class ResultType>
struct Kernel {
  using Tile = cute::Shape<cute::_128, cute::_256, cute::_64>;
  using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;
  static constexpr int kAlignment = 8;  // elements of 16 bytes
  static constexpr int kResultAlignment = 16 / sizeof(ResultType);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, ResultType, RowMajor*,
      kResultAlignment, ResultType, RowMajor*, kResultAlignment,
      cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative,
      cutlass::epilogue::fusion::LinearCombination<ResultType, float>>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Bf16, LayoutOfA*, kAlignment, Bf16,
      LayoutOfB*, kAlignment, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
          sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative>::CollectiveOp;
  using Type = cutlass::gemm::kernel::GemmUniversal<Problem, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Type>;
  using StrideA = typename Type::InternalStrideA;
  using StrideB = typename Type::InternalStrideB;
  using StrideC = typename Type::InternalStrideC;
  using Result = ResultType;
};
using Forward = Kernel<RowMajor, RowMajor, Bf16>;
using InputGradient = Kernel<RowMajor, ColumnMajor, Bf16>;
using WeightGradient = Kernel<ColumnMajor, RowMajor, float>;

/// The only stride of a matrix that is not 1.
template <class Stride>
__device__ Stride stride_of(std::int64_t rows_apart) {
  Stride stride{};
  if constexpr (std::is_same_v<cute::remove_cvref_t<decltype(cute::get<0>(stride))>, std::int64_t>)
    cute::get<0>(stride) = rows_apart;
  else
    cute::get<1>(stride) = rows_apart;
  return stride;
}

/// The list of problems, by expert, in working memory.
template <class K>
struct Problems {
  typename Problem::UnderlyingProblemShape* shapes;
  const Bf16 **a, **b;
  typename K::Result** c;
  typename K::StrideA* stride_a;
  typename K::StrideB* stride_b;
  typename K::StrideC* stride_c;
};
template <class K>
Problems<K> take_problems(Pieces& pieces, std::int64_t experts) {
  Problems<K> p{};
  p.shapes = pieces.take<typename Problem::UnderlyingProblemShape>(experts);
  p.a = pieces.take<const Bf16*>(experts);
  p.b = pieces.take<const Bf16*>(experts);
  p.c = pieces.take<typename K::Result*>(experts);
  p.stride_a = pieces.take<typename K::StrideA>(experts);
  p.stride_b = pieces.take<typename K::StrideB>(experts);
  p.stride_c = pieces.take<typename K::StrideC>(experts);
  return p;
}

/// x and y have the experts' rows one after the other, w a matrix per expert.
struct Operands {
  const void *a, *b;
  void* c;
  std::int64_t stride_a, stride_b, stride_c;
  std::int64_t height, width, depth;      ///< of an expert; the one given by its rows is ignored
  std::int64_t b_of_expert, c_of_expert;  ///< rows of b and c per expert, if they are stacked
  const std::int64_t* offsets;
  std::int64_t experts;
  bool sums_rows;  ///< the weight gradient
};

template <class K>
__global__ void list_problems_kernel(const Problems<K> to, const Operands of) {
  const std::int64_t e = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (e >= of.experts) return;
  const std::int64_t first = of.offsets[e];
  const auto rows = static_cast<int>(of.offsets[e + 1] - first);
  const auto width = static_cast<int>(of.width);
  // An expert without rows has no tile: its gradient stays as it is.
  to.shapes[e] = of.sums_rows ? cute::make_shape(rows == 0 ? 0 : static_cast<int>(of.height), width,
                                                 rows == 0 ? 64 : rows)
                              : cute::make_shape(rows, width, static_cast<int>(of.depth));
  const std::int64_t b_row = of.sums_rows ? first : e * of.b_of_expert;
  const std::int64_t c_row = of.sums_rows ? e * of.c_of_expert : first;
  to.a[e] = static_cast<const Bf16*>(of.a) + first * of.stride_a;
  to.b[e] = static_cast<const Bf16*>(of.b) + b_row * of.stride_b;
  to.c[e] = static_cast<typename K::Result*>(of.c) + c_row * of.stride_c;
  to.stride_a[e] = stride_of<typename K::StrideA>(of.stride_a);
  to.stride_b[e] = stride_of<typename K::StrideB>(of.stride_b);
  to.stride_c[e] = stride_of<typename K::StrideC>(of.stride_c);
}

struct Chip {
  int device = 0, multiprocessors = 0;
  bool is_hopper = false;
};
const Chip& this_chip() {
  thread_local Chip chip;
  int device = 0;
  MESHWRIGHT_CUDA(cudaGetDevice(&device));
  if (chip.multiprocessors > 0 && chip.device == device) return chip;
  int major = 0;
  MESHWRIGHT_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  MESHWRIGHT_CUDA(
      cudaDeviceGetAttribute(&chip.multiprocessors, cudaDevAttrMultiProcessorCount, device));
  chip.device = device, chip.is_hopper = major == 9;
  return chip;
}

template <class K>
typename K::Gemm::Arguments arguments_of(const Problems<K>& p, std::int64_t experts, bool adds) {
  cutlass::KernelHardwareInfo chip;
  chip.device_id = this_chip().device;
  chip.sm_count = this_chip().multiprocessors;
  typename K::Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGrouped,
      {static_cast<int>(experts), p.shapes, nullptr},
      {p.a, p.stride_a, p.b, p.stride_b},
      {{}, const_cast<const typename K::Result**>(p.c), p.stride_c, p.c, p.stride_c},
      chip};
  arguments.epilogue.thread.alpha = 1.0F;
  arguments.epilogue.thread.beta = adds ? 1.0F : 0.0F;
  return arguments;
}

template <class K>
void run_kernel(const Launch& launch, const Operands& operands, bool adds) {
  Pieces pieces(launch);
  const Problems<K> problems = take_problems<K>(pieces, operands.experts);
  const auto arguments = arguments_of<K>(problems, operands.experts, adds);
  auto* workspace =
      pieces.take<std::byte>(static_cast<std::int64_t>(K::Gemm::get_workspace_size(arguments)));
  const cudaStream_t stream = stream_of(launch);
  constexpr int kThreads = 64;
  list_problems_kernel<K>
      <<<grid_of(ceil_divide(operands.experts, kThreads)), kThreads, 0, stream>>>(problems,
                                                                                  operands);
  check_launch();
  typename K::Gemm gemm;
  const auto check = [](cutlass::Status status, const char* call) {
    if (status != cutlass::Status::kSuccess)
      throw RuntimeFailure({.where = "CUTLASS",
                            .what = std::string(call) + ": " + cutlassGetStatusString(status),
                            .hint = ""});
  };
  check(gemm.initialize(arguments, workspace, stream), "initialize");
  check(gemm.run(stream), "run");
  check_launch();
}
template <class K>
Bytes scratch_of(std::int64_t experts) {
  Pieces pieces;
  const Problems<K> problems = take_problems<K>(pieces, experts);
  pieces.take<std::byte>(static_cast<std::int64_t>(
      K::Gemm::get_workspace_size(arguments_of<K>(problems, experts, false))));
  return pieces.bytes();
}

/// Rows are copied 16 bytes at once.
bool fits(const ConstMatrix& m, Dtype dtype) {
  return m.dtype == dtype && has_aligned_rows(m) && m.columns * bytes_per_element(dtype) % 16 == 0;
}

}  // namespace

std::string cutlass_version() {
  return "CUTLASS " + std::to_string(CUTLASS_MAJOR) + "." + std::to_string(CUTLASS_MINOR) + "." +
         std::to_string(CUTLASS_PATCH) + (this_chip().is_hopper ? "" : ", for Hopper only");
}

bool fits_cutlass(const GroupedGemm& g) {
  return this_chip().is_hopper && !g.y.empty() && g.x.columns > 0 && g.bias.empty() &&
         expert_count(g.offsets) > 0 && fits(g.x, Dtype::kBf16) && fits(g.weights, Dtype::kBf16) &&
         fits(g.y, Dtype::kBf16);
}
bool fits_cutlass(const GroupedGemmWeight& g) {
  return this_chip().is_hopper && !g.dweights.empty() && g.x.rows > 0 &&
         expert_count(g.offsets) > 0 && fits(g.x, Dtype::kBf16) && fits(g.dy, Dtype::kBf16) &&
         fits(g.dweights, Dtype::kFp32);
}

Bytes scratch_of_cutlass(const GroupedGemm& g) {
  const std::int64_t experts = expert_count(g.offsets);
  return g.transpose_weights ? scratch_of<InputGradient>(experts) : scratch_of<Forward>(experts);
}
Bytes scratch_of_cutlass(const GroupedGemmWeight& g) {
  return scratch_of<WeightGradient>(expert_count(g.offsets));
}

void run_by_cutlass(const Launch& launch, const GroupedGemm& g) {
  const Operands operands{.a = g.x.data,
                          .b = g.weights.data,
                          .c = g.y.data,
                          .stride_a = g.x.stride,
                          .stride_b = g.weights.stride,
                          .stride_c = g.y.stride,
                          .height = 0,
                          .width = g.y.columns,
                          .depth = g.x.columns,
                          .b_of_expert = g.transpose_weights ? g.y.columns : g.x.columns,
                          .c_of_expert = 0,
                          .offsets = g.offsets.data(),
                          .experts = expert_count(g.offsets),
                          .sums_rows = false};
  if (g.transpose_weights)
    run_kernel<InputGradient>(launch, operands, false);
  else
    run_kernel<Forward>(launch, operands, false);
}
void run_by_cutlass(const Launch& launch, const GroupedGemmWeight& g) {
  const Operands operands{.a = g.x.data,
                          .b = g.dy.data,
                          .c = g.dweights.data,
                          .stride_a = g.x.stride,
                          .stride_b = g.dy.stride,
                          .stride_c = g.dweights.stride,
                          .height = g.x.columns,
                          .width = g.dy.columns,
                          .depth = 0,
                          .b_of_expert = 0,
                          .c_of_expert = g.x.columns,
                          .offsets = g.offsets.data(),
                          .experts = expert_count(g.offsets),
                          .sums_rows = true};
  run_kernel<WeightGradient>(launch, operands, true);
}

}  // namespace meshwright::cuda
