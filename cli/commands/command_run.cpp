#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/run/activity_trace.hpp"
#include "cli/run/run_device.hpp"
#include "cli/run/run_failed.hpp"
#include "cli/run/run_flags.hpp"
#include "cli/run/run_input.hpp"
#include "cli/run/run_progress.hpp"
#include "cli/run/run_results.hpp"
#include "cli/run/token_input.hpp"
#include "cli/run/training_settings.hpp"
#include "cli/run/validation_input.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "cli/validation/step_range.hpp"
#include "core/base/hash.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/formats/file.hpp"
#include "core/formats/plan.hpp"
#include "core/lowering/lower.hpp"
#include "core/plan/strategy_text.hpp"
#include "core/plan/weight_versions.hpp"
#include "executor/launch/guarded_process.hpp"
#include "executor/launch/job_environment.hpp"
#include "executor/launch/mpi_job.hpp"
#include "executor/launch/run_copies.hpp"
#include "executor/launch/supervision.hpp"

namespace meshwright {
namespace {

/// Everything the ranks use.
struct Running {
  Job job;
  TaskGraph graph;
  TokenText words;
  std::optional<TokenText> held_out;
  std::optional<Fault> fault;
  std::optional<WeightLayout> layout;  ///< of weights in the format of HuggingFace
  std::optional<Checkpoint> resumed;
  std::optional<ExternalWeights> weights;  ///< of --init
  TrainingLength length;
  TrainingOptions options;
  std::optional<StepRange> range;  ///< of --watch
  // --ranks mpi only
  std::unique_ptr<SharedProgress> progress;
  std::unique_ptr<MpiJob> mpi;
  std::optional<JobPlace> place;  ///< --ranks job and nccl: rank of this process, if it is one
  /// Nothing if all ranks are in this process.
  std::optional<int> rank_of_process() const {
    if (mpi) return mpi->rank().value;
    if (place) return place->rank;
    return std::nullopt;
  }
  /// True for all processes but that of rank 0: only one prints.
  bool is_silent() const { return rank_of_process().value_or(0) != 0; }
};

/// Flushless schedules lower all steps to one graph: there is no boundary between two of them.
void check_without_flush(const Job& job, const RunFlags& flags) {
  const auto refuse = [&](const char* flag, const char* hint) {
    throw InputError(Diagnostic{
        flag,
        fmt::format("not supported by schedule '{}', which does not flush the pipeline between "
                    "steps",
                    job.file.plan.strategy.schedule),
        hint});
  };
  if (flags.checkpoints.every)
    refuse("--save-every", "remove it: --save alone writes a checkpoint after the last step");
  if (flags.live) refuse("--live", "remove it: the timeline is written after the last step");
}

/// Processes of a launcher each read the input files, and standard input can be read only once.
void check_input_of_all(const RunFlags& flags) {
  const RankKind kind = ranks_of(flags);
  if (kind != RankKind::kMpi && kind != RankKind::kJob) return;
  std::vector<std::string> files = flags.tokens;
  for (const std::string* file :
       {&flags.recipe, &flags.job.plan_file, &flags.job.sources.calibration, &flags.text,
        &flags.validation, &flags.watch, &flags.checkpoints.resume, &flags.checkpoints.init})
    files.push_back(*file);
  for (const std::string& file : files)
    if (file == "-")
      throw InputError(Diagnostic{"--ranks " + flags.ranks,
                                  "cannot read from standard input: every process reads the input",
                                  "use a file instead of -"});
}

/// A run of no steps validates or saves its initial state.
void check_no_steps(const RunFlags& flags, const Strategy& strategy) {
  if (flags.steps != 0) return;
  const auto refuse = [](const std::string& what, const char* hint) {
    throw InputError(Diagnostic{"--steps", what, hint});
  };
  if (flags.validation.empty() && flags.checkpoints.save.empty())
    refuse("0 steps without --validation or --save do nothing",
           "set --validation FILE or --save DIRECTORY, or at least 1 step");
  if (!flags.output.file.empty())
    refuse("0 steps have no timeline for --output", "remove --output, or set at least 1 step");
  if (!flags.watch.empty())
    refuse("0 steps have no step time for --watch", "remove --watch, or set at least 1 step");
  if (updates_without_flush(strategy))
    refuse(fmt::format("0 steps are not supported by schedule '{}'", strategy.schedule),
           "use another schedule: neither the loss nor the weights depend on it");
}

/// And what follows from the number of steps that it has completed.
void load_checkpoint(Running& running, const RunFlags& flags) {
  const Job& job = running.job;
  running.layout = external_layout(flags.checkpoints, job.model);
  running.resumed = resumed_checkpoint(flags.checkpoints, job.model, job.file.plan.strategy);
  running.weights = initial_weights(flags.checkpoints, job.model, running.layout);
  running.length = training_length(flags, running.resumed ? running.resumed->step : 0);
  running.options =
      training_options(flags.optimizer, job.file.plan.strategy.optimizer, running.length.total);
  running.options.seed = flags.checkpoints.resume.empty()
                             ? static_cast<std::uint64_t>(flags.seed.value_or(1))
                             : running.resumed->seed;
  if (flags.shuffle) running.words.shuffle_seed = running.options.seed;
}

void prepare(Running& running, const RunFlags& flags) {
  check_input_of_all(flags);
  check_checkpoint_flags(flags.checkpoints);
  if (flags.live && (flags.output.file.empty() || flags.output.file == "-"))
    throw UsageError({.where = "--live",
                      .what = "requires '--output'",
                      .hint = "set a file, for example -o measured.pftrace"});
  check_activity(flags);
  static_cast<void>(kernels_for_run(flags));
  static_cast<void>(nccl_for_run(flags));
  running.job = load_job(flags.job);
  Job& job = running.job;
  check_optimizer_flags(flags.optimizer, job.file.plan.strategy.optimizer);
  if (is_gpu(flags.device) && job.file.plan.strategy.optimizer == OptimizerKind::kMuon)
    throw InputError(Diagnostic{"--optimizer", "muon is not supported on GPUs",
                                "use --device cpu, or --optimizer adamw"});
  check_plan(job, ranks_of(flags));
  static_cast<void>(links_of(flags));
  if (!flags.watch.empty()) {
    running.range = read_step_range(flags.watch);
    check_range_belongs_to(*running.range, job.file.model_name,
                           strategy_text(job.file.plan.strategy), flags.watch);
  }
  check_place_of("--output", flags.output.file);
  check_place_of("--activity", flags.activity);
  check_log(flags.log);
  check_tensorboard(flags.tensorboard);
  check_folder_of("--save", flags.checkpoints.save);
  if (!flags.watchdog_timeout.empty())
    static_cast<void>(parse_seconds(flags.watchdog_timeout, "--patience"));
  check_no_steps(flags, job.file.plan.strategy);
  check_validation_flags(flags, job.file.plan.strategy);
  running.words = read_words(flags, job.model);
  running.held_out = read_held_out(flags, job.model, job.file.plan.strategy);
  if (updates_without_flush(job.file.plan.strategy)) check_without_flush(job, flags);
  load_checkpoint(running, flags);
  running.graph = lower(job.file.plan, job.model, job.cluster,
                        {.ranks = RankSet::kAll, .steps = running.length.steps, .programs = true});
  const auto ranks = static_cast<int>(running.graph.ranks.size());
  if (running.mpi && running.mpi->rank_count() != ranks)
    throw InputError(
        Diagnostic{"--ranks mpi",
                   fmt::format("mpirun started {} processes, but the plan has {} ranks",
                               running.mpi->rank_count(), ranks),
                   fmt::format("use mpirun -np {}", ranks)});
  if (running.place && running.place->ranks != ranks)
    throw InputError(
        Diagnostic{"--ranks " + flags.ranks,
                   fmt::format("the launcher started {} processes, but the plan has {} ranks",
                               running.place->ranks, ranks),
                   fmt::format("start {} processes, or run without a launcher", ranks)});
  if (clock_of(flags) != TimelineClock::kReplay && !running.place)
    check_memory(running.graph, running.job.file.plan.strategy, flags,
                 running.mpi ? running.mpi->ranks_here() : ranks);
  if (!flags.fault.empty()) running.fault = fault_from_text(flags.fault, running.graph);
  if (running.fault && ranks_of(flags) == RankKind::kThreads &&
      (running.fault->kind == FaultKind::kDie || running.fault->kind == FaultKind::kExit))
    throw InputError(Diagnostic{"--inject-fault",
                                "kinds die and exit would end all ranks of '--ranks threads'",
                                "use kind=abort, or --ranks processes"});
  stop_if_interrupted();
}

/// An input error of one process stops all processes. False: another process reports it.
bool prepare_together(Running& running, const RunFlags& flags) {
  if (!running.mpi) {
    prepare(running, flags);
    return true;
  }
  std::exception_ptr problem;
  std::string words;
  try {
    prepare(running, flags);
  } catch (const std::exception& error) {
    problem = std::current_exception();
    words = error.what();
  }
  const std::string first = running.mpi->first_problem(words);
  if (first.empty()) return true;
  if (running.is_silent()) return false;
  if (problem) std::rethrow_exception(problem);
  throw RuntimeFailure({"--ranks mpi", first, "make the input files readable on every node"});
}

/// "threads", "MPI processes": how the ranks of --ranks run.
std::string_view rank_kind_text(const std::string& ranks) {
  if (ranks == "mpi") return "MPI processes";
  if (ranks == "job") return "processes connected over TCP";
  return ranks == "nccl" ? "processes connected by NCCL" : std::string_view(ranks);
}

/// Where the run continues, and what differs from the run that it continues.
std::string resume_text(const Running& running, const RunFlags& flags,
                        const std::map<std::string, std::string>& settings) {
  if (flags.checkpoints.resume.empty()) return "";
  const Checkpoint& checkpoint = running.resumed.value();
  std::string text = settings_warnings(checkpoint.settings, settings);
  if (flags.seed && static_cast<std::uint64_t>(*flags.seed) != checkpoint.seed)
    text += fmt::format("warning: --seed {} has no effect: the checkpoint was saved with seed {}\n",
                        *flags.seed, checkpoint.seed);
  return text + fmt::format("resuming at step {}\n", checkpoint.step);
}

CheckpointOptions checkpoints_of(const Running& running, const RunFlags& flags) {
  CheckpointOptions options =
      checkpoint_options(flags.checkpoints, {running.resumed, running.weights}, running.layout,
                         clock_of(flags) != TimelineClock::kReplay);
  options.model_config = running.job.file.model_config;
  options.settings =
      training_settings(running.options, running.job.file.plan.strategy.optimizer, running.words);
  return options;
}

/// What ranks of a launcher must agree on.
RunSettings settings_of(const Running& running, const RunFlags& flags,
                        const RunSettings& training) {
  const auto hash_of = [](const std::string& text) {
    return fmt::format("of hash {:016x}", fnv1a(text));
  };
  PlanFile plan = running.job.file;
  plan.predicted.reset();  // an older version may have written it
  RunSettings settings;
  for (const auto& [name, value] : training) settings["--" + name] = value;
  settings.merge(
      RunSettings{{"version", MESHWRIGHT_VERSION},
                  {"model configuration", hash_of(plan.model_config)},
                  {"cluster file", hash_of(plan.cluster_toml)},
                  {"strategy", strategy_text(plan.plan.strategy)},
                  {"the plan file", hash_of(to_json(plan))},
                  {"first step", std::to_string(running.length.first_step)},
                  {"--steps", std::to_string(running.length.steps)},
                  {"--seed", std::to_string(running.options.seed)},
                  {"--clock", flags.clock},
                  {"--every", std::to_string(flags.every.value_or(0))},
                  {"--save-every", std::to_string(flags.checkpoints.every.value_or(0))}});
  if (running.held_out) settings["--validation"] = "of hash " + text_hash(*running.held_out);
  return settings;
}

TrainingRun run_training(const Running& running, const RunFlags& flags,
                         const ActivityTable* recorder) {
  const CheckpointOptions checkpoints = checkpoints_of(running, flags);
  if (!running.is_silent()) print_to_stderr(resume_text(running, flags, checkpoints.settings));
  const auto progress = std::make_shared<RunProgress>(
      RunProgress::Run{running.job, flags, running.graph, running.length}, !running.is_silent());
  if (!running.is_silent())
    print_to_stderr(fmt::format(
        "{} tasks {} on {} ranks ({})\n", running.graph.tasks.size(),
        updates_without_flush(running.job.file.plan.strategy) ? "in all steps" : "per step",
        running.graph.ranks.size(), rank_kind_text(flags.ranks)));
  return train(
      {.plan = running.job.file.plan,
       .model = running.job.model,
       .graph = running.graph,
       .cost_model = *running.job.cost_model,
       .text = running.words,
       .kernels = kernels_for_run(flags),
       .device = device_of(flags.device),
       .nccl = nccl_for_run(flags),
       .nccl_device = nccl_for_run(flags) == nullptr ? 0 : gpu_of_process(flags.device),
       .recorder = recorder,
       .ranges = ranges_for_run(flags.device),
       .clock = clock_of(flags),
       .steps = running.length.steps,
       .options = running.options,
       .settings = settings_of(running, flags, checkpoints.settings),
       .validation = validation_options(flags, running.job.file.plan.strategy, running.held_out),
       .keep_all_times = flags.all_steps,
       .checkpoints = checkpoints,
       .ranks = ranks_of(flags),
       .launch = {.watchdog_timeout = watchdog_timeout_of(flags),
                  .interrupted = interrupt_flag(),
                  .interrupted_again = second_interrupt_flag(),
                  .mpi = running.mpi.get(),
                  .job = running.place ? &*running.place : nullptr},
       .links = links_of(flags),
       .fault = running.fault,
       .progress = [progress](int step, const MeasuredStep& measured) {
         progress->report(step, measured);
       }});
}

std::string hint_for(const RankFailure& failure) {
  if (failure.kind == FailureKind::kHang)
    return "if the rank is only slow, set a longer timeout, for example --patience 60s";
  if (failure.kind == FailureKind::kDeath && failure.cause.find("signal 9") != std::string::npos)
    return "check dmesg: Linux kills processes when memory runs out";
  return failure.hint;
}

/// False outside any task. Other processes report failures, too.
bool has_task(const TaskGraph& graph, TaskId task) {
  return task.value >= 0 && task.value < std::ssize(graph.tasks);
}

/// The failure with the task's name.
RunFailed failed_run(const RankFailure& failure, const TaskGraph& graph) {
  return RunFailed({.rank = failure.rank,
                    .task = has_task(graph, failure.task) ? stable_name(graph, failure.task) : "",
                    .cause = failure.cause,
                    .hint = hint_for(failure),
                    .exit_code = failure.kind == FailureKind::kSystemError ? kExitMissingEnvironment
                                                                           : kExitRunFailed,
                    .leaves_a_thread = failure.is_stuck});
}

/// Lowers the plan again: this process only waited for the child that ran it.
std::string task_name(const RunFlags& flags, TaskId task) {
  if (task.value < 0 || flags.job.plan_file == "-") return "";
  const Job job = load_job(flags.job);
  return stable_name(lower(job.file.plan, job.model, job.cluster, {.ranks = RankSet::kAll}), task);
}

/// Of the process of an MPI rank. Much longer than rank 0 takes to notice it, unless it is spinning
/// in MPI.
std::chrono::milliseconds longest_suspension(const RunFlags& flags) {
  return 3 * watchdog_timeout_of(flags);
}

/// After the child that runs an MPI rank has ended. If it was killed, this process reports the
/// failure, since it knows the rank's last task, and mpirun ends the job.
Outcome after(const ChildStatus& end, RankId rank, const RankProgress& progress,
              const RunFlags& flags) {
  Outcome outcome;
  outcome.exit_code = end.signal == 0 ? end.exit_code : kExitRunFailed;
  // A rank that reports its own failure does so after its last or before its first task.
  const bool is_through = progress.is_finished || progress.task.load() < 0 || end.exit_code != 0;
  if ((end.signal == 0 && is_through) || end.was_terminated) return outcome;
  std::string cause = "its process exited early, with status 0";
  if (end.signal != 0) cause = "was killed by " + signal_text(end.signal);
  if (end.was_suspended)
    cause = fmt::format("its process was suspended, and did not continue within {:g} s",
                        std::chrono::duration<double>(longest_suspension(flags)).count());
  const RankFailure failure{.kind = FailureKind::kDeath,
                            .rank = rank,
                            .task = TaskId(progress.task.load()),
                            .cause = std::move(cause)};
  throw RunFailed({.rank = rank,
                   .task = task_name(flags, failure.task),
                   .cause = failure.cause,
                   .hint = hint_for(failure)});
}

/// The process that watched over a dead rank reports the failure; mpirun then ends this process.
void leave_it_to_the_watcher(const RankFailure& failure, const Running& running) {
  constexpr std::chrono::seconds kForWatcher{3};
  if (running.mpi && failure.kind == FailureKind::kDeath && failure.rank != RankId(0) &&
      failure.cause == kProcessLost)
    wait_for_termination(kForWatcher, kExitRunFailed);
}

/// The checkpoint of an interrupted run.
std::string saved_text(const Running& running, const TrainingRun& run, const RunFlags& flags) {
  if (!run.has_saved_last) return "";
  const std::int64_t step = running.length.first_step + std::ssize(run.steps);
  return fmt::format("saved {}\n", checkpoint_path(checkpoints_of(running, flags), step));
}

/// What --watch adds to the result of a complete run.
void watch_step(const StepRange& range, const RunResults& results, Outcome& outcome) {
  if (results.run.failure || results.run.steps.empty()) return;
  const std::string outside =
      outside_range_text(range, spread_of(results.run).median, results.flags.watch);
  if (!outside.empty()) outcome.exit_code = kExitBeyondBaseline;
  outcome.notes += outside;
}

Outcome finish(const Running& running, const TrainingRun& run, const RunFlags& flags) {
  if (run.failure && run.failure->kind != FailureKind::kInterruption) {
    leave_it_to_the_watcher(*run.failure, running);
    throw failed_run(*run.failure, running.graph);
  }
  const RunResults results{running.job, flags, running.graph, run, running.length};
  Outcome outcome;
  if (run.failure) outcome.exit_code = kExitInterrupted;
  print_to_stderr(saved_text(running, run, flags));
  const std::string& file = flags.output.file;
  if (file != "-") outcome.text = flags.output.json ? results_json(results) : results_text(results);
  if (!file.empty()) write_file(file, results_trace(results));
  if (running.range) watch_step(*running.range, results, outcome);
  return outcome;
}

/// How a process other than that of rank 0 ends. Only that one prints results; after a failure all
/// exit with an error, so that whatever started them notices.
Outcome finish_silently(const Running& running, const TrainingRun& run) {
  if (!run.failure) return {};
  if (run.failure->kind == FailureKind::kInterruption)
    return {
        .text = {},
        .exit_code = kExitInterrupted,
        .notes = running.place ? fmt::format("rank {}: interrupted\n", running.place->rank) : ""};
  const RunFailed failed = failed_run(*run.failure, running.graph);
  const RunFailed::What& what = failed.details();
  if (!running.place || running.place->rank == what.rank.value)
    return {.text = {}, .exit_code = what.exit_code, .notes = format(failed.diagnostic())};
  const std::string task = what.task.empty() ? "" : " in " + what.task;
  return {.text = {},
          .exit_code = what.exit_code,
          .notes = format(Diagnostic{fmt::format("rank {}", running.place->rank),
                                     fmt::format("stopped because rank {} failed{}: {}",
                                                 what.rank.value, task, what.cause),
                                     fmt::format("check the output of rank {}", what.rank.value)})};
}

/// Starts the processes of a job without a launcher. The input is checked here first, so that an
/// error is printed once.
Outcome start_job(const RunFlags& flags) {
  const auto ranks = [&] {
    Running checked;  // freed before the copies load it again
    prepare(checked, flags);
    return static_cast<int>(checked.graph.ranks.size());
  };
  Outcome outcome;
  const CopiesStatus status =
      run_copies(ranks(), *interrupt_flag(), watchdog_timeout_of(flags) * 2 / 3);
  if (status.failure && status.failure->kind == FailureKind::kInterruption) throw Interrupted();
  if (status.failure)
    throw RunFailed({.rank = status.failure->rank,
                     .task = "",
                     .cause = status.failure->cause,
                     .hint = hint_for(*status.failure)});
  outcome.exit_code = status.exit_code;
  return outcome;
}

Outcome run_run(const RunFlags& flags) {
  auto running = std::make_unique<Running>();
  if (ranks_of(flags) == RankKind::kMpi) {
    running->progress = std::make_unique<SharedProgress>(1);
    RankProgress& progress = running->progress->all().front();
    if (const std::optional<RankId> rank = rank_in_environment())
      if (const std::optional<ChildStatus> end = run_in_child(longest_suspension(flags)))
        return after(*end, *rank, progress, flags);
    running->mpi = start_mpi(progress);
  }
  if (ranks_of(flags) == RankKind::kJob) {
    running->place = job_place_from([](const char* name) { return std::getenv(name); });
    if (!running->place) return start_job(flags);
  }
  if (!prepare_together(*running, flags)) return {};
  const PartialResults partial_results(/*takes_second=*/true);
  ActivityRecording recording(flags);
  const TrainingRun run = run_training(*running, flags, recording.recorder());
  recording.write(running->graph, running->rank_of_process());
  const bool leaves_a_thread = run.failure && run.failure->is_stuck;
  const Running& kept = *running;
  if (leaves_a_thread) static_cast<void>(running.release());  // the thread still uses it
  Outcome outcome = kept.is_silent() ? finish_silently(kept, run) : finish(kept, run, flags);
  outcome.leaves_a_thread = leaves_a_thread;
  return outcome;
}

}  // namespace

Command run_command(CLI::App& app) { return make_command(app, add_run_flags, run_run); }

}  // namespace meshwright
