/// Which buffers the operators of a pass allocate, and when each one is last used. Shared by
/// lower(), which adds up what a task holds, and the executor, which frees buffers accordingly.
///
/// A pass visits the operators of a layer in order: forward, or backward in reverse. During a visit
/// buffers are only allocated (except where a collective replaces one with another); buffers that
/// are no longer needed are freed when the pass moves on to the next operator. To add a buffer:
///   1. add a Form below, or reuse an existing one,
///   2. add its size in StageBuffers (activation_memory.cpp), in the executor's order,
///   3. add a line to read_no_more() unless an existing rule already frees it.
/// tests/executor/runs/memory_test.cpp fails for buffers that the executor counts but this file
/// omits.
///
/// Not described: kernel workspaces (reserved) and per-token values in host memory (losses, norm
/// statistics, routing).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "core/graph/memory_amounts.hpp"
#include "core/graph/task_graph.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// The form in which one rank holds an activation or its gradient.
enum class Form : std::uint8_t {
  kValue,             ///< this rank's shard
  kGatheredValue,     ///< all tokens of the tensor group, or all keys of the context group
  kGradient,          ///< gradient of this rank's shard
  kPartialGradient,   ///< gradient of the full tensor, not yet summed over ranks
  kGatheredGradient,  ///< all tokens of the tensor group
  kHeadCutValue,      ///< full sequences, sharded over heads (all-to-all context parallelism)
  kHeadCutGradient,
  // Identified by operator, not by tensor:
  kSoftmaxSums,  ///< log-sum-exp of attention
  kDropoutMask   ///< one byte per element
};

struct ActivationBuffer {
  std::int32_t id = -1;  ///< index of a tensor or an operator, depending on `form`
  Form form = Form::kValue;
  friend auto operator<=>(const ActivationBuffer&, const ActivationBuffer&) = default;
};

/// How a pass visits an operator.
enum class Visit : std::uint8_t {
  kForward,
  kRecompute,       ///< forward again, before the layer's backward visits
  kBackward,        ///< gradients of inputs and weights
  kBackwardInput,   ///< gradients of inputs only
  kBackwardWeight,  ///< gradients of weights, later
};
/// The visit that a step of this phase belongs to, in a task of this kind.
Visit visit_of(TaskKind kind, Phase phase);

/// True for norm parameters and attention sinks: their gradients are computed together with the
/// input gradients, even if the backward pass is split. O(operators).
bool has_gradient_with_inputs(const ModelGraph& model, TensorId parameter);

/// True if selective recomputation repeats the all-to-all of heads (ContextAlgorithm).
bool exchanges_heads_again(const Strategy& strategy);

/// The saved activations of a stage: those its operators declare; for a fully recomputed layer,
/// only the layer's inputs.
class StageKeeps {
 public:
  StageKeeps() = default;
  /// `part`: of the model, see Placement::part_of_stage.
  StageKeeps(const ModelGraph& model, std::span<const LayerId> layers, const Strategy& strategy,
             int part);
  bool is_recomputed(LayerId layer) const { return recomputed_.contains(layer.value); }
  bool keeps(TensorId tensor) const { return kept_.contains(tensor.value); }
  bool exchanges_heads_again() const { return exchanges_heads_again_; }

 private:
  std::set<std::int32_t> recomputed_, kept_;
  bool exchanges_heads_again_ = false;
};

/// Buffers to free after this visit of the operator. O(operators of the layer).
std::vector<ActivationBuffer> read_no_more(const ModelGraph& model, const StageKeeps& keeps,
                                           LayerId layer, OperatorId op, Visit visit);

/// Walks a pass operator by operator, including operators for which the pass has no steps.
class LayerVisits {
 public:
  using Leave = std::function<void(LayerId, OperatorId, Visit)>;
  LayerVisits(const ModelGraph& model, Leave leave) : model_(&model), leave_(std::move(leave)) {}
  void go_to(LayerId layer, OperatorId op, Visit visit);
  void finish();  ///< visits the remaining operators of the current layer

 private:
  void leave_until(int stop);
  const ModelGraph* model_;
  Leave leave_;
  LayerId layer_{-1};
  Visit visit_ = Visit::kForward;
  int at_ = 0;  ///< index among the layer's operators
};

// ---- totals -----------------------------------------------------------------------------------

/// One layer of a stage with the steps of its passes.
struct LayerSteps {
  LayerId layer;
  LayerId first_of_class;  ///< the steps refer to this layer's operators and tensors
  const std::vector<Step>*forward = nullptr, *recompute = nullptr;  ///< recompute may be null
  const std::vector<Step>*backward = nullptr, *backward_input = nullptr, *backward_weight = nullptr;
};
struct StageSlice {
  std::vector<LayerSteps> layers;
  StageKeeps keeps;  ///< for the whole stage
  /// The previous or next layers run on the same device: boundary tensors are not held twice.
  bool previous_is_here = false, next_is_here = false;
};

/// Same meaning as in Work. At the moment of the largest total, each class amounts to held +
/// acquired + transient, so `transient` is negative for a class that shrinks before that moment.
struct PassMemory {
  MemoryAmounts acquired, released, transient;
  /// Received from another device (held from the start of the pass) and sent to another device
  /// (held until its end); both are held longer if another pass overlaps.
  MemoryAmounts arrives, departs;
};
struct SliceMemory {
  PassMemory forward, backward, backward_input, backward_weight;
};
/// The number of expert rows follows ExpertRouting.
SliceMemory slice_memory(const ModelGraph& model, const Strategy& strategy,
                         const StageSlice& slice);

}  // namespace meshwright
