#include "core/cost/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

bool is_positive(Seconds time) {  // false for NaN
  return time.value > 0 && time.value <= std::numeric_limits<double>::max();
}

void check_shape(const CollectiveCurve& curve, const std::string& place,
                 std::vector<Diagnostic>& found) {
  if (curve.ranks < 2 || curve.nodes < 1 || curve.nodes > curve.ranks)
    found.push_back({place,
                     fmt::format("invalid group of {} ranks on {} nodes", curve.ranks, curve.nodes),
                     "use at least 2 ranks, and at least one rank per node"});
  if (curve.groups_per_node < 1 || (curve.nodes == 1 && curve.groups_per_node != 1))
    found.push_back({place + "/groups_per_node",
                     fmt::format("invalid number of concurrent groups {} for {} nodes",
                                 curve.groups_per_node, curve.nodes),
                     "use 1 for a single node, or the number of groups that ran concurrently"});
}

void check_points(const CollectiveCurve& curve, const std::string& place,
                  std::vector<Diagnostic>& found) {
  if (curve.points.empty())
    found.push_back({place + "/points", "must not be empty", "add at least one point"});
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const CurvePoint& point = curve.points[i];
    const std::string here = fmt::format("{}/points/{}", place, i);
    if (point.bytes.value < 1 || !is_positive(point.time)) {
      found.push_back({here,
                       fmt::format("size and time must be positive, got {} bytes in {} s",
                                   point.bytes.value, point.time.value),
                       "remove the point, or calibrate again"});
      return;
    }
    if (i == 0) continue;
    const CurvePoint& before = curve.points[i - 1];
    if (point.bytes <= before.bytes || point.time < before.time) {
      found.push_back(
          {here,
           fmt::format("sizes must increase and times must not decrease, got {} bytes "
                       "in {} s after {} bytes in {} s",
                       point.bytes.value, point.time.value, before.bytes.value, before.time.value),
           "use 'meshwright import', which smooths measurements"});
      return;
    }
  }
}

void check_machine(const MeasuredMachine& machine, const std::string& place,
                   std::vector<Diagnostic>& found) {
  const auto check = [&](const char* key, double value) {
    if (!is_positive(Seconds(value)))
      found.push_back({place + key, fmt::format("must be positive, got {}", value),
                       "run 'meshwright calibrate' again"});
  };
  check("/cores", machine.cores);
  check("/memory_bytes", static_cast<double>(machine.memory.value));
  check("/message_latency_ns", machine.message_latency.value);
  check("/message_bytes_per_second", machine.message_bandwidth.value);
  check("/memory_bytes_per_second", machine.memory_bandwidth.value);
  if (machine.noise.value != 0) check("/noise_ns", machine.noise.value);
  for (const auto& [dtype, rate] : machine.peak) check("/peak_flop_per_second", rate.value);
}

void check_trainer(const MeasuredTrainer& trainer, const std::string& place,
                   std::vector<Diagnostic>& found) {
  const auto refuse = [&](std::string_view key, double value) {
    found.push_back({fmt::format("{}/{}", place, key),
                     fmt::format("must not be negative, got {}", value), "import the trace again"});
  };
  for (const auto& [key, time] : kTrainerTimes)
    if ((trainer.*time).value != 0 && !is_positive(trainer.*time))
      refuse(key, (trainer.*time).value);
  if (!(trainer.slowdown > 0)) refuse("slowdown", trainer.slowdown);
}

bool are_sizes(const KernelPoint& p) {
  return p.batch >= 1 && p.m >= 0 && p.n >= 0 && p.k >= 0 && p.flops.value >= 0 &&
         p.memory_traffic.value >= 0 && p.samples >= 1 && p.spread >= 0;
}

void check_kernels(const KernelCurve& curve, const std::string& place,
                   std::vector<Diagnostic>& found) {
  if (curve.points.empty())
    found.push_back({place + "/points", "must not be empty", "add at least one point"});
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>> shapes;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const KernelPoint& p = curve.points[i];
    const std::string here = fmt::format("{}/points/{}", place, i);
    if (!is_positive(p.time) || !are_sizes(p)) {
      found.push_back(
          {here,
           fmt::format("sizes must not be negative and times must be positive, got batch {}, m {}, "
                       "n {}, k {} in {} s",
                       p.batch, p.m, p.n, p.k, p.time.value),
           "remove the point, or calibrate again"});
      return;
    }
    if (!shapes.insert({p.batch, p.m, p.n, p.k, p.memory_traffic.value}).second) {
      found.push_back({here, "duplicate shape", "remove one of the points"});
      return;
    }
  }
}

void check_all_kernels(const Calibration& calibration, const std::string& where,
                       std::vector<Diagnostic>& found) {
  std::set<KernelFamily> families;
  std::size_t points = 0;
  for (std::size_t i = 0; i < calibration.kernels.size(); ++i) {
    const KernelCurve& curve = calibration.kernels[i];
    const std::string place = fmt::format("{}/kernels/{}", where, i);
    check_kernels(curve, place, found);
    points += curve.points.size();
    if (!families.insert(curve.family).second)
      found.push_back({place,
                       fmt::format("duplicate kernel family {} {}", name_of(curve.family.routine),
                                   name_of(curve.family.phase)),
                       "move its points to the first one"});
  }
  if (points > kMostKernelPoints)
    found.push_back({where + "/kernels",
                     fmt::format("expected at most {} points, got {}", kMostKernelPoints, points),
                     "remove some of them"});
}

}  // namespace

KernelFamily family_of(const Kernel& kernel) {
  return {kernel.kind, kernel.routine, kernel.phase, kernel.dtype, kernel.causal};
}

KernelPoint point_of(const Kernel& kernel) {
  return {kernel.batch, kernel.m, kernel.n, kernel.k, kernel.flops, kernel.memory_traffic};
}

