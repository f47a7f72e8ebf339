#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/flags/sweep_axes.hpp"
#include "cli/job/job.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/formats/file.hpp"
#include "models/load/load.hpp"
#include "planner/search/sweep.hpp"

namespace meshwright {
namespace {

struct SweepFlags {
  SourceFlags sources;
  std::string show = "step";
  std::optional<int> gpus, threads;
  std::vector<std::string> over;
  StrategyFlags strategy;
  OutputFlags output;
};

using Json = nlohmann::ordered_json;

/// A figure that the table can show.
struct Figure {
  const char* name;
  const char* title;
  std::string (*text)(const PlanFigures&);
  double (*number)(const PlanFigures&);
  bool more_is_better;
};

constexpr Figure kFigures[]{
    {"step", "step time", [](const PlanFigures& f) { return to_text(f.step_time); },
     [](const PlanFigures& f) { return static_cast<double>(f.step_time.value); }, false},
    {"period", "period (steady-state step time without an optimizer barrier)",
     [](const PlanFigures& f) { return to_text(f.period); },
     [](const PlanFigures& f) { return static_cast<double>(f.period.value); }, false},
    {"bubble", "bubble fraction of the period, mean over ranks",
     [](const PlanFigures& f) { return percent(f.bubble_of_period); },
     [](const PlanFigures& f) { return f.bubble_of_period; }, false},
    {"busiest", "bubble fraction of the period, busiest rank",
     [](const PlanFigures& f) { return percent(f.busiest_rank_bubble); },
     [](const PlanFigures& f) { return f.busiest_rank_bubble; }, false},
    {"mfu", "model FLOPs utilization (MFU)", [](const PlanFigures& f) { return percent(f.mfu); },
     [](const PlanFigures& f) { return f.mfu; }, true},
    {"tokens", "tokens/s/GPU",
     [](const PlanFigures& f) { return fmt::format("{:.1f}", f.tokens_per_second_per_gpu); },
     [](const PlanFigures& f) { return f.tokens_per_second_per_gpu; }, true},
    {"memory", "peak memory of the rank with the highest peak",
     [](const PlanFigures& f) { return to_text(f.peak_memory); },
     [](const PlanFigures& f) { return static_cast<double>(f.peak_memory.value); }, false}};

const Figure& figure_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Figure& figure : kFigures) {
    if (figure.name == name) return figure;
    names.emplace_back(figure.name);
  }
  throw UsageError({.where = "--show",
                    .what = fmt::format("invalid value '{}'", name),
                    .hint = suggest(name, names)});
}

struct SweepRun {
  std::vector<SweptFlag> swept;
  std::vector<SweptStrategy> combinations;
  std::vector<SweepPoint> points;  ///< of each combination
};

bool fits(const PlanFigures& figures) { return figures.peak_memory <= figures.memory_capacity; }

/// Index of the best point that fits; points.size() if none does.
std::size_t best_point(const SweepRun& run, const Figure& figure) {
  std::size_t best = run.points.size();
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    if (!run.points[i].figures || !fits(*run.points[i].figures)) continue;
    const double value = figure.number(*run.points[i].figures);
    const bool is_better =
        best == run.points.size() ||
        (figure.more_is_better ? value > figure.number(*run.points[best].figures)
                               : value < figure.number(*run.points[best].figures));
    if (is_better) best = i;
  }
  return best;
}

/// False: canceled before its turn.
bool is_evaluated(const SweepPoint& point) { return point.figures || !point.problems.empty(); }

