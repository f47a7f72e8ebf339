#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/job/job_error.hpp"
#include "cli/job/trainer_notes.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/formats/file.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "planner/search/search.hpp"

namespace meshwright {
namespace {

struct PlanFlags {
  SourceFlags sources;
  std::optional<int> gpus, top, threads, time_limit;
  bool fix = false, why = false;
  StrategyFlags strategy;
  OutputFlags output;
};

using Json = nlohmann::ordered_json;

constexpr int kPlansShown = 10;
constexpr CountRange kTopRange{.smallest = 1, .largest = 1000};
constexpr int kSecondsAllowed = 10;
constexpr CountRange kTimeLimitRange{.smallest = 0, .largest = 1 << 20};  ///< 0: no limit

/// A progress line on standard error, rewritten in place; printed to terminals only.
class ProgressLine {
 public:
  void show(std::int64_t done, std::int64_t of) {
    if (!is_terminal_) return;
    print_to_stderr(fmt::format("\rsearching: {} of {} candidates", done, of));
    is_shown_ = true;
  }
  ~ProgressLine() {
    constexpr std::string_view kEraseLine = "\r\033[K";
    if (is_shown_) print_to_stderr(kEraseLine);
  }

 private:
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool is_shown_ = false;
};

struct Search {
  NamedText model_text, cluster_text;
  Goal goal;
  Trainer trainer;
  bool is_trainer_named = false;  ///< then the search is restricted to what it can run
  std::string cost_model, validation, calibration, partial_nodes;
  SearchResult result;
  std::vector<PlanFigures> figures;  ///< of result.plans
  Seconds time;
};

template <class Value>
Value needed(const std::optional<Value>& value, const char* flag, const char* example) {
  if (value) return *value;
  throw UsageError({.where = flag,
                    .what = "missing required option",
                    .hint = fmt::format("set it, for example {} {}", flag, example)});
}

void check_sources(const PlanFlags& flags) {
  for (const auto& [flag, value, example] :
       {std::tuple("--model", &flags.sources.model, "gpt3-175b"),
        std::tuple("--cluster", &flags.sources.cluster, "dgx-a100")}) {
    needed(value->empty() ? std::nullopt : std::optional(*value), flag, example);
  }
}

Goal goal_of(const PlanFlags& flags) {
  return {.gpus = needed(flags.gpus, "--gpus", "1024"),
          .global_batch = needed(flags.strategy.global_batch, "--global-batch", "1536"),
          .sequence_length = needed(flags.strategy.sequence_length, "--seq", "2048")};
}

PlanFigures figures_of(const RankedPlan& ranked) {
  return figures_of(ranked.plan.strategy, ranked.evaluation, ranked.why);
}

Search run_search(const PlanFlags& flags) {
  check_sources(flags);
  Search search_run;
  search_run.goal = goal_of(flags);
  search_run.model_text = find_model(flags.sources.model);
  const ModelGraph model = load_model_and_warn(search_run.model_text);
  search_run.cluster_text = find_cluster(flags.sources.cluster, flags.sources.calibration);
  const Cluster cluster = cluster_from_toml(search_run.cluster_text);
  const std::optional<Calibration> calibration =
      calibration_for(cluster, flags.sources.calibration);
  search_run.trainer = trainer_for(cluster, flags.sources.trainer);
  search_run.is_trainer_named = !flags.sources.trainer.empty();
  FixedChoices choices = flags.strategy.choices;
  if (search_run.is_trainer_named) choices.trainer = search_run.trainer;
  const auto cost_model = make_cost_model(cluster, search_run.trainer, calibration);
  search_run.cost_model = cost_model->provenance();
  search_run.validation = cost_model->validation();
  search_run.calibration = text_of(calibration);
  search_run.partial_nodes = partial_nodes_text(cluster, search_run.goal.gpus);

  ProgressLine progress;
  const auto start = std::chrono::steady_clock::now();
  const auto seconds_since_start = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const int limit = flags.time_limit.value_or(kSecondsAllowed);
  search_run.result =
      search(model, cluster, *cost_model, search_run.goal, choices,
             {.top = flags.top.value_or(kPlansShown),
              .threads = flags.threads.value_or(0),
              .progress = [&](std::int64_t done, std::int64_t of) { progress.show(done, of); },
              .canceled = is_interrupted,
              .is_out_of_time = [&] { return limit > 0 && seconds_since_start() > limit; }});
  search_run.time = Seconds(seconds_since_start());
  if (search_run.result.plans.empty()) stop_if_interrupted();
  for (const RankedPlan& ranked : search_run.result.plans) {
    const std::optional<ErrorBar> bar =
        error_bar_of(ranked.plan.strategy, model, cluster, search_run.trainer, ranked.evaluation,
                     calibration.has_value());
    search_run.figures.push_back(figures_of(ranked));
    PlanFigures& figures = search_run.figures.back();
    figures.range = range_of(figures.step_time, bar);
    if (search_run.figures.size() == 1) search_run.validation = validation_text(bar, *cost_model);
  }
  return search_run;
}

Json json_of(const RankedPlan& ranked) { return Json::parse(to_json(figures_of(ranked))); }

std::string json_text(const Search& run) {
  const SearchCertificate& certificate = run.result.certificate;
  Json pruned = Json::object();
  for (std::size_t i = 0; i < certificate.pruned.size(); ++i)
    pruned[std::string(name_of(static_cast<PruneReason>(i)))] = certificate.pruned[i];
  Json plans = Json::array();
  for (std::size_t i = 0; i < run.figures.size(); ++i) {
    plans.push_back(Json::parse(to_json(run.figures[i])));
    plans.back()["trainer_problems"] =
        Json::parse(problems_json(trainer_problems(run.result.plans[i].plan, run.trainer)));
  }
  Json infeasible;
  if (run.result.infeasible) {
    const Infeasible& why = *run.result.infeasible;
    infeasible = {{"reason", why.reason},
                  {"nearest", why.nearest ? json_of(*why.nearest) : Json()}};
  }
  const Json json{
      {"schema", 1},
      {"search",
       {{"candidates", certificate.candidates},
        {"pruned", pruned},
        {"simulated", certificate.simulated},
        {"seconds", run.time.value},
        {"proved_optimal", certificate.proved_optimal},
        {"gap", certificate.gap}}},
      {"trainer", {{"name", run.trainer.name}, {"restricts_search", run.is_trainer_named}}},
      {"plans", plans},
      {"infeasible", infeasible}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string infeasible_text(const Infeasible& infeasible) {
  std::string text = fmt::format("No plan fits: {}\n", infeasible.reason);
  if (!infeasible.nearest) return text;
  const PlanFigures nearest = figures_of(*infeasible.nearest);
  text += fmt::format("\nNearest plan found:\n{}", plan_table({&nearest, 1}));
  if (!nearest.why.empty()) text += nearest.why + "\n";
  return text;
}

std::string human_text(const Search& run, bool why_for_all) {
  std::string text =
      fmt::format("{} on {}: {} GPUs, global batch size {}, sequence length {}\n{}\n",
                  run.model_text.name, run.cluster_text.name, run.goal.gpus, run.goal.global_batch,
                  run.goal.sequence_length, run.partial_nodes);
  if (run.result.infeasible) text += infeasible_text(*run.result.infeasible);
  const std::vector<PlanFigures>& figures = run.figures;
  if (!figures.empty()) {
    text += plan_table(figures) + "\n";
    for (std::size_t i = 0; i < (why_for_all ? figures.size() : 1); ++i)
      text += fmt::format("{}. {}\n", i + 1, figures[i].why);
    text += unsupported_plans_text(run.result.plans, run.trainer);
  }
  return text + certificate_text(run.result.certificate, run.time) +
         cost_model_text(run.cost_model, run.validation);
}

PlanFile plan_file_of(const Search& run) {
  const RankedPlan& best = run.result.plans.front();
  return {.model_name = run.model_text.name,
          .model_config = run.model_text.text,
          .cluster_name = run.cluster_text.name,
          .cluster_toml = run.cluster_text.text,
          .plan = best.plan,
          .predicted = run.figures.front(),
          .cost_model = run.cost_model,
          .calibration = run.calibration,
          .trainer_name = run.trainer.name,
          .trainer_toml = to_toml(run.trainer)};
}

CLI::App* add_plan_command(CLI::App& app, PlanFlags& flags) {
  CLI::App* command =
      app.add_subcommand("plan", "Search for the fastest way to train a model on a cluster.");
  add_source_flags(*command, flags.sources);
  {
    const OptionGroup group(*command, kSourceOptions);
    add_count(*command, "--gpus", flags.gpus, kGpuRange, "total number of GPUs");
  }
  add_batch_flags(*command, flags.strategy);
  {
    const OptionGroup group(*command, "Search");
    add_count(*command, "--top", flags.top, kTopRange, "number of plans to list (default: 10)");
    add_count(*command, "--time-limit", flags.time_limit, kTimeLimitRange,
              "seconds to search before the best plans so far are printed with the optimality gap, "
              "as after Ctrl-C; 0: until they are proved optimal (default: 10)");
    add_count(*command, "--threads", flags.threads, kThreadRange,
              "search threads, without effect on the result; 0: all cores (default: 0)");
    command->add_flag("--why", flags.why, "explain every listed plan, not only the best one");
    command->add_flag("--fix", flags.fix,
                      "no effect: options given on the command line are always fixed");
  }
  add_choice_flags(*command, flags.strategy.choices);
  add_output_flags(*command, flags.output, "the best plan");
  command->footer(
      "Searched unless given: --tp --pp --vpp --dp --cp --ep --etp --micro-batch --schedule "
      "--recompute\n"
      "--zero --shard-ranks --bucket --overlap-gather --fsdp-no-reshard --sequence-parallel\n"
      "--tp-comm-overlap --context-algorithm; --offload-optimizer if nothing fits otherwise. All "
      "other\n"
      "options keep their default unless given. --trainer restricts the search to what this "
      "training\n"
      "program can run; without it, the default one gives only costs.\n\n"
      "Examples:\n"
      "  meshwright plan --model gpt3-175b --cluster dgx-a100 --gpus 1024 --global-batch 1536 \\\n"
      "      --seq 2048 -o best.plan.json\n"
      "  meshwright plan --model ./config.json --cluster dgx-h100 --gpus 64 --global-batch 128 \\\n"
      "      --seq 4096 --fix --tp 4 --recompute none --json");
  return command;
}

Outcome run_plan(const PlanFlags& flags) {
  const Search run = run_search(flags);
  Outcome outcome{.text = flags.output.json ? json_text(run) : human_text(run, flags.why)};
  if (run.result.plans.empty()) {
    outcome.exit_code = kExitNoPlanFits;
    return outcome;
  }
  if (is_interrupted()) outcome.exit_code = kExitInterrupted;
  if (flags.output.file.empty()) return outcome;
  write_file(flags.output.file, to_json(plan_file_of(run)));
  if (flags.output.file == "-") outcome.text.clear();  // standard output is the plan file
  return outcome;
}

}  // namespace

Command plan_command(CLI::App& app) { return make_command(app, add_plan_command, run_plan); }

}  // namespace meshwright
