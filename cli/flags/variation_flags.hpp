/// Stragglers, jitter and failures: their flags and results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "simulator/variation/goodput.hpp"
#include "simulator/variation/variation.hpp"

namespace CLI {
class App;
}

namespace meshwright {

/// Unparsed; empty: not given.
struct VariationFlags {
  std::vector<std::string> stragglers;  ///< "RANK:FACTOR"
  std::string jitter;
  std::optional<int> draws, threads;
  std::optional<std::int64_t> seed;
};
struct FailureFlags {
  std::string mtbf, checkpoint_write, restart, checkpoint_interval;
};
void add_variation_flags(CLI::App& app, VariationFlags& flags);
void add_failure_flags(CLI::App& app, FailureFlags& flags);

/// True if --straggler or --jitter was given, which need all ranks.
bool varies_steps(const VariationFlags& flags);

struct StepVariation {
  Variation variation;
  Ticks nominal, slowed;     ///< without jitter: without and with stragglers
  std::vector<Ticks> steps;  ///< by draw; empty without jitter
};
struct PricedGraph {
  const TaskGraph& graph;  ///< of all ranks
  std::span<const WorkPrice> prices;
  std::optional<StepInWindow> step;  ///< the step to time in a graph of several
};
/// UsageError for a rank that is not among these.
Variation variation_of(const VariationFlags& flags, std::span<const RankInfo> ranks);
StepVariation vary_steps(const VariationFlags& flags, const PricedGraph& priced, Ticks nominal);
std::string variation_text(const StepVariation& steps);

/// nullopt if --mtbf was not given. UsageError for invalid times.
std::optional<FailureModel> failure_model(const FailureFlags& flags, int devices);
std::optional<Seconds> checkpoint_interval(const FailureFlags& flags);
/// `step`: the step time without failures.
std::string goodput_text(const FailureModel& model, std::optional<Seconds> interval, Ticks step);

/// A JSON object with the keys "variation" and "goodput", if requested.
std::string variation_json(const std::optional<StepVariation>& steps,
                           const std::optional<FailureModel>& failures,
                           std::optional<Seconds> interval);

}  // namespace meshwright