SweepRun run_points(const SweepFlags& flags) {
  if (flags.over.empty())
    throw UsageError({.where = "--over",
                      .what = "missing required option",
                      .hint = "set it, for example --over pp=1,2,4,8 --over schedule=1f1b,zb-h1"});
  for (const auto& [flag, value] :
       {std::pair("--model", &flags.sources.model), std::pair("--cluster", &flags.sources.cluster)})
    if (value->empty())
      throw UsageError({.where = flag,
                        .what = "missing required option",
                        .hint = "run 'meshwright sweep --help'"});
  SweepRun run;
  for (const std::string& text : flags.over) run.swept.push_back(swept_flag_from_text(text));
  run.combinations = combinations(flags.strategy, run.swept);
  const ModelGraph model = load_model_and_warn(find_model(flags.sources.model));
  const Cluster cluster =
      cluster_from_toml(find_cluster(flags.sources.cluster, flags.sources.calibration));
  const Trainer trainer = trainer_for(cluster, flags.sources.trainer);
  const auto cost_model =
      make_cost_model(cluster, trainer, calibration_for(cluster, flags.sources.calibration));

  // Parallel sizes that do not multiply to --gpus invalidate their point, not the command.
  run.points.resize(run.combinations.size());
  std::vector<Strategy> strategies;
  std::vector<std::size_t> point_of;
  for (std::size_t i = 0; i < run.combinations.size(); ++i) {
    try {
      strategies.push_back(to_strategy(run.combinations[i].flags, flags.gpus));
      point_of.push_back(i);
    } catch (const UsageError& error) {
      if (error.diagnostics().front().where != "--gpus" &&
          error.diagnostics().front().where != "--dp")
        throw;
      run.points[i].problems = error.diagnostics();
    }
  }
  const SweepOptions options{.threads = flags.threads.value_or(0),
                             .trainer = flags.sources.trainer.empty() ? nullptr : &trainer,
                             .progress = {},
                             .canceled = [] { return is_interrupted(); }};
  const PartialResults partial_results;
  std::vector<SweepPoint> evaluated = sweep(strategies, model, cluster, *cost_model, options);
  if (std::ranges::none_of(evaluated, is_evaluated)) stop_if_interrupted();
  for (std::size_t i = 0; i < evaluated.size(); ++i)
    run.points[point_of[i]] = std::move(evaluated[i]);
  return run;
}

// ---- text ---------------------------------------------------------------------------------------

/// "pp 4, schedule zb-h1": the values of the first `count` flags.
std::string name_of(const SweepRun& run, std::size_t point, std::size_t count) {
  std::string name;
  for (std::size_t f = 0; f < count; ++f)
    name += fmt::format("{}{} {}", f == 0 ? "" : ", ", run.swept[f].flag.substr(2),
                        run.swept[f].values[run.combinations[point].value_of_flag[f]]);
  return name;
}

std::string cell(const SweepPoint& point, const Figure& figure, bool says_full, bool is_best) {
  if (!point.figures) return "-";
  const bool is_full = says_full && !fits(*point.figures);
  return figure.text(*point.figures) + (is_full ? " !" : "") + (is_best ? " *" : "");
}

