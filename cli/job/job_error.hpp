/// The error bar of a job, from the embedded table of published runs.
#pragma once

#include <optional>
#include <string>

#include "cli/job/job.hpp"
#include "simulator/fit/error_bars.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {

/// The job for predict(), with the published runs for its error bar. Refers to `job`.
TrainingJob training_job(const Job& job);

/// Nothing if no published run resembles the job, or if a calibration replaces the cost model that
/// was validated.
std::optional<ErrorBar> error_bar_of(const Strategy& strategy, const ModelGraph& model,
                                     const Cluster& cluster, const Trainer& trainer,
                                     const Evaluation& evaluation, bool calibrated);
/// "validated on 42 similar published runs (bloom-2022, …): measured / predicted 0.95 to 1.08
/// (p10 to p90)"; without a bar, what the cost model says.
std::string validation_text(const std::optional<ErrorBar>& bar, const CostModel& cost_model);

}  // namespace meshwright
