#include "core/weight_versions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.hpp"
#include "core/lower_passes.hpp"

namespace meshwright {
namespace {

constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }

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
      report("schedule", fmt::format("{} of '{}', which has experts", name(), model_.name),
             "use a dense model, or 1f1b");
    if (model_.tied_embeddings && strategy_.degrees.pipeline > 1)
      report("schedule",
             fmt::format("{} of '{}', whose first and last stage share a table: to sum its "
                         "gradients would be a flush",
                         name(), model_.name),
             "use a model with tie_word_embeddings off, pp 1, or 1f1b");
    if (!plan_.orders.empty())
      report("orders", fmt::format("of one step, but {} has no end of a step", name()),
             "leave the orders out");
    return std::move(found_);
  }

 private:
  const std::string& name() const { return strategy_.schedule; }
  void report(std::string field, std::string what, std::string hint) {
    found_.push_back({std::move(field), std::move(what), std::move(hint)});
  }

  void check_degrees() {
    const ParallelDegrees& d = strategy_.degrees;
    const auto need_one = [&](std::string field, int degree) {
      if (degree != 1)
        report(field, fmt::format("degree {} with {}", degree, name()),
               fmt::format("{} runs over pp, dp and cp: use --{} 1, or 1f1b", name(), field));
    };
    need_one("tp", d.tensor);
    need_one("ep", d.expert);
    need_one("etp", d.expert_tensor);
  }

  void check_data_parallelism() {
    const DataParallelism& data = strategy_.data_parallelism;
    if (strategy_.zero != 0)
      report("zero", fmt::format("level {} with {}", strategy_.zero, name()),
             "use level 0: every rank needs the stashed versions of its weights whole");
    if (data.kind != DataParallelKind::kCollective && data.kind != DataParallelKind::kRing)
      report("data-parallel", fmt::format("{} with {}", name_of(data.kind), name()),
             "use collective or ring");
    if (data.buckets.rule != BucketRule::kNone)
      report("bucket", fmt::format("{} with {}", to_text(data.buckets), name()),
             "use none: a stage's gradients are reduced in front of each of its updates");
    if (data.offload_optimizer)
      report("offload-optimizer", fmt::format("with {}", name()),
             "leave it out: every update waits for its weights");
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

/// Micro-batches go on for ever: as many versions as of a step that fills the pipeline.
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

/// The first device runs p - 1 forward passes ahead: they fall into ceil((p - 1) / m) steps more.
/// Where a slow stage is far from the first, its pace has to travel back through the pipeline,
/// a stage with every micro-batch; four times the pipeline is ample.
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
                                "train fewer steps at once, and go on from a checkpoint"});
  return rule->generate(request);
}

std::vector<Diagnostic> without_flush_problems(const Plan& plan, const ModelGraph& model) {
  return WithoutFlushChecks(plan, model).run();
}

}  // namespace meshwright
