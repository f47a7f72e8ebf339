/// The operators of a block that are recomputed if whole blocks are not (RecomputeKind::kModules
/// and kTorchSelective).
#pragma once

#include <vector>

#include "core/model/model_graph.hpp"
#include "core/operators/saved_activations.hpp"
#include "core/plan/recompute.hpp"

namespace meshwright {

/// By operator of the layer: the fraction of its outputs that is computed again before the backward
/// pass. Fractions are those of a GEMM with several products (queries, keys and values; gate and
/// up). Zero for layers that are not blocks.
///
///   kModules         1 for the operators of the named modules
///   kTorchSelective  0 for attention and for the first, third, fifth, … product of the block, as
///                    torchtitan saves the output of every second one; 1 for the others, as far as
///                    the backward pass reads their outputs
std::vector<double> recomputed_fractions(const ModelGraph& model, LayerId layer,
                                         const Recompute& recompute);

/// Saved activations of a block in bytes on one rank, without the logits. kModules: what its
/// operators save, without what is recomputed. kTorchSelective: the input of the block, the outputs
/// of saved operators, and the statistics of fused attention.
Bytes kept_with_recomputed_operators(const ModelGraph& model, LayerId layer,
                                     const ShardShape& shard, const Recompute& recompute,
                                     const TrainerMemory& memory);

/// True if any operator of the model belongs to the module.
bool has_module(const ModelGraph& model, RecomputeModule module);

}  // namespace meshwright
