#include "cli/fit_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "cli/report.hpp"
#include "cli/table.hpp"
#include "core/base/check.hpp"
#include "models/trainer_toml.hpp"
#include "simulator/fit/fit_factors.hpp"

namespace meshwright {
namespace {

/// Values before any run was measured. Host: an asynchronous launch from Python, and a module call;
/// traffic: as counted, in fused kernels; rates: nine tenths of a long burst, as on A100, and the
/// shares of models/devices that say "typical of current GPUs".
constexpr double kTypicalPerKernel = 6e-6, kTypicalPerCollective = 20e-6;
constexpr double kTypicalLayerForward = 100e-6, kTypicalLayerBackward = 60e-6;
constexpr double kTypicalTraffic = 1;
constexpr double kTypicalSustained = 0.9, kTypicalFp8Share = 0.8, kTypicalNvfp4Share = 0.7;
/// Of the host, hardly anything is known before: a factor of e. Then of traffic and of rates.
constexpr double kHostSpread = 1, kTrafficSpread = 0.5, kRateSpread = 0.15;
constexpr double kMostHostSeconds = 0.01, kMostTraffic = 10;

void add_trainer_constants(const std::string& generation, std::vector<SharedConstant>& constants) {
  const Trainer profile = trainer_from_toml(find_trainer(generation));
  const auto add = [&](SharedConstant constant,
                       const std::function<void(double, Trainer&)>& scale) {
    constant.scale_trainer = [generation, scale](double factor, Trainer& trainer) {
      if (trainer.generation == generation) scale(factor, trainer);
    };
    constants.push_back(std::move(constant));
  };
  const auto host = [&](std::string key, Seconds HostCosts::*time, double typical) {
    add({.file = generation,
         .key = "host." + std::move(key),
         .in_file = (profile.host.*time).value,
         .typical = typical,
         .spread = kHostSpread,
         .smallest = typical / 10,
         .largest = kMostHostSeconds},
        [time](double f, Trainer& t) { t.host.*time = f * t.host.*time; });
  };
  const auto traffic = [&](std::string key, std::vector<Routine> scaled) {
    const double in_file = profile.cost_of(scaled.front()).forward;
    add({.file = generation,
         .key = std::move(key),
         .in_file = in_file,
         .typical = kTypicalTraffic,
         .spread = kTrafficSpread,
         .smallest = 1,
         .largest = kMostTraffic},
        [scaled = std::move(scaled)](double f, Trainer& t) {
          for (const Routine routine : scaled) {
            RoutineCost& cost = t.routines[static_cast<std::size_t>(routine)];
            cost.forward *= f;
            cost.backward *= f;
          }
        });
  };
  host("per_kernel", &HostCosts::per_kernel, kTypicalPerKernel);
  host("per_collective", &HostCosts::per_collective, kTypicalPerCollective);
  host("per_layer_forward", &HostCosts::per_layer_forward, kTypicalLayerForward);
  host("per_layer_backward", &HostCosts::per_layer_backward, kTypicalLayerBackward);
  traffic("elementwise", {Routine::kLayerNorm, Routine::kRmsNorm, Routine::kGelu, Routine::kRelu,
                          Routine::kSquaredRelu, Routine::kSwiGlu, Routine::kResidual,
                          Routine::kRotary, Routine::kBias});
  traffic("routines.cross-entropy", {Routine::kCrossEntropy});
}

double long_rate(const GemmEfficiency& gemm) {
  return gemm.long_efficiency.value_or(gemm.max_efficiency);
}

/// The rates of products in continuous training, which the power limit sets: in 16 bits, and shares
/// of it in narrower formats.
void add_device_constants(const DeviceModel& device, const std::string& prefix,
                          std::vector<SharedConstant>& constants) {
  const auto add = [&](SharedConstant constant,
                       const std::function<void(double, GemmEfficiency&)>& scale) {
    constant.spread = kRateSpread;
    constant.smallest = 0.2;
    constant.scale_device = [prefix, scale](double factor, DeviceModel& scaled) {
      if (scaled.name.starts_with(prefix)) scale(factor, scaled.gemm);
    };
    constants.push_back(std::move(constant));
  };
  add({.file = prefix,
       .key = "gemm.sustained_efficiency",
       .in_file = device.gemm.sustained_efficiency.value_or(long_rate(device.gemm)),
       .typical = kTypicalSustained * long_rate(device.gemm)},
      [](double factor, GemmEfficiency& gemm) {
        const double now = gemm.sustained_efficiency.value_or(long_rate(gemm));
        gemm.sustained_efficiency = std::min(1.0, factor * now);
      });
  const auto share = [&](std::string key, double typical, std::vector<ProductFormat> formats) {
    const double in_file = device.gemm.format_long_share[static_cast<std::size_t>(formats.front())];
    add({.file = prefix, .key = std::move(key), .in_file = in_file, .typical = typical},
        [formats = std::move(formats)](double factor, GemmEfficiency& gemm) {
          for (const ProductFormat format : formats)
            gemm.format_long_share[static_cast<std::size_t>(format)] *= factor;
        });
  };
  share("gemm.fp8 long shares", kTypicalFp8Share,
        {ProductFormat::kFp8, ProductFormat::kFp8Block, ProductFormat::kMxfp8});
  share("gemm.nvfp4_long_share", kTypicalNvfp4Share, {ProductFormat::kNvfp4});
}

/// The first device of that name in the clusters of the runs.
const DeviceModel* device_named(const LoadedRuns& runs, const std::string& prefix) {
  for (const Cluster& cluster : runs.clusters)
    for (const auto& [name, device] : cluster.devices)
      if (device.name.starts_with(prefix)) return &device;
  return nullptr;
}

/// Half for measurements of less than high trust, and half if options had to be assumed.
double trust_in(const LoadedRuns::Job& job) {
  constexpr double kReduced = 0.5;
  return (job.set->trust == "high" ? 1 : kReduced) * (job.run->assumed.empty() ? 1 : kReduced);
}

/// Jobs whose step time counts.
std::vector<std::size_t> timed_jobs(const LoadedRuns& runs) {
  std::vector<std::size_t> jobs;
  for (std::size_t j = 0; j < runs.jobs.size(); ++j)
    if (runs.jobs[j].run->step_time && runs.jobs[j].run->trap.empty()) jobs.push_back(j);
  return jobs;
}

/// Predictions of all timed jobs with scaled constants.
class Sweep {
 public:
  Sweep(const LoadedRuns& runs, int threads)
      : runs_(runs),
        threads_(threads),
        constants_(shared_constants(runs)),
        jobs_(timed_jobs(runs)) {
    counts_.assign(runs.jobs.size(), false);
    for (const std::size_t j : jobs_) counts_[j] = true;
  }

