/// The matrix products of Muon's update.
#pragma once

#include <vector>

#include "core/base/ids.hpp"
#include "core/graph/task_graph.hpp"

namespace meshwright {

struct LoweringContext;

/// Appends to the optimizer work of a device the steps that orthogonalize its matrices. Of each
/// matrix: an all-gather of its update if it is sharded over tensor ranks, the scaling to norm 1,
/// and the Newton-Schulz iterations of the whole matrix. They run in fp32 in our own kernels, else
/// in the precision of the training (bf16 in the reference implementation).
///
/// ZeRO distributes whole matrices over the ranks that share an update (Liu et al., arXiv
/// 2502.16982, section 2.3). Not counted: exchanging the pieces of matrices that lie in two shards.
/// The update moves as many bytes as AdamW's, since it reads and writes the orthogonalized matrix
/// where AdamW has a second moment.
void append_orthogonalization(const LoweringContext& context, PipelineRankId device, Work& work,
                              std::vector<WorkPart>& parts);

}  // namespace meshwright
