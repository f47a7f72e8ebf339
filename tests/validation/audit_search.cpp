/// Tries to find plans that are faster than plan 1 of the search, for jobs at random:
///
///   changes       every plan that differs in one or two flags, up to --changes
///   stage cuts    one block moved from one stage to another
///   random plans  of the searched space
///
/// All of them are predicted by predict() alone, without bounds or memory screens of the search.
/// Exits with 1 if a plan of the space is faster than a plan that the search proved optimal. Plans
/// outside of the space (stage cuts, rank orders, shard groups of other sizes) show what it lacks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/plan/plan_search.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/base/random.hpp"
#include "core/plan/strategy_text.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/node_selection.hpp"
#include "planner/search/plan_rank.hpp"
#include "simulator/predict/predict.hpp"
#include "tests/validation/plan_changes.hpp"
#include "tests/validation/random_jobs.hpp"

namespace meshwright {
namespace {

struct Flags {
  int jobs = 10, random_plans = 2000, threads = 0, largest = 16'384;
  std::size_t changes = 4000;
  std::uint64_t seed = 1;
  double time_limit = 10;
  std::string model, cluster;  ///< empty: jobs at random
  Goal goal;
};

// ---- plans to try -------------------------------------------------------------------------------

struct Trial {
  Strategy strategy;
  std::vector<int> cut = {};         ///< empty: that of complete_plan()
  std::optional<Ticks> step_time{};  ///< absent: not valid, or does not fit in memory
};

/// Larger pipelines take too long to predict by the thousand.
constexpr std::int64_t kMostPasses = 200'000;
bool is_large(const Strategy& s) {
  return stage_count(s.degrees) * s.global_batch / (std::int64_t{s.micro_batch} * s.degrees.data) >
         kMostPasses;
}

void predict_trial(Trial& trial, const SearchJob& job) {
  try {
    const Plan plan = trial.cut.empty()
                          ? complete_plan(trial.strategy, job.model, job.cluster, job.cost_model)
                          : Plan{trial.strategy, trial.cut};
    if (!check_plan(plan, job.model, job.cluster).empty()) return;
    const Evaluation evaluation =
        predict({plan, job.model, job.cluster, job.cost_model}).evaluation;
    if (fits_in_memory(evaluation)) trial.step_time = evaluation.step_time;
  } catch (const InputError&) {
    return;  // not a valid plan
  }
}

/// Of a pipeline: one block moved between neighboring stages, or from or to one of its ends.
void add_stage_cuts(const Plan& plan, std::vector<Trial>& trials) {
  const auto last = static_cast<int>(plan.blocks_per_stage.size()) - 1;
  const auto is_end = [=](int stage) { return stage == 0 || stage == last; };
  for (int from = 0; from <= last; ++from)
    for (int to = 0; to <= last; ++to) {
      if (to == from || (std::abs(to - from) > 1 && !is_end(from) && !is_end(to))) continue;
      Trial trial{plan.strategy, plan.blocks_per_stage};
      --trial.cut[static_cast<std::size_t>(from)];
      ++trial.cut[static_cast<std::size_t>(to)];
      trials.push_back(std::move(trial));
    }
}

/// The number of recomputed blocks, which the search chooses by memory, is random.
void add_random_plans(const SearchSpace& space, const SearchJob& job, const Flags& flags,
                      std::vector<Trial>& trials) {
  std::uint64_t drawn = mixed_bits(flags.seed);
  for (const Candidate& candidate : random_candidates(space, flags.random_plans, flags.seed)) {
    trials.push_back({strategy_of(candidate, job.goal, job.fixed)});
    Strategy& strategy = trials.back().strategy;
    const auto blocks = static_cast<std::uint64_t>(
        divide_up(block_count(job.model), static_cast<int>(stage_count(strategy.degrees))));
    if (strategy.recompute == Recompute{.kind = RecomputeKind::kBlocks})
      strategy.recompute.blocks = 1 + static_cast<int>(mixed_bits(drawn++) % blocks);
  }
}

/// What search() does not choose in a trial; empty: the trial is in its space.
std::string outside_of_space(const Trial& trial, const Plan& best, const SearchSpace& space,
                             const FixedChoices& fixed) {
  const Strategy &a = trial.strategy, &b = best.strategy;
  if (!trial.cut.empty()) return "stage cut";
  if (a.model_parallelism.order != b.model_parallelism.order) return "rank order";
  if (a.data_parallelism.prefetch != b.data_parallelism.prefetch) return "prefetch";
  return choice_outside(a, space, fixed);
}

// ---- texts --------------------------------------------------------------------------------------

std::string flag_text(const std::string& key, const nlohmann::json& value) {
  std::string flag = key;
  std::ranges::replace(flag, '_', '-');
  if (value.is_boolean()) return (value.get<bool>() ? "--" : "--no-") + flag;
  return fmt::format("--{} {}", flag, value.is_string() ? value.get<std::string>() : value.dump());
}

/// The flags of `to` that differ from those of `from`.
std::string flags_towards(const Strategy& from, const Strategy& to) {
  const auto a = nlohmann::json::parse(to_json(from)), b = nlohmann::json::parse(to_json(to));
  std::string text;
  for (const auto& [key, value] : b.items())
    if (!a.contains(key) || a[key] != value) text += " " + flag_text(key, value);
  for (const auto& [key, value] : a.items())
    if (!b.contains(key)) text += fmt::format(" (without {})", flag_text(key, value));
  return text;
}

std::string job_flags(const AuditedJob& job) {
  return fmt::format("--model {} --cluster {} --gpus {} --global-batch {} --seq {}", job.model,
                     job.cluster, job.goal.gpus, job.goal.global_batch, job.goal.sequence_length);
}

// ---- audit --------------------------------------------------------------------------------------

struct TimedSearch {
  SearchResult result;
  Seconds wall, processor;
};

/// As `meshwright plan`. A job of which nothing fits may take longer than the limit, up to a
/// multiple of it.
TimedSearch search_plans(const AuditedJob& job, const PlanModel& model, const PlanCluster& cluster,
                         const Flags& flags) {
  constexpr double kMostLimits = 6;
  constexpr int kPlansShown = 10;
  const auto elapsed = start_clock();
  const std::clock_t start = std::clock();
  TimedSearch timed;
  timed.result =
      search(model.graph, cluster.cluster, *cluster.cost_model, job.goal, {},
             {.top = kPlansShown,
              .threads = flags.threads,
              .progress = {},
              .canceled = [&] { return elapsed().value > kMostLimits * flags.time_limit; },
              .is_out_of_time = [&] { return elapsed().value > flags.time_limit; },
              .selects_nodes = true,
              .refines = true});
  timed.wall = elapsed();
  timed.processor = Seconds(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  return timed;
}

class Audit {
 public:
  explicit Audit(const Flags& flags) : flags_(flags) {}

  void run(const AuditedJob& job) {
    fmt::print("{}: ", job_flags(job));
    std::fflush(stdout);
    try {
      try_to_beat(job);
    } catch (const InputError& error) {
      fmt::print("not searched: {}\n", error.diagnostics().front().what);
    }
    std::fflush(stdout);
  }

  int summarize() const {
    fmt::print(
        "{} jobs with a plan, {} proved; beaten by plans of the space: {} proved, {} others; "
        "{} only by plans outside; {} plans tried\n",
        planned_, proved_, beaten_proved_, beaten_others_, beaten_outside_, tried_);
    return beaten_proved_ > 0 ? 1 : 0;
  }

 private:
  void try_to_beat(const AuditedJob& audited) {
    const PlanModel model = load_plan_model(audited.model);
    const PlanCluster loaded = load_plan_cluster(audited.cluster, {}, Bytes(0));
    const TimedSearch timed = search_plans(audited, model, loaded, flags_);
    const SearchCertificate& certificate = timed.result.certificate;
    const std::string effort =
        fmt::format("{:.1f} s, CPU {:.1f} s, {} candidates, {} simulated", timed.wall.value,
                    timed.processor.value, certificate.candidates, certificate.simulated);
    if (timed.result.plans.empty()) {
      fmt::print("no plan, {}\n", effort);
      return;
    }
    const RankedPlan& best = timed.result.plans.front();
    const Cluster cluster =
        best.nodes.empty() ? loaded.cluster : with_nodes(loaded.cluster, best.nodes);
    SearchJob job{model.graph, cluster, *loaded.cost_model, audited.goal, {}, 1};
    job.goal.gpus = static_cast<int>(rank_count(best.plan.strategy.degrees));
    job.fixed.dtype = best.plan.strategy.dtype;
    job.fixed.offload_optimizer = best.plan.strategy.data_parallelism.offload_optimizer;
    // Rows below plan 1 may stay unproved.
    const bool is_proved = certificate.proved_optimal || certificate.gap == 0;
    ++planned_;
    proved_ += is_proved ? 1 : 0;
    fmt::print("{}, {}, step {}, {}; ",
               is_proved ? "proved" : fmt::format("gap {:.2f} %", 100 * certificate.gap), effort,
               to_text(best.evaluation.step_time), strategy_text(best.plan.strategy));
    try_plans(audited, best, is_proved, job);
  }

  void try_plans(const AuditedJob& audited, const RankedPlan& best, bool is_proved,
                 const SearchJob& job) {
    ChangedStrategies changed = changed_at_most_twice(best.plan.strategy, flags_.changes);
    std::vector<Trial> trials;
    for (Strategy& strategy : changed.strategies) trials.push_back({std::move(strategy)});
    add_stage_cuts(best.plan, trials);
    const SearchSpace space = make_space(job.model, job.cluster, job.goal, job.fixed);
    add_random_plans(space, job, flags_, trials);
    const auto large = std::erase_if(trials, [](const Trial& t) { return is_large(t.strategy); });
    const auto elapsed = start_clock();
    parallel_for(trials.size(), thread_count(flags_.threads),
                 [&](std::size_t i) { predict_trial(trials[i], job); });
    const auto valid = std::ranges::count_if(trials, [](const Trial& t) { return !!t.step_time; });
    tried_ += static_cast<std::int64_t>(trials.size());
    fmt::print("tried {} in {:.0f} s, {} fit ({} changes beyond the cap, {} too large); ",
               trials.size(), elapsed().value, valid, changed.left_out, large);
    report_beaters(audited, best, is_proved, trials, [&](const Trial& trial) {
      return outside_of_space(trial, best.plan, space, job.fixed);
    });
  }

  template <class Outside>
  void report_beaters(const AuditedJob& audited, const RankedPlan& best, bool is_proved,
                      std::vector<Trial>& trials, const Outside& outside) {
    std::erase_if(trials, [&](const Trial& trial) {
      return !trial.step_time || *trial.step_time >= best.evaluation.step_time;
    });
    std::ranges::stable_sort(trials, {}, [](const Trial& trial) { return *trial.step_time; });
    std::map<std::string, const Trial*> best_of;  // by outside()
    std::int64_t of_space = 0, clearly = 0;
    Ticks shown;  // of equal plans the one with the fewest changes; the others may have no effect
    for (const Trial& trial : trials) {
      const std::string reason = outside(trial);
      of_space += reason.empty() ? 1 : 0;
      clearly += gain(trial, best) > kClearGain ? 1 : 0;
      if (*trial.step_time == shown && !reason.empty()) continue;
      shown = *trial.step_time;
      best_of.try_emplace(reason, &trial);
    }
    fmt::print("{} faster, {} by > {} %, {} of the space\n", trials.size(), clearly,
               100 * kClearGain, of_space);
    print_beaters(best_of, audited, best);
    if (trials.empty()) return;
    ++(of_space == 0 ? beaten_outside_ : is_proved ? beaten_proved_ : beaten_others_);
  }

  /// The best one of the space, and a few outside.
  static void print_beaters(const std::map<std::string, const Trial*>& best_of,
                            const AuditedJob& audited, const RankedPlan& best) {
    constexpr std::size_t kShown = 4;
    std::vector<std::pair<std::string, const Trial*>> beaters(best_of.begin(), best_of.end());
    std::ranges::stable_sort(beaters, {}, [](const auto& beater) {
      return std::pair(!beater.first.empty(), *beater.second->step_time);
    });
    if (beaters.size() > kShown) beaters.resize(kShown);
    for (const auto& [reason, trial] : beaters)
      print_beater(reason.empty() ? "in the space" : "outside: " + reason, *trial, audited, best);
  }

  static constexpr double kClearGain = 0.001;

  static double gain(const Trial& trial, const RankedPlan& best) {
    return 1 - ratio(*trial.step_time, best.evaluation.step_time);
  }

  static void print_beater(const std::string& where, const Trial& trial, const AuditedJob& audited,
                           const RankedPlan& best) {
    Strategy same;  // what job_flags() says
    same.global_batch = audited.goal.global_batch;
    same.sequence_length = audited.goal.sequence_length;
    std::string change = flags_towards(best.plan.strategy, trial.strategy);
    if (!trial.cut.empty())
      change = fmt::format(" --blocks-per-stage {}", fmt::join(trial.cut, ","));
    fmt::print("  {}: {:.3f} % faster ({}):{}\n    simulate {}{}\n", where, 100 * gain(trial, best),
               to_text(*trial.step_time), change, job_flags(audited),
               flags_towards(same, trial.strategy));
  }

  const Flags& flags_;
  int planned_ = 0, proved_ = 0, beaten_proved_ = 0, beaten_others_ = 0, beaten_outside_ = 0;
  std::int64_t tried_ = 0;
};

int main_of(int argc, char** argv) {
  CLI::App app("Tries to find plans that are faster than plan 1 of the search.", "audit_search");
  Flags flags;
  app.add_option("--jobs", flags.jobs, "number of random jobs (10)")->check(CLI::Range(1, 100'000));
  app.add_option("--seed", flags.seed, "seed of the random jobs and plans (1)");
  app.add_option("--largest", flags.largest, "devices of the largest random job (16384)")
      ->check(CLI::Range(8, 1 << 20));
  app.add_option("--random-plans", flags.random_plans, "random plans per job (2000)")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--changes", flags.changes,
                 "largest number of plans with one or two other flags per job (4000)");
  app.add_option("--time-limit", flags.time_limit, "seconds of a search (10)");
  app.add_option("--threads", flags.threads, "threads; 0: all cores (0)")
      ->check(CLI::Range(0, 1024));
  CLI::Option* model = app.add_option("--model", flags.model, "audit this job only: model");
  CLI::Option* cluster = app.add_option("--cluster", flags.cluster, "cluster");
  CLI::Option* gpus = app.add_option("--gpus", flags.goal.gpus, "number of GPUs");
  CLI::Option* batch = app.add_option("--global-batch", flags.goal.global_batch, "sequences");
  CLI::Option* seq = app.add_option("--seq", flags.goal.sequence_length, "tokens per sequence");
  for (CLI::Option* option : {cluster, gpus, batch, seq})
    option->needs(model), model->needs(option);
  CLI11_PARSE(app, argc, argv);
  Audit audit(flags);
  if (!flags.model.empty()) {
    audit.run({flags.model, flags.cluster, flags.goal});
    return audit.summarize();
  }
  fmt::print("seed {}\n", flags.seed);
  RandomJobs jobs(flags.seed, flags.largest);
  for (int i = 0; i < flags.jobs; ++i) audit.run(jobs.next());
  return audit.summarize();
}

}  // namespace
}  // namespace meshwright

int main(int argc, char** argv) { return meshwright::main_of(argc, argv); }
