/// Joins the GPU kernels of a Kineto trace with the operators that launched them, and measures
/// kernels by family and shape.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/cost/calibration.hpp"
#include "core/formats/kineto.hpp"
#include "models/kineto/kineto_operators.hpp"
#include "models/kineto/kineto_window.hpp"

namespace meshwright {

enum class KinetoPass : std::uint8_t { kForward, kBackward, kUpdate };
inline constexpr int kKinetoPassCount = 3;
std::string_view name_of(KinetoPass pass);  ///< "forward", "backward", "update"

/// Calls of one operator with one shape.
struct MeasuredShape {
  Routine routine = Routine::kProduct;
  KernelKind kind = KernelKind::kMemoryBound;
  KinetoPass pass = KinetoPass::kForward;
  bool is_weight_gradient = false;
  OperatorSize size;
  std::vector<double> times;        ///< seconds per call, all its kernels
  std::vector<double> overlapping;  ///< by call: share of the time beside a collective
  std::int64_t kernels = 0;         ///< on the GPU
  std::int64_t counted = 0;         ///< calls that stand for one Kernel
  std::int64_t recomputed = 0;      ///< of these, forward calls during the backward pass
  double total() const;             ///< seconds
};

/// Kernels whose operator has no rule, by the size of its largest tensor. In the backward pass the
/// routine is known if autograd's sequence number leads to a forward operator that has one.
struct OtherKernels {
  KinetoPass pass = KinetoPass::kForward;
  LargestTensor largest;
  std::optional<std::pair<Routine, std::int64_t>> belongs_to = {};  ///< routine and elements
  double seconds = 0;
  std::int64_t kernels = 0, additions = 0;  ///< additions: calls of aten::add
};

/// Kernels of a known kind whose operator or shape is not in the trace.
struct UnshapedKernels {
  KinetoPass pass = KinetoPass::kForward;
  KernelNameKind kind = KernelNameKind::kOther;
  double seconds = 0;
  std::int64_t kernels = 0;
  std::string example;  ///< name of one of them
};

struct KinetoKernels {
  std::vector<MeasuredShape> shapes;
  std::vector<OtherKernels> others;
  std::vector<UnshapedKernels> unshaped;
  double gap_seconds = 0;  ///< between kernels that were queued; included in all times above
  /// Elements of the gradients that autograd accumulated: parameters times micro-batches.
  double accumulated = 0;
  std::int64_t graph_launches = 0;       ///< kernels without an operator because of a CUDA graph
  std::vector<KinetoPass> pass_of_call;  ///< by KinetoTrace::calls
};
KinetoKernels measure_kernels(const KinetoTrace& trace, const KinetoWindow& window,
                              const Intervals& communication);

bool is_communication(const KinetoTrace& trace, const KinetoGpuWork& work);
bool is_launch(std::string_view call_name);  ///< of a kernel or a graph

}  // namespace meshwright
