/// Rejects candidates that do not fit in memory, before simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/units.hpp"
#include "planner/search/candidate_costs.hpp"
#include "planner/search/held_activations.hpp"
#include "planner/search/search.hpp"
#include "planner/search/search_job.hpp"
#include "planner/search/shared_cache.hpp"
#include "planner/search/space.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"

namespace meshwright {

struct MemoryShortfall {
  Bytes needed, capacity;
  int position = 0;  ///< pipeline rank with the peak
  friend bool operator==(const MemoryShortfall&, const MemoryShortfall&) = default;
};

/// Compares the peak of every pipeline rank with the device memory; nullopt if the plan fits.
/// Counts only the passes, so a rejected plan cannot fit; see peak_of_passes().
std::optional<MemoryShortfall> shortfall_of(const Plan& plan, const SearchJob& job);
/// The same for a lowered graph, including the optimizer step.
std::optional<MemoryShortfall> shortfall_of(const TaskGraph& graph, const JobFacts& facts);

/// How the activations that a schedule holds are counted.
enum class HeldCount : std::uint8_t {
  kFormula,  ///< ScheduleRule::peak_activations, each as large as on the smallest stage
  kOrders    ///< if they fit, by stage, from generated orders: never less
};

/// Bounds the memory of candidates from below, by the activations that their schedules hold
/// (least_peaks()).
class MemoryScreen {
 public:
  MemoryScreen(const SearchJob& job, CandidateCosts& costs);

  /// nullopt: may fit. Some blocks, whose number is not chosen yet, are all of them. The first
  /// bound counts model state and saved activations only, without lowering: O(parts).
  std::optional<MemoryShortfall> rough_shortfall_of(const Candidate& candidate,
                                                    const SharedLayers& layers,
                                                    HeldCount count = HeldCount::kOrders);
  std::optional<MemoryShortfall> shortfall_of(const Candidate& candidate);

  /// Chooses the smallest numbers of recomputed blocks that may fit, at least `least` in the stage
  /// with the most: every block beyond the first only frees memory. `rough`: by
  /// rough_shortfall_of(). The reason to prune the candidate, if any: kDominated if it needs all.
  std::optional<PruneReason> choose_blocks(Candidate& candidate, int least, bool rough,
                                           MemoryShortfall& shortfall);

 private:
  Bytes capacity_at(const LayerCosts& layers, std::size_t rank) const;
  std::vector<Bytes> peaks_of(const Candidate& candidate);
  ScheduleRequest schedule_request(const Candidate& candidate) const;
  std::vector<HeldActivations> held_by_formula(const Candidate& candidate) const;
  std::vector<HeldActivations> held_activations(const Candidate& candidate);

  const SearchJob& job_;
  CandidateCosts& costs_;
  Bytes capacity_;       ///< homogeneous clusters
  bool counts_buffers_;  ///< memory is that of buffers in programs; not known before lowering
  SharedCache<ScheduleKey, std::vector<HeldActivations>> held_;
};

}  // namespace meshwright
