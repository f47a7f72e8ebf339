/// Figures of a simulated or measured training step.
///
/// Bubble fraction of rank r over x, the period or the makespan of the pipelined part:
///
///   bubble_r(x) = (x - span_r + idle_r) / x
///     span_r  from the start of its first pass to the end of its last pass
///     idle_r  gaps between its passes, less the communication that explains them
///
/// so that in x a rank is busy (passes, with the collectives inside them), waits for communication
/// between passes, or is in the bubble; nothing is counted twice. The bubble fraction of a plan is
/// the mean over ranks, as in GPipe and Megatron-LM (Narayanan et al., arXiv 2104.04473, section
/// 2.2), where all ranks have equal work: (p - 1) / (m + p - 1) for 1F1B. The busiest rank is the
/// one with the smallest bubble: it sets the pace, and its bubble is what a better schedule of the
/// same stages could save at most. The mean also contains what a better balance would save.
///
/// In the breakdown of the step, idle_r is dependency + imbalance. Its warm-up and drain also
/// contain the wait for other ranks at the end of the step, and leave out communication that fills
/// them. Where nothing but passes runs and messages are free, the shares of the four causes add up
/// to bubble_of_makespan.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/memory_amounts.hpp"
#include "core/base/units.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// Why the compute stream of a rank is idle.
enum class BubbleCause : std::uint8_t {
  kWarmUp,      ///< before its first forward pass
  kDrain,       ///< after its last backward pass, until the slowest rank ends its step
  kDependency,  ///< in between, for an input that other stages have not computed yet
  kImbalance    ///< in between, because a slower stage sets the pace
};
inline constexpr int kBubbleCauseCount = 4;
std::string_view name_of(BubbleCause cause);

/// Breakdown of one rank's step; the parts add up to the step exactly (in Ticks).
struct RankBreakdown {
  std::array<Ticks, kKernelKindCount> compute{};  ///< forward and backward, without recomputation
  Ticks recompute;
  Ticks optimizer;
  Ticks launch;  ///< inside passes and optimizer: the device waits for the host to launch kernels
  std::array<Ticks, kAxisCount> exposed_communication{};  ///< not hidden by computation
  std::array<Ticks, kBubbleCauseCount> bubble{};
  friend bool operator==(const RankBreakdown&, const RankBreakdown&) = default;
};
Ticks total(const RankBreakdown& breakdown);

/// Calls visit(name, part) for every part of a RankBreakdown or of StepShares, in a fixed order.
/// Names: "compute: gemm", "recomputation", "exposed communication: tp", "bubble: warm-up".
template <class Parts, class Visit>
void visit_parts(Parts& parts, Visit visit) {
  const auto name = [](const char* group, std::string_view part) {
    return std::string(group) + ": " + std::string(part);
  };
  for (std::size_t i = 0; i < parts.compute.size(); ++i)
    visit(name("compute", name_of(static_cast<KernelKind>(i))), parts.compute[i]);
  visit(std::string("recomputation"), parts.recompute);
  visit(std::string("optimizer"), parts.optimizer);
  visit(std::string("waiting for kernel launches"), parts.launch);
  for (std::size_t i = 0; i < parts.exposed_communication.size(); ++i)
    visit(name("exposed communication", name_of(static_cast<Axis>(i))),
          parts.exposed_communication[i]);
  for (std::size_t i = 0; i < parts.bubble.size(); ++i)
    visit(name("bubble", name_of(static_cast<BubbleCause>(i))), parts.bubble[i]);
}

struct Evaluation {
  Ticks step_time;  ///< makespan: first start to last end over all ranks, with optimizer barrier
  /// Largest span_r: the steady-state time between steps if the optimizer needs no barrier (the
  /// "cost" of Zero Bubble, arXiv 2401.10241).
  Ticks period;
  Ticks pipeline_makespan;  ///< start of the first to end of the last pass over all ranks
  /// Bubble fractions as above, over pipeline_makespan and period: means over the ranks that run
  /// passes, weighted by multiplicity.
  double bubble_of_makespan = 0;
  double bubble_of_period = 0;
  double busiest_rank_bubble = 0;          ///< smallest bubble_r(period)
  std::vector<RankBreakdown> ranks;        ///< by index in TaskGraph::ranks
  std::vector<MemoryAmounts> peak_memory;  ///< by rank: amounts at the moment of the peak
  std::vector<Bytes> allocator_slack;      ///< by rank; part of kReserved in peak_memory
  std::vector<int> multiplicity;           ///< by rank
  std::int64_t job_ranks = 1;              ///< ranks of the whole job

  double tokens_per_second_per_gpu = 0;
  FlopsPerSecond model_flops_per_gpu;     ///< model FLOPs over step time, without recomputation
  FlopsPerSecond hardware_flops_per_gpu;  ///< with recomputation
  double mfu = 0, hfu = 0;                ///< the two rates over the peak of the device
  Bytes memory_capacity;                  ///< of the device of fullest_rank()
  std::vector<Bytes> memory_capacities;   ///< by rank; empty: all are memory_capacity
  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

Bytes memory_capacity_of(const Evaluation& evaluation, std::size_t rank);
/// The first rank with the least headroom, by index in TaskGraph::ranks.
std::size_t fullest_rank(const Evaluation& evaluation);
/// Total of the fullest rank; the largest total if all devices have the same memory.
Bytes peak_memory(const Evaluation& evaluation);
/// The same without CUDA context and communicators: max_memory_allocated() of PyTorch, and
/// max_memory_reserved().
Bytes peak_allocated_memory(const Evaluation& evaluation);
Bytes peak_reserved_memory(const Evaluation& evaluation);
/// Compares peak_memory(): everything on the device.
bool fits_in_memory(const Evaluation& evaluation);
/// Mean over ranks, weighted by multiplicity, over step_time.
double exposed_communication_share(const Evaluation& evaluation, Axis axis);
double bubble_share(const Evaluation& evaluation, BubbleCause cause);
/// With recomputation, optimizer and launches: compute, exposed and bubble shares add up to one.
double compute_share(const Evaluation& evaluation);

/// All parts: means over ranks, weighted by multiplicity, over step_time. They add up to one.
struct StepShares {
  std::array<double, kKernelKindCount> compute{};
  double recompute = 0, optimizer = 0, launch = 0;
  std::array<double, kAxisCount> exposed_communication{};
  std::array<double, kBubbleCauseCount> bubble{};
  friend bool operator==(const StepShares&, const StepShares&) = default;
};
StepShares step_shares(const Evaluation& evaluation);
/// The same means as times that add up to step_time exactly: each is rounded down to Ticks, and the
/// parts with the largest remainders get the Ticks that are left.
RankBreakdown mean_breakdown(const Evaluation& evaluation);

/// Model FLOPs of one step: three times the forward pass of every matrix multiplication (backward
/// is twice the forward), full attention (not halved for the causal mask), no recomputation, as
/// Megatron-LM counts (Narayanan et al., arXiv 2104.04473, section 5.1).
Flops model_flops_per_step(const ModelGraph& model, const Strategy& strategy);

}  // namespace meshwright
