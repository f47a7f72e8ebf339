/// The seam between what is to be done and how long it takes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/kernel.hpp"
#include "core/task_graph.hpp"
#include "core/units.hpp"

namespace meshwright {

struct TransferCost {
  Seconds latency;    ///< occupies nothing
  Seconds occupancy;  ///< of the sender's port, without contention
};

/// Pure: equal arguments give equal costs. Implementations may be used by several threads.
class CostModel {
 public:
  virtual ~CostModel() = default;
  virtual Seconds time_of(const Kernel& kernel) const = 0;
  virtual Seconds time_of(const Collective& collective) const = 0;
  virtual TransferCost cost_of(const Transfer& transfer) const = 0;
  /// The same for work on nodes of one kind (Work::node_kind); -1: the slowest of all kinds. The
  /// result lives as long as this.
  virtual const CostModel& on_nodes([[maybe_unused]] std::int32_t node_kind) const { return *this; }
  /// Name and origin of the figures, for provenance: "analytic A100-SXM4-80GB, NCCL 2.30 tuner".
  virtual std::string provenance() const = 0;
};

/// The price of one Work, in Ticks; the parts add up to the duration exactly.
struct WorkPrice {
  Ticks duration;  ///< compute and optimizer tasks, collectives; sends: occupancy
  Ticks latency;   ///< sends: from the end of the occupancy to the arrival
  std::array<Ticks, kKernelKindCount> kernels{};  ///< by KernelKind, without recomputation
  Ticks recompute;                                ///< kernels of recomputed parts
  std::array<Ticks, kAxisCount> communication{};  ///< blocking collectives inside, by Axis
  Flops flops;                                    ///< with recomputation, every score counted
};

/// By step: what of it is visible. Kernels whole; a collective as its Overlap leaves it. The sum is
/// what the part takes.
std::vector<Ticks> price_steps(const WorkPart& part, const CostModel& cost_model);

/// Prices by work id. Each distinct part is priced once.
std::vector<WorkPrice> price_works(const std::vector<WorkPart>& parts,
                                   const std::vector<Work>& works, const CostModel& cost_model);

}  // namespace meshwright
