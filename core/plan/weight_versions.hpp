/// Flushless (asynchronous) schedules: which weight version each micro-batch uses, and which
/// micro-batches produce a new version.
///
///   pipedream      (Narayanan et al., SOSP 2019, arXiv:1806.03377, section 3.3) a stage updates
///                  after every backward pass. A micro-batch runs forward with the newest weights
///                  of the stage and backward with the same ones, which are stashed in between.
///                  With n stages, w_k the weights of stage k = 1..n, after t updates:
///                    w(t+1) = w(t) - nu * grad f(w_1(t-n+1), w_2(t-n+2), ..., w_n(t))
///   pipedream-2bw  (Narayanan et al., arXiv:2006.09503, section 3.1) gradients of the m >= n
///                  micro-batches of a step are summed; all stages lag by one update:
///                    W(t+1) = W(t) - nu * grad f(W(t-1))
///
/// Both follow one rule. Micro-batches are numbered across steps; those that contribute to one
/// update form a *batch*. On a stage with V versions, batch t uses version max(0, t - (V - 1)), and
/// its update turns version t into version t + 1, which replaces version t + 1 - V, last used by
/// batch t.
///
/// The steps of such a schedule overlap: the first forward passes of the next step run before the
/// last backward passes of this one. A task graph therefore covers a window of several steps, from
/// an empty to an empty pipeline, with consecutively numbered micro-batches. The simulator measures
/// one steady-state step of it; the executor trains through a window as long as its run. A graph of
/// a single step would have sends without receives, or would amount to a flush.
///
/// Gradients are clipped by the norm of one stage, as a global norm would require a flush.
#pragma once

#include <vector>

#include "core/base/error.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// Returns false for unknown schedules.
bool updates_without_flush(const Strategy& strategy);

/// The weight versions of one pipeline rank under a flushless schedule.
struct WeightVersions {
  int held = 1;                    ///< V
  int microbatches_per_batch = 1;  ///< micro-batches per update
  int batch_of(int microbatch) const { return microbatch / microbatches_per_batch; }
  int version_for(int microbatch) const {
    const int version = batch_of(microbatch) - (held - 1);
    return version > 0 ? version : 0;
  }
  bool completes_batch(int microbatch) const {
    return (microbatch + 1) % microbatches_per_batch == 0;
  }
  friend bool operator==(const WeightVersions&, const WeightVersions&) = default;
};
WeightVersions weight_versions_of(const Strategy& strategy, PipelineRankId device);

/// The step to measure in a graph of several steps: the last one in which every rank runs the
/// passes of a full pipeline. The steps before it fill the pipeline and let the slowest stage set
/// the pace; the steps after it provide the forward passes that overlap with it.
struct SteadyWindow {
  int steps = 1;   ///< number of steps in the graph
  int steady = 0;  ///< index of the step to measure
  friend bool operator==(const SteadyWindow&, const SteadyWindow&) = default;
};
SteadyWindow steady_window(const Strategy& strategy);

/// The schedule that lower() turns into a graph: schedule_of(), or, for flushless schedules, that
/// of `steps` steps (0: as in steady_window()). Throws InputError if the steps are too many.
Schedule schedule_to_lower(const Plan& plan, int steps = 0);

/// Settings that are incompatible with a flushless schedule; each diagnostic's `where` is a flag
/// without leading dashes. Empty for other schedules.
std::vector<Diagnostic> without_flush_problems(const Plan& plan, const ModelGraph& model);

}  // namespace meshwright
