/// Measured figures that take the place of formulas: curves of collectives, time against size, and
/// times of kernels at many shapes. Written by `import` from the output of nccl-tests and by
/// `calibrate` from this machine, read wherever a cluster is given.
///
/// Whatever was measured belongs to a device and a kernel, never to a model or a plan.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/kernel.hpp"
#include "core/units.hpp"

namespace meshwright {

struct CurvePoint {
  Bytes bytes;   ///< the whole buffer, as Collective::bytes counts
  Seconds time;  ///< of one call, launch included
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// One collective on one shape of group.
struct CollectiveCurve {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int ranks = 2;
  int nodes = 1;
  int groups_per_node = 1;         ///< groups that ran at the same time; 1 where nodes is 1
  std::vector<CurvePoint> points;  ///< sizes ascend, times do not fall
  std::string source;              ///< file or publication, device, software
  friend bool operator==(const CollectiveCurve&, const CollectiveCurve&) = default;
};

/// One kernel at one shape: what Kernel says of it, and the time of a call: the mean of several.
struct KernelPoint {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;  ///< 0 where the kernel has no such size
  Flops flops = {};
  Bytes memory_traffic = {};
  Seconds time = {};
  double spread = 0;  ///< interquartile range over the median
  int samples = 1;
  friend bool operator==(const KernelPoint&, const KernelPoint&) = default;
};

/// Kernels that are the same code and differ in size alone.
struct KernelFamily {
  KernelKind kind = KernelKind::kMemoryBound;
  Routine routine = Routine::kProduct;
  Phase phase = Phase::kForward;
  Dtype dtype = Dtype::kFp32;
  bool causal = false;  ///< attention
  friend auto operator<=>(const KernelFamily&, const KernelFamily&) = default;
};
KernelFamily family_of(const Kernel& kernel);
KernelPoint point_of(const Kernel& kernel);  ///< its sizes; no time
/// A kernel of the family with the point's sizes: what a curve is asked about.
Kernel kernel_of(const KernelFamily& family, const KernelPoint& point);

struct KernelCurve {
  KernelFamily family;
  std::vector<KernelPoint> points;  ///< shapes differ
  friend bool operator==(const KernelCurve&, const KernelCurve&) = default;
};

/// What a GPU does beside kernels.
struct MeasuredGpu {
  int count = 1;                          ///< GPUs of the machine
  Seconds launch_overhead;                ///< of one small kernel behind the other
  BytesPerSecond to_device, from_device;  ///< large copies of memory of the host
  BytesPerSecond memory;                  ///< a large copy on the device: read and written
  friend bool operator==(const MeasuredGpu&, const MeasuredGpu&) = default;
};

/// The machine whose kernels were measured: all that a cluster of its cores, or GPUs, needs.
struct MeasuredMachine {
  std::string processor;  ///< "AMD EPYC 7003"
  int cores = 1;
  Bytes memory;
  Seconds message_latency;               ///< between two ranks that are threads
  BytesPerSecond message_bandwidth;      ///< one message, handed over and taken in
  BytesPerSecond memory_bandwidth;       ///< one core, large streams
  std::map<Dtype, FlopsPerSecond> peak;  ///< one core, best product
  /// By how much equal ranks differ: work of T takes T with a variance of noise T. 0: by nothing.
  Seconds noise = {};
  std::optional<MeasuredGpu> gpu = {};  ///< then all of the above is the GPU's, but for the cores
  friend bool operator==(const MeasuredMachine&, const MeasuredMachine&) = default;
};

struct Calibration {
  std::map<std::string, std::string> provenance;  ///< "device", "date", "command" → what was said
  std::optional<MeasuredMachine> machine = {};    ///< absent: figures of some other machine
  std::vector<CollectiveCurve> collectives;       ///< shapes differ
  std::vector<KernelCurve> kernels = {};          ///< families differ
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

inline constexpr std::size_t kMostCurves = 4096, kMostCurvePoints = 4096;
inline constexpr std::size_t kMostKernelPoints = 65'536;  ///< in all families

/// All that is wrong: shapes that cannot be or stand twice, sizes or times of collectives that do
/// not rise, sizes that are negative, times that are not positive.
std::vector<Diagnostic> check_calibration(const Calibration& calibration, const std::string& where);

/// Time at a size inside the curve: straight between neighbours when both axes are logarithms, so
/// that it never falls where the points do not. A knee between two points is cut off; an alpha-beta
/// curve alpha + S / beta measured at powers of two is met within 1.51 %: worst where the knee, S =
/// alpha beta, is the middle of two points, sqrt((1 + 2^-0.5) (1 + 2^0.5)) / 2 = 1.01505.
/// `bytes` must lie between the first and the last point. O(log points).
Seconds time_on_curve(const CollectiveCurve& curve, Bytes bytes);

/// The line alpha + S / beta that misses the points by least, each by its share of the time (least
/// squares): what a collective costs to start, and the bandwidth of its whole buffer. Neither is
/// negative. Nothing for points of one size, or times that do not rise with size.
struct AlphaBeta {
  Seconds alpha;
  BytesPerSecond beta;
  friend bool operator==(const AlphaBeta&, const AlphaBeta&) = default;
};
std::optional<AlphaBeta> alpha_beta_of(const CollectiveCurve& curve);

/// Measurements in any order → a curve: equal sizes are averaged, and times that fall with size are
/// levelled to the nearest rising sequence in log time (pool adjacent violators; Barlow et al.,
/// Statistical Inference under Order Restrictions, 1972).
struct LevelledPoints {
  std::vector<CurvePoint> points;
  int moved = 0;        ///< points whose time was changed
  double furthest = 0;  ///< largest relative change
};
LevelledPoints level_points(std::vector<CurvePoint> measured);

/// Text form: JSON with `schema`, `provenance`, `collectives`, and, where measured, `machine` and
/// `kernels`; times in nanoseconds.
std::string to_json(const Calibration& calibration);
/// Throws InputError: JSON pointer, expected and got.
Calibration calibration_from_json(std::string_view text, std::string_view where);

}  // namespace meshwright
