/// Real training: runs the tasks of one rank on its parameters and activations.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/plan/weight_versions.hpp"
#include "core/schedule/schedule.hpp"
#include "executor/operators/operator_pass.hpp"
#include "executor/parameters/parameter_exchange.hpp"
#include "executor/parameters/parameter_server.hpp"
#include "executor/ranks/training_options.hpp"
#include "executor/tasks/rank_run.hpp"
#include "executor/tasks/sharded_lifetimes.hpp"
#include "executor/tasks/task_actions.hpp"
#include "executor/training/one_process.hpp"

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
  void begin_task(const Task& task) override;
  void end_task(const Task& task) override;
  void compute(const Task& task, const LayerStep& step, const Kernel& kernel) override;
  Ticks communicate(const Task& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override;
  void prepare(const Task& task, const Collective& collective) override;
  Ticks communicate(const Task& task, const Collective& collective, std::span<const RankId> members,
                    Ticks ready) override;
  std::span<const std::byte> outgoing(const Task& send) override;
  std::span<std::byte> incoming(const Task& receive) override;

  /// To be called at the end of a step: accumulates the losses and throws if an output was not
  /// finite. Waits for the device.
  void settle();
  /// Loss summed over this rank's tokens in this step, and the number of these tokens; zero on
  /// tensor ranks other than the first. `step` counts from the first step of the graph, for graphs
  /// of several steps.
  double loss_sum(int step = 0) const { return loss_of(step).sum; }
  std::int64_t loss_tokens(int step = 0) const { return loss_of(step).tokens; }
  const MemoryLedger& memory() const { return rank_.memory; }

  struct Stage {
    std::vector<LayerId> layers;
    TensorId input{-1}, output{-1};  ///< received and sent at its ends; -1: none
    int previous = -1, next = -1;    ///< neighboring stages on the same route
    bool previous_is_here = false, next_is_here = false;  ///< on this rank's device
    int holders = 1;                                      ///< stages with the same model chunk
    bool summed_over_tensor = false;                      ///< partial gradients over tensor ranks
    StageKeeps keeps;                                     ///< what is saved for the backward pass
    std::unique_ptr<StageParameters> parameters;
    std::map<std::int32_t, MicrobatchState> microbatches;
  };
  /// By stage number; stages of other devices have no parameters.
  std::vector<Stage>& stages() { return stages_; }
  /// Parameters of which this rank owns and updates elements.
  std::vector<StageParameters*> updated_parameters();
  /// All parameters on this rank, including those that others update.
  std::vector<StageParameters*> held_parameters();
  /// Continues after `steps` training steps of an earlier run.
  void resume_after(std::int64_t steps);
  RankContext& rank() { return rank_; }

 private:
  void hold(std::size_t stage);
  TensorId word_table() const;
  void find_shared_table(const Placement& placement);
  void find_ends(const Placement& placement);
  Stage& stage_of(const Task& task) { return stages_[static_cast<std::size_t>(task.stage)]; }
  TokenRows rows_of_microbatch(int microbatch) const;
  // Whole models on every device: training_whole_models.cpp.
  void set_up_whole_models();
  bool is_apart() const;  ///< a dedicated server
  bool has_servers() const;
  Ticks communicate_whole_models(const Task& task, const Collective& collective,
                                 std::span<const RankId> members, RankGroup& group, Ticks ready);
  void update_as_server();
  void clip_own_gradients();
  Ticks reduce_norm_of_servers(RankGroup& group, Ticks ready);
  void compute_loss_of_all(const Task& task, const Kernel& kernel);
  std::vector<TokenRows> rows_of_all(int microbatch);
  OperatorPass pass_of(const Task& task, OperatorId op);
  OperatorPass pass_over(Stage& stage, const TokenRows& rows, MicrobatchState& state,
                         OperatorId op);
  /// The operator of `layer` that corresponds to `source` in the first layer of its class.
  OperatorId operator_in(LayerId layer, OperatorId source) const;
  void open_gradients_behind(const Task& task);
  void let_go_of_reduced();
  void begin_forward(const Task& task, Stage& stage);
  void begin_backward(const Task& task, Stage& stage);
  /// Frees the tensors that are no longer needed once a pass has finished an operator.
  void leave_operator(LayerId layer, OperatorId op, Visit visit);
  /// If the layer's output is not finite, throws and names the first operator at fault.
  void check_layer(MicrobatchState& state, LayerId layer);
  /// Throws if the gradients with this squared norm are not finite; collective over the group.
  void check_gradients(float squared_norm_of_all, RankGroup& group);
  /// The same for gradients of servers and asynchronous workers, which know only their own norm;
  /// not collective.
  void check_own_gradients(float squared_norm);
  void note_loss(MicrobatchState& state, int step);
  struct Loss {
    double sum = 0;
    std::int64_t tokens = 0;
  };
  Loss loss_of(int step) const;
  // Several steps in one graph, without a flush: training_without_flush.cpp.
  int step_in_graph(int microbatch) const;
  std::int64_t step_at_work() const { return step_ + step_in_graph(microbatch_at_work_); }
  void use_weights_for(const Task& task);
  void update_without_flush(const Task& task);
  /// On a device: enqueues the norm of the layer's output; with the host running ahead it is
  /// checked later.
  bool is_finite_on_device(MicrobatchState& state, LayerId layer);
  void check_layers_of_queue();
  void end_use_of_weights(const Task& task);
  TaskId id_of(const Task& task) const {
    return TaskId(static_cast<std::size_t>(&task - runnable_.graph().tasks.data()));
  }
  Stage& stage_of_part(int part);
  void update_parameters();
  void update_on_host(const Task& task);
  void copy_with_host(const Collective& collective);
  void update(StageParameters& parameters, bool expert, const Block& range);
  void update_by_gradient(ParameterRun& run, const Block& range);
  void balance(ParameterRun& run, const ParameterShard& shard, const Block& correction);
  double mean_rows_of(TensorId correction) const;
  bool is_trained_by_gradient(const ParameterShard& shard) const;
  Ticks all_reduce_table(StageParameters& parameters, RankGroup& group, Ticks ready);
  struct PartialRange {
    bool expert = false;
    Block block;
  };
  std::vector<PartialRange> partial_gradients(const Stage& stage, bool over_copies) const;
  Ticks sum_partial_gradients(Stage& stage, RankGroup& group, Ticks ready);
  Ticks reduce_norm(RankGroup& group, Ticks ready);
  std::int64_t copies_of(const Stage& stage, const ParameterShard& shard) const;
  double squared_norm(Stage& stage);
  void add_squared_norm(ParameterRun& run, const Block& range, float* sum);
  void set_clip_scale(float value) {
    rank_.run(rank_.kernels.fill, {.y = flat(clip_scale_.view()), .value = value});
  }
  float* clip_scale() { return clip_scale_.floats().data(); }
  double squared_norm_of_own();

  const RunnableGraph& runnable_;
  RankContext rank_;
  const TokenText& text_;
  TrainingOptions options_;
  std::vector<Stage> stages_;
  ParameterExchange exchange_;
  GatheredWeights gathered_;
  std::map<std::int32_t, std::vector<ParameterRange>>
      reduced_behind_;    ///< by task; ZeRO-2 and ZeRO-3
  int expert_nodes_ = 1;  ///< nodes that the experts of a layer are spread over
  Stage server_;          ///< its shard of the model
  std::optional<ParameterServerRank> servers_;
  std::optional<OneProcess> one_process_;
  bool sums_are_there_ = false;
  std::int64_t server_updates_ = 0;
  std::map<std::int32_t, TokenRows> rows_;  ///< by micro-batch, of this step
  std::int64_t step_ = 0;      ///< first step of the graph; completed steps while updating
  TensorId shared_table_{-1};  ///< tied table with copies on the first and last device
  bool norm_is_known_ = false;
  OwnedMatrix clip_scale_;  ///< one number
  struct NewLoss {
    int step;            ///< within the graph
    OwnedMatrix losses;  ///< per token, [1, N]
  };
  std::vector<NewLoss> new_losses_;  ///< not accumulated yet
  struct LayerNorm {
    LayerId layer;
    std::int64_t step;
    OwnedMatrix squared;  ///< one number
  };
  std::vector<LayerNorm> unchecked_layers_;
  std::optional<double> own_squared_norm_;  ///< set by prepare()
  std::map<int, Loss> losses_;              ///< by step within the graph
  std::optional<WeightVersions> versions_;  ///< flushless schedules only
  LayerVisits visits_;
  std::int16_t stage_at_work_ = -1;
  std::int32_t microbatch_at_work_ = -1;
  OperatorId last_op_{-1};  ///< all kernels of one operator and phase run together
  Phase last_phase_ = Phase::kForward;
  std::array<std::int32_t, 8> next_tag_{};  ///< by channel
};

}  // namespace meshwright
