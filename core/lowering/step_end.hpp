/// Gradient reduction, optimizer and parameter gathering at the end of a step.
#pragma once

#include "core/lowering/schedule.hpp"
#include "core/lowering/stages.hpp"
#include "core/lowering/unfold.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

void append_step_end(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                     const PipelineTasks& pipeline, FoldedGraph& folded);

}  // namespace meshwright
