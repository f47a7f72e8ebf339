#include "cli/job/job_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "models/text/presets.hpp"

namespace meshwright {

namespace {

/// None for figures of the user's own calibration.
std::span<const ValidatedRun> validated_runs(bool calibrated) {
  static const std::vector<ValidatedRun> kRuns =
      validated_runs_from_csv(embedded_validated_runs(), "preset validated-runs");
  return calibrated ? std::span<const ValidatedRun>() : kRuns;
}

}  // namespace

TrainingJob training_job(const Job& job) {
  return {.plan = job.file.plan,
          .model = job.model,
          .cluster = job.cluster,
          .cost_model = *job.cost_model,
          .trainer = &job.trainer,
          .validated_runs = validated_runs(!job.file.calibration.empty())};
}

std::optional<ErrorBar> error_bar_of(const Strategy& strategy, const ModelGraph& model,
                                     const Cluster& cluster, const Trainer& trainer,
                                     const Evaluation& evaluation, bool calibrated) {
  return error_bar(traits_of(strategy, model, cluster, trainer, evaluation),
                   validated_runs(calibrated));
}

std::string validation_text(const std::optional<ErrorBar>& bar, const CostModel& cost_model) {
  if (!bar) return cost_model.validation();
  constexpr std::size_t kSourcesShown = 3;
  const std::span<const std::string> shown(bar->sources.data(),
                                           std::min(kSourcesShown, bar->sources.size()));
  const std::size_t more = bar->sources.size() - shown.size();
  return fmt::format(
      "validated on {} similar published run{} ({}{}): measured / predicted {:.2f} to {:.2f} (p10 "
      "to "
      "p90)",
      bar->runs, bar->runs == 1 ? "" : "s", fmt::join(shown, ", "),
      more > 0 ? fmt::format(" and {} more", more) : "", bar->p10, bar->p90);
}

}  // namespace meshwright
