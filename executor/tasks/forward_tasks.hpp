/// What a rank runs to evaluate the model: a step without its backward passes and its update.
#pragma once

#include <vector>

#include "core/base/ids.hpp"

namespace meshwright {

class RunnableGraph;

/// Forward passes, the messages between them, and the gathers of weights that they need, in the
/// order of the rank's tasks. Requires a flushed schedule without parameter servers.
std::vector<TaskId> forward_tasks(const RunnableGraph& runnable, RankId rank);

}  // namespace meshwright
