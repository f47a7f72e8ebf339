#include "cli/run/run_input.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

#include "cli/run/run_device.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/formats/file.hpp"
#include "core/lowering/memory.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"

namespace meshwright {
namespace {

constexpr int kMostRanks = 16;  ///< of one machine: a thread or process each
/// CPU ranks report progress many times a second (executor/ranks/kernel_pieces.hpp); initializing a
/// GPU or an NCCL communicator takes seconds in one call.
constexpr Seconds kTimeoutOfCpus{6}, kTimeoutOfGpus{30};
constexpr Seconds kTimeoutUnderMpirun{5};  ///< mpirun needs two more to end its processes
constexpr Seconds kLongestTimeout{86'400};

[[noreturn]] void refuse(std::string where, std::string what, std::string hint) {
  throw InputError(Diagnostic{std::move(where), std::move(what), std::move(hint)});
}

[[noreturn]] void refuse_output(const std::string& flag, std::string what, std::string hint) {
  throw RuntimeFailure({flag, std::move(what), std::move(hint)});
}

[[noreturn]] void refuse_memory(int ranks, Bytes needed, const std::string& available) {
  throw RuntimeFailure(
      {"memory",
       fmt::format("peak memory of {} ranks is {}, but only {}", ranks, to_text(needed), available),
       "use a smaller model, fewer replicas, smaller micro-batches, or --clock replay"});
}

/// The number after `word` in a system file, or its first number if `word` is empty.
std::optional<std::int64_t> number_in(const std::string& path, std::string_view word = "") {
  std::istringstream words;
  try {
    words.str(read_file(path));
  } catch (const InputError&) {  // not on this system
    return std::nullopt;
  }
  for (std::string read; word.empty() || words >> read;) {
    std::int64_t number = 0;
    if ((word.empty() || read == word) && words >> number) return number;
    if (word.empty()) break;
  }
  return std::nullopt;
}

/// Memory left to this container (cgroup v2), counting the page cache as free; nullopt: no limit.
std::optional<Bytes> left_to_container() {
  const std::string group = "/sys/fs/cgroup/";
  const auto most = number_in(group + "memory.max"), used = number_in(group + "memory.current");
  if (!most || !used) return std::nullopt;
  const std::int64_t cached = number_in(group + "memory.stat", "file").value_or(0);
  return Bytes(std::max<std::int64_t>(0, *most - *used + cached));
}

/// Address space that this process may still use; nullopt: no limit.
std::optional<Bytes> left_to_process() {
  rlimit limit{};
  const auto pages = number_in("/proc/self/statm");
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || !pages)
    return std::nullopt;
  const std::int64_t used = *pages * ::sysconf(_SC_PAGESIZE);
  return Bytes(std::max<std::int64_t>(0, static_cast<std::int64_t>(limit.rlim_cur) - used));
}

/// Memory that Linux can allocate without swapping; nullopt if unknown.
std::optional<Bytes> available_memory() {
  const std::optional<std::int64_t> kibibytes = number_in("/proc/meminfo", "MemAvailable:");
  if (!kibibytes) return std::nullopt;
  const Bytes machine(*kibibytes * 1024);
  return std::min(machine, left_to_container().value_or(machine));
}

}  // namespace

TrainingLength training_length(const RunFlags& flags, std::int64_t first_step) {
  const std::int64_t steps = flags.steps.value_or(kDefaultSteps);
  if (!flags.total_steps)
    return {
        .first_step = first_step, .steps = static_cast<int>(steps), .total = first_step + steps};
  const std::int64_t total = *flags.total_steps, left = total - first_step;
  if (left <= 0)
    refuse("--total-steps",
           fmt::format("the checkpoint has completed {} steps already, got {}", first_step, total),
           "set more steps, or remove --resume");
  if (flags.steps && steps > left)
    refuse("--steps",
           fmt::format("{} steps after step {} exceed the {} of --total-steps", steps, first_step,
                       total),
           fmt::format("use at most {}, or set a larger --total-steps", left));
  return {.first_step = first_step,
          .steps = static_cast<int>(flags.steps ? steps : left),
          .total = total};
}

void check_plan(const Job& job, RankKind ranks) {
  std::vector<Diagnostic> problems = check_runnable(job.file.plan, job.model);
  const std::int64_t count = rank_count(job.file.plan.strategy.degrees);
  const bool are_here = ranks != RankKind::kMpi && ranks != RankKind::kJob;
  if (are_here && count > kMostRanks)
    problems.push_back(
        {"--gpus", fmt::format("{} ranks exceed the limit of {} on one machine", count, kMostRanks),
         "use smaller parallel sizes"});
  throw_if_any(problems);
}

namespace {

/// Each of `ranks` has a GPU, or all share the first one.
void check_gpu_memory(const RunFlags& flags, Bytes of_largest, Bytes of_all, int ranks) {
  const DeviceTable* device = device_of(flags.device);
  const int sharing = has_gpu_each(flags) ? 1 : ranks;
  const DeviceDescription gpu = device->describe(0);
  const Bytes needed = sharing == 1 ? of_largest : of_all;
  if (needed > gpu.free_memory)
    refuse_memory(sharing, needed, to_text(gpu.free_memory) + " are free on the GPU " + gpu.name);
}

/// Optimizer state that the CPU updates, of all ranks.
Bytes state_on_host(const TaskGraph& graph, const Strategy& strategy) {
  std::int64_t parameters = 0;
  for (const Task& task : graph.tasks)
    if (task.kind == TaskKind::kOptimizer && task.stream == Stream::kHost)
      for (const WorkPartUse& use : graph.works[task.work.index()].parts)
        for (const Step& step : graph.parts[static_cast<std::size_t>(use.part)].steps)
          if (const auto* kernel = std::get_if<Kernel>(&step)) parameters += kernel->m;
  return optimizer_state_bytes(strategy) * parameters;
}

}  // namespace

/// Ignores reserved memory, which stands for the driver and libraries of a GPU.
void check_memory(const TaskGraph& graph, const Strategy& strategy, const RunFlags& flags,
                  int ranks_here) {
  const RankKind kind = ranks_of(flags);
  Bytes all, largest;
  for (MemoryAmounts peak : peak_memory_by_rank(graph)) {
    peak[MemoryClass::kReserved] = Bytes();
    all += total(peak);
    largest = std::max(largest, total(peak));
  }
  const auto ranks = static_cast<std::int64_t>(graph.ranks.size());
  const auto of_ranks_here = [&](Bytes of_all) { return Bytes(of_all.value / ranks * ranks_here); };
  Bytes needed = of_ranks_here(state_on_host(graph, strategy));  // in host memory
  if (is_gpu(flags.device) && missing_of_device(flags.device).empty())
    check_gpu_memory(flags, largest, of_ranks_here(all), ranks_here);
  else
    needed += of_ranks_here(all);
  const std::optional<Bytes> available = available_memory();
  if (available && needed > *available)
    refuse_memory(ranks_here, needed, to_text(*available) + " are available on this machine");
  const std::optional<Bytes> left = left_to_process();
  const int ranks_of_process = kind == RankKind::kThreads ? ranks_here : 1;
  const Bytes of_process(needed.value / ranks_here * ranks_of_process);
  if (left && of_process > *left)
    refuse_memory(ranks_of_process, of_process,
                  to_text(*left) + " are left of the limit on address space (ulimit -v)");
}

void check_folder_of(const std::string& flag, const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty() || path == "-") return;
  std::error_code error;
  const bool is_folder = path.ends_with('/') || fs::is_directory(path, error);
  const fs::path target = fs::exists(path, error) ? fs::canonical(path, error) : fs::path(path);
  fs::path folder = is_folder ? fs::path(path) : target.parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, error))
    refuse_output(flag, fmt::format("directory '{}' does not exist", folder.string()),
                  "create it first");
  // Files are replaced, which needs a writable directory; devices and pipes are written in place.
  const bool is_device = fs::exists(path, error) && !fs::is_regular_file(path, error) && !is_folder;
  if (::access(folder.c_str(), W_OK | X_OK) != 0 && !is_device)
    refuse_output(flag,
                  fmt::format("cannot write to directory '{}': {}", folder.string(),
                              std::generic_category().message(errno)),
                  "use another directory");
}

