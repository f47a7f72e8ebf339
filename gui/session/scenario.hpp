/// One training job with all its parameters, as edited on the Explore screen. A plain value: undo,
/// sharing and snapshots copy it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/plan.hpp"
#include "core/plan/plan.hpp"
#include "models/load/load.hpp"
#include "simulator/variation/what_if.hpp"

namespace meshwright::gui {

struct Scenario {
  NamedText model, cluster;
  std::string calibration_file;  ///< empty for the analytic cost model
  Strategy strategy;
  /// Transformer blocks per stage; empty for the planner's partition.
  std::vector<int> blocks_per_stage;
  /// Manual or synthesized orders by pipeline rank; strategy.schedule is kSynthesizedSchedule then.
  /// Empty for the orders of the named schedule.
  std::vector<std::vector<Action>> orders;
  /// The device of every stage if the placement is manual; see Plan.
  std::vector<int> device_of_stage;
  WhatIf what_if;
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// 8 stages of GPT-3 on DGX A100 nodes, 32 micro-batches, 1f1b.
Scenario default_scenario();

/// All parameters of the plan; the others keep their defaults.
Scenario scenario_of(const PlanFile& file);

/// One of the built-in scenarios of the welcome screen.
struct Example {
  std::string_view name;  ///< "interleaving"; for --example and tests
  Scenario scenario;
};
/// Six examples, small enough to be drawn immediately. Titles and texts are in the welcome screen.
std::vector<Example> example_scenarios();

/// The choices offered in the scenario panel.
inline constexpr Dtype kDtypeChoices[]{Dtype::kBf16, Dtype::kFp16, Dtype::kFp32, Dtype::kFp8};
const std::vector<Recompute>& recompute_choices();

// ---- edits that preserve dependent parameters ---------------------------------------------------

int microbatches(const Scenario& scenario);
/// Micro-batches per replica; the global batch follows.
void set_microbatches(Scenario& scenario, int count);
/// Data-parallel size and micro-batch size: the number of
/// micro-batches stays the same, the global batch follows.
void set_data_degree(Scenario& scenario, int replicas);
void set_micro_batch(Scenario& scenario, int sequences);
/// Discards manual partition, orders and slowness, which are valid for one number of stages only.
void set_pipeline_degree(Scenario& scenario, int devices);
void set_chunks(Scenario& scenario, int chunks);
/// Discards manual orders; adjusts the chunk count if the schedule requires another one.
void set_schedule(Scenario& scenario, const std::string& name);
/// Tensor-parallel size; 1 turns off sequence parallelism.
void set_tensor_degree(Scenario& scenario, int ranks);
void set_slowness(Scenario& scenario, int pipeline_rank, double factor);

}  // namespace meshwright::gui
