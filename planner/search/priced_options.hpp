/// What per-layer options cost: the input of the choice in per_layer.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "core/plan/plan.hpp"
#include "planner/search/search_job.hpp"

namespace meshwright {

/// The options of a block.
struct LayerOption {
  Recompute recompute;  ///< not kBlocks
  bool reshards = true;
  bool shares_tokens = false;  ///< see LayerOptions::tensor
  friend bool operator==(const LayerOption&, const LayerOption&) = default;
};

/// The options of every block of a plan without layer options.
std::vector<LayerOption> options_of(const Plan& plan);
/// The plan with these options, by block: the most frequent ones are those of the plan.
Plan with_options(Plan plan, const std::vector<LayerOption>& options);

/// By block.
struct PricedOption {
  LayerOption option;
  std::vector<Ticks> time;   ///< forward and backward pass of a micro-batch
  std::vector<Bytes> saved;  ///< activations of a micro-batch
  /// Gathered parameters, and the model state beyond that of the plan.
  std::vector<Bytes> parameters;
};

/// True if the plan is valid, and the trainer of the job can run it.
bool is_possible(const Plan& plan, const SearchJob& job);

/// All options that the job leaves free, in every combination. Recomputation is priced layer by
/// layer. What blocks save that do not reshard, or whose tensor ranks share tokens, is measured on
/// the plan in which all of them do, as if there was enough memory; options that save nothing are
/// left out.
std::vector<PricedOption> priced_options(const Plan& plan, const SearchJob& job);

}  // namespace meshwright
