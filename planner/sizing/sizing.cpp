#include "planner/sizing/sizing.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace meshwright {
namespace {

/// The first nodes of the cluster, as many as a job of `devices` uses. Costs do not depend on nodes
/// that are not used, and a search on them does not look for plans on more devices.
Cluster nodes_of_job(const Cluster& cluster, int devices) {
  const auto used = used_devices_per_node(cluster, devices);
  if (!used || !is_homogeneous(cluster) || devices > device_count(cluster)) return cluster;
  Cluster part = cluster;
  part.groups.resize(1);
  part.groups.front().count = (devices + *used - 1) / *used;
  return part;
}

bool is_canceled(const SizingOptions& options) { return options.canceled && options.canceled(); }

bool is_out_of_time(const SizingOptions& options) {
  return options.time_limit && options.elapsed && options.elapsed() > *options.time_limit;
}

SearchResult search_job(const SizingJob& job, SearchOptions options) {
  options.selects_nodes = true;
  const Cluster part = nodes_of_job(job.cluster, job.goal.gpus);
  return search(job.model, part, job.cost_model, job.goal, job.choices, options);
}

/// Micro-batches of one sequence and full recomputation, unless fixed: plans that fit if any does,
/// mostly, and that are found quickly among themselves. Empty if the trainer cannot run them.
SearchResult search_lean(SizingJob job, const SearchOptions& options) {
  if (!job.choices.micro_batch) job.choices.micro_batch = 1;
  if (!job.choices.recompute) job.choices.recompute = Recompute{RecomputeKind::kFull};
  try {
    return search_job(job, options);
  } catch (const InputError&) {
    return {};
  }
}

/// SearchOptions::canceled of a search that starts now and may run for `timeout`.
std::function<bool()> cancel_after(const SizingOptions& options, std::optional<Seconds> timeout) {
  if (!timeout || !options.elapsed) return options.canceled;
  return [&options, deadline = options.elapsed() + *timeout] {
    return is_canceled(options) || options.elapsed() > deadline;
  };
}

enum class Fit : std::uint8_t { kYes, kNo, kUndecided };

/// Whether any plan fits in memory, within half the time limit.
Fit find_fit(SizingJob job, const SizingOptions& options) {
  std::optional<Seconds> half_of_limit = options.time_limit;
  if (half_of_limit) *half_of_limit = *half_of_limit / 2.0;
  const auto first_plan = [&] {
    return SearchOptions{.top = 1,
                         .threads = options.threads,
                         .canceled = cancel_after(options, half_of_limit),
                         .is_out_of_time = [] { return true; }};
  };
  if (job.choices.schedule == kSynthesizedSchedule) job.choices.schedule.reset();
  if (!search_lean(job, first_plan()).plans.empty()) return Fit::kYes;
  const SearchResult result = search_job(job, first_plan());
  if (!result.plans.empty()) return Fit::kYes;
  return result.certificate.proved_optimal ? Fit::kNo : Fit::kUndecided;
}

/// find_fit(), with the problems of an impossible job.
Fit find_fit(const SizingJob& job, const SizingOptions& options,
             std::vector<Diagnostic>& problems) {
  try {
    return find_fit(job, options);
  } catch (const InputError& error) {
    problems = error.diagnostics();
    return Fit::kNo;
  }
}

/// Of a search that is canceled before it finds a plan, lean plans are searched instead.
SearchResult search_patiently(const SizingJob& job, const SizingOptions& options,
                              std::optional<Seconds> share) {
  const auto search_options = [&] {
    const std::function<bool()> is_over = cancel_after(options, share);
    return SearchOptions{.top = options.top,
                         .threads = options.threads,
                         .canceled = cancel_after(options, options.time_limit),
                         .is_out_of_time = [=] { return share && is_over && is_over(); },
                         .refines = true,
                         .tries_shares = true};
  };
  SearchResult result = search_job(job, search_options());
  const bool gave_up = result.plans.empty() && !result.infeasible;
  if (!gave_up || is_canceled(options)) return result;
  result.plans = search_lean(job, search_options()).plans;
  return result;
}

SizingResult search_within(const SizingJob& job, const SizingOptions& options,
                           std::optional<Seconds> share) {
  SizingResult result;
  const Seconds start = options.elapsed ? options.elapsed() : Seconds(0);
  try {
    result.search = search_patiently(job, options, share);
  } catch (const InputError& error) {
    result.problems = error.diagnostics();
  }
  if (options.elapsed) result.time = options.elapsed() - start;
  return result;
}

/// An equal share of the time that is left, but not less than a quarter of the first one.
std::optional<Seconds> share_of_time(const SizingOptions& options, std::size_t jobs,
                                     std::size_t done) {
  if (!options.time_limit || !options.elapsed) return std::nullopt;
  constexpr double kLeast = 0.25;
  return std::max((*options.time_limit - options.elapsed()) / static_cast<double>(jobs - done),
                  *options.time_limit * (kLeast / static_cast<double>(jobs)));
}

}  // namespace

