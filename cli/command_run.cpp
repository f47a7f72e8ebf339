#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "cli/activity_trace.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/run_device.hpp"
#include "cli/run_failed.hpp"
#include "cli/run_input.hpp"
#include "cli/run_results.hpp"
#include "cli/start_copies.hpp"
#include "core/io_file.hpp"
#include "core/lower.hpp"
#include "core/parse_quantity.hpp"
#include "core/weight_versions.hpp"
#include "executor/guarded_process.hpp"
#include "executor/job_environment.hpp"
#include "executor/mpi_job.hpp"
#include "executor/supervision.hpp"

namespace meshwright {
namespace {

/// All that the ranks use.
struct Running {
  Job job;
  TaskGraph graph;
  TokenText words;
  std::optional<Fault> fault;
  std::optional<Checkpoint> resumed;
  // --ranks mpi only
  std::unique_ptr<SharedProgress> progress;
  std::unique_ptr<MpiJob> mpi;
  std::optional<JobPlace> place;  ///< --ranks job and nccl: who this process is, if one of theirs
  /// One process speaks for all.
  bool is_silent() const {
    return (mpi && mpi->rank() != RankId(0)) || (place && place->rank != 0);
  }
};

/// All steps are one graph: there is no moment between two of them.
void check_without_flush(const Job& job, const RunFlags& flags) {
  const auto refuse = [&](const char* flag, const char* hint) {
    throw InputError(Diagnostic{
        flag,
        fmt::format("the pipeline of {} is full between steps", job.file.plan.strategy.schedule),
        hint});
  };
  if (flags.checkpoints.every)
    refuse("--save-every", "leave it out: --save writes when the last step has left the pipeline");
  if (flags.live) refuse("--live", "leave it out: the timeline is of all steps, at the end");
}

/// Where ranks are started by others, each reads its input for itself: standard input is for one.
void check_input_of_all(const RunFlags& flags) {
  const RankKind kind = ranks_of(flags);
  if (kind != RankKind::kMpi && kind != RankKind::kJob) return;
  for (const std::string* file : {&flags.job.plan_file, &flags.job.calibration, &flags.text,
                                  &flags.tokens, &flags.checkpoints.resume})
    if (*file == "-")
      throw InputError(Diagnostic{"--ranks " + flags.ranks,
                                  "all processes read the input, and only one standard input",
                                  "name a file in place of -"});
}

void prepare(Running& running, const RunFlags& flags) {
  check_input_of_all(flags);
  if (flags.live && (flags.output.file.empty() || flags.output.file == "-"))
    throw UsageError({.where = "--live",
                      .what = "needs a file to write",
                      .hint = "name one: -o measured.pftrace"});
  check_activity(flags);
  static_cast<void>(kernels_for_run(flags));
  static_cast<void>(nccl_for_run(flags));
  running.job = load_job(flags.job);
  Job& job = running.job;
  check_plan(job, ranks_of(flags));
  static_cast<void>(links_of(flags));
  check_place_of("--output", flags.output.file);
  check_place_of("--activity", flags.activity);
  check_folder_of("--save", flags.checkpoints.save);
  if (!flags.patience.empty()) static_cast<void>(parse_seconds(flags.patience, "--patience"));
  running.words = read_words(flags, job.model);
  if (updates_without_flush(job.file.plan.strategy)) check_without_flush(job, flags);
  running.graph = lower(job.file.plan, job.model, job.cluster,
                        {.ranks = RankSet::kAll, .steps = flags.steps.value_or(kDefaultSteps)});
  const auto ranks = static_cast<int>(running.graph.ranks.size());
  if (running.mpi && running.mpi->rank_count() != ranks)
    throw InputError(
        Diagnostic{"--ranks mpi",
                   fmt::format("mpirun has started {} processes for a plan of {} ranks",
                               running.mpi->rank_count(), ranks),
                   fmt::format("as in mpirun -np {}", ranks)});
  if (running.place && running.place->ranks != ranks)
    throw InputError(Diagnostic{
        "--ranks " + flags.ranks,
        fmt::format("{} processes were started for a plan of {} ranks", running.place->ranks,
                    ranks),
        fmt::format("start {} of them, or none: then they are started from here", ranks)});
  if (clock_of(flags) != TimelineClock::kReplay && !running.place)
    check_memory(running.graph, running.mpi ? running.mpi->ranks_here() : ranks);
  running.resumed = resumed_checkpoint(flags.checkpoints, job.model, job.file.plan.strategy);
  if (!flags.fault.empty()) running.fault = fault_from_text(flags.fault, running.graph);
  if (running.fault && ranks_of(flags) == RankKind::kThreads &&
      (running.fault->kind == FaultKind::kDie || running.fault->kind == FaultKind::kExit))
    throw InputError(Diagnostic{"--inject-fault", "a thread cannot die alone",
                                "use kind=abort, or --ranks processes"});
  stop_if_interrupted();
}

/// What keeps one process of the job from going on keeps all. False: another one says why.
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
  throw RuntimeFailure({"--ranks mpi", first, "all ranks read the same files, each for itself"});
}

/// Says every step, and with --live writes what was measured so far.
class Progress {
 public:
  Progress(const Running& running, const RunFlags& flags) : running_(running), flags_(flags) {}
  void operator()(int step, const MeasuredStep& measured) {
    if (flags_.live && !running_.is_silent()) {
      so_far_.steps.push_back(measured);
      write_so_far();
    }
    fmt::print(stderr, "step {:>3}  loss {:.4f}  {:.3f} ms\n", step, measured.loss,
               to_seconds(step_time(measured)).value * 1e3);
  }

