/// The passes over one layer: the programs of its operators in execution order.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/lower.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/operator_program.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/plan.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

/// What the layers of a plan have in common. Refers to its arguments.
struct LayerCall {
  const ModelGraph& model;
  const Strategy& strategy;
  const ShardShape& shard;
  const JobGroups& groups;
  const TrainerMemory& memory;
  Axis context_axis = Axis::kContext;  ///< of the ranks in JobGroups::context
};

class LayerPrograms {
 public:
  LayerPrograms(const LayerCall& call, LayerId layer);
  LayerPrograms(const LayerPrograms&) = delete;
  LayerPrograms& operator=(const LayerPrograms&) = delete;

  /// Where a pass is written to.
  struct Sink {
    std::vector<Step>& steps;
    LiveBuffers* buffers = nullptr;  ///< null: not counted
    /// Called when the pass is done with an operator of the layer, including those without steps.
    std::function<void(OperatorId)> after_operator = {};
  };
  /// Limits the passes to the operators [begin, end) of the layer.
  void restrict_to(int begin, int end);
  void forward(const Sink& sink) const;
  /// Visits operators in reverse; input gradients, weight gradients or both.
  void backward(bool inputs, bool weights, const Sink& sink) const;
  bool has_recomputation() const;
  /// Forward work repeated before the backward pass.
  void recompute(const Sink& sink) const;

 private:
  template <class Visit>
  void for_each(bool reverse, const Sink& sink, const Visit& visit) const;
  void repeat(const Sink& sink) const;
  void repeat_attention(const Sink& sink) const;
  void shorten_products(double fraction, std::size_t begin, std::vector<Step>& steps) const;

  ShardShape shard_;
  const Strategy& strategy_;
  LayerContext context_;
  int begin_ = 0, end_;  ///< operators of the passes
  std::vector<double> repeated_fractions_;
};

/// Passes that are not wanted are -1.
LayerParts append_layer_parts(const LayerCall& call, LayerId layer, std::vector<WorkPart>& parts,
                              WantedPasses wanted = WantedPasses::kAll);

}  // namespace meshwright
