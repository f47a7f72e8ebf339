#include "tests/properties/plan_properties.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "core/formats/plan.hpp"
#include "core/plan/weight_versions.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/predict/predict.hpp"
#include "tests/properties/faster_clusters.hpp"
#include "tests/properties/time_checks.hpp"

namespace meshwright {
namespace {

class PlanProperties {
 public:
  PlanProperties(const RandomJob& job, const PropertyLimits& limits)
      : random_(job),
        limits_(limits),
        model_(job.model->graph),
        cluster_(job.cluster->cluster),
        costs_(make_device_cost_model(cluster_, *job.trainer)) {}

  std::vector<std::string> check() {
    const Prediction folded = predict(job_on(cluster_, *costs_));
    check_prediction(folded, "folded");
    check_repetition(folded);
    check_monotonicity(folded);
    check_file(folded);
    if (rank_count(random_.plan.strategy.degrees) <= limits_.ranks) check_all_ranks(folded);
    return std::move(broken_);
  }

 private:
  TrainingJob job_on(const Cluster& cluster, const CostModel& costs) const {
    return {.plan = random_.plan, .model = model_, .cluster = cluster, .cost_model = costs};
  }

  template <class... Values>
  void report(fmt::format_string<Values...> text, Values&&... values) {
    broken_.push_back(fmt::format(text, std::forward<Values>(values)...));
  }
  void take(const std::vector<std::string>& found, const char* where) {
    for (const std::string& text : found) broken_.push_back(fmt::format("{}: {}", where, text));
  }

  // ---- one prediction ---------------------------------------------------------------------------

  void check_prediction(const Prediction& p, const char* where) {
    take(check_task_graph(p.graph), where);
    take(wrong_starts(p.graph, p.prices, p.times, StartRule::kAtOnce), where);
    check_sums(p, where);
    check_shares(p.evaluation, where);
    check_memory(p, where);
  }

  void check_sums(const Prediction& p, const char* where) {
    const Evaluation& e = p.evaluation;
    const bool is_window = updates_without_flush(random_.plan.strategy);
    if (!is_window && e.step_time != makespan(p.times))
      report("{}: step {} is not the makespan {}", where, e.step_time.value,
             makespan(p.times).value);
    if (e.period > e.pipeline_makespan || e.pipeline_makespan > e.step_time)
      report("{}: period {}, pipeline {}, step {}", where, e.period.value,
             e.pipeline_makespan.value, e.step_time.value);
    const std::vector<BusyTime> busy = busy_times(p.graph, p.prices, p.times);
    for (std::size_t r = 0; r < e.ranks.size(); ++r) {
      const RankBreakdown& parts = e.ranks[r];
      Ticks communication, bubble;
      for (const Ticks part : parts.exposed_communication) communication += part;
      for (const Ticks part : parts.bubble) bubble += part;
      const Ticks working = total(parts) - communication - bubble;
      if (total(parts) != e.step_time)
        report("{}: rank {} sums to {}, not {}", where, r, total(parts).value, e.step_time.value);
      visit_parts(parts, [&](const std::string& name, Ticks part) {
        if (part < Ticks()) report("{}: rank {} has {} of {}", where, r, part.value, name);
      });
      if (is_window) continue;  // a part of the graph
      if (working + busy[r].communication != busy[r].all)
        report("{}: rank {} works {} and communicates {}, but is busy for {}", where, r,
               working.value, busy[r].communication.value, busy[r].all.value);
      if (busy[r].all + (communication - busy[r].communication) + bubble != e.step_time)
        report("{}: rank {} is busy for {}, waits for {} and idles for {} of {}", where, r,
               busy[r].all.value, (communication - busy[r].communication).value, bubble.value,
               e.step_time.value);
    }
  }

