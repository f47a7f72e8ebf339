/// Vocabulary layers that are sharded over the pipeline ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/saved_activations.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

struct LoweringContext;

/// Barriers of the sharded output layer (see Schedule::output_barriers); 0: it is not sharded.
int output_barriers_of(const Strategy& strategy);
/// The strategy whose tensor-parallel size yields the shapes of one shard of the token table and
/// of the logits: they are sharded over tensor and pipeline ranks together (Yeung et al., arXiv
/// 2411.05288, section 4).
Strategy vocabulary_strategy(const Strategy& strategy);

/// Work of one device for one micro-batch, in addition to its transformer layers. Lookups of its
/// shard of the token table, and their gradients, run with its F and B; as each device looks up the
/// tokens of a later micro-batch, the sums over the devices are assumed to be hidden.
struct VocabularyParts {
  std::int32_t lookup = -1, lookup_backward = -1;
  std::int32_t scores = -1, gradient = -1;  ///< S and T
};
VocabularyParts append_vocabulary_parts(const ModelGraph& model, const Strategy& strategy,
                                        const JobGroups& groups, std::vector<WorkPart>& parts);
/// Memory of S and T. The copy of the output layer's input and the logits are held from S to T;
/// with one barrier, the partial gradient of the input too.
struct OutputLayerBytes {
  Bytes input;  ///< of the output layer, and its gradient, on one rank
  LogitBytes logits;
};
OutputLayerBytes output_layer_bytes(const ModelGraph& model, const Strategy& strategy);

/// The plan's schedule, ordered for the proportions of its passes: where S and T fit between F and
/// B depends on them. Every kernel is estimated by the larger of its arithmetic at the device's
/// peak and its traffic at the memory bandwidth.
Schedule order_by_estimated_times(const LoweringContext& context);

/// Appends the collectives of the sharded output layer, on their own streams:
///   after the last stage's F   broadcast of its output
///   after S on all devices     all-reduce of the softmax statistics (fp32 maximum, sum and target
///                              logit per token); with one barrier also of the input gradient
///   after T on all devices     with two barriers: all-reduce of the input gradient
/// Tasks are -1 until they have been appended.
class OutputLayerTasks {
 public:
  explicit OutputLayerTasks(LoweringContext& context);
  ~OutputLayerTasks();
  /// The task that S or T waits for.
  std::int32_t input_of(const Action& action) const;
  /// The task that provides the gradient of the output layer's input on the last stage.
  std::int32_t gradient_of(MicrobatchId microbatch) const;
  /// Schedule::output_layer_blocks: the barrier of this T on its own device.
  std::int32_t barrier_after(const Action& gradient) const;
  /// `done` is the task of the last stage's F, or of an S or T.
  void append_after(const Action& action, TaskId done);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace meshwright