  std::vector<RunPrediction> predictions(const std::vector<double>& factors) const {
    PredictionOptions options;
    options.threads = threads_;
    options.skips = [this](std::size_t job) { return !counts_[job]; };
    options.change_trainer = [&](Trainer& trainer) {
      for (std::size_t c = 0; c < constants_.size(); ++c)
        if (constants_[c].scale_trainer) constants_[c].scale_trainer(factors[c], trainer);
    };
    options.change_device = [&](DeviceModel& device) {
      for (std::size_t c = 0; c < constants_.size(); ++c)
        if (constants_[c].scale_device) constants_[c].scale_device(factors[c], device);
    };
    return predict_runs(runs_, options);
  }

  std::vector<double> log_errors(const std::vector<double>& factors) const {
    const std::vector<RunPrediction> all = predictions(factors);
    std::vector<double> errors;
    for (const std::size_t j : jobs_)
      errors.push_back(all[j].problems.empty()
                           ? std::log(ratio(all[j].step_time, *runs_.jobs[j].run->step_time))
                           : std::numeric_limits<double>::quiet_NaN());
    return errors;
  }

  FactorProblem problem() const {
    std::map<const PublishedSet*, int> count;
    for (const std::size_t j : jobs_) ++count[runs_.jobs[j].set];
    FactorProblem made;
    made.log_errors = [this](const std::vector<double>& factors) { return log_errors(factors); };
    for (const std::size_t j : jobs_)
      made.weights.push_back(trust_in(runs_.jobs[j]) /
                             std::sqrt(static_cast<double>(count[runs_.jobs[j].set])));
    for (const SharedConstant& c : constants_)
      made.ranges.push_back({.smallest = c.smallest / c.in_file,
                             .largest = c.largest / c.in_file,
                             .expected = c.typical / c.in_file,
                             .spread = c.spread});
    return made;
  }