  void check_shares(const Evaluation& e, const char* where) {
    constexpr double kRounding = 1e-9;
    double sum = compute_share(e);
    for (const Axis axis : kAxes) sum += exposed_communication_share(e, axis);
    for (int c = 0; c < kBubbleCauseCount; ++c) sum += bubble_share(e, static_cast<BubbleCause>(c));
    if (!(std::abs(sum - 1) < kRounding)) report("{}: shares add up to {}", where, sum);
    if (total(mean_breakdown(e)) != e.step_time)
      report("{}: the mean breakdown adds up to {}, not {}", where, total(mean_breakdown(e)).value,
             e.step_time.value);
    for (const double bubble : {e.bubble_of_makespan, e.bubble_of_period, e.busiest_rank_bubble})
      if (!(bubble > -kRounding && bubble < 1 + kRounding))
        report("{}: bubble fraction {}", where, bubble);
    if (!(e.mfu > 0 && e.hfu > 0)) report("{}: MFU {}, HFU {}", where, e.mfu, e.hfu);
  }

  void check_memory(const Prediction& p, const char* where) {
    const Evaluation& e = p.evaluation;
    take(wrong_peaks(p.graph, e), where);
    const bool fits = std::all_of(e.ranks.begin(), e.ranks.end(), [&](const RankBreakdown& rank) {
      const auto r = static_cast<std::size_t>(&rank - e.ranks.data());
      return total(e.peak_memory[r]) <= memory_capacity_of(e, r);
    });
    if (fits != fits_in_memory(e))
      report("{}: peak {} of {} reported to fit: {}", where, peak_memory(e).value,
             e.memory_capacity.value, fits_in_memory(e));
  }

  // ---- two predictions --------------------------------------------------------------------------

  void check_repetition(const Prediction& first) {
    const std::unique_ptr<CostModel> costs = make_device_cost_model(cluster_, *random_.trainer);
    const Prediction again = predict(job_on(cluster_, *costs));
    if (again.graph != first.graph) report("repetition: another graph");
    if (again.times != first.times) report("repetition: other times");
    if (again.evaluation != first.evaluation) report("repetition: another evaluation");
  }

  void check_monotonicity(const Prediction& base) {
    for (const FasterCluster& faster : faster_clusters(cluster_)) {
      const std::unique_ptr<CostModel> costs =
          make_device_cost_model(faster.cluster, *random_.trainer);
      const Ticks before = makespan(base.times), after = makespan_with(*costs, base.graph);
      if (faster.keeps_times ? after != before : after > before)
        report("{}: the step takes {} instead of {}", faster.change, after.value, before.value);
      const Prediction p = predict(job_on(faster.cluster, *costs));
      if (p.graph.tasks != base.graph.tasks && !is_ordered_by_times())
        report("{}: another graph", faster.change);
      if (fits_in_memory(base.evaluation) && !fits_in_memory(p.evaluation))
        report("{}: does not fit any more", faster.change);
    }
    const Ticks after = makespan_with(*with_faster_links(*costs_), base.graph);
    if (after > makespan(base.times))
      report("faster links: the step takes {} instead of {}", after.value,
             makespan(base.times).value);
  }
  static Ticks makespan_with(const CostModel& costs, const TaskGraph& graph) {
    return makespan(simulate(graph, price_works(graph.parts, graph.works, costs)));
  }
  bool is_ordered_by_times() const {
    return find_schedule_rule(random_.plan.strategy.schedule)->output_barriers > 0;
  }

  void check_file(const Prediction& base) {
    PlanFile file{.model_name = random_.model->config.name,
                  .model_config = random_.model->config.text,
                  .cluster_name = random_.cluster->toml.name,
                  .cluster_toml = random_.cluster->toml.text,
                  .plan = random_.plan,
                  .predicted = figures_of(random_.plan.strategy, base.evaluation, "random"),
                  .cost_model = costs_->provenance(),
                  .trainer_name = random_.trainer->name,
                  .trainer_toml = to_toml(*random_.trainer)};
    const PlanFile again = plan_file_from_json(to_json(file), "plan");
    if (again.plan != file.plan) report("file: another plan");
    if (to_json(again) != to_json(file)) report("file: written differently the second time");
    file.predicted = again.predicted;  // times are rounded to nanoseconds
    if (again != file) report("file: other texts");
    if (!limits_.reads_all_texts) return;
    const ModelGraph model =
        model_from_config({.name = again.model_name, .where = "file", .text = again.model_config});
    const Cluster cluster = cluster_from_toml(
        {.name = again.cluster_name, .where = "file", .text = again.cluster_toml});
    const Trainer trainer = trainer_from_toml(
        {.name = again.trainer_name, .where = "file", .text = again.trainer_toml});
    const std::unique_ptr<CostModel> costs = make_device_cost_model(cluster, trainer);
    const Prediction p =
        predict({.plan = again.plan, .model = model, .cluster = cluster, .cost_model = *costs});
    if (p.evaluation != base.evaluation)
      report("file: the step takes {} instead of {}", p.evaluation.step_time.value,
             base.evaluation.step_time.value);
  }

