/// Context for running one operator of the model on one micro-batch: the tensors it reads and
/// writes.
#pragma once

#include "executor/operators/microbatch_state.hpp"
#include "executor/parameters/stage_parameters.hpp"
#include "executor/ranks/rank_context.hpp"
#include "executor/ranks/training_options.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

class OperatorPass {
 public:
  RankContext& rank;
  const LayerSharding& sharding;  ///< of the operator's layer
  StageParameters& parameters;
  const TokenRows& rows;
  MicrobatchState& state;
  OperatorId id;
  float loss_scale;  ///< 1 / tokens of a training step: gradients are those of the mean loss
  const TrainingOptions& options;
  int step = 0;          ///< training step number
  bool drops = true;     ///< false: without dropout
  int expert_nodes = 1;  ///< nodes that the experts of a layer are spread over
  /// What happens to buffers while these kernels, or this collective, run: make() allocates what
  /// the graph acquires here. Then what happens up to the end of the next operator: for a product
  /// that computes a part of it.
  std::span<const BufferEvent> buffers = {}, next_buffers = {};

  const Operator& op() const { return rank.op(id); }
  TensorId input(std::size_t i = 0) const { return op().inputs[i]; }
  TensorId output(std::size_t i = 0) const { return op().outputs[i]; }

  /// Whether the model is sharded by tensor parallelism.
  bool is_cut() const { return sharding.strategy.degrees.tensor > 1; }
  /// The numbers of the tensor group's tokens, or those of LayerSharding::own_rows, if there are
  /// only as many rows.
  template <class Number>
  std::span<const Number> of_rows(std::span<const Number> all, std::int64_t row_count) const {
    if (row_count == std::ssize(all)) return all;
    const Block& own = sharding.own_rows;
    return all.subspan(static_cast<std::size_t>(own.begin), static_cast<std::size_t>(own.size()));
  }

  Matrix at(TensorId tensor, Form form);
  Matrix value(TensorId tensor);  ///< this rank's shard
  Matrix whole(TensorId tensor);  ///< the gathered one if it was gathered
  Matrix gradient(TensorId tensor);
  Matrix whole_gradient(TensorId tensor);  ///< the gathered one if it was gathered

  /// The mask of this operator in this step, the same on all ranks.
  DropoutMask dropout_mask(double probability) const;
  /// Local columns of an activation.
  std::int64_t width(TensorId tensor) const;
  Matrix make_value(TensorId tensor, std::int64_t value_rows);
  /// The memory class and size of a buffer that the graph acquires here.
  const HeldBuffer& acquired(const BufferKey& buffer) const;
  /// A buffer that the graph acquires here, with its size, except for routed rows, whose number is
  /// known only now.
  OwnedMatrix allocate(TensorId tensor, Form form, std::int64_t value_rows, std::int64_t columns,
                       Dtype dtype);
  /// The same for one of several joint outputs of a linear layer.
  OwnedMatrix allocate_jointly(TensorId tensor, Form form, std::int64_t value_rows, Dtype dtype);
  Matrix make(TensorId tensor, Form form, std::int64_t value_rows, std::int64_t columns,
              Dtype dtype);
  Matrix make_softmax_sums(std::int64_t count);  ///< [1, count]
  /// Working memory of this step, which the graph names as one buffer of `count` such matrices.
  OwnedMatrix temporary(MemoryClass what, std::int64_t value_rows, std::int64_t columns,
                        Dtype dtype, int count = 1);
  /// Fails unless the graph names working memory of this size.
  void check_temporary(const HeldBuffer& held) const;

  /// Calls write(destination, adds) with a new gradient of the shape of `like`, or, with adds set,
  /// the gradient that other consumers of the tensor have started to accumulate.
  template <class Write>
  void into_gradient(TensorId tensor, Form form, const ConstMatrix& like, Write write) {
    const bool adds = state.find(tensor, form) != nullptr;
    const Matrix destination = adds ? state.find(tensor, form)->view()
                                    : make(tensor, form, like.rows, like.columns, rank.dtype);
    write(destination, adds);
  }
  void add_gradient(TensorId tensor, const ConstMatrix& more);
};

/// Copies all elements, converted to the dtype of `to`.
void copy(OperatorPass& pass, const ConstMatrix& from, const Matrix& to);
/// Sets all elements to zero.
void clear(OperatorPass& pass, const Matrix& m);

// One function per operator and pass, declared from the list in core/model/model_graph.hpp and
// defined by family: operator_dense.cpp, operator_rotary.cpp, operator_attention.cpp,
// operator_residual.cpp, operator_experts.cpp, operator_loss.cpp. backward_input() also computes
// weight gradients that come from the same kernel.

#define MESHWRIGHT_OPERATOR(Shape)                      \
  void forward(OperatorPass& pass, const Shape& shape); \
  void backward_input(OperatorPass& pass, const Shape& shape);
#define MESHWRIGHT_OPERATOR_WITH_WEIGHTS(Shape) \
  MESHWRIGHT_OPERATOR(Shape)                    \
  void backward_weight(OperatorPass& pass, const Shape& shape);
MESHWRIGHT_OPERATORS(MESHWRIGHT_OPERATOR, MESHWRIGHT_OPERATOR_WITH_WEIGHTS)
#undef MESHWRIGHT_OPERATOR_WITH_WEIGHTS
#undef MESHWRIGHT_OPERATOR

/// The collectives of an operator. Each returns the time at which the last member was ready.
Ticks reduce_loss(OperatorPass& pass, RankGroup& group, Ticks ready);
Ticks over_context_ranks(OperatorPass& pass, const Collective& collective, RankGroup& group,
                         Ticks ready);
Ticks start_ring(OperatorPass& pass, RankGroup& group, Ticks ready);
Ticks finish_ring(OperatorPass& pass, RankGroup& group, Ticks ready);
Ticks over_expert_ranks(OperatorPass& pass, const Collective& collective, RankGroup& group,
                        Ticks ready);
Ticks gather_dispatched(OperatorPass& pass, RankGroup& group, Ticks ready);

/// All-reduces activations over a group in the dtype in which they are stored.
Ticks all_reduce(RankGroup& group, const Matrix& m, Ticks ready);
/// Member i ends up with the sums of row block i; the other rows hold partial sums.
Ticks reduce_scatter(RankGroup& group, const Matrix& m, Ticks ready);

/// Runs `phase` of the operator; no-op if it has no such phase.
void compute(OperatorPass& pass, Phase phase);
/// Runs a collective of the operator over `group`.
Ticks communicate(OperatorPass& pass, const Collective& collective, RankGroup& group, Ticks ready);

}  // namespace meshwright
