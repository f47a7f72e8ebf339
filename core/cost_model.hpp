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
  /// How much later the last of `ranks` equal ranks comes to a meeting than each does on the
  /// average, when all have computed for `work` since the one before. Devices keep time by default.
  virtual Seconds wait_of([[maybe_unused]] int ranks, [[maybe_unused]] Seconds work) const {
    return {};
  }
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
  std::array<Ticks, kAxisCount> communication{};  ///< blocking collectives, with waits, by Axis
  Flops flops;                                    ///< with recomputation, every score counted
};

/// By step: what of it is visible. Kernels whole; a collective as its Overlap leaves it. With
/// waits_of_steps() the sum is what the part takes.
std::vector<Ticks> price_steps(const WorkPart& part, const CostModel& cost_model);
/// By step: how long a rank waits before a collective for the slowest of its group (`times`: of
/// price_steps()). Nothing where kernels run beside the collective.
std::vector<Ticks> waits_of_steps(const WorkPart& part, const std::vector<Ticks>& times,
                                  const CostModel& cost_model);

/// Prices by work id. Each distinct part is priced once.
std::vector<WorkPrice> price_works(const std::vector<WorkPart>& parts,
                                   const std::vector<Work>& works, const CostModel& cost_model);

}  // namespace meshwright
