/// The verdict on a simulated or measured step.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel.hpp"
#include "core/memory_amounts.hpp"
#include "core/plan.hpp"
#include "core/units.hpp"

namespace meshwright {

/// Why a rank's compute stream stands still.
enum class BubbleCause : std::uint8_t {
  kWarmUp,      ///< before its first forward
  kDrain,       ///< after its last backward, waiting for other stages
  kDependency,  ///< in between, for an input that is on its way through other stages
  kImbalance    ///< in between, because a slower stage sets the pace
};
inline constexpr int kBubbleCauseCount = 4;
std::string_view name_of(BubbleCause cause);

/// Where the step of one rank went; the parts add up to the step exactly (in Ticks).
struct RankBreakdown {
  std::array<Ticks, kKernelKindCount> compute{};  ///< first-time forward and backward
  Ticks recompute;
  Ticks optimizer;
  std::array<Ticks, kAxisCount> exposed_communication{};  ///< compute stood still for it
  std::array<Ticks, kBubbleCauseCount> bubble{};
  friend bool operator==(const RankBreakdown&, const RankBreakdown&) = default;
};
Ticks total(const RankBreakdown& breakdown);

struct Evaluation {
  Ticks step_time;  ///< makespan: first start to last end over all ranks, with optimizer barrier
  /// Largest (last end - first start) over ranks of the pipelined part: the time between steps if
  /// the optimizer needs no barrier (Zero Bubble's "cost", arXiv 2401.10241).
  Ticks period;
  Ticks pipeline_makespan;                 ///< first forward to last backward over all ranks
  double bubble_of_makespan = 0;           ///< 1 - busiest rank's pipeline work / pipeline_makespan
  double bubble_of_period = 0;             ///< 1 - busiest rank's pipeline work / period
  std::vector<RankBreakdown> ranks;        ///< by index in TaskGraph::ranks
  std::vector<MemoryAmounts> peak_memory;  ///< by rank: amounts at the moment of the peak
  std::vector<int> multiplicity;           ///< by rank
  std::int64_t job_ranks = 1;              ///< ranks of the whole job

  double tokens_per_second_per_gpu = 0;
  FlopsPerSecond model_flops_per_gpu;     ///< model work / step, recomputation not counted
  FlopsPerSecond hardware_flops_per_gpu;  ///< with recomputation; attention as there
  double mfu = 0, hfu = 0;                ///< the same over the device's peak
  Bytes memory_capacity;                  ///< smallest device
  friend bool operator==(const Evaluation&, const Evaluation&) = default;
};

/// Largest total over ranks.
Bytes peak_memory(const Evaluation& evaluation);
bool fits_in_memory(const Evaluation& evaluation);
/// Mean over ranks, weighted by multiplicity, over step_time.
double exposed_communication_share(const Evaluation& evaluation, Axis axis);
double bubble_share(const Evaluation& evaluation, BubbleCause cause);
/// Recomputation and optimizer counted: compute, exposed and bubble shares add up to one.
double compute_share(const Evaluation& evaluation);

/// All parts at once: mean over ranks, weighted by multiplicity, over step_time. They add up to
/// one.
struct StepShares {
  std::array<double, kKernelKindCount> compute{};
  double recompute = 0, optimizer = 0;
  std::array<double, kAxisCount> exposed_communication{};
  std::array<double, kBubbleCauseCount> bubble{};
  friend bool operator==(const StepShares&, const StepShares&) = default;
};
StepShares step_shares(const Evaluation& evaluation);

/// Model FLOPs of one step: forward + 2 x forward of every matrix multiplication, full (not
/// causal-halved) attention as Megatron counts, no recomputation (Narayanan et al., arXiv
/// 2104.04473, section 5.1).
Flops model_flops_per_step(const ModelGraph& model, const Strategy& strategy);

}  // namespace meshwright
