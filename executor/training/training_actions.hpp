/// Real training: runs the tasks of one rank on its parameters and activations.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "executor/operators/operator_pass.hpp"
#include "executor/parameters/parameter_exchange.hpp"
#include "executor/ranks/training_options.hpp"
#include "executor/tasks/runnable_graph.hpp"
#include "executor/tasks/task_actions.hpp"
#include "executor/training/finite_checks.hpp"
#include "executor/training/gradient_norm.hpp"
#include "executor/training/loss_sums.hpp"
#include "executor/training/one_process.hpp"
#include "executor/training/optimizer_step.hpp"
#include "executor/training/rank_stages.hpp"
#include "executor/training/server_training.hpp"
#include "executor/training/sharded_buffers.hpp"
#include "executor/training/step_numbers.hpp"

namespace meshwright {

class TrainingActions final : public TaskActions {
 public:
  TrainingActions(const RunnableGraph& runnable, const Plan& plan, const ModelGraph& model,
                  Communicator& communicator, const KernelTable& kernels, const TokenText& text,
                  const TrainingOptions& options, RankProgress& progress,
                  DeviceQueue* queue = nullptr);

  void set_wait_callback(std::function<void(bool begins)> callback) override {
    rank_.on_wait = std::move(callback);
  }
  void begin_step(int step) override;
  void begin_task(const RunTask& task) override;
  void end_task(const RunTask& task) override;
  void compute(const RunTask& task, const LayerStep& step, const Kernel& kernel) override;
  Ticks communicate(const RunTask& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override;
  void prepare(const RunTask& task, const Collective& collective) override;
  Ticks communicate(const RunTask& task, const Collective& collective,
                    std::span<const RankId> members, Ticks ready) override;
  std::span<const std::byte> outgoing(const RunTask& send) override;
  std::span<std::byte> incoming(const RunTask& receive) override;

  /// To be called at the end of a step: sums the losses and throws if an output was not finite.
  /// Waits for the device.
  void settle();
  /// From the next step on, until end_validation(): runs forward_tasks() with these tokens and
  /// without dropout. The tokens must live that long.
  void begin_validation(const TokenText& text);
  void end_validation();
  /// Loss summed over this rank's tokens in this step, and the number of these tokens; zero on
  /// tensor ranks other than the first. `step` counts from the first step of the graph, for graphs
  /// of several steps.
  double loss_sum(int step = 0) const { return losses_.of(step).loss; }
  std::int64_t loss_tokens(int step = 0) const { return losses_.of(step).tokens; }
  /// See GradientNorm::of_all().
  std::optional<double> gradient_norm() const { return norm_.of_all(); }
  const MemoryLedger& memory() const { return rank_.memory; }
  RankContext& rank() { return rank_; }
  /// By stage number; stages of other devices have no parameters.
  std::vector<RankStage>& stages() { return stages_.all(); }
  /// Parameters of which this rank owns and updates elements.
  std::vector<StageParameters*> updated_parameters();
  /// All parameters on this rank, including those that others update.
  std::vector<StageParameters*> held_parameters();
  /// Continues after `steps` training steps of an earlier run.
  void resume_after(std::int64_t steps);

 private:
  TokenRows rows_of(std::int32_t microbatch, int data) const;
  std::vector<TokenRows> rows_of_all_devices(std::int32_t microbatch) const;
  OperatorPass pass_of(const Task& task, const LayerStep& step);
  OperatorPass pass_over(RankStage& stage, const TokenRows& rows, MicrobatchState& state,
                         const LayerStep& step);
  void begin_layer_step(const Task& task, const LayerStep& step);
  void end_layer(const Task& task);
  bool is_last_of_layer(const Task& task, const LayerStep& step) const;
  void end_steps(const Task& task);
  void end_backward(RankStage& stage, MicrobatchState& state);
  void keep_output_only(const RankStage& stage, MicrobatchState& state);
  void update_parameters(const Task& task);
  void update_on_host(const RunTask& task);
  void update_without_flush(const Task& task);
  Ticks communicate_in_one_process(const Task& task, const Collective& collective,
                                   std::span<const RankId> members, RankGroup& group, Ticks ready);
  void compute_loss_of_all_devices(const Task& task, const LayerStep& step, const Kernel& kernel);

  const RunnableGraph& runnable_;
  RankContext rank_;
  const TokenText& text_;
  const TokenText* held_out_ = nullptr;  ///< set during validation
  TrainingOptions options_;
  int expert_nodes_ = 1;  ///< nodes that the experts of a layer are spread over
  StepNumbers steps_;
  RankStages stages_;
  FiniteChecks checks_;
  LossSums losses_;
  GradientNorm norm_;
  OptimizerStep optimizer_;
  ParameterExchange exchange_;
  ShardedBuffers sharded_;
  std::optional<ServerTraining> servers_;
  std::optional<OneProcess> one_process_;
  std::map<std::int32_t, TokenRows> rows_;  ///< by micro-batch, of this step
  LayerId current_layer_{-1};
  OperatorId last_op_{-1};  ///< all kernels of one operator and phase run together
  Phase last_phase_ = Phase::kForward;
  std::array<std::int32_t, 8> next_tag_{};  ///< by channel
};

}  // namespace meshwright
