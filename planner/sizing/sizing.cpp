#include "planner/sizing/sizing.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/schedule/schedule.hpp"

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

SearchResult search_job(const SizingJob& job, const SearchOptions& options) {
  const Cluster part = nodes_of_job(job.cluster, job.goal.gpus);
  return search(job.model, part, job.cost_model, job.goal, job.choices, options);
}

/// Micro-batches of one sequence and full recomputation, unless fixed: these plans decide most
/// cases, and are found sooner among themselves. False if the trainer cannot run them.
bool fits_lean(SizingJob job, const SearchOptions& first_plan) {
  if (!job.choices.micro_batch) job.choices.micro_batch = 1;
  if (!job.choices.recompute) job.choices.recompute = Recompute{RecomputeKind::kFull};
  try {
    return !search_job(job, first_plan).plans.empty();
  } catch (const InputError&) {
    return false;
  }
}

/// True if any plan fits in memory.
bool fits(SizingJob job, const SizingOptions& options) {
  const SearchOptions first_plan{
      .top = 1, .threads = options.threads, .canceled = options.canceled, .is_out_of_time = [] {
        return true;
      }};
  if (job.choices.schedule == kSynthesizedSchedule) job.choices.schedule.reset();
  return fits_lean(job, first_plan) || !search_job(job, first_plan).plans.empty();
}

/// fits(), with the problems of an impossible job.
bool fits(const SizingJob& job, const SizingOptions& options, std::vector<Diagnostic>& problems) {
  try {
    return fits(job, options);
  } catch (const InputError& error) {
    problems = error.diagnostics();
    return false;
  }
}

SizingResult search_within(const SizingJob& job, const SizingOptions& options,
                           std::optional<Seconds> share) {
  SizingResult result;
  const Seconds start = options.elapsed ? options.elapsed() : Seconds(0);
  try {
    result.search =
        search_job(job, {.top = options.top,
                         .threads = options.threads,
                         .canceled = options.canceled,
                         .is_out_of_time = [&] {
                           return share && options.elapsed && options.elapsed() > start + *share;
                         }});
  } catch (const InputError& error) {
    result.problems = error.diagnostics();
  }
  if (options.elapsed) result.time = options.elapsed() - start;
  return result;
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
    std::optional<Seconds> share;
    if (options.time_limit && options.elapsed)
      share = (*options.time_limit - options.elapsed()) / static_cast<double>(jobs.size() - done);
    results[i] = search_within(jobs[i], options, share);
    ++done;
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
    if (fits(sized, options, problems)) {
      fewest.devices = size;
      break;
    }
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
    return fits(sized, options, longest.problems);
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
