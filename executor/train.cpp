#include "executor/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "core/check.hpp"
#include "core/error.hpp"
#include "executor/idle_actions.hpp"
#include "executor/training_actions.hpp"

namespace meshwright {
namespace {

/// All ranks of one run and what they have measured.
class Training {
 public:
  explicit Training(const TrainingRequest& request)
      : request_(request),
        runnable_(request.graph, request.plan, request.model, request.cost_model) {
    const auto ranks = request.graph.ranks.size();
    run_.steps.resize(static_cast<std::size_t>(request.steps));
    for (MeasuredStep& step : run_.steps) {
      step.times.start.resize(request.graph.tasks.size());
      step.times.end.resize(request.graph.tasks.size());
    }
    run_.peak_memory.resize(ranks);
  }

  TrainingRun run() {
    run_.failure = run_threads(
        static_cast<int>(request_.graph.ranks.size()),
        [this](Communicator& c, RankProgress& p) { run_rank(c, p); }, request_.launch);
    return std::move(run_);
  }

 private:
  void run_rank(Communicator& communicator, RankProgress& progress) {
    if (request_.clock == TimelineClock::kReplay) {
      IdleActions actions(request_.plan.strategy, communicator);
      for (int step = 0; step < request_.steps; ++step) {
        run_one_step(communicator, progress, actions, step);
        report(communicator, step, 0);
      }
      return;
    }
    TrainingActions actions(runnable_, request_.plan, request_.model, communicator,
                            request_.kernels, request_.text, request_.options, progress);
    for (int step = 0; step < request_.steps; ++step) {
      run_one_step(communicator, progress, actions, step);
      report(communicator, step, mean_loss(communicator, actions, step));
    }
    run_.peak_memory[communicator.rank().index()] = actions.memory().peak();
    if (request_.keep_parameters) collect_parameters(actions);
  }

  void run_one_step(Communicator& communicator, RankProgress& progress, TaskActions& actions,
                    int step) {
    actions.begin_step(step);
    RankClock clock(request_.clock, common_origin(communicator));
    MeasuredStep& measured = run_.steps[static_cast<std::size_t>(step)];
    for (const TaskSpan& span : run_step(runnable_, communicator, actions, clock, progress)) {
      // Every task is of one rank: nobody else writes there.
      measured.times.start[span.task.index()] = span.start;
      measured.times.end[span.task.index()] = span.end;
    }
  }

  void report(const Communicator& communicator, int step, double loss) {
    if (communicator.rank() != RankId(0)) return;
    MeasuredStep& measured = run_.steps[static_cast<std::size_t>(step)];
    measured.loss = loss;
    if (request_.progress) request_.progress(step, measured);
  }

  std::vector<RankId> all_ranks() const {
    std::vector<RankId> ranks;
    for (const RankInfo& info : request_.graph.ranks) ranks.push_back(info.rank);
    return ranks;
  }

  /// Time zero of a step: the moment that rank 0 names when all are there.
  RankClock::Moment common_origin(Communicator& communicator) const {
    RankGroup all(communicator, all_ranks(), {Channel::kControl, 0});
    auto nanoseconds = std::chrono::steady_clock::now().time_since_epoch();
    all.broadcast(std::as_writable_bytes(std::span(&nanoseconds, 1)), 0, Ticks());
    return RankClock::Moment(nanoseconds);
  }

  double mean_loss(Communicator& communicator, const TrainingActions& actions, int step) const {
    RankGroup all(communicator, all_ranks(), {Channel::kControl, 1});
    std::vector<double> sums(2 * static_cast<std::size_t>(all.size()));
    const std::size_t mine = 2 * static_cast<std::size_t>(all.index());
    sums[mine] = actions.loss_sum();
    sums[mine + 1] = static_cast<double>(actions.loss_tokens());
    all.all_gather(std::as_writable_bytes(std::span(sums)), 2 * sizeof(double), Ticks());
    double sum = 0, tokens = 0;
    for (std::size_t i = 0; i < sums.size(); i += 2) {
      sum += sums[i];
      tokens += sums[i + 1];
    }
    if (!std::isfinite(sum))
      throw std::runtime_error(fmt::format("the loss of step {} is {}", step, sum / tokens));
    return sum / tokens;
  }

  /// Every element from whichever rank holds it.
  void collect_parameters(TrainingActions& actions) {
    const std::lock_guard lock(mutex_);
    for (const TrainingActions::Stage& stage : actions.stages()) {
      if (!stage.parameters) continue;
      for (const ParameterShard& shard : stage.parameters->shards().shards) {
        const Tensor& tensor = request_.model.tensors[shard.tensor.index()];
        const auto& whole = std::get<ParameterTensor>(tensor.shape);
        std::vector<float>& values = run_.parameters[tensor.name];
        values.resize(static_cast<std::size_t>(std::accumulate(
            whole.shape.begin(), whole.shape.end(), std::int64_t{1}, std::multiplies<>())));
        std::vector<float> held(static_cast<std::size_t>(shard.elements()));
        const Matrix weights = stage.parameters->weight(shard.tensor);
        request_.kernels.cast(
            {}, {.x = {weights.data, static_cast<std::int64_t>(held.size()), weights.dtype},
                 .y = {held.data(), static_cast<std::int64_t>(held.size()), Dtype::kFp32}});
        auto element = held.begin();
        for_each_element(shard, whole, [&](std::int64_t number) {
          if (number >= 0) values[static_cast<std::size_t>(number)] = *element;
          ++element;
        });
      }
    }
  }

  const TrainingRequest& request_;
  RunnableGraph runnable_;
  TrainingRun run_;
  std::mutex mutex_;
};

}  // namespace

TrainingRun train(const TrainingRequest& request) { return Training(request).run(); }

}  // namespace meshwright
