/// Interface between work and its duration.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/graph/task_graph.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

struct TransferCost {
  Seconds latency;    ///< does not occupy any resource
  Seconds occupancy;  ///< time the sender's port is busy, without contention
};

/// Time of the host thread that launches the kernels of a rank; see core/trainer/trainer.hpp.
struct HostTimes {
  Seconds per_kernel = {}, per_collective = {};
  Seconds per_layer_forward = {}, per_layer_backward = {};  ///< of each WorkPart
  Seconds per_pass = {};                                    ///< of each compute task
  Seconds per_step = {};        ///< of the optimizer task, before its kernels
  bool messages_block = false;  ///< launching a pass waits for its received activations
  bool reads_counts = false;  ///< before a kernel with needs_counts, the host waits for the device
  friend bool operator==(const HostTimes&, const HostTimes&) = default;
};

/// Pure: equal arguments give equal costs. Implementations must be thread-safe.
class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual Seconds time_of(const Kernel& kernel) const = 0;
  virtual Seconds time_of(const Collective& collective) const = 0;
  virtual TransferCost cost_of(const Transfer& transfer) const = 0;
  /// Expected delay of the slowest of `ranks` identical ranks relative to their mean, after each
  /// has computed for `work` since the last synchronization. Zero by default (no jitter).
  virtual Seconds wait_of([[maybe_unused]] int ranks, [[maybe_unused]] Seconds work) const {
    return {};
  }
  /// Fraction of a device's multiprocessors that a collective takes from kernels next to it.
  virtual double multiprocessor_share_of([[maybe_unused]] const Collective& collective) const {
    return 0;
  }
  virtual HostTimes host_times() const { return {}; }
  /// Number of kernels that the host launches for `kernel`.
  virtual double launches_of(const Kernel& kernel) const {
    return static_cast<double>(kernel.launches) * kernel.pieces;
  }
  /// The cost model for nodes of one type (Work::node_kind); -1: the slowest type. The result lives
  /// as long as *this.
  virtual const CostModel& on_nodes([[maybe_unused]] std::int32_t node_kind) const { return *this; }
  /// What the training program whose times these are allocates; for LoweringOptions.
  virtual TrainerMemory memory() const { return {}; }
  /// Name of the model and source of its figures: "roofline model of A100-SXM4-80GB, NCCL 2.30
  /// tuning model".
  virtual std::string provenance() const = 0;
  /// How predictions with these costs were checked: "unvalidated", "validated on 8 published runs
  /// (Korthikanti et al., …): mean error 8.8 %, worst 13.2 %", "kernels calibrated on …".
  virtual std::string validation() const { return "unvalidated"; }
};

/// The cost of one Work in Ticks; kernels, recompute and communication add up to `duration`
/// exactly.
///
/// Kernel k of a compute task starts when kernel k - 1 has ended and the host has launched it. With
/// t_k its time on the device and h_k the host's time up to and including its launch, a task whose
/// stream is free at s and whose launching starts at l ends at
///
///   max(s + duration, l + since_launch),   duration = sum t_k,
///   since_launch = max over k of (h_k + t_k + t_(k+1) + …)
///
/// Two such triples (duration, host, since_launch) in sequence give (d1 + d2, h1 + h2,
/// max(m1 + d2, h1 + m2)), so layers are priced once. If the host waits for the device before some
/// kernels, launching ends at the latest of l + host and s + host_since_start, and the task at
/// max(s + duration + stalls, l + since_launch): a matrix product of two by two in (max, +).
struct WorkPrice {
  Ticks duration;  ///< compute and optimizer tasks, collectives; sends: port occupancy
  Ticks latency;   ///< sends: from the end of the occupancy to the arrival
  std::array<Ticks, kKernelKindCount> kernels{};  ///< by KernelKind, without recomputation
  Ticks recompute;                                ///< recomputed kernels
  std::array<Ticks, kAxisCount> communication{};  ///< blocking collectives incl. waits, by Axis
  Flops flops;         ///< including recomputation; attention scores counted without causal masking
  Ticks host;          ///< compute tasks: host time to launch all kernels
  Ticks since_launch;  ///< compute tasks: from the start of launching to the end, at least
  /// Compute tasks: from the start on the device to the end of launching, at least; absent: the
  /// host does not wait for the device.
  std::optional<Ticks> host_since_start;
  Ticks stalls;  ///< compute tasks: waits of the device for launches that follow such a wait
  bool launch_waits = false;  ///< launching starts only when received inputs have arrived
};

/// Exposed time of each step: kernels in full, collectives as far as their Overlap does not hide
/// them. Together with waits_of_steps() the times add up to the duration of the part.
std::vector<Ticks> price_steps(const WorkPart& part, const CostModel& cost_model);
/// For each step, how long a rank waits for the slowest rank of its group before a collective
/// (`times`: the result of price_steps()). Zero if kernels overlap the collective.
std::vector<Ticks> waits_of_steps(const WorkPart& part, const std::vector<Ticks>& times,
                                  const CostModel& cost_model);

/// Costs indexed by work ID. Each distinct part is evaluated once.
std::vector<WorkPrice> price_works(const std::vector<WorkPart>& parts,
                                   const std::vector<Work>& works, const CostModel& cost_model);

}  // namespace meshwright
