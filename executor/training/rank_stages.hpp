/// The pipeline stages of a plan as one rank sees them: their order, and the parameters and
/// micro-batches of the stages on this rank.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/plan/placement.hpp"
#include "core/schedule/schedule.hpp"
#include "executor/operators/microbatch_state.hpp"
#include "executor/parameters/stage_parameters.hpp"
#include "executor/tasks/runnable_graph.hpp"

namespace meshwright {

struct RankStage {
  std::vector<LayerId> layers;
  TensorId input{-1}, output{-1};                       ///< received and sent at its ends; -1: none
  int previous = -1, next = -1;                         ///< neighboring stages on the same route
  bool previous_is_here = false, next_is_here = false;  ///< on this rank's device
  int chunk_replicas = 1;                               ///< stages with the same model chunk
  bool summed_over_tensor = false;                      ///< partial gradients over tensor ranks
  std::unique_ptr<StageParameters> parameters;          ///< null: on another device
  std::map<std::int32_t, MicrobatchState> microbatches;
};

class RankStages {
 public:
  /// Without parameters on a dedicated parameter server.
  RankStages(RankContext& rank, const RunnableGraph& runnable, const Plan& plan,
             std::uint64_t seed);

  std::vector<RankStage>& all() { return stages_; }  ///< by stage number
  RankStage& of(const Task& task) { return stages_[static_cast<std::size_t>(task.stage)]; }
  /// The stage on this rank with the parameters of a model chunk.
  RankStage& of_part(int part);
  ParameterRun& run_of(const ParameterRange& range) {
    return of_part(range.part).parameters->run(range.expert);
  }
  /// A tied embedding table with copies on the first and the last device; -1: none.
  TensorId shared_table() const { return shared_table_; }
  /// Discards micro-batches and gradients.
  void begin_step();
  /// Moves the input of a forward pass from the previous stage, if that is on this device.
  void move_input(RankStage& stage, std::int32_t microbatch);
  /// The same for the gradient of a backward pass, from the next stage.
  void move_gradient(RankStage& stage, std::int32_t microbatch);

 private:
  void hold(std::size_t stage, std::uint64_t seed);
  TensorId token_table() const;
  void find_shared_table(const Placement& placement);
  void connect(const Placement& placement);

  RankContext& rank_;
  const RunnableGraph& runnable_;
  std::vector<RankStage> stages_;
  TensorId shared_table_{-1};
};

}  // namespace meshwright