/// One flag: a row per value with all figures. Several: the values of the last flag are columns.
Table table_of(const SweepRun& run, const Figure& figure) {
  const std::size_t best = best_point(run, figure);
  const bool is_list = run.swept.size() == 1;
  Table table;
  table.columns.push_back({"", Align::kLeft});
  if (is_list)
    for (const Figure& each : kFigures) table.columns.push_back({each.name});
  else
    for (const std::string& value : run.swept.back().values)
      table.columns.push_back({run.swept.back().flag.substr(2) + " " + value});
  const std::size_t across = is_list ? 1 : run.swept.back().values.size();
  for (std::size_t i = 0; i < run.points.size(); i += across) {
    std::vector<std::string> row{name_of(run, i, is_list ? 1 : run.swept.size() - 1)};
    if (is_list)
      for (const Figure& each : kFigures)
        row.push_back(cell(run.points[i], each, std::string_view(each.name) == "memory",
                           i == best && &each == &figure));
    else
      for (std::size_t j = i; j < i + across; ++j)
        row.push_back(cell(run.points[j], figure, true, j == best));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The first few invalid combinations, with the reason.
std::string problems_text(const SweepRun& run) {
  constexpr std::size_t kMostShown = 5;
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    if (run.points[i].problems.empty() || ++count > kMostShown) continue;
    const Diagnostic& first = run.points[i].problems.front();
    text +=
        fmt::format("  {}: {}: {}\n", name_of(run, i, run.swept.size()), first.where, first.what);
  }
  if (count > kMostShown) text += fmt::format("  and {} more\n", count - kMostShown);
  return text.empty() ? "" : "\n-: invalid or unsupported combination\n" + text;
}

Document human_text(const SweepRun& run, const Figure& figure) {
  const bool is_any_full =
      std::any_of(run.points.begin(), run.points.end(),
                  [](const SweepPoint& p) { return p.figures && !fits(*p.figures); });
  return fmt::format("{}; *: best that fits in memory{}\n\n", figure.title,
                     is_any_full ? "; !: out of memory" : "") +
         Document(table_of(run, figure)) + problems_text(run);
}

// ---- files --------------------------------------------------------------------------------------

Json values_of(const SweepRun& run, std::size_t point) {
  Json values = Json::object();
  for (std::size_t f = 0; f < run.swept.size(); ++f)
    values[run.swept[f].flag.substr(2)] =
        run.swept[f].values[run.combinations[point].value_of_flag[f]];
  return values;
}

std::string json_text(const SweepRun& run, const Figure& figure) {
  Json points = Json::array();
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    const SweepPoint& point = run.points[i];
    Json entry{{"values", values_of(run, i)}};
    entry["plan"] = point.figures ? Json::parse(to_json(*point.figures)) : Json();
    entry["problems"] = Json::parse(problems_json(point.problems));
    points.push_back(std::move(entry));
  }
  const std::size_t best = best_point(run, figure);
  const Json json{{"schema", 1},
                  {"shown", figure.name},
                  {"best", best < run.points.size() ? values_of(run, best) : Json()},
                  {"points", std::move(points)}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Times in seconds, memory in bytes, shares as fractions; empty for invalid combinations.
std::string csv_text(const SweepRun& run) {
  std::string text;
  for (const SweptFlag& flag : run.swept) text += flag.flag.substr(2) + ",";
  text += "step_s,period_s,bubble,mfu,tokens_per_s_per_gpu,peak_memory_bytes,fits,";
  text += "busiest_rank_bubble\n";
  for (std::size_t i = 0; i < run.points.size(); ++i) {
    for (std::size_t f = 0; f < run.swept.size(); ++f)
      text += run.swept[f].values[run.combinations[i].value_of_flag[f]] + ",";
    if (const auto& figures = run.points[i].figures) {
      text += fmt::format("{:.9g},{:.9g},{:.6f},{:.6f},{:.3f},{},{},{:.6f}\n",
                          to_seconds(figures->step_time).value, to_seconds(figures->period).value,
                          figures->bubble_of_period, figures->mfu,
                          figures->tokens_per_second_per_gpu, figures->peak_memory.value,
                          fits(*figures) ? 1 : 0, figures->busiest_rank_bubble);
    } else {
      text += ",,,,,,,\n";
    }
  }
  return text;
}

CLI::App* add_sweep_command(CLI::App& app, SweepFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Simulate all combinations of the values of some options, in one table.");
  add_source_flags(*command, flags.sources);
  {
    const OptionGroup group(*command, kSourceOptions);
    add_count(*command, "--gpus", flags.gpus, kGpuRange,
              "total number of GPUs (default: product of the parallel sizes)");
  }
  {
    const OptionGroup group(*command, "Sweep");
    add_value(*command, "--over", flags.over, "OPTION=V,V,...",
              "a batch or parallelism option and its values; repeatable")
        ->take_all();
    add_value(*command, "--show", flags.show, "{step,period,bubble,busiest,mfu,tokens,memory}",
              "figure to show if several options are swept; its best value is marked "
              "(default: step)");
    add_count(*command, "--threads", flags.threads, kThreadRange,
              "threads; 0: all cores (default: 0)");
  }
  add_batch_flags(*command, flags.strategy);
  add_choice_flags(*command, flags.strategy.choices);
  add_report_flags(*command, flags.output, "the figures of all combinations, as CSV,");
  command->footer(
      "Examples:\n"
      "  meshwright sweep --model gpt2 --cluster dgx-a100 --gpus 8 --global-batch 64 --seq 1024 "
      "\\\n"
      "      --over tp=1,2,4 -o sweep.csv\n"
      "  meshwright sweep --model llama-3.1-70b --cluster dgx-h100 --gpus 64 --tp 8 --seq 8192 \\\n"
      "      --sequence-parallel --zero 1 --over pp=1,2,4,8 --over global-batch=32,64,128,256 \\\n"
      "      --show bubble");
  return command;
}

Outcome run_sweep(const SweepFlags& flags) {
  const Figure& figure = figure_named(flags.show);
  const SweepRun run = run_points(flags);
  const std::string& file = flags.output.file;
  if (!file.empty()) write_file(file, csv_text(run));
  Outcome outcome;
  if (file != "-")
    outcome = outcome_of(flags.output.json ? json_text(run, figure) : human_text(run, figure),
                         flags.output);
  outcome.exit_code = best_point(run, figure) < run.points.size() ? kExitDone : kExitNoPlanFits;
  if (is_interrupted()) {
    outcome.exit_code = kExitInterrupted;
    outcome.notes +=
        fmt::format("interrupted: {} of {} combinations\n",
                    std::ranges::count_if(run.points, is_evaluated), run.points.size());
  }
  return outcome;
}

}  // namespace

Command sweep_command(CLI::App& app) { return make_command(app, add_sweep_command, run_sweep); }

}  // namespace meshwright
