/// Measured figures that take the place of formulas: so far curves of collectives, time against
/// size. Written by `import` from the output of nccl-tests, read wherever a cluster is given.
#pragma once

#include <map>
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

struct Calibration {
  std::map<std::string, std::string> provenance;  ///< "device", "date", "command" → what was said
  std::vector<CollectiveCurve> collectives;       ///< shapes differ
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

inline constexpr std::size_t kMostCurves = 4096, kMostCurvePoints = 4096;

/// All that is wrong: shapes that cannot be or stand twice, sizes or times that do not rise.
std::vector<Diagnostic> check_calibration(const Calibration& calibration, const std::string& where);

/// Time at a size inside the curve: straight between neighbours when both axes are logarithms, so
/// that it never falls where the points do not. A knee between two points is cut off; an alpha-beta
/// curve alpha + S / beta measured at powers of two is met within 1.51 %: worst where the knee, S =
/// alpha beta, is the middle of two points, sqrt((1 + 2^-0.5) (1 + 2^0.5)) / 2 = 1.01505.
/// `bytes` must lie between the first and the last point. O(log points).
Seconds time_on_curve(const CollectiveCurve& curve, Bytes bytes);

/// Measurements in any order → a curve: equal sizes are averaged, and times that fall with size are
/// levelled to the nearest rising sequence in log time (pool adjacent violators; Barlow et al.,
/// Statistical Inference under Order Restrictions, 1972).
struct LevelledPoints {
  std::vector<CurvePoint> points;
  int moved = 0;        ///< points whose time was changed
  double furthest = 0;  ///< largest relative change
};
LevelledPoints level_points(std::vector<CurvePoint> measured);

/// Text form: JSON with `schema`, `provenance`, `collectives`; times in nanoseconds.
std::string to_json(const Calibration& calibration);
/// Throws InputError: JSON pointer, expected and got.
Calibration calibration_from_json(std::string_view text, std::string_view where);

}  // namespace meshwright
