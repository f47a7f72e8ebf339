/// Turns a Kineto trace of a training job into a calibration: kernels by family and shape,
/// collectives by size, host time per launch and layer, and the measured step time.
///
/// Of one rank's trace a collective's kernel includes the time until the slowest rank arrives, so
/// the transfer time is the lower decile of all calls of one size; what is above it is reported as
/// waiting. Operators that one Kernel of core/operators/operators.hpp stands for (SiLU and the
/// product behind it, log-softmax and loss) are added up; elementwise kernels that belong to no
/// routine are added to the residual additions, so that no time of a pass is lost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cost/calibration.hpp"
#include "core/formats/kineto.hpp"

namespace meshwright {

struct KinetoImportOptions {
  std::string source = "trace";      ///< for CollectiveCurve::source and messages
  std::optional<int> gpus_per_node;  ///< absent: the GPUs that the trace lists, or 8
};

/// One row of the report.
struct ImportedFamily {
  std::string name;          ///< "product forward", "all-gather of 8 ranks"
  std::int64_t kernels = 0;  ///< per step, on the GPU
  Seconds time = {};         ///< per step
  double share = 0;          ///< of the step time
  int shapes = 0;            ///< points in the calibration; 0: not learned
  std::string note = {};     ///< why it was not learned, or what was assumed
  friend bool operator==(const ImportedFamily&, const ImportedFamily&) = default;
};

struct KinetoReport {
  std::string device;
  int steps = 1;
  Seconds step_time;  ///< median, under the profiler
  Seconds shortest_step, longest_step;
  Seconds busy;                          ///< per step: at least one kernel runs
  Seconds idle_for_host, idle_other;     ///< per step: no kernel was launched yet; all other gaps
  Seconds communication;                 ///< per step, NCCL kernels
  double overlapped = 0;                 ///< share of it during which a compute kernel runs
  Seconds waiting;                       ///< per step: NCCL kernels beyond the lower decile
  Seconds kernel_gap;                    ///< between queued kernels; added to every kernel
  double layers = 0;                     ///< attention forwards per step; 0: not recognized
  std::vector<ImportedFamily> families;  ///< longest first
  std::vector<std::string> defaults;     ///< what still comes from the cluster and the trainer
  std::vector<std::string> notes;        ///< assumptions
  friend bool operator==(const KinetoReport&, const KinetoReport&) = default;
};

struct ImportedTrace {
  Calibration calibration;  ///< with `trainer`; passes check_calibration()
  KinetoReport report;
};
/// Throws InputError if the trace has no GPU kernels, or no complete step.
ImportedTrace import_kineto(const KinetoTrace& trace, const KinetoImportOptions& options);

}  // namespace meshwright
