#include "cli/plan/trainer_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/reports/report.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/base/error.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/strategy_text.hpp"
#include "models/load/trainer_toml.hpp"

namespace meshwright {
namespace {

using ComparisonJson = nlohmann::ordered_json;

constexpr std::array kComparedTrainers{"megatron-core", "torchtitan", "megatron-deepspeed"};

/// Share of the time limit that all trainers get at least. The first search may have taken all of
/// it and found a plan that no program can run.
constexpr double kLeastShareOfTime = 0.5;

/// Step time beyond that of plan 1, as a share of it.
double slower_than_first(const PlanFigures& figures, const PlanSearch& search) {
  return ratio(figures.step_time, search.figures.front().step_time) - 1;
}

/// The first plan of `search`, whose costs are those of the program, if the program can run it.
bool takes_first_plan(const Trainer& trainer, const PlanSearch& search) {
  return trainer.name == search.cluster->trainer.name &&
         can_run(trainer.abilities, search.result.plans.front().plan);
}

void search_for(const Trainer& trainer, const PlanFlags& flags, const PlanSearch& search,
                const std::function<bool()>& is_out_of_time, BestOfTrainer& best) {
  const PlanCluster& on = *search.cluster;
  const auto cost_model = make_cost_model(on.cluster, trainer, on.calibration);
  FixedChoices choices = flags.choices;
  choices.trainer = trainer;
  const SearchResult found =
      meshwright::search(search.model->graph, on.cluster, *cost_model, search.goal, choices,
                         {.top = 1,
                          .threads = flags.threads.value_or(0),
                          .progress = {},
                          .canceled = is_interrupted,
                          .is_out_of_time = is_out_of_time,
                          .selects_nodes = true,
                          .refines = true});
  best.proved_optimal = found.certificate.proved_optimal;
  if (found.plans.empty()) {
    best.problem = found.infeasible ? found.infeasible->reason : "the search was interrupted";
    return;
  }
  best.plan = found.plans.front();
  best.figures = figures_of(best.plan->plan.strategy, best.plan->evaluation, best.plan->why);
}

BestOfTrainer best_of(const Trainer& trainer, const PlanFlags& flags, const PlanSearch& search,
                      const std::function<bool()>& is_out_of_time) {
  BestOfTrainer best{.trainer = trainer.name};
  if (takes_first_plan(trainer, search)) {
    best.plan = search.result.plans.front();
    best.figures = search.figures.front();
    best.proved_optimal = search.result.certificate.gap == 0;
  } else {
    try {
      search_for(trainer, flags, search, is_out_of_time, best);
    } catch (const InputError& error) {  // a fixed choice that it does not have
      best.problem = error.diagnostics().front().what;
    }
  }
  return best;
}

}  // namespace

std::vector<Trainer> compared_trainers() {
  std::vector<Trainer> trainers;
  trainers.reserve(std::size(kComparedTrainers));
  for (const char* name : kComparedTrainers)
    trainers.push_back(trainer_from_toml(find_trainer(name)));
  return trainers;
}

std::vector<BestOfTrainer> best_of_trainers(const PlanFlags& flags, const PlanSearch& search) {
  const PlanCluster& on = *search.cluster;
  if (on.is_trainer_named || search.figures.empty() ||
      std::ranges::find(kComparedTrainers, on.trainer.name) == kComparedTrainers.end())
    return {};
  const std::function<Seconds()> elapsed = start_clock();
  const std::optional<Seconds> limit = time_limit_of(flags);
  const std::vector<Trainer> trainers = compared_trainers();
  std::vector<BestOfTrainer> found;
  for (std::size_t i = 0; i < trainers.size(); ++i) {
    std::optional<double> end;
    if (limit) {
      const double now = elapsed().value;
      const double all =
          std::max(limit->value - search.time.value, limit->value * kLeastShareOfTime);
      end = now + (all - now) / static_cast<double>(trainers.size() - i);
    }
    const auto is_out_of_time = [&] { return end && elapsed().value > *end; };
    found.push_back(best_of(trainers[i], flags, search, is_out_of_time));
  }
  return found;
}

Table runs_in_column(const PlanSearch& search) {
  Table column = empty_table(left_aligned("runs in"));
  const std::vector<Trainer> trainers = compared_trainers();
  for (const RankedPlan& ranked : search.result.plans) {
    std::string names;
    for (const Trainer& trainer : trainers)
      if (can_run(trainer.abilities, ranked.plan))
        names += (names.empty() ? "" : ", ") + trainer.name;
    column.rows.push_back({names.empty() ? "none of them" : names});
  }
  return column;
}

Document trainer_comparison_text(const PlanSearch& search) {
  if (search.trainers.empty()) return "";
  Table table = empty_table(left_aligned("trainer"), left_aligned("parallelism"),
                            left_aligned("schedule"), "micro-batch", left_aligned("recompute"),
                            "ZeRO", "step", "vs plan 1", "peak memory", left_aligned("options"));
  constexpr double kPercent = 100;
  std::string without;
  for (const BestOfTrainer& best : search.trainers) {
    if (!best.figures) {
      const bool names_it = best.problem.starts_with(best.trainer);
      without += fmt::format("{}{}\n", names_it ? "" : best.trainer + ": ", best.problem);
      continue;
    }
    const PlanFigures& f = *best.figures;
    table.rows.push_back({best.trainer, split_text(f.strategy), schedule_text(f.strategy),
                          std::to_string(f.strategy.micro_batch), to_text(f.strategy.recompute),
                          std::to_string(f.strategy.zero), to_text(f.step_time),
                          fmt::format("{:+.1f} %", kPercent * slower_than_first(f, search)),
                          to_text(f.peak_memory), options_text(f.strategy)});
  }
  Document text = "\nBest plan of each training program, with its own costs:\n";
  if (!table.rows.empty()) text += std::move(table);  // else each has a problem
  return std::move(text) + without + "\n";
}

std::string trainer_comparison_json(const PlanSearch& search) {
  ComparisonJson json = ComparisonJson::array();
  for (const BestOfTrainer& best : search.trainers) {
    ComparisonJson entry{{"name", best.trainer}, {"plan", nullptr}, {"slower", nullptr}};
    if (best.figures) {
      entry["plan"] = ComparisonJson::parse(to_json(*best.figures));
      entry["slower"] = slower_than_first(*best.figures, search);
    }
    entry["proved_optimal"] = best.proved_optimal;
    entry["problem"] = best.problem;
    json.push_back(std::move(entry));
  }
  return json.dump(-1, ' ', false, ComparisonJson::error_handler_t::replace);
}

}  // namespace meshwright
