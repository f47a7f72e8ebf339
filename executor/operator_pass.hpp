/// One operator of the model at work on one micro-batch: the tensors it reads and writes.
#pragma once

#include "executor/collectives.hpp"
#include "executor/microbatch_state.hpp"
#include "executor/rank_context.hpp"
#include "executor/stage_parameters.hpp"
#include "executor/training_options.hpp"

namespace meshwright {

class OperatorPass {
 public:
  RankContext& rank;
  StageParameters& parameters;
  const TokenRows& rows;
  MicrobatchState& state;
  OperatorId id;
  float loss_scale;  ///< 1 / tokens of a training step: gradients are those of the mean loss
  const TrainingOptions& options;
  int step = 0;          ///< number of the training step
  int expert_nodes = 1;  ///< over which the experts of a layer are spread

  const Operator& op() const { return rank.op(id); }
  TensorId input(std::size_t i = 0) const { return op().inputs[i]; }
  TensorId output(std::size_t i = 0) const { return op().outputs[i]; }

  /// True where tensor parallelism cuts anything.
  bool is_cut() const { return rank.strategy.degrees.tensor > 1; }
  /// Rows of the tensor group's tokens that are this rank's alone: under sequence parallelism, and
  /// where tokens are dispatched to experts.
  Block own_rows() const;

  Matrix at(TensorId tensor, Form form);
  Matrix value(TensorId tensor);  ///< this rank's part
  Matrix whole(TensorId tensor);  ///< gathered where it has been
  Matrix gradient(TensorId tensor);
  Matrix whole_gradient(TensorId tensor);  ///< gathered where it has been

  /// Of this operator in this step, the same on all ranks.
  DropoutMask dropout_mask(double probability) const;
  /// Local columns of an activation.
  std::int64_t width(TensorId tensor) const;
  Matrix make_value(TensorId tensor, std::int64_t value_rows);
  Matrix make(TensorId tensor, Form form, std::int64_t value_rows, std::int64_t columns,
              Dtype dtype, MemoryClass what);

  /// Calls write(destination, adds) with a new gradient of that shape, or the one that other
  /// readers of the tensor began.
  template <class Write>
  void into_gradient(TensorId tensor, Form form, const ConstMatrix& like, Write write) {
    const bool adds = state.find(tensor, form) != nullptr;
    const Matrix destination =
        adds ? state.find(tensor, form)->view()
             : make(tensor, form, like.rows, like.columns, rank.dtype, MemoryClass::kWorking);
    write(destination, adds);
  }
  void add_gradient(TensorId tensor, const ConstMatrix& more);
};

// One function per operator and pass, by family: operator_dense.cpp, operator_rotary.cpp,
// operator_attention.cpp, operator_residual.cpp, operator_experts.cpp, operator_loss.cpp. Operators
// whose weights' gradients come out of the same kernel as those of their inputs have them in
// backward_input().

void forward(OperatorPass& pass, const EmbeddingLookup& table);
void backward_weight(OperatorPass& pass, const EmbeddingLookup& table);
void forward(OperatorPass& pass, const Norm& norm);
void backward_input(OperatorPass& pass, const Norm& norm);
void forward(OperatorPass& pass, const Linear& linear);
void backward_input(OperatorPass& pass, const Linear& linear);
void backward_weight(OperatorPass& pass, const Linear& linear);
void forward(OperatorPass& pass, const Activation& activation);
void backward_input(OperatorPass& pass, const Activation& activation);
void forward(OperatorPass& pass, const ResidualAdd& add);
void backward_input(OperatorPass& pass, const ResidualAdd& add);
void forward(OperatorPass& pass, const RowGate& gate);
void backward_input(OperatorPass& pass, const RowGate& gate);

void forward(OperatorPass& pass, const RotaryEmbedding& rotary);
void backward_input(OperatorPass& pass, const RotaryEmbedding& rotary);
void forward(OperatorPass& pass, const Attention& attention);
void backward_input(OperatorPass& pass, const Attention& attention);

void forward(OperatorPass& pass, const Router& router);
void backward_input(OperatorPass& pass, const Router& router);
void backward_weight(OperatorPass& pass, const Router& router);
void forward(OperatorPass& pass, const TokenDispatch& dispatch);
void backward_input(OperatorPass& pass, const TokenDispatch& dispatch);
void forward(OperatorPass& pass, const ExpertLinear& expert);
void backward_input(OperatorPass& pass, const ExpertLinear& expert);
void backward_weight(OperatorPass& pass, const ExpertLinear& expert);
void forward(OperatorPass& pass, const TokenCombine& combine);
void backward_input(OperatorPass& pass, const TokenCombine& combine);

void forward(OperatorPass& pass, const CrossEntropy& loss);
void backward_input(OperatorPass& pass, const CrossEntropy& loss);

/// The collectives that serve an operator, by what they do to its tensors. Each returns when the
/// last member was ready.
Ticks reduce_loss(OperatorPass& pass, RankGroup& group, Ticks ready);
Ticks over_context_ranks(OperatorPass& pass, const Collective& collective, RankGroup& group,
                         Ticks ready);
Ticks start_ring(OperatorPass& pass, RankGroup& group, Ticks ready);
Ticks finish_ring(OperatorPass& pass, RankGroup& group, Ticks ready);
Ticks over_expert_ranks(OperatorPass& pass, const Collective& collective, RankGroup& group,
                        Ticks ready);
Ticks gather_dispatched(OperatorPass& pass, RankGroup& group, Ticks ready);

/// Sums of activations over a group, in the dtype in which they are stored.
Ticks all_reduce(RankGroup& group, const Matrix& m, Ticks ready);
/// Row block i is what member i has in the end; the rest is left with partial sums.
Ticks reduce_scatter(RankGroup& group, const Matrix& m, Ticks ready);

/// Carries out `phase` of the operator; nothing if it has no such phase.
void compute(OperatorPass& pass, Phase phase);
/// Carries out a collective that serves the operator, over `group`.
Ticks communicate(OperatorPass& pass, const Collective& collective, RankGroup& group, Ticks ready);

}  // namespace meshwright
