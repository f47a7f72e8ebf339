/// One process that drives all devices (torch.nn.DataParallel), with a rank for each device: device
/// 0 hands out weights and inputs, computes the loss of all outputs, and collects the gradients.
#pragma once

#include <map>
#include <vector>

#include "executor/collectives.hpp"
#include "executor/microbatch_state.hpp"
#include "executor/stage_parameters.hpp"

namespace meshwright {

class OneProcess {
 public:
  OneProcess(RankContext& rank, StageParameters& parameters)
      : rank_(rank), parameters_(parameters) {}
  bool is_first() const { return rank_.rank == RankId(0); }

  Ticks broadcast_weights(RankGroup& group, Ticks ready);
  /// Every device's words from those of all; on device 0 `all` has the rows of each.
  void scatter_words(std::span<const RankId> members, MessageTag tag,
                     std::span<const TokenRows> all, TokenRows& own);
  /// `outputs` is the tensor that the loss reads. Device 0 keeps all in states of their own.
  void gather_outputs(std::span<const RankId> members, MessageTag tag, TensorId outputs,
                      MicrobatchState& own);
  void scatter_gradients(std::span<const RankId> members, MessageTag tag, TensorId outputs,
                         MicrobatchState& own);
  /// Adds all gradients to those of device 0, in the order of devices; the others begin anew.
  void reduce_gradients(std::span<const RankId> members, MessageTag tag);

  /// By device: its outputs, and what the loss makes of them.
  std::vector<MicrobatchState>& states() { return states_; }

 private:
  RankContext& rank_;
  StageParameters& parameters_;
  std::vector<MicrobatchState> states_;
};

}  // namespace meshwright
