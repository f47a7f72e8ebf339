#include "cli/validation/predict_runs.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/search.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// Loads each distinct text once. Presets have equal texts in all files.
template <class Loaded, class Load>
std::size_t load_once(const NamedText& text, std::map<std::string, std::size_t>& index_of_text,
                      std::vector<Loaded>& loaded, Load load) {
  const auto [found, is_new] =
      index_of_text.try_emplace(text.name + '\n' + text.text, loaded.size());
  if (is_new) loaded.push_back(load(text));
  return found->second;
}

/// A cluster as one trainer sees it, with its costs.
struct Pricing {
  Cluster cluster;
  Trainer trainer;
  std::unique_ptr<CostModel> cost_model;
};

/// By cluster index and trainer.
using Pricings = std::map<std::pair<std::size_t, std::string>, Pricing>;

Pricings make_pricings(const LoadedRuns& runs, const PredictionOptions& options) {
  Pricings pricings;
  for (const LoadedRuns::Job& job : runs.jobs) {
    const auto [entry, is_new] = pricings.try_emplace({job.cluster, job.run->trainer});
    if (!is_new) continue;
    Pricing& pricing = entry->second;
    pricing.cluster = runs.clusters[job.cluster];
    pricing.trainer = trainer_from_toml(find_trainer(job.run->trainer));
    if (options.change_trainer) options.change_trainer(pricing.trainer);
    if (options.change_device)
      for (auto& [name, device] : pricing.cluster.devices) options.change_device(device);
    pricing.cost_model = make_device_cost_model(pricing.cluster, pricing.trainer);
  }
  return pricings;
}

RunPrediction predict_run(const LoadedRuns::Job& job, const ModelGraph& model,
                          const Pricing& pricing) {
  RunPrediction prediction;
  prediction.device_name = device_of(pricing.cluster, DeviceId(0)).name;
  try {
    const Plan plan = plan_of_run(*job.run, model, pricing.cluster, *pricing.cost_model);
    const Evaluation evaluation =
        predict({plan, model, pricing.cluster, *pricing.cost_model}).evaluation;
    prediction.step_time = to_seconds(evaluation.step_time);
    prediction.allocated = peak_allocated_memory(evaluation);
    prediction.reserved = peak_reserved_memory(evaluation);
    prediction.device = peak_memory(evaluation);
    prediction.fits_in_memory = fits_in_memory(evaluation);
    prediction.mfu = evaluation.mfu;
    prediction.bubble_of_period = evaluation.bubble_of_period;
    prediction.shares = step_shares(evaluation);
    prediction.traits =
        traits_of(plan.strategy, model, pricing.cluster, pricing.trainer, evaluation);
  } catch (const InputError& error) {
    prediction.problems = error.diagnostics();
  }
  return prediction;
}

}  // namespace

LoadedRuns load_runs(std::vector<PublishedSet> sets) {
  LoadedRuns runs;
  runs.sets = std::move(sets);
  std::map<std::string, std::size_t> model_of_text, cluster_of_text;
  for (const PublishedSet& set : runs.sets) {
    std::vector<std::size_t> models, clusters;
    for (const NamedText& text : set.models)
      models.push_back(load_once(text, model_of_text, runs.models, model_from_config));
    for (const NamedText& text : set.clusters)
      clusters.push_back(load_once(text, cluster_of_text, runs.clusters, cluster_from_toml));
    for (const PublishedRun& run : set.runs)
      runs.jobs.push_back({&set, &run, models[run.model], clusters[run.cluster]});
  }
  return runs;
}

Bytes memory_of(const RunPrediction& prediction, MeasuredMemory kind) {
  if (kind == MeasuredMemory::kAllocated) return prediction.allocated;
  return kind == MeasuredMemory::kReserved ? prediction.reserved : prediction.device;
}

std::vector<RunPrediction> predict_runs(const LoadedRuns& runs, const PredictionOptions& options) {
  const Pricings pricings = make_pricings(runs, options);
  std::vector<RunPrediction> predictions(runs.jobs.size());
  parallel_for(runs.jobs.size(), thread_count(options.threads), [&](std::size_t i) {
    if (options.canceled && options.canceled()) return;
    if (options.skips && options.skips(i)) return;
    const LoadedRuns::Job& job = runs.jobs[i];
    predictions[i] =
        predict_run(job, runs.models[job.model], pricings.at({job.cluster, job.run->trainer}));
  });
  return predictions;
}

Plan plan_of_run(const PublishedRun& run, const ModelGraph& model, const Cluster& cluster,
                 const CostModel& cost_model) {
  const std::vector<int> blocks = blocks_per_stage_of(run, model);
  std::vector<Diagnostic> problems;
  try {
    Plan plan = blocks.empty() ? complete_plan(run.strategy, model, cluster, cost_model)
                               : Plan{.strategy = run.strategy, .blocks_per_stage = blocks};
    problems = check_plan(plan, model, cluster);
    if (problems.empty()) return plan;
  } catch (const InputError& error) {
    problems = error.diagnostics();
  }
  throw InputError(at_positions(run, std::move(problems)));
}

}  // namespace meshwright
