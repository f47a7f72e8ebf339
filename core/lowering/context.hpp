/// Lowering of attention under context parallelism.
#pragma once

#include <span>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/layers.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/operator_work.hpp"

namespace meshwright {

/// The kernels of one phase of an attention operator, and the context-parallel communication
/// before, during and after them.
struct AttentionCall {
  const Attention& attention;
  Served served;
  const ShardShape& shard;
  const GroupShape& context;
};
void append_attention(const AttentionCall& call, std::span<const Kernel> kernels,
                      std::vector<Step>& steps);

}  // namespace meshwright
