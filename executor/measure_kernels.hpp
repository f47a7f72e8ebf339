/// Times the executor's own kernels as they run in training steps of small models, by the virtual
/// clock: with the caches, the memory and the copies that they have there.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/calibration.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/task_graph.hpp"
#include "executor/timed_actions.hpp"
#include "kernels/device.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// A model to train for a few steps, whose layers have the shapes that are wanted, on one stage of
/// ranks.
struct KernelProbe {
  std::string name;
  ModelGraph model;  ///< without dropout
  Strategy strategy;
};

/// What one probe showed.
struct MeasuredProbe {
  std::vector<TimedKernels> kernels;
  TaskGraph graph;  ///< of one step
  /// In forward and backward passes of a step, all ranks together: what they took beyond their
  /// kernels, as messages cost nothing here. Ranks that cut one layer wait for each other.
  Seconds waiting;
};

/// Steps of one probe; the first one warms up and is not counted. Kernels of a device take its
/// memory and are timed there. Throws what the executor throws.
MeasuredProbe run_probe(const KernelProbe& probe, const KernelTable& kernels, int counted_steps,
                        const DeviceTable* device = nullptr);

}  // namespace meshwright