  const std::vector<std::size_t>& jobs() const { return jobs_; }
  const std::vector<SharedConstant>& constants() const { return constants_; }

 private:
  const LoadedRuns& runs_;
  int threads_;
  std::vector<SharedConstant> constants_;
  std::vector<std::size_t> jobs_;
  std::vector<bool> counts_;  ///< by job
};

/// For every job the error of the fit without the jobs of the same group.
template <class GroupOf>
std::vector<double> left_out_errors(const Sweep& sweep, const FactorProblem& problem,
                                    const FactorFit& fit, GroupOf group_of) {
  std::set<std::string> groups;
  for (const std::size_t j : sweep.jobs()) groups.insert(group_of(j));
  std::vector<double> errors(sweep.jobs().size());
  for (const std::string& group : groups) {
    const auto is_left_out = [&](std::size_t i) { return group_of(sweep.jobs()[i]) == group; };
    const std::vector<double> there = sweep.log_errors(factors_without(problem, fit, is_left_out));
    for (std::size_t i = 0; i < errors.size(); ++i)
      if (is_left_out(i)) errors[i] = there[i];
  }
  return errors;
}

struct ErrorColumn {
  double mean = 0, median = 0, bias = 0;
};
ErrorColumn column_of(std::vector<double> errors) {
  ErrorColumn column;
  for (const double e : errors) {
    column.mean += std::abs(e) / static_cast<double>(errors.size());
    column.bias += e / static_cast<double>(errors.size());
  }
  for (double& e : errors) e = std::abs(e);
  std::sort(errors.begin(), errors.end());
  column.median = errors.empty() ? 0 : errors[errors.size() / 2];
  return column;
}
std::string cell(const ErrorColumn& column) {
  return fmt::format("{:.1f} ({:+.1f})", 100 * column.mean, 100 * column.bias);
}

}  // namespace

std::vector<SharedConstant> shared_constants(const LoadedRuns& runs) {
  std::vector<SharedConstant> constants;
  for (const char* generation : {"pytorch-2021", "pytorch-2024", "transformer-engine"})
    add_trainer_constants(generation, constants);
  // Devices without kernels measured at sustained clocks.
  for (const char* name : {"H100", "GB200", "GB300", "B300"})
    if (const DeviceModel* device = device_named(runs, name))
      add_device_constants(*device, name, constants);
  return constants;
}

RunFit fit_runs(const LoadedRuns& runs, int steps, int threads) {
  const Sweep sweep(runs, threads);
  const FactorProblem problem = sweep.problem();
  const std::vector<double> ones(sweep.constants().size(), 1.0);
  const std::vector<double> now = sweep.log_errors(ones);
  const FactorFit fit = fit_factors(problem, steps);
  RunFit result;
  for (std::size_t c = 0; c < sweep.constants().size(); ++c)
    result.constants.push_back({.file = sweep.constants()[c].file,
                                .key = sweep.constants()[c].key,
                                .in_file = sweep.constants()[c].in_file,
                                .typical = sweep.constants()[c].typical,
                                .factor = fit.factors[c],
                                .uncertainty = fit.uncertainty[c]});
  const auto without_source = left_out_errors(
      sweep, problem, fit, [&](std::size_t job) { return runs.jobs[job].set->name; });
  const auto without_model = left_out_errors(sweep, problem, fit, [&](std::size_t job) {
    return runs.jobs[job].set->models[runs.jobs[job].run->model].name;
  });
  const std::vector<RunPrediction> predictions = sweep.predictions(fit.factors);
  const auto error = [](double log_error) { return std::exp(log_error) - 1; };
  for (std::size_t i = 0; i < sweep.jobs().size(); ++i) {
    const std::size_t job = sweep.jobs()[i];
    if (std::isnan(now[i])) continue;
    result.errors.push_back({.job = job,
                             .now = error(now[i]),
                             .fitted = error(fit.log_errors[i]),
                             .without_source = error(without_source[i]),
                             .without_model = error(without_model[i]),
                             .traits = predictions[job].traits});
  }
  return result;
}

std::vector<ValidatedRun> validated_runs(const LoadedRuns& runs, const RunFit& fit) {
  std::vector<ValidatedRun> validated;
  for (const LeftOutError& e : fit.errors)
    validated.push_back({.source = runs.jobs[e.job].set->name,
                         .id = runs.jobs[e.job].run->id,
                         .traits = e.traits,
                         .log_error = -std::log(1 + e.without_source)});
  return validated;
}

std::string fit_text(const LoadedRuns& runs, const RunFit& fit) {
  Table constants{.columns = {{"file", Align::kLeft},
                              {"constant", Align::kLeft},
                              {"typical"},
                              {"in the file"},
                              {"fitted"},
                              {"known within"}},
                  .rows = {}};
  const auto value = [](const FittedConstant& c, double in_file_unit) {
    return c.key.starts_with("host.") ? fmt::format("{:.3g} us", 1e6 * in_file_unit)
                                      : fmt::format("{:.3g}", in_file_unit);
  };
  for (const FittedConstant& c : fit.constants)
    constants.rows.push_back({c.file, c.key, value(c, c.typical), value(c, c.in_file),
                              value(c, c.factor * c.in_file),
                              fmt::format("{:.0f} %", 100 * c.uncertainty)});
  const std::vector<ValidatedRun> validated = validated_runs(runs, fit);
  std::map<std::string, std::vector<std::size_t>> by_set;
  for (std::size_t i = 0; i < fit.errors.size(); ++i) {
    by_set[runs.jobs[fit.errors[i].job].set->name].push_back(i);
    by_set["~ all"].push_back(i);
  }
  Table table{.columns = {{"set", Align::kLeft},
                          {"runs"},
                          {"now"},
                          {"in the fit"},
                          {"without source"},
                          {"without model"},
                          {"in p10-p90"}},
              .rows = {}};
  for (const auto& [set, rows] : by_set) {
    std::vector<double> now, fitted, source, model;
    int inside = 0, with_bar = 0;
    for (const std::size_t i : rows) {
      const LeftOutError& e = fit.errors[i];
      now.push_back(e.now);
      fitted.push_back(e.fitted);
      source.push_back(e.without_source);
      model.push_back(e.without_model);
      const double ratio = std::exp(validated[i].log_error);
      const auto bar = error_bar(e.traits, validated, validated[i].source);
      if (!bar) continue;  // unvalidated without its own source
      ++with_bar;
      inside += ratio >= bar->p10 && ratio <= bar->p90 ? 1 : 0;
    }
    table.rows.push_back({set == "~ all" ? "all" : set, std::to_string(rows.size()),
                          cell(column_of(now)), cell(column_of(fitted)), cell(column_of(source)),
                          cell(column_of(model)),
                          with_bar == 0 ? "-" : fmt::format("{} of {}", inside, with_bar)});
  }
  return to_text(constants) + "\n" + to_text(table) +
         "\nMean absolute error of the step time in percent (bias); predicted / measured - 1.\n";
}

}  // namespace meshwright
