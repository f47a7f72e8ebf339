#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/report.hpp"
#include "core/io_file.hpp"
#include "core/io_pftrace.hpp"
#include "core/lower.hpp"
#include "executor/example_text.hpp"
#include "executor/train.hpp"

namespace meshwright {
namespace {

constexpr int kMostRanks = 16;  ///< threads of one process

TimelineClock clock_from(const std::string& name) {
  if (name == "wall") return TimelineClock::kWall;
  return name == "replay" ? TimelineClock::kReplay : TimelineClock::kVirtual;
}

/// Bytes as words of the vocabulary.
TokenText read_text(const std::string& path, const ModelGraph& model) {
  constexpr std::int64_t kByteValues = 256;
  if (traits_of(model).vocabulary < kByteValues)
    throw InputError({"--model",
                      fmt::format("has {} words, but a text is read as bytes, {} of them",
                                  traits_of(model).vocabulary, kByteValues),
                      "take a model with a vocabulary of at least 256"});
  const std::string bytes = path.empty() ? std::string(example_text()) : read_file(path);
  if (bytes.empty())
    throw InputError({path, "is empty", "name a file with some text, or leave --text out"});
  TokenText text;
  for (const char c : bytes) text.words.push_back(static_cast<unsigned char>(c));
  return text;
}

void check(const Job& job) {
  std::vector<Diagnostic> problems = check_runnable(job.file.plan, job.model);
  const std::int64_t ranks = rank_count(job.file.plan.strategy.degrees);
  if (ranks > kMostRanks)
    problems.push_back({"--gpus", fmt::format("{} ranks are more than {}", ranks, kMostRanks),
                        "run a smaller plan: fewer replicas, or fewer parts of one"});
  if (!problems.empty()) throw InputError(problems);
}

struct Run {
  TaskGraph graph;
  TrainingRun measured;
  std::size_t median = 0;  ///< of the steps by time, the first one left out
  Ticks step_time(std::size_t step) const {
    const std::vector<Ticks>& ends = measured.steps[step].times.end;
    return *std::max_element(ends.begin(), ends.end());
  }
};

std::size_t median_step(const Run& run) {
  std::vector<std::size_t> steps;
  for (std::size_t i = run.measured.steps.size() > 1 ? 1 : 0; i < run.measured.steps.size(); ++i)
    steps.push_back(i);
  std::sort(steps.begin(), steps.end(),
            [&](std::size_t a, std::size_t b) { return run.step_time(a) < run.step_time(b); });
  return steps[steps.size() / 2];
}

Run carry_out(const Job& job, const RunFlags& flags) {
  Run run;
  run.graph = lower(job.file.plan, job.model, job.cluster, {.ranks = RankSet::kAll});
  const TokenText text = read_text(flags.text, job.model);
  TrainingOptions options;
  options.seed = static_cast<std::uint64_t>(flags.seed.value_or(1));
  run.measured = train(
      {.plan = job.file.plan,
       .model = job.model,
       .graph = run.graph,
       .cost_model = *job.cost_model,
       .text = text,
       .kernels = kernel_table(flags.kernels == "reference" ? Backend::kReference : Backend::kCpu),
       .clock = clock_from(flags.clock),
       .steps = flags.steps.value_or(5),
       .options = options,
       .launch = {.interrupted = interrupt_flag()},
       .progress = [&](int step, const MeasuredStep& measured) {
         const Ticks end = *std::max_element(measured.times.end.begin(), measured.times.end.end());
         fmt::print(stderr, "step {:>3}  loss {:.4f}  {:.3f} ms\n", step, measured.loss,
                    to_seconds(end).value * 1e3);
       }});
  return run;
}

/// The first failure, in the words of the graph.
RuntimeFailure failure_of(const Run& run) {
  const RankFailure& failure = *run.measured.failure;
  const std::string task =
      failure.task.value < 0 ? "" : ", " + stable_name(run.graph, failure.task);
  return RuntimeFailure({fmt::format("rank {}{}", failure.rank.value, task), failure.cause,
                         "all ranks were stopped"});
}

std::string trace_of(const Run& run, const Job& job, const RunFlags& flags) {
  Timeline timeline = timeline_of(run.graph, run.measured.steps[run.median].times);
  timeline.origin = TimelineOrigin::kMeasured;
  timeline.clock = clock_from(flags.clock);
  timeline.provenance["program"] = "meshwright " MESHWRIGHT_VERSION;
  timeline.provenance["model"] = job.file.model_name;
  timeline.provenance["strategy"] = strategy_text(job.file.plan.strategy);
  timeline.provenance["kernels"] = kernels_summary();
  return to_pftrace(timeline);
}

std::string json_of(const Run& run, const RunFlags& flags) {
  using Json = nlohmann::ordered_json;
  Json steps = Json::array();
  for (std::size_t i = 0; i < run.measured.steps.size(); ++i)
    steps.push_back(
        {{"loss", run.measured.steps[i].loss}, {"step_time_ns", to_nanoseconds(run.step_time(i))}});
  Json memory = Json::array();
  for (const MemoryAmounts& peak : run.measured.peak_memory) memory.push_back(total(peak).value);
  const Json json{{"schema", 1},
                  {"clock", flags.clock},
                  {"step_time_ns", to_nanoseconds(run.step_time(run.median))},
                  {"steps", steps},
                  {"peak_memory_bytes_per_rank", memory}};
  return json.dump(2) + "\n";
}

}  // namespace

CLI::App* add_run_command(CLI::App& app, RunFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "run", "Carry a plan out on this machine, a thread for each rank, and measure its timeline.");
  add_job_flags(*command, flags.job);
  command->add_option("--clock", flags.clock, "what time is: see below")
      ->check(CLI::IsMember({"wall", "virtual", "replay"}))
      ->type_name("NAME");
  add_count(*command, "--steps", flags.steps, {1, 100'000}, "training steps (5)");
  add_count(*command, "--seed", flags.seed, {0, 1'000'000'000}, "of the first parameters (1)");
  command->add_option("--text", flags.text, "file to learn, byte by byte; else a built-in one")
      ->type_name("FILE");
  command->add_option("--kernels", flags.kernels, "cpu, or the plain ones they are checked with")
      ->check(CLI::IsMember({"cpu", "reference"}))
      ->type_name("NAME");
  add_output_flags(*command, flags.output, "the measured timeline, as a Perfetto trace");
  command->footer(
      "Clocks: virtual takes CPU time of every kernel and the model's time of every message;\n"
      "wall is what the machine's clock says; replay computes nothing and sleeps as predicted.\n"
      "Dropout is left out.\n"
      "\n"
      "Examples:\n"
      "  meshwright run best.plan.json --steps 10 -o measured.pftrace\n"
      "  meshwright run --model gpt2 --cluster cpu-laptop --gpus 2 --pp 2 --dtype fp32 \\\n"
      "      --global-batch 8 --seq 64 --clock wall");
  return command;
}

Outcome run_run(const RunFlags& flags) {
  Job job = load_job(flags.job);
  job.model = without_dropout(std::move(job.model));
  check(job);
  stop_if_interrupted();
  Run run = carry_out(job, flags);
  stop_if_interrupted();
  if (run.measured.failure) throw failure_of(run);
  run.median = median_step(run);
  Outcome outcome;
  const std::string& file = flags.output.file;
  if (file != "-")
    outcome.text =
        flags.output.json
            ? json_of(run, flags)
            : fmt::format("{} steps by the {} clock: median {:.3f} ms, last loss {:.4f}\n",
                          run.measured.steps.size(), flags.clock,
                          to_seconds(run.step_time(run.median)).value * 1e3,
                          run.measured.steps.back().loss);
  if (!file.empty()) write_file(file, trace_of(run, job, flags));
  return outcome;
}

}  // namespace meshwright
