/// Losses and gradients of one rank at given weights, for emulations of stale updates.
#pragma once

#include <chrono>
#include <vector>

#include "executor/parameters/owned_parameters.hpp"
#include "executor/tasks/forwarding_actions.hpp"
#include "executor/tasks/rank_run.hpp"
#include "executor/training/training_actions.hpp"
#include "executor/transport/thread_communicator.hpp"
#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {

/// Results of an emulated run.
struct Emulated {
  std::vector<double> losses;
  Parameters parameters;
};

inline void expect_emulated(const TrainingRun& run, const Emulated& emulated) {
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  ASSERT_EQ(run.steps.size(), emulated.losses.size());
  for (std::size_t i = 0; i < run.steps.size(); ++i)
    EXPECT_NEAR(run.steps[i].loss / emulated.losses[i], 1, 1e-5) << "step " << i;
  expect_same_parameters(emulated.parameters, run.parameters, 1e-5);
}

/// A training step without its update.
class WithoutUpdate final : public ForwardingActions {
 public:
  using ForwardingActions::ForwardingActions;
  void compute(const RunTask& task, const LayerStep& step, const Kernel& kernel) override {
    if (task.kind != TaskKind::kOptimizer) actions_.compute(task, step, kernel);
  }
};

/// Weights and gradients are vectors of all dense parameters (models without experts).
class GradientOracle {
 public:
  GradientOracle(std::string_view config, const Strategy& one_rank)
      : job_(tiny_job(config, one_rank)),
        runnable_(job_.graph, job_.plan, *job_.cost_model),
        hub_(1),
        communicator_(hub_, RankId(0), progress_.beats),
        request_(job_.request()),
        actions_(runnable_, job_.plan, job_.model, communicator_, request_.kernels, job_.text,
                 TrainingOptions(), progress_) {}

  std::vector<float> initial_weights() {
    return own_values(run(), StateKind::kWeights, progress_.beats);
  }

  struct Result {
    double loss = 0;  ///< mean
    std::vector<float> gradient;
  };
  /// For the sequences of training step `batch` of the single-rank job.
  Result at(const std::vector<float>& weights, int batch) {
    const Vector held = run().own_weights(0);
    std::copy(weights.begin(), weights.end(), static_cast<float*>(held.data));
    RankClock clock(TimelineClock::kVirtual, RankClock::Moment());
    WithoutUpdate actions(actions_);
    actions.begin_step(batch);
    run_step(runnable_, communicator_, actions, clock, progress_);
    actions_.settle();
    const std::span<const float> gradient = run().own_gradients(0);
    return {actions_.loss_sum() / static_cast<double>(actions_.loss_tokens()),
            {gradient.begin(), gradient.end()}};
  }

  /// By name, as in TrainingRun.
  std::map<std::string, std::vector<float>> by_name(const std::vector<float>& weights) {
    std::map<std::string, std::vector<float>> named;
    for_each_own_element(job_.model, parameters(), false,
                         [&](TensorId tensor, std::int64_t number, std::size_t place) {
                           auto& all = named[job_.model.tensors[tensor.index()].name];
                           const auto at = static_cast<std::size_t>(number);
                           all.resize(std::max(all.size(), at + 1));
                           all[at] = weights[place];
                         });
    return named;
  }

 private:
  StageParameters& parameters() { return *actions_.stages().front().parameters; }
  ParameterRun& run() { return parameters().run(false); }

  TinyJob job_;
  RunnableGraph runnable_;
  ThreadHub hub_;
  ThreadCommunicator communicator_;
  RankProgress progress_;
  TrainingRequest request_;
  TrainingActions actions_;
};

}  // namespace meshwright
