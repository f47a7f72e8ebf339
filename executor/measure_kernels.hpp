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

/// Steps of one probe; the first one warms up and is not counted. Kernels of a device take its
/// memory and are timed there. Throws what the executor throws.
std::vector<TimedKernels> run_probe(const KernelProbe& probe, const KernelTable& kernels,
                                    int counted_steps, const DeviceTable* device = nullptr);

}  // namespace meshwright
