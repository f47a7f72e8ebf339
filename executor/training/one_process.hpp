/// Single-process data parallelism (torch.nn.DataParallel) with one rank per device: device 0
/// broadcasts weights, scatters inputs, computes the loss of all outputs and reduces the gradients.
#pragma once

#include <map>
#include <vector>

#include "executor/operators/microbatch_state.hpp"
#include "executor/parameters/stage_parameters.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

class OneProcess {
 public:
  OneProcess(RankContext& rank, StageParameters& parameters)
      : rank_(rank), parameters_(parameters) {}
  bool is_first() const { return rank_.rank == RankId(0); }

  Ticks broadcast_weights(RankGroup& group, Ticks ready);
  /// Scatters the token rows in `all`, which is used on device 0 only, to `own` on each device.
  void scatter_tokens(std::span<const RankId> members, MessageTag tag,
                      std::span<const TokenRows> all, TokenRows& own);
  /// `outputs` is the tensor that the loss reads. Device 0 stores those of each device in states().
  void gather_outputs(std::span<const RankId> members, MessageTag tag, TensorId outputs,
                      MicrobatchState& own);
  void scatter_gradients(std::span<const RankId> members, MessageTag tag, TensorId outputs,
                         MicrobatchState& own);
  /// Adds all gradients to those of device 0, in device order; the others are reset.
  void reduce_gradients(std::span<const RankId> members, MessageTag tag);

  /// By device: its outputs and the tensors of their loss.
  std::vector<MicrobatchState>& states() { return states_; }

 private:
  RankContext& rank_;
  StageParameters& parameters_;
  std::vector<MicrobatchState> states_;
};

}  // namespace meshwright
