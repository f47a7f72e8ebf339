/// Which buffers the operators of a pass make, and when nobody reads them any more. One description
/// for both sides: lower() adds up what a task holds, the executor lets buffers go.
///
/// A pass visits the operators of a layer one after another: forwards, or backwards in reverse
/// order. Within a visit buffers are only made (but where a collective replaces one by another);
/// when the pass goes on, what is read no more goes. A new kind of buffer needs
///   1. a Form here (or one of those that are),
///   2. its size where StageBuffers (activation_memory.cpp) makes it, in the order of the
///   executor,
///   3. a line in read_no_more() if nothing there lets it go.
/// What the executor counts and this does not describe shows in tests/executor/memory_test.cpp.
///
/// Not described: kernels' working memory (reserved), numbers per token on the side of the host
/// (losses, statistics of norms, routing).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "core/memory_amounts.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/task_graph.hpp"

namespace meshwright {

/// The forms in which an activation, or its gradient, is at hand on one rank.
enum class Form : std::uint8_t {
  kValue,             ///< this rank's part of it
  kGatheredValue,     ///< all tokens of the tensor group, or all keys of the context group
  kGradient,          ///< of this rank's part
  kPartialGradient,   ///< of all of it, not yet summed over ranks
  kGatheredGradient,  ///< all tokens of the tensor group
  kHeadCutValue,      ///< whole sequences of a part of the heads (all-to-all context)
  kHeadCutGradient,
  // By operator, not by tensor:
  kSoftmaxSums,  ///< log-sum-exp of attention
  kDropoutMask   ///< a byte for each element
};

struct ActivationBuffer {
  std::int32_t id = -1;  ///< a tensor, or an operator; see Form
  Form form = Form::kValue;
  friend auto operator<=>(const ActivationBuffer&, const ActivationBuffer&) = default;
};

/// How a pass visits an operator.
enum class Visit : std::uint8_t {
  kForward,
  kRecompute,       ///< forward once more, in front of the layer's backward visits
  kBackward,        ///< gradients of inputs and weights
  kBackwardInput,   ///< of inputs alone
  kBackwardWeight,  ///< of weights, later
};
/// Of a step in a task of this kind.
Visit visit_of(TaskKind kind, Phase phase);

/// Parameters of norms, and sinks: their gradients come with those of the operator's inputs, also
/// where a backward pass is split. O(operators).
bool has_gradient_with_inputs(const ModelGraph& model, TensorId parameter);

/// True if selective recomputation does the exchanges of heads (ContextAlgorithm) again.
bool exchanges_heads_again(const Strategy& strategy);

/// Layers of a stage and what they keep until their backward pass: what their operators say, of a
/// fully recomputed layer the inputs alone.
class StageKeeps {
 public:
  StageKeeps() = default;
  StageKeeps(const ModelGraph& model, std::span<const LayerId> layers, const Strategy& strategy);
  bool is_recomputed(LayerId layer) const { return recomputed_.contains(layer.value); }
  bool keeps(TensorId tensor) const { return kept_.contains(tensor.value); }
  bool exchanges_heads_again() const { return exchanges_heads_again_; }

 private:
  std::set<std::int32_t> recomputed_, kept_;
  bool exchanges_heads_again_ = false;
};

/// Buffers that go when a visit of the operator is over. O(operators of the layer).
std::vector<ActivationBuffer> read_no_more(const ModelGraph& model, const StageKeeps& keeps,
                                           LayerId layer, OperatorId op, Visit visit);

/// Follows a pass from operator to operator. Operators that a pass has no steps for are visited
/// too.
class LayerVisits {
 public:
  using Leave = std::function<void(LayerId, OperatorId, Visit)>;
  LayerVisits(const ModelGraph& model, Leave leave) : model_(&model), leave_(std::move(leave)) {}
  void go_to(LayerId layer, OperatorId op, Visit visit);
  void finish();  ///< the rest of the layer at work

 private:
  void leave_until(int stop);
  const ModelGraph* model_;
  Leave leave_;
  LayerId layer_{-1};
  Visit visit_ = Visit::kForward;
  int at_ = 0;  ///< of the layer's operators
};

// ---- adding up --------------------------------------------------------------------------------

/// Consecutive layers of a stage, with the steps of their passes.
struct LayerSteps {
  LayerId layer;
  LayerId first_of_class;  ///< whose operators and tensors the steps name
  const std::vector<Step>*forward = nullptr, *recompute = nullptr;  ///< recompute: null if none
  const std::vector<Step>*backward = nullptr, *backward_input = nullptr, *backward_weight = nullptr;
};
struct StageSlice {
  std::vector<LayerSteps> layers;
  StageKeeps keeps;  ///< of the whole stage
  /// The layers in front or behind are on this device: what is handed over is never held twice.
  bool previous_is_here = false, next_is_here = false;
};

/// As Work has them. The amounts at the moment of the largest total are held + acquired +
/// transient, class by class; so `transient` is negative where a class shrinks before that moment.
struct PassMemory {
  MemoryAmounts acquired, released, transient;
  /// Received from another device, and what is sent to one: held from the beginning, and to the
  /// end, of the pass; longer beside another pass.
  MemoryAmounts arrives, departs;
};
struct SliceMemory {
  PassMemory forward, backward, backward_input, backward_weight;
};
/// Rows of experts are as many as ExpertRouting says.
SliceMemory slice_memory(const ModelGraph& model, const Strategy& strategy,
                         const StageSlice& slice);

}  // namespace meshwright
