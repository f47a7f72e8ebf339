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

namespace meshwright {

/// The complete steps of a trace.
struct KinetoWindow {
  std::int64_t start_ns = 0, end_ns = 0;
  std::vector<std::int64_t> starts_ns, durations_ns;  ///< of the steps, in order
  int steps() const { return static_cast<int>(durations_ns.size()); }
  bool contains(std::int64_t ns) const { return ns >= start_ns && ns < end_ns; }
};
/// From ProfilerStep#N; without these, from the optimizer's ranges or the whole trace as one step.
KinetoWindow window_of(const KinetoTrace& trace);

enum class KinetoPass : std::uint8_t { kForward, kBackward, kUpdate };
inline constexpr int kKinetoPassCount = 3;
std::string_view name_of(KinetoPass pass);  ///< "forward", "backward", "update"

/// Disjoint, increasing intervals of time.
using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;
/// Time of [start, end) inside the intervals. O(log n + overlapping intervals).
std::int64_t overlap_with(const Intervals& intervals, std::int64_t start, std::int64_t end);
/// Union of intervals sorted by start.
Intervals merged(const Intervals& sorted);

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
