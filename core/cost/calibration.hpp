/// Measurements that replace formulas: time-versus-size curves of collectives, and kernel times at
/// many shapes. Written by `import` (from nccl-tests output) and `calibrate` (on this machine), and
/// read wherever a cluster is given.
///
/// Measurements belong to a device and a kernel, never to a model or a plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/kernel.hpp"
#include "core/base/units.hpp"

namespace meshwright {

struct CurvePoint {
  Bytes bytes;   ///< whole buffer, counted like Collective::bytes
  Seconds time;  ///< one call, including launch
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// One collective on one shape of group.
struct CollectiveCurve {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int ranks = 2;
  int nodes = 1;
  int groups_per_node = 1;         ///< groups running concurrently; 1 if nodes is 1
  std::vector<CurvePoint> points;  ///< sizes strictly increasing, times non-decreasing
  std::string source;              ///< file or publication, device, software
  friend bool operator==(const CollectiveCurve&, const CollectiveCurve&) = default;
};

/// One kernel at one shape: the fields of Kernel, and the mean time of several calls.
struct KernelPoint {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;  ///< 0 if the kernel has no such dimension
  Flops flops = {};
  Bytes memory_traffic = {};
  Seconds time = {};
  double spread = 0;  ///< interquartile range / median
  int samples = 1;
  friend bool operator==(const KernelPoint&, const KernelPoint&) = default;
};

/// Kernels that share one implementation and differ only in size.
struct KernelFamily {
  KernelKind kind = KernelKind::kMemoryBound;
  Routine routine = Routine::kProduct;
  Phase phase = Phase::kForward;
  Dtype dtype = Dtype::kFp32;
  bool causal = false;  ///< attention
  friend auto operator<=>(const KernelFamily&, const KernelFamily&) = default;
};
KernelFamily family_of(const Kernel& kernel);
KernelPoint point_of(const Kernel& kernel);  ///< sizes only; `time` is unset
/// A kernel of the family with the sizes of the point.
Kernel kernel_of(const KernelFamily& family, const KernelPoint& point);

struct KernelCurve {
  KernelFamily family;
  std::vector<KernelPoint> points;  ///< distinct shapes
  friend bool operator==(const KernelCurve&, const KernelCurve&) = default;
};

/// GPU figures other than kernel times.
struct MeasuredGpu {
  int count = 1;                          ///< GPUs in the machine
  Seconds launch_overhead;                ///< per small kernel, launched back to back
  BytesPerSecond to_device, from_device;  ///< large host-to-device and device-to-host copies
  BytesPerSecond memory;                  ///< large device-to-device copy: bytes read + written
  friend bool operator==(const MeasuredGpu&, const MeasuredGpu&) = default;
};

/// The calibrated machine: everything needed to describe its cores or GPUs as a cluster.
struct MeasuredMachine {
  std::string processor;  ///< "AMD EPYC 7003"
  int cores = 1;
  Bytes memory;
  Seconds message_latency;               ///< between two ranks running as threads
  BytesPerSecond message_bandwidth;      ///< one message, sent and received
  BytesPerSecond memory_bandwidth;       ///< one core, large streams
  std::map<Dtype, FlopsPerSecond> peak;  ///< one core, fastest matrix product
  /// Jitter between identical ranks: work of duration T has variance noise * T. 0: no jitter.
  Seconds noise = {};
  std::optional<MeasuredGpu> gpu = {};  ///< if set, all fields above except `cores` are the GPU's
  friend bool operator==(const MeasuredMachine&, const MeasuredMachine&) = default;
};

/// The program that launched the kernels, from a trace of a training job (import_kineto.hpp). With
/// it, kernel times are those of the job's own shapes: see make_calibrated_cost_model().
struct MeasuredTrainer {
  int steps = 1;      ///< measured
  Seconds step_time;  ///< median, under the profiler
  Seconds host_per_kernel, host_per_collective;
  Seconds host_per_layer_forward, host_per_layer_backward;
  Seconds host_per_step;  ///< update, data loading and logging
  /// Time of matrix products while a collective runs on the same GPU / alone. Not applied to
  /// predictions: kernel times are means over all calls.
  double slowdown = 1;
  friend bool operator==(const MeasuredTrainer&, const MeasuredTrainer&) = default;
};

/// The times of MeasuredTrainer, in the order of calibration files.
struct TrainerTime {
  std::string_view key;
  Seconds MeasuredTrainer::*time;
};
inline constexpr TrainerTime kTrainerTimes[] = {
    {"step_time_ns", &MeasuredTrainer::step_time},
    {"host_per_kernel_ns", &MeasuredTrainer::host_per_kernel},
    {"host_per_collective_ns", &MeasuredTrainer::host_per_collective},
    {"host_per_layer_forward_ns", &MeasuredTrainer::host_per_layer_forward},
    {"host_per_layer_backward_ns", &MeasuredTrainer::host_per_layer_backward},
    {"host_per_step_ns", &MeasuredTrainer::host_per_step}};

struct Calibration {
  std::map<std::string, std::string> provenance;  ///< "device", "date", "command" → text
  std::optional<MeasuredMachine> machine = {};    ///< absent: the machine is not described
  std::vector<CollectiveCurve> collectives;       ///< distinct shapes
  std::vector<KernelCurve> kernels = {};          ///< distinct families
  std::optional<MeasuredTrainer> trainer = {};    ///< absent: kernels were measured alone
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

inline constexpr std::size_t kMostCurves = 4096, kMostCurvePoints = 4096;
inline constexpr std::size_t kMostKernelPoints = 65'536;  ///< over all families

/// Reports all problems: impossible or duplicate shapes, collective sizes or times that are not
/// increasing, negative sizes, times that are not positive.
std::vector<Diagnostic> check_calibration(const Calibration& calibration, const std::string& where);

/// Interpolated time at a size within the curve: linear in log-log space, so the result is monotone
/// if the points are. A knee between two points is smoothed: for a curve alpha + S / beta sampled
/// at powers of two the error is at most 1.51 %, reached if the knee S = alpha beta is midway
/// between two points: sqrt((1 + 2^-0.5) (1 + 2^0.5)) / 2 = 1.01505. `bytes` must be between the
/// first and the last point. O(log points).
Seconds time_on_curve(const CollectiveCurve& curve, Bytes bytes);

/// Least-squares fit of alpha + S / beta to the points, minimizing relative errors. alpha is the
/// startup latency, beta the bandwidth with respect to the whole buffer; neither is negative.
/// Empty if all points have the same size or if times do not increase with size.
struct AlphaBeta {
  Seconds alpha;
  BytesPerSecond beta;
  friend bool operator==(const AlphaBeta&, const AlphaBeta&) = default;
};
std::optional<AlphaBeta> alpha_beta_of(const CollectiveCurve& curve);

/// Turns unordered measurements into a curve: points of equal size are averaged, and times that
/// decrease with size are replaced by the nearest non-decreasing sequence in log time (isotonic
/// regression by pool adjacent violators; Barlow et al., Statistical Inference under Order
/// Restrictions, 1972).
struct LevelledPoints {
  std::vector<CurvePoint> points;
  int moved = 0;        ///< number of points changed
  double furthest = 0;  ///< largest relative change
};
LevelledPoints level_points(std::vector<CurvePoint> measured);

/// JSON with `schema`, `provenance`, `collectives`, and, if measured, `machine`, `kernels`,
/// `trainer`; times in nanoseconds.
std::string to_json(const Calibration& calibration);
/// Throws InputError with the JSON pointer, the expected and the actual value.
Calibration calibration_from_json(std::string_view text, std::string_view where);

}  // namespace meshwright