Kernel kernel_of(const KernelFamily& family, const KernelPoint& point) {
  return {.kind = family.kind,
          .phase = family.phase,
          .routine = family.routine,
          .dtype = family.dtype,
          .causal = family.causal,
          .batch = point.batch,
          .m = point.m,
          .n = point.n,
          .k = point.k,
          .flops = point.flops,
          .memory_traffic = point.memory_traffic,
          .source = {}};
}

std::vector<Diagnostic> check_calibration(const Calibration& calibration,
                                          const std::string& where) {
  std::vector<Diagnostic> found;
  if (calibration.collectives.size() > kMostCurves)
    found.push_back({where + "/collectives",
                     fmt::format("expected at most {} curves, got {}", kMostCurves,
                                 calibration.collectives.size()),
                     "remove some of them"});
  std::set<std::tuple<CollectiveKind, int, int, int>> shapes;
  for (std::size_t i = 0; i < calibration.collectives.size(); ++i) {
    const CollectiveCurve& curve = calibration.collectives[i];
    const std::string place = fmt::format("{}/collectives/{}", where, i);
    check_shape(curve, place, found);
    check_points(curve, place, found);
    if (!shapes.insert({curve.kind, curve.ranks, curve.nodes, curve.groups_per_node}).second)
      found.push_back({place,
                       fmt::format("duplicate curve for {} of {} ranks on {} nodes",
                                   name_of(curve.kind), curve.ranks, curve.nodes),
                       "remove one of them"});
  }
  if (calibration.machine) check_machine(*calibration.machine, where + "/machine", found);
  if (calibration.trainer) check_trainer(*calibration.trainer, where + "/trainer", found);
  check_all_kernels(calibration, where, found);
  return found;
}

Seconds time_on_curve(const CollectiveCurve& curve, Bytes bytes) {
  MW_CHECK(!curve.points.empty());
  MW_CHECK(bytes >= curve.points.front().bytes && bytes <= curve.points.back().bytes);
  const auto right =
      std::lower_bound(curve.points.begin(), curve.points.end(), bytes,
                       [](const CurvePoint& point, Bytes b) { return point.bytes < b; });
  if (right->bytes == bytes) return right->time;
  const auto left = right - 1;
  const double share =
      std::log(ratio(bytes, left->bytes)) / std::log(ratio(right->bytes, left->bytes));
  return left->time * std::pow(ratio(right->time, left->time), share);
}

/// With u = 1 / t and v = S / t: least sum of (alpha u + v / beta - 1)^2.
std::optional<AlphaBeta> alpha_beta_of(const CollectiveCurve& curve) {
  double uu = 0, uv = 0, vv = 0, u_sum = 0, v_sum = 0;
  for (const CurvePoint& point : curve.points) {
    const double u = 1 / point.time.value;
    const double v = static_cast<double>(point.bytes.value) * u;
    uu += u * u, uv += u * v, vv += v * v, u_sum += u, v_sum += v;
  }
  const double determinant = uu * vv - uv * uv;
  constexpr double kOneSize = 1e-12;  // with equal sizes only rounding errors remain
  if (!(determinant > kOneSize * uu * vv)) return std::nullopt;
  double alpha = (u_sum * vv - v_sum * uv) / determinant;
  double per_byte = (v_sum * uu - u_sum * uv) / determinant;
  if (alpha < 0) alpha = 0, per_byte = v_sum / vv;
  if (!(per_byte > 0)) return std::nullopt;
  return AlphaBeta{Seconds(alpha), BytesPerSecond(1 / per_byte)};
}

namespace {

/// Adjacent points pooled because their times decrease; all get the mean of their log times.
struct PooledPoints {
  std::size_t first = 0, count = 1;
  double log_time = 0;
};

void join_falling(std::vector<PooledPoints>& blocks) {
  while (blocks.size() > 1) {
    const PooledPoints last = blocks.back();
    PooledPoints& before = blocks[blocks.size() - 2];
    if (before.log_time <= last.log_time) return;
    const double sum = before.log_time * static_cast<double>(before.count) +
                       last.log_time * static_cast<double>(last.count);
    before.count += last.count;
    before.log_time = sum / static_cast<double>(before.count);
    blocks.pop_back();
  }
}

/// Sorts the points by size and averages the times of equal sizes.
std::vector<CurvePoint> averaged(std::vector<CurvePoint> measured) {
  std::stable_sort(measured.begin(), measured.end(),
                   [](const CurvePoint& a, const CurvePoint& b) { return a.bytes < b.bytes; });
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < measured.size();) {
    std::size_t end = i;
    Seconds sum;
    for (; end < measured.size() && measured[end].bytes == measured[i].bytes; ++end)
      sum += measured[end].time;
    points.push_back({measured[i].bytes, sum / static_cast<double>(end - i)});
    i = end;
  }
  return points;
}

}  // namespace

LevelledPoints level_points(std::vector<CurvePoint> measured) {
  for (const CurvePoint& point : measured) MW_CHECK(is_positive(point.time));
  LevelledPoints result{.points = averaged(std::move(measured))};
  std::vector<PooledPoints> blocks;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    blocks.push_back({.first = i, .log_time = std::log(result.points[i].time.value)});
    join_falling(blocks);
  }
  for (const PooledPoints& block : blocks) {
    if (block.count == 1) continue;
    const Seconds level(std::exp(block.log_time));
    for (std::size_t i = block.first; i < block.first + block.count; ++i) {
      const double change = std::abs(ratio(level, result.points[i].time) - 1);
      result.moved += change > 0 ? 1 : 0;
      result.furthest = std::max(result.furthest, change);
      result.points[i].time = level;
    }
  }
  return result;
}

}  // namespace meshwright
