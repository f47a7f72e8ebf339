/// The matrix products of Muon's update.
#pragma once

#include <vector>

#include "core/base/ids.hpp"
#include "core/graph/task_graph.hpp"

namespace meshwright {

struct LoweringContext;

/// Appends to the optimizer work of a device what orthogonalizing its matrices takes, per matrix:
/// an all-gather of the update among the ranks that share it, its scaling to norm 1, and the
/// Newton-Schulz iterations of the whole matrix. In fp32 by our own kernels, by others in the
/// precision of the training (bf16 in the reference implementation). With ZeRO, whole matrices are
/// distributed over the ranks of the shard group (Liu et al., arXiv 2502.16982, section 2.3), which
/// exchange the pieces of the matrices between two shards; those are not counted. The update itself
/// moves as many bytes as AdamW's: it reads and writes the orthogonalized update instead of a
/// second moment.
void append_orthogonalization(const LoweringContext& context, PipelineRankId device, Work& work,
                              std::vector<WorkPart>& parts);

}  // namespace meshwright
