/// What the host and the gaps between kernels cost in a Kineto trace.
#pragma once

#include <array>
#include <cstdint>

#include "core/formats/kineto.hpp"
#include "models/kineto/kineto_kernels.hpp"

namespace meshwright {

/// Host time from the end of one launch to the end of the next, over all threads, without
/// synchronizations and without the time that a launch is blocked because the queue of launches is
/// full. Seconds over all steps.
struct KinetoHost {
  double per_kernel = 0;                          ///< median between two kernels of one pass
  double per_collective = 0;                      ///< median before the launch of an NCCL kernel
  std::array<double, kKinetoPassCount> passes{};  ///< by KinetoPass, without collectives
  std::array<std::int64_t, kKinetoPassCount> launches{};
  double between_steps = 0;  ///< up to the first launch of a step: data loading, logging
  double collectives = 0;
  std::int64_t collective_launches = 0;
};
KinetoHost measure_host(const KinetoTrace& trace, const KinetoWindow& window,
                        const std::vector<KinetoPass>& pass_of_call);

/// Seconds over all steps.
struct KinetoIdle {
  double busy = 0, for_host = 0, other = 0;
};
/// A gap in which the GPU runs nothing is the host's if the next kernel was launched after the gap
/// began.
KinetoIdle measure_idle(const KinetoTrace& trace, const KinetoWindow& window);

}  // namespace meshwright