void check_place_of(const std::string& flag, const std::string& path) {
  std::error_code error;
  if (path != "-" && std::filesystem::is_directory(path, error))
    refuse_output(flag, fmt::format("'{}' is a directory", path), "use the path of a file");
  check_folder_of(flag, path);
}

TimelineClock clock_of(const RunFlags& flags) {
  if (flags.clock == "wall") return TimelineClock::kWall;
  return flags.clock == "replay" ? TimelineClock::kReplay : TimelineClock::kVirtual;
}

LinkTime links_of(const RunFlags& flags) {
  if (flags.links == "real" && flags.clock != "wall")
    throw UsageError({.where = "--links",
                      .what = fmt::format(
                          "requires '--clock wall': '--clock {}' always models links", flags.clock),
                      .hint = "add --clock wall, or remove --links"});
  return flags.links == "modelled" ? LinkTime::kModeled : LinkTime::kReal;
}

RankKind ranks_of(const RunFlags& flags) {
  if (flags.ranks == "processes") return RankKind::kProcesses;
  if (flags.ranks == "job" || flags.ranks == "nccl") return RankKind::kJob;
  return flags.ranks == "mpi" ? RankKind::kMpi : RankKind::kThreads;
}

std::chrono::milliseconds watchdog_timeout_of(const RunFlags& flags) {
  const Seconds of_cpus = flags.ranks == "mpi" ? kTimeoutUnderMpirun : kTimeoutOfCpus;
  Seconds timeout = is_gpu(flags.device) ? kTimeoutOfGpus : of_cpus;
  if (!flags.watchdog_timeout.empty()) {
    timeout = parse_seconds(flags.watchdog_timeout, "--patience");
    if (timeout <= Seconds() || timeout > kLongestTimeout)
      refuse("--patience",
             fmt::format("must be positive and at most 24 h, got {}", flags.watchdog_timeout),
             "set a timeout such as --patience 10s");
  }
  const double milliseconds = timeout.value * 1e3;
  return std::chrono::milliseconds(std::max(1LL, std::llround(milliseconds)));
}

}  // namespace meshwright
