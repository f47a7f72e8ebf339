#include "cli/validation/rank_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/reports/report.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/strategy_text.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/search.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

Goal goal_of(const Strategy& s) {
  return {.gpus = static_cast<int>(rank_count(s.degrees)),
          .global_batch = s.global_batch,
          .sequence_length = s.sequence_length};
}

std::optional<RankedRun::BestPlan> best_plan_of(const SearchJob& job,
                                                const RankingOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const SearchResult found =
      search(job.model, job.cluster, job.cost_model, job.goal, job.fixed,
             {.top = 1,
              .threads = job.threads,
              .progress = {},
              .canceled = options.canceled,
              .is_out_of_time = [&] {
                return std::chrono::steady_clock::now() - start >
                       std::chrono::duration<double>(options.time_limit.value);
              }});
  if (found.plans.empty()) return std::nullopt;
  const RankedPlan& best = found.plans.front();
  return RankedRun::BestPlan{.strategy = best.plan.strategy,
                             .step_time = best.evaluation.step_time,
                             .gap = found.certificate.gap};
}

RankedRun rank_run(const LoadedRuns::Job& job, const ModelGraph& model, const Cluster& cluster,
                   const RankingOptions& options) {
  RankedRun ranked;
  ranked.job = &job;
  try {
    const Trainer trainer = trainer_from_toml(find_trainer(job.run->trainer));
    const auto cost_model = make_device_cost_model(cluster, trainer);
    const Plan plan = plan_of_run(*job.run, model, cluster, *cost_model);
    const Evaluation evaluation = predict({plan, model, cluster, *cost_model}).evaluation;
    ranked.step_time = evaluation.step_time;
    ranked.fits_in_memory = fits_in_memory(evaluation);
    FixedChoices fixed = choices_not_searched(plan.strategy);
    fixed.trainer = trainer;
    const SearchJob space{
        model, cluster, *cost_model, goal_of(plan.strategy), fixed, thread_count(options.threads)};
    ranked.rank = rank_of(plan, ranked.step_time, space, options.rank);
    ranked.best = best_plan_of(space, options);
  } catch (const InputError& error) {
    ranked.problems = error.diagnostics();
  }
  return ranked;
}

double faster_share(const PlanRank& rank) {
  return rank.fitting > 0 ? static_cast<double>(rank.faster) / rank.fitting : 0;
}

/// By how much the best plan of the trainer is faster; 0 if none is.
double loss(const RankedRun& run) {
  if (!run.best || run.best->step_time >= run.step_time) return 0;
  return ratio(run.step_time, run.best->step_time) - 1;
}

std::string plan_words(const Strategy& s) {
  std::string text =
      fmt::format("{}, {}, micro-batch {}", split_text(s), schedule_text(s), s.micro_batch);
  if (s.recompute.kind != RecomputeKind::kNone) text += ", recompute " + to_text(s.recompute);
  return text + fmt::format(", ZeRO {}", s.zero);
}

bool is_ranked(const RankedRun& run) { return run.problems.empty() && run.rank.fitting > 0; }
bool is_in_space(const RankedRun& run) { return run.rank.outside.empty(); }
bool is_one_of_the_best(const RankedRun& run) { return faster_share(run.rank) <= kBestShare; }

std::string name_of(const RankedRun& run) {
  return fmt::format("{}#{}", run.job->set->name, run.job->run->id);
}

std::string summary(std::span<const RankedRun> runs) {
  const auto count = [&](const auto& predicate) {
    return std::ranges::count_if(
        runs, [&](const RankedRun& run) { return is_ranked(run) && predicate(run); });
  };
  const auto ranked = count([](const RankedRun&) { return true; });
  if (ranked == 0) return "No run could be ranked.\n";
  const auto best = count(is_one_of_the_best);
  return fmt::format(
      "{} of {} plans are in the space that is searched for their trainer.\n"
      "{} of {} ({}) are among the best {} of the plans of their trainer that fit.\n",
      count(is_in_space), ranked, best, ranked,
      percent(static_cast<double>(best) / static_cast<double>(ranked)), percent(kBestShare));
}

}  // namespace

std::vector<RankedRun> rank_runs(const LoadedRuns& runs, const RankingOptions& options) {
  std::vector<RankedRun> ranked;
  for (const LoadedRuns::Job& job : runs.jobs) {
    if (!job.run->trap.empty()) continue;
    if (options.canceled && options.canceled()) break;
    ranked.push_back(rank_run(job, runs.models[job.model], runs.clusters[job.cluster], options));
  }
  return ranked;
}

Document ranking_text(std::span<const RankedRun> runs) {
  Table table = empty_table(left_aligned("run"), left_aligned("plan"), "step", "faster plans",
                            left_aligned("best plan of the trainer"), "step", "faster by");
  std::string others;
  for (const RankedRun& run : runs) {
    if (!is_ranked(run)) {
      const std::string why =
          run.problems.empty() ? "no random plan fits" : run.problems.front().what;
      others += fmt::format("{}: not ranked: {}\n", name_of(run), why);
      continue;
    }
    if (!is_in_space(run))
      others += fmt::format("{}: not in the space: {}\n", name_of(run), run.rank.outside);
    if (!run.fits_in_memory)
      others += fmt::format("{}: predicted not to fit in memory\n", name_of(run));
    table.rows.push_back({name_of(run), plan_words(run.job->run->strategy), to_text(run.step_time),
                          percent(faster_share(run.rank)),
                          run.best ? plan_words(run.best->strategy) : "none found",
                          run.best ? to_text(run.best->step_time) : "-", percent(loss(run))});
  }
  return Document(std::move(table)) + "\n" + others + summary(runs);
}

std::string ranking_json(std::span<const RankedRun> runs) {
  using Json = nlohmann::ordered_json;
  Json json{{"schema", 1}, {"runs", Json::array()}};
  for (const RankedRun& run : runs) {
    Json entry{{"run", name_of(run)}};
    if (!run.problems.empty()) {
      entry["problem"] = run.problems.front().what;
    } else {
      entry["step_seconds"] = to_seconds(run.step_time).value;
      entry["fits_in_memory"] = run.fits_in_memory;
      entry["not_in_space"] = is_in_space(run) ? Json() : Json(run.rank.outside);
      entry["random_plans"] = {
          {"drawn", run.rank.drawn}, {"fitting", run.rank.fitting}, {"faster", run.rank.faster}};
      entry["best"] = Json();
      if (run.best)
        entry["best"] = {{"plan", plan_words(run.best->strategy)},
                         {"step_seconds", to_seconds(run.best->step_time).value},
                         {"gap", run.best->gap}};
    }
    json["runs"].push_back(std::move(entry));
  }
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace meshwright
