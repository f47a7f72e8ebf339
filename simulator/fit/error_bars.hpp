/// How far a prediction may be off, judged by published runs that resemble the job.
///
/// Every validated run contributes x = log(measured / predicted), where the prediction knows
/// nothing of the run's source, with the weight
///
///   w = exp(-d^2 / 2) / sqrt(sum of exp(-d^2 / 2) over the source),
///
/// d being the distance between the traits of job and run. The last factor keeps one large source
/// from drowning the others. The distribution of the error is the mixture of normal distributions
/// N(x, kRepeatability) with these weights; p10 and p90 are its quantiles. Two laboratories that
/// train the same model on the same devices differ by 5 to 10 % (published repetitions of 530B and
/// 1T on A100), hence kRepeatability.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/formats/plan.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/timeline/evaluation.hpp"
#include "core/trainer/trainer.hpp"

namespace meshwright {

/// What decides whether two jobs are alike.
struct JobTraits {
  std::string device;               ///< DeviceModel::name
  int compute_capability = 0;       ///< 0: not an NVIDIA GPU
  std::string trainer;              ///< Trainer::name
  int bits = 16;                    ///< of the matrix products: 32, 16, 8, 4
  bool experts = false;             ///< mixture of experts
  bool sharded_parameters = false;  ///< ZeRO 3
  double log2_devices = 0;
  double log2_parameters = 0;  ///< of the whole model
  double log2_sequence = 0;    ///< tokens per sequence
  double launch_share = 0;     ///< of the step: StepShares::launch
  friend bool operator==(const JobTraits&, const JobTraits&) = default;
};
JobTraits traits_of(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                    const Trainer& trainer, const Evaluation& evaluation);

struct ValidatedRun {
  std::string source, id;
  JobTraits traits;
  double log_error = 0;  ///< log(measured / predicted)
  friend bool operator==(const ValidatedRun&, const ValidatedRun&) = default;
};

/// d >= 0; 0 for equal traits.
double distance(const JobTraits& a, const JobTraits& b);

struct ErrorBar {
  double p10 = 1, p90 = 1;           ///< of measured / predicted step time
  int runs = 0;                      ///< validated runs nearer than kNear
  std::vector<std::string> sources;  ///< of those runs, sorted
  friend bool operator==(const ErrorBar&, const ErrorBar&) = default;
};
/// Nothing if no run is nearer than kNear: the prediction is unvalidated. Runs of `without` (a
/// source) do not count.
std::optional<ErrorBar> error_bar(const JobTraits& job, std::span<const ValidatedRun> runs,
                                  std::string_view without = {});

std::optional<StepTimeRange> range_of(Ticks step_time, const std::optional<ErrorBar>& bar);
/// True if the ranges overlap: neither plan is known to be faster.
bool equal_within_error(const StepTimeRange& a, const StepTimeRange& b);

/// One run per line below a header; validated_runs_from_csv() reads it back.
std::string to_csv(std::span<const ValidatedRun> runs);
/// InputError with line and column.
std::vector<ValidatedRun> validated_runs_from_csv(std::string_view text, const std::string& file);

}  // namespace meshwright
