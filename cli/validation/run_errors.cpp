#include "cli/validation/run_errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace meshwright {
namespace {

std::string job_key(const PublishedSet& set, const PublishedRun& run) {
  const Strategy& s = run.strategy;
  return fmt::format("{}|{}|{}|{}|{}|{}", set.name, set.models[run.model].name,
                     rank_count(s.degrees), s.global_batch, s.sequence_length, run.group);
}

/// Ranks from 0; equal values share the mean of their ranks.
std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i)
      ranks[order[i]] = static_cast<double>(first + last) / 2;
    first = last + 1;
  }
  return ranks;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ErrorSummary error_summary_of(std::span<const double> errors) {
  ErrorSummary summary;
  summary.count = errors.size();
  if (errors.empty()) return summary;
  std::vector<double> magnitudes;
  for (const double error : errors) magnitudes.push_back(std::abs(error));
  summary.mean = mean_of(magnitudes);
  summary.bias = mean_of(errors);
  summary.worst = *std::max_element(errors.begin(), errors.end(),
                                    [](double a, double b) { return std::abs(a) < std::abs(b); });
  std::sort(magnitudes.begin(), magnitudes.end());
  const std::size_t half = magnitudes.size() / 2;
  summary.median =
      magnitudes.size() % 2 == 1 ? magnitudes[half] : (magnitudes[half - 1] + magnitudes[half]) / 2;
  return summary;
}

/// Measured and predicted times of the runs of one job.
struct JobTimes {
  std::vector<double> measured, predicted;
};

double regret_of(const JobTimes& job) {
  const auto chosen = std::min_element(job.predicted.begin(), job.predicted.end());
  const double best = *std::min_element(job.measured.begin(), job.measured.end());
  return job.measured[static_cast<std::size_t>(chosen - job.predicted.begin())] / best - 1;
}

void add_rankings(const std::map<std::string, JobTimes>& jobs, ErrorSummary& summary) {
  double correlation = 0, weight = 0;
  std::vector<double> regrets;
  for (const auto& [name, job] : jobs) {
    const std::size_t count = job.measured.size();
    if (count >= kFewestToRank)
      if (const auto rho = spearman_correlation(job.measured, job.predicted)) {
        correlation += *rho * static_cast<double>(count);
        weight += static_cast<double>(count);
      }
    if (count >= kFewestToChoose) regrets.push_back(regret_of(job));
  }
  if (weight > 0) summary.spearman = correlation / weight;
  if (regrets.empty()) return;
  summary.mean_regret = mean_of(regrets);
  summary.worst_regret = *std::max_element(regrets.begin(), regrets.end());
}

}  // namespace

std::vector<ComparedRun> compare_runs(const LoadedRuns& runs,
                                      std::span<const RunPrediction> predictions) {
  std::vector<ComparedRun> compared;
  for (std::size_t i = 0; i < runs.jobs.size(); ++i) {
    const PublishedRun& run = *runs.jobs[i].run;
    const RunPrediction& prediction = predictions[i];
    ComparedRun entry;
    entry.set = runs.jobs[i].set;
    entry.run = &run;
    entry.prediction = &prediction;
    entry.job = job_key(*entry.set, run);
    if (prediction.problems.empty() && run.trap.empty()) {
      if (run.step_time) entry.time_error = prediction.step_time.value / run.step_time->value - 1;
      if (run.memory)
        entry.memory_error = static_cast<double>(memory_of(prediction, run.memory_kind).value) /
                                 static_cast<double>(run.memory->value) -
                             1;
    }
    compared.push_back(std::move(entry));
  }
  return compared;
}

ErrorSummary summarize_times(std::span<const ComparedRun> runs) {
  std::vector<double> errors;
  std::map<std::string, JobTimes> jobs;
  for (const ComparedRun& entry : runs) {
    if (!entry.time_error) continue;
    errors.push_back(*entry.time_error);
    JobTimes& job = jobs[entry.job];
    job.measured.push_back(entry.run->step_time->value);
    job.predicted.push_back(entry.prediction->step_time.value);
  }
  ErrorSummary summary = error_summary_of(errors);
  add_rankings(jobs, summary);
  return summary;
}

MemorySummary summarize_memory(std::span<const ComparedRun> runs) {
  MemorySummary summary;
  std::vector<double> errors;
  for (const ComparedRun& entry : runs) {
    if (!entry.run->trap.empty() || !entry.prediction->problems.empty()) continue;
    if (entry.memory_error) errors.push_back(*entry.memory_error);
    const bool fits = entry.prediction->fits_in_memory;
    if (entry.run->ran_out_of_memory) {
      ++summary.out_of_memory;
      if (!fits) ++summary.predicted_out_of_memory;
    } else {
      ++summary.ran;
      if (!fits) ++summary.wrongly_out_of_memory;
    }
  }
  summary.errors = error_summary_of(errors);
  return summary;
}

std::optional<double> spearman_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return std::nullopt;
  const std::vector<double> ranks_a = mean_ranks(a), ranks_b = mean_ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;  // of any ranking
  double product = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double from_a = ranks_a[i] - mean, from_b = ranks_b[i] - mean;
    product += from_a * from_b;
    square_a += from_a * from_a;
    square_b += from_b * from_b;
  }
  if (square_a == 0 || square_b == 0) return std::nullopt;
  return product / std::sqrt(square_a * square_b);
}

}  // namespace meshwright