 private:
  /// What was trained is worth more than a look at it: the run goes on, and its end writes again.
  void write_so_far() {
    try {
      write_file(flags_.output.file,
                 results_trace({running_.job, flags_, running_.graph, so_far_}));
    } catch (const RuntimeFailure& failure) {
      if (!std::exchange(has_complained_, true))
        fmt::print(stderr, "warning: {}: {}; the run goes on and tries again\n",
                   failure.diagnostic().where, failure.diagnostic().what);
    }
  }

  const Running& running_;
  const RunFlags& flags_;
  TrainingRun so_far_;
  bool has_complained_ = false;
};

TrainingRun carry_out(const Running& running, const RunFlags& flags,
                      const ActivityTable* recorder) {
  TrainingOptions options;
  options.seed =
      running.resumed ? running.resumed->seed : static_cast<std::uint64_t>(flags.seed.value_or(1));
  if (!running.is_silent())
    fmt::print(stderr, "{} tasks {} on {} {}\n", running.graph.tasks.size(),
               updates_without_flush(running.job.file.plan.strategy) ? "in all steps" : "a step",
               running.graph.ranks.size(), flags.ranks == "mpi" ? "processes of MPI" : flags.ranks);
  return train({.plan = running.job.file.plan,
                .model = running.job.model,
                .graph = running.graph,
                .cost_model = *running.job.cost_model,
                .text = running.words,
                .kernels = kernels_for_run(flags),
                .device = device_of(flags.device),
                .nccl = nccl_for_run(flags),
                .nccl_device = nccl_for_run(flags) == nullptr ? 0 : gpu_of_process(),
                .recorder = recorder,
                .clock = clock_of(flags),
                .steps = flags.steps.value_or(kDefaultSteps),
                .options = options,
                .checkpoints = checkpoint_options(flags.checkpoints, running.resumed,
                                                  clock_of(flags) != TimelineClock::kReplay),
                .ranks = ranks_of(flags),
                .launch = {.patience = patience_of(flags),
                           .interrupted = interrupt_flag(),
                           .mpi = running.mpi.get(),
                           .job = running.place ? &*running.place : nullptr},
                .links = links_of(flags),
                .fault = running.fault,
                .progress = Progress(running, flags)});
}

std::string hint_for(const RankFailure& failure) {
  if (failure.kind == FailureKind::kHang)
    return "if it is only slow, say how long to wait, as in --patience 60s";
  if (failure.kind == FailureKind::kDeath && failure.cause.find("signal 9") != std::string::npos)
    return "the system kills processes when memory runs out: try a smaller plan";
  if (failure.cause == kNoMemory) return "try a smaller plan, or raise the limit (ulimit -v)";
  return "all ranks were stopped";
}

/// The failure in the words of the graph.
RunFailed failed_run(const RankFailure& failure, const TaskGraph& graph) {
  return RunFailed({.rank = failure.rank,
                    .task = failure.task.value < 0 ? "" : stable_name(graph, failure.task),
                    .cause = failure.cause,
                    .hint = hint_for(failure),
                    .leaves_a_thread = failure.is_stuck});
}

/// Read from the plan once more: this process has only waited for the one that carried it out.
std::string task_name(const RunFlags& flags, TaskId task) {
  if (task.value < 0 || flags.job.plan_file == "-") return "";
  const Job job = load_job(flags.job);
  return stable_name(lower(job.file.plan, job.model, job.cluster, {.ranks = RankSet::kAll}), task);
}

/// What is left to do once the process of an MPI rank has ended. Of a killed one this process knows
/// best what it did: it says so, and mpirun ends the job.
Outcome after(const ChildEnd& end, RankId rank, const RankProgress& progress,
              const RunFlags& flags) {
  Outcome outcome;
  outcome.exit_code = end.signal == 0 ? end.exit_code : kExitRunFailed;
  // A rank that says itself why it ends does so in the end, or before its first task.
  const bool is_through = progress.is_finished || progress.task.load() < 0 || end.exit_code != 0;
  if ((end.signal == 0 && is_through) || end.was_told_to_end) return outcome;
  const RankFailure failure{.kind = FailureKind::kDeath,
                            .rank = rank,
                            .task = TaskId(progress.task.load()),
                            .cause = end.signal != 0
                                         ? "was killed by " + signal_text(end.signal)
                                         : "its process ended too early, with exit code 0"};
  throw RunFailed({.rank = rank,
                   .task = task_name(flags, failure.task),
                   .cause = failure.cause,
                   .hint = hint_for(failure)});
}

/// The one that has watched over a dead rank tells of it, and mpirun ends this process meanwhile.
void leave_it_to_the_watcher(const RankFailure& failure, const Running& running) {
  constexpr std::chrono::seconds kForWatcher{3};
  if (running.mpi && failure.kind == FailureKind::kDeath && failure.rank != RankId(0) &&
      failure.cause.find("its process is gone") != std::string::npos)
    wait_to_be_ended(kForWatcher, kExitRunFailed);
}

Outcome finish(const Running& running, const TrainingRun& run, const RunFlags& flags) {
  if (run.failure && run.failure->kind != FailureKind::kInterruption) {
    leave_it_to_the_watcher(*run.failure, running);
    throw failed_run(*run.failure, running.graph);
  }
  const RunResults results{running.job, flags, running.graph, run};
  Outcome outcome;
  if (run.failure) outcome.exit_code = kExitInterrupted;
  const std::string& file = flags.output.file;
  if (file != "-") outcome.text = flags.output.json ? results_json(results) : results_text(results);
  if (!file.empty()) write_file(file, results_trace(results));
  return outcome;
}

void add_machine_flags(CLI::App& command, RunFlags& flags) {
  command.add_option("--ranks", flags.ranks, "what a rank is: see below")
      ->check(CLI::IsMember({"threads", "processes", "mpi", "job", "nccl"}))
      ->type_name("NAME");
  command.add_option("--clock", flags.clock, "what time is: see below")
      ->check(CLI::IsMember({"wall", "virtual", "replay"}))
      ->type_name("NAME");
  command
      .add_option("--links", flags.links,
                  "by the wall clock: what messages take; the others always model them (real)")
      ->check(CLI::IsMember({"real", "modelled"}))
      ->type_name("NAME");
  command.add_option("--kernels", flags.kernels, "cpu, or the plain ones they are checked with")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->type_name("NAME");
  command
      .add_option("--device", flags.device, "what ranks compute on: this machine's cores or a GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("NAME");
  command
      .add_option("--activity", flags.activity,
                  "every kernel and copy of the GPU, by CUPTI, as a trace for Perfetto")
      ->type_name("FILE");
  command
      .add_option("--patience", flags.patience,
                  "ranks that stand still for so long hang (6s; mpi: 5s)")
      ->type_name("TIME");
  command.add_option("--inject-fault", flags.fault)->group("");  // in executor/README.md
}

}  // namespace

CLI::App* add_run_command(CLI::App& app, RunFlags& flags) {
  CLI::App* command =
      app.add_subcommand("run", "Carry a plan out on this machine and measure its timeline.");
  add_job_flags(*command, flags.job);
  add_machine_flags(*command, flags);
  add_count(*command, "--steps", flags.steps, {1, 100'000}, "training steps (5)");
  add_count(*command, "--seed", flags.seed, {0, 1'000'000'000}, "of the first parameters (1)");
  add_checkpoint_flags(*command, flags.checkpoints);
  command->add_option("--text", flags.text, "file to learn, byte by byte; else a built-in one")
      ->type_name("FILE");
  command->add_option("--tokens", flags.tokens, "file to learn: numbers, as a tokenizer wrote them")
      ->type_name("FILE");
  command->add_option("--token-type", flags.token_type, "of --tokens (uint16)")
      ->check(CLI::IsMember({"uint16", "uint32"}))
      ->type_name("NAME");
  command->add_flag("--all-steps", flags.all_steps,
                    "write all steps one after another, not only the median one");
  command->add_flag("--live", flags.live, "write -o after every step, not only at the end");
  add_output_flags(*command, flags.output, "the measured timeline, as a Perfetto trace");
  command->footer(
      "Ranks: threads of this process, processes that it starts, the processes of mpirun; or of a\n"
      "job, which meet over TCP: those that torchrun, srun or mpirun has started, else copies of\n"
      "this program. nccl is a job whose processes have a GPU each.\n"
      "Clocks: virtual takes CPU time of every kernel and the model's time of every message;\n"
      "wall is what the machine's clock says; replay computes nothing and sleeps as predicted.\n"
      "With --device cuda threads share one GPU: by the virtual clock one kernel at a time, each\n"
      "timed there. Processes of mpirun or of --ranks nccl have one each (--clock wall).\n"
      "Ctrl-C writes what was measured until then.\n"
      "\n"
      "Examples:\n"
      "  meshwright run best.plan.json --steps 10 -o measured.pftrace\n"
      "  meshwright run --model gpt2 --cluster cpu-laptop --gpus 2 --pp 2 --dtype fp32 \\\n"
      "      --global-batch 8 --seq 64 --clock wall --ranks processes");
  return command;
}

namespace {

/// Nobody has started its processes. What is wrong with the input is said by this one alone.
Outcome start_job(const RunFlags& flags) {
  const auto ranks = [&] {
    Running checked;  // goes before the copies read all of it again
    prepare(checked, flags);
    return static_cast<int>(checked.graph.ranks.size());
  };
  Outcome outcome;
  outcome.exit_code = start_copies(ranks());
  return outcome;
}

}  // namespace

Outcome run_run(const RunFlags& flags) {
  auto running = std::make_unique<Running>();
  if (ranks_of(flags) == RankKind::kMpi) {
    running->progress = std::make_unique<SharedProgress>(1);
    RankProgress& progress = running->progress->all().front();
    if (const std::optional<RankId> rank = rank_in_environment())
      if (const std::optional<ChildEnd> end = run_in_child())
        return after(*end, *rank, progress, flags);
    running->mpi = start_mpi(progress);
  }
  if (ranks_of(flags) == RankKind::kJob) {
    running->place = job_place_from([](const char* name) { return std::getenv(name); });
    if (!running->place) return start_job(flags);
  }
  if (!prepare_together(*running, flags)) return {};
  ActivityRecording recording(flags);
  const TrainingRun run = carry_out(*running, flags, recording.recorder());
  recording.write(running->graph);
  const bool leaves_a_thread = run.failure && run.failure->is_stuck;
  const Running& kept = *running;
  if (leaves_a_thread) static_cast<void>(running.release());  // the thread goes on using it
  Outcome outcome = kept.is_silent() ? Outcome() : finish(kept, run, flags);
  outcome.leaves_a_thread = leaves_a_thread;
  return outcome;
}

}  // namespace meshwright
