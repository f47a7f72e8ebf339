/// What the screen Explore is about: one job, every knob of it. A plain value: undo, sharing and
/// snapshots are copies of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io_plan.hpp"
#include "core/plan.hpp"
#include "models/load.hpp"
#include "simulator/what_if.hpp"

namespace meshwright::gui {

struct Scenario {
  NamedText model, cluster;
  std::string calibration_file;  ///< empty: none
  Strategy strategy;
  /// Layers of every stage; empty: the planner's cut.
  std::vector<int> blocks_per_stage;
  /// Orders edited by hand or made to measure, by pipeline position; then strategy.schedule is
  /// kMadeToMeasure. Empty: those of the named schedule.
  std::vector<std::vector<Action>> orders;
  /// The device of every stage, where layers are placed by hand; see Plan.
  std::vector<int> device_of_stage;
  WhatIf what_if;
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// 8 stages of GPT-3 on DGX A100 nodes, 32 micro-batches, 1f1b.
Scenario default_scenario();

/// Everything of the plan; the rest as usual.
Scenario scenario_of(const PlanFile& file);

/// One of the built-in scenarios of the welcome screen.
struct Example {
  std::string_view name;  ///< "interleaving"; for --example and tests
  Scenario scenario;
};
/// Six of them, each small enough to be drawn at once. Title and text are the welcome screen's.
std::vector<Example> example_scenarios();

/// What the knobs offer.
inline constexpr Dtype kDtypeChoices[]{Dtype::kBf16, Dtype::kFp16, Dtype::kFp32, Dtype::kFp8};
const std::vector<Recompute>& recompute_choices();

// ---- edits that keep what the user means ------------------------------------------------------

int microbatches(const Scenario& scenario);
/// Micro-batches of one replica: the global batch follows.
void set_microbatches(Scenario& scenario, int count);
/// Replicas, or sequences in a micro-batch: the number of micro-batches stays, the global batch
/// follows.
void set_data_degree(Scenario& scenario, int replicas);
void set_micro_batch(Scenario& scenario, int sequences);
/// Cut, orders and slowness by hand belong to one number of stages and end with it.
void set_pipeline_degree(Scenario& scenario, int devices);
void set_chunks(Scenario& scenario, int chunks);
/// Gives up edited orders; chunks follow where the schedule has no other number.
void set_schedule(Scenario& scenario, const std::string& name);
/// Tensor degree; sequence parallelism ends with it.
void set_tensor_degree(Scenario& scenario, int ranks);
void set_slowness(Scenario& scenario, int pipeline_position, double factor);

}  // namespace meshwright::gui