std::vector<std::size_t> middle_first(std::size_t count) {
  std::vector<std::pair<std::size_t, std::size_t>> halves{{0, count}};
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const auto [begin, end] = halves[i];
    if (begin == end) continue;
    const std::size_t middle = begin + (end - begin) / 2;
    order.push_back(middle);
    halves.emplace_back(begin, middle);
    halves.emplace_back(middle + 1, end);
  }
  return order;
}

std::vector<SizingResult> search_all(std::span<const SizingJob> jobs,
                                     const SizingOptions& options) {
  std::vector<SizingResult> results(jobs.size());
  std::size_t done = 0;
  for (const std::size_t i : middle_first(jobs.size())) {
    if (is_canceled(options)) break;
    if (options.progress) options.progress(done, jobs.size());
    results[i] = search_within(jobs[i], options, share_of_time(options, jobs.size(), done));
    ++done;
  }
  return results;
}

std::vector<SizingResult> search_until(
    std::span<const SizingJob> jobs, const SizingOptions& options,
    const std::function<bool(const SizingJob&, const SizingResult&)>& is_enough) {
  std::vector<SizingResult> results;
  for (const SizingJob& job : jobs) {
    if (is_canceled(options)) break;
    if (options.progress) options.progress(results.size(), jobs.size());
    results.push_back(
        search_within(job, options, share_of_time(options, jobs.size(), results.size())));
    if (is_enough(job, results.back())) break;
  }
  return results;
}

FewestDevices fewest_devices(const SizingJob& job, std::span<const int> sizes,
                             const SizingOptions& options) {
  FewestDevices fewest{.devices = std::nullopt, .proved = true, .problems = {}};
  bool any_possible = false;
  int last = 0;
  for (const int size : sizes) {
    if (is_canceled(options)) {
      fewest.proved = false;
      break;
    }
    if (is_out_of_time(options) && size < 2 * std::int64_t{last} && size != sizes.back()) {
      fewest.proved = false;
      continue;
    }
    SizingJob sized = job;
    sized.goal.gpus = last = size;
    std::vector<Diagnostic> problems;
    const Fit fit = find_fit(sized, options, problems);
    if (fit == Fit::kYes) {
      fewest.devices = size;
      break;
    }
    if (fit == Fit::kUndecided) fewest.proved = false;
    any_possible = any_possible || problems.empty();
    fewest.problems = std::move(problems);
  }
  if (any_possible || fewest.devices) fewest.problems.clear();
  return fewest;
}

LongestSequence longest_sequence(const SizingJob& job, std::int64_t limit,
                                 const SizingOptions& options) {
  LongestSequence longest;
  // Load-balanced context parallelism gives each rank two parts of the sequence.
  longest.unit = std::lcm(std::lcm(kSequenceUnit, 2 * job.choices.context.value_or(1)),
                          std::int64_t{job.choices.tensor.value_or(1)});
  const auto fits_units = [&](std::int64_t units) {
    SizingJob sized = job;
    sized.goal.sequence_length = units * longest.unit;
    const Fit fit = find_fit(sized, options, longest.problems);
    if (fit == Fit::kUndecided) longest.proved = false;
    return fit == Fit::kYes;
  };
  const std::int64_t most = limit / longest.unit;
  std::int64_t fitting = 0, too_many = 1;
  while (too_many <= most && !is_canceled(options) && fits_units(too_many)) {
    fitting = too_many;
    too_many = fitting == most ? most + 1 : std::min(2 * fitting, most);
  }
  while (too_many - fitting > 1 && !is_canceled(options)) {
    const std::int64_t middle = std::midpoint(fitting, too_many);
    (fits_units(middle) ? fitting : too_many) = middle;
  }
  if (fitting == 0) return longest;
  longest.length = fitting * longest.unit;
  longest.at_limit = fitting == most;
  longest.problems.clear();
  return longest;
}

}  // namespace meshwright
