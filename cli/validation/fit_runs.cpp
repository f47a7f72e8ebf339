#include "cli/validation/fit_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "cli/reports/report.hpp"
#include "cli/terminal/table.hpp"
#include "cli/validation/shared_constants.hpp"
#include "core/base/check.hpp"
#include "simulator/fit/fit_factors.hpp"

namespace meshwright {
namespace {

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
    for (const SharedConstant& c : constants_) {
      MW_CHECK(c.in_file > 0);
      made.ranges.push_back({.smallest = c.smallest / c.in_file,
                             .largest = c.largest / c.in_file,
                             .expected = c.typical / c.in_file,
                             .spread = c.spread});
    }
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

Document fit_text(const LoadedRuns& runs, const RunFit& fit) {
  Table constants = empty_table(left_aligned("file"), left_aligned("constant"), "typical",
                                "in the file", "fitted", "known within");
  const auto text_of = [](const FittedConstant& c, double value) {
    return c.key.starts_with("host.") ? fmt::format("{:.3g} us", 1e6 * value)
                                      : fmt::format("{:.3g}", value);
  };
  for (const FittedConstant& c : fit.constants)
    constants.rows.push_back({c.file, c.key, text_of(c, c.typical), text_of(c, c.in_file),
                              text_of(c, c.factor * c.in_file),
                              fmt::format("{:.0f} %", 100 * c.uncertainty)});
  const std::vector<ValidatedRun> validated = validated_runs(runs, fit);
  std::map<std::string, std::vector<std::size_t>> by_set;
  for (std::size_t i = 0; i < fit.errors.size(); ++i) {
    by_set[runs.jobs[fit.errors[i].job].set->name].push_back(i);
    by_set["~ all"].push_back(i);
  }
  Table table = empty_table(left_aligned("set"), "runs", "now", "in the fit", "without source",
                            "without model", "in p10-p90");
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
  return Document(std::move(constants)) + "\n" + std::move(table) +
         "\nMean absolute error of the step time in percent (bias); predicted / measured - 1.\n";
}

}  // namespace meshwright
