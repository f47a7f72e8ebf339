#include "core/plan/weight_versions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

int microbatches_per_step(const Strategy& strategy) {
  return static_cast<int>(microbatch_count(strategy));
}

class WithoutFlushChecks {
 public:
  WithoutFlushChecks(const Plan& plan, const ModelGraph& model)
      : plan_(plan), strategy_(plan.strategy), model_(model) {}

  std::vector<Diagnostic> run() {
    if (!updates_without_flush(strategy_)) return {};
    check_degrees();
    check_data_parallelism();
    if (traits_of(model_).experts)
      report("schedule",
             fmt::format("'{}' does not support '{}': it has experts", name(), model_.name),
             "use a dense model, or 1f1b");
    if (model_.tied_embeddings && strategy_.degrees.pipeline > 1)
      report("schedule",
             fmt::format("'{}' does not support '{}': its tied embeddings are shared by the first "
                         "and the last stage",
                         name(), model_.name),
             "use a model with \"tie_word_embeddings\": false, --pp 1, or 1f1b");
    if (!plan_.orders.empty())
      report("orders", fmt::format("'{}' does not support synthesized orders", name()),
             "remove the orders");
    return std::move(found_);
  }

 private:
  const std::string& name() const { return strategy_.schedule; }
  void report(std::string field, std::string what, std::string hint) {
    found_.push_back({std::move(field), std::move(what), std::move(hint)});
  }

  void check_degrees() {
    for (const ParallelSize& size : kCheckedSizes) {
      const int degree = strategy_.degrees.*size.size;
      if (size.shards == Sharding::kWeights && degree != 1)
        report(std::string(size.key),
               fmt::format("must be 1 with schedule '{}', got {}", name(), degree),
               fmt::format("use --{} 1, or --schedule 1f1b", size.key));
    }
  }

  void check_data_parallelism() {
    const DataParallelism& data = strategy_.data_parallelism;
    if (strategy_.zero != 0)
      report("zero", fmt::format("must be 0 with schedule '{}', got {}", name(), strategy_.zero),
             "use --zero 0: weight versions are not sharded");
    if (data.kind != DataParallelKind::kCollective && data.kind != DataParallelKind::kRing)
      report("data-parallel",
             fmt::format("'{}' cannot be combined with schedule '{}'", name_of(data.kind), name()),
             "use collective or ring");
    if (data.buckets.rule != BucketRule::kNone)
      report("bucket",
             fmt::format("{} cannot be combined with schedule '{}'", to_text(data.buckets), name()),
             "use --bucket none: gradients are reduced before each update of a stage");
    if (data.offload_optimizer)
      report("offload-optimizer", fmt::format("cannot be combined with schedule '{}'", name()),
             "remove it: every update would wait for the host");
  }

  const Plan& plan_;
  const Strategy& strategy_;
  const ModelGraph& model_;
  std::vector<Diagnostic> found_;
};

}  // namespace

bool updates_without_flush(const Strategy& strategy) {
  const ScheduleRule* rule = find_schedule_rule(strategy.schedule);
  return rule != nullptr && rule->updates != UpdateTime::kAfterFlush;
}

/// There is no flush, so the number of versions is that of a step long enough to fill the pipeline.
WeightVersions weight_versions_of(const Strategy& strategy, PipelineRankId device) {
  const ScheduleRule* rule = find_schedule_rule(strategy.schedule);
  MW_CHECK(rule != nullptr);
  MW_CHECK(rule->updates != UpdateTime::kAfterFlush);
  const int per_step = microbatches_per_step(strategy);
  ScheduleRequest full;
  full.devices = strategy.degrees.pipeline;
  full.microbatches = std::max(per_step, full.devices);
  return {.held = rule->weight_versions(full, device),
          .microbatches_per_batch = rule->updates == UpdateTime::kEachStep ? per_step : 1};
}

/// The first device runs p - 1 forward passes ahead, which belong to the next ceil((p - 1) / m)
/// steps. Back-pressure from a slow stage moves upstream by one stage per micro-batch; four
/// pipeline lengths are ample.
SteadyWindow steady_window(const Strategy& strategy) {
  constexpr int kPipelinesAhead = 4;
  const int p = strategy.degrees.pipeline, m = microbatches_per_step(strategy);
  const int ahead = divide_up(kPipelinesAhead * p, m), behind = divide_up(p - 1, m);
  return {.steps = ahead + 1 + behind, .steady = ahead};
}

Schedule schedule_to_lower(const Plan& plan, int steps) {
  if (!updates_without_flush(plan.strategy)) return schedule_of(plan);
  if (steps == 0) steps = steady_window(plan.strategy).steps;
  const ScheduleRule* rule = find_schedule_rule(plan.strategy.schedule);
  ScheduleRequest request = schedule_request_of(plan.strategy);
  const std::int64_t all = std::int64_t{request.microbatches} * steps;
  request.microbatches = static_cast<int>(std::min<std::int64_t>(all, 1 << 30));
  if (const auto problem = rule->problem(request))
    throw InputError(Diagnostic{"--steps",
                                fmt::format("{} steps without a flush: {}", steps, *problem),
                                "run fewer steps at a time, and resume from a checkpoint"});
  return rule->generate(request);
}

std::vector<Diagnostic> without_flush_problems(const Plan& plan, const ModelGraph& model) {
  return WithoutFlushChecks(plan, model).run();
}

}  // namespace meshwright