  // ---- all ranks --------------------------------------------------------------------------------

  void check_all_ranks(const Prediction& folded) {
    TrainingJob job = job_on(cluster_, *costs_);
    job.ranks = RankSet::kAll;
    const Prediction all = predict(job);
    check_prediction(all, "all ranks");
    check_folding(folded, all);
    const PricedReplicas priced = price_replicas(job);
    const SimulatedStep replicas =
        step_of_all_ranks(priced, simulate_replicas(priced.all, priced.prices, {}, nullptr));
    if (replicas.times != all.times) report("replicas: other times than all ranks");
    job.contention = true;
    const SimulatedStep shared = simulate_step(job);
    take(wrong_starts(shared.graph, shared.prices, shared.times, StartRule::kNotBefore),
         "shared links");
    if (makespan(shared.times) < makespan(all.times))
      report("shared links: the step takes {} instead of {}", makespan(shared.times).value,
             makespan(all.times).value);
  }

  void check_folding(const Prediction& folded, const Prediction& all) {
    const Evaluation &few = folded.evaluation, &many = all.evaluation;
    const auto differ = [&](const char* what, Ticks a, Ticks b) {
      if (a != b)
        report("folding: {} {} with one rank of each, {} with all", what, a.value, b.value);
    };
    differ("step", few.step_time, many.step_time);
    differ("period", few.period, many.period);
    differ("pipeline", few.pipeline_makespan, many.pipeline_makespan);
    if (peak_memory(few) != peak_memory(many))
      report("folding: peak {} and {}", peak_memory(few).value, peak_memory(many).value);
    std::map<RankId, std::size_t> index;
    for (std::size_t r = 0; r < all.graph.ranks.size(); ++r)
      index.emplace(all.graph.ranks[r].rank, r);
    std::int64_t represented = 0;
    for (std::size_t r = 0; r < folded.graph.ranks.size(); ++r) {
      represented += folded.graph.ranks[r].multiplicity;
      const auto same = index.find(folded.graph.ranks[r].rank);
      if (same == index.end()) {
        report("folding: rank {} is not among all", folded.graph.ranks[r].rank.value);
        continue;
      }
      if (few.ranks[r] != many.ranks[same->second])
        report("folding: rank {} has another breakdown", same->first.value);
      if (few.peak_memory[r] != many.peak_memory[same->second])
        report("folding: rank {} has another peak", same->first.value);
    }
    if (represented != static_cast<std::int64_t>(all.graph.ranks.size()))
      report("folding: {} ranks stand for {}", represented, all.graph.ranks.size());
  }

  const RandomJob& random_;
  const PropertyLimits& limits_;
  const ModelGraph& model_;
  const Cluster& cluster_;
  std::unique_ptr<CostModel> costs_;
  std::vector<std::string> broken_;
};

/// Of all ranks, roughly.
std::int64_t task_count(const Strategy& s) {
  const ScheduleRule* rule = find_schedule_rule(s.schedule);
  const std::int64_t steps = rule->updates == UpdateTime::kAfterFlush ? 1 : steady_window(s).steps;
  constexpr std::int64_t kTasksPerPass = 4;  // messages, and a part of the collectives
  return rank_count(s.degrees) * s.degrees.chunks * microbatch_count(s) * steps * kTasksPerPass;
}

}  // namespace

PropertyResult check_properties(const RandomJob& job, const PropertyLimits& limits) {
  PropertyResult result;
  result.is_valid = check_plan(job.plan, job.model->graph, job.cluster->cluster).empty();
  if (!result.is_valid || task_count(job.plan.strategy) > limits.tasks) return result;
  result.is_checked = true;
  result.broken = PlanProperties(job, limits).check();
  return result;
}

}  // namespace meshwright
