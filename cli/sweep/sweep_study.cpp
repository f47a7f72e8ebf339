#include "cli/sweep/sweep_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/hash.hpp"
#include "core/formats/plan.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"

namespace meshwright {
namespace {

void check_required(const SweepFlags& flags) {
  if (flags.over.empty())
    throw UsageError({.where = "--over",
                      .what = "missing required option",
                      .hint = "set it, for example --over pp=1,2,4,8 --over schedule=1f1b,zb-h1"});
  for (const auto& [flag, value] :
       {std::pair("--model", &flags.sources.model), std::pair("--cluster", &flags.sources.cluster)})
    if (value->empty())
      throw UsageError({.where = flag,
                        .what = "missing required option",
                        .hint = "run 'meshwright sweep --help'"});
}

/// Parallel sizes that do not multiply to --gpus invalidate their point, not the command. Switches
/// of tensor parallelism are for the points that have it.
SweepPoint point_of(StrategyFlags flags, bool sweeps_tensor, std::optional<int> gpus) {
  if (sweeps_tensor && flags.choices.tensor == 1) {
    flags.choices.sequence_parallel.reset();
    flags.choices.tensor_overlap.reset();
  }
  SweepPoint point;
  try {
    point.strategy = to_strategy(flags, gpus);
  } catch (const UsageError& error) {
    if (error.diagnostics().front().where != "--gpus" &&
        error.diagnostics().front().where != "--dp")
      throw;
    point.problems = error.diagnostics();
  }
  return point;
}

std::string hash_text(std::string_view text) { return fmt::format("of hash {:016x}", fnv1a(text)); }

/// Of the combinations: their order, and all options.
std::string strategies_text(const std::vector<SweepPoint>& points) {
  std::string text;
  for (const SweepPoint& point : points)
    text += point.problems.empty() ? to_json(point.strategy, -1) + "\n" : "-\n";
  return text;
}

}  // namespace

SweepStudy load_study(const SweepFlags& flags, bool warns) {
  check_required(flags);
  SweepStudy study;
  for (const std::string& text : flags.over) study.swept.push_back(swept_flag_from_text(text));
  study.combinations = combinations(flags.strategy, study.swept);
  const NamedText model = find_model(flags.sources.model);
  study.model = warns ? load_model_and_warn(model) : model_from_config(model);
  study.cluster = cluster_from_toml(find_cluster(flags.sources.cluster, flags.sources.calibration));
  study.trainer = trainer_for(study.cluster, flags.sources.trainer);
  study.is_trainer_given = !flags.sources.trainer.empty();
  const std::optional<Calibration> calibration =
      calibration_for(study.cluster, flags.sources.calibration);
  study.cost_model = make_cost_model(study.cluster, study.trainer, calibration);
  study.points.reserve(study.combinations.size());
  const bool sweeps_tensor = std::ranges::count(study.swept, "--tp", &SweptFlag::flag) > 0;
  for (const SweptStrategy& combination : study.combinations)
    study.points.push_back(point_of(combination.flags, sweeps_tensor, flags.gpus));
  study.identity = {{"version", MESHWRIGHT_VERSION},
                    {"model configuration", hash_text(model.name + "\n" + model.text)},
                    {"cluster file", hash_text(cluster_to_toml(study.cluster))},
                    {"trainer", hash_text(to_toml(study.trainer))},
                    {"--trainer", study.is_trainer_given ? "set" : "not set"},
                    {"--calibration", hash_text(text_of(calibration))},
                    {"the list of combinations", hash_text(strategies_text(study.points))}};
  return study;
}

std::string key_of(const SweepStudy& study) {
  std::string text;
  for (const auto& [name, value] : study.identity) text += fmt::format("{}={}\n", name, value);
  return fmt::format("{:016x}", fnv1a(text));
}

bool is_evaluated(const SweepPoint& point) { return point.figures || !point.problems.empty(); }

std::vector<std::size_t> missing_points(const SweepStudy& study, const SweepPart& part) {
  std::vector<std::size_t> missing;
  for (std::size_t i = part.index; i < study.points.size(); i += part.count)
    if (!is_evaluated(study.points[i])) missing.push_back(i);
  return missing;
}

void evaluate_points(const SweepStudy& study, std::span<const std::size_t> indices,
                     const PointEvaluation& evaluation) {
  std::vector<Strategy> strategies;
  strategies.reserve(indices.size());
  for (const std::size_t i : indices) strategies.push_back(study.points[i].strategy);
  sweep(strategies, study.model, study.cluster, *study.cost_model,
        {.threads = evaluation.threads,
         .trainer = study.is_trainer_given ? &study.trainer : nullptr,
         .on_point = [&](std::size_t i,
                         const SweepPoint& point) { evaluation.on_point(indices[i], point); },
         .canceled = evaluation.canceled});
}

}  // namespace meshwright
