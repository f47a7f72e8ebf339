#include "models/kineto/kineto_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

namespace meshwright {
namespace {

constexpr double kNcclSecondsPerNs = 1e-9;
constexpr int kUsualGpusPerNode = 8;
/// NCCL kernels beyond this share of all calls of one size count as waiting for other ranks.
constexpr double kTransferQuantile = 0.1;

std::optional<CollectiveKind> collective_kind_of(std::string_view name) {
  for (const CollectiveTraits& traits : kCollectives)
    for (const std::string_view part : traits.in_traces)
      if (!part.empty() && name.find(part) != std::string_view::npos) return traits.kind;
  return std::nullopt;
}

/// Whole buffer, as Collective::bytes counts.
std::int64_t buffer_bytes(CollectiveKind kind, const KinetoCollective& c) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 50;
  const std::int64_t ranks = std::max<std::int64_t>(1, c.group_size);
  const std::int64_t all = c.sent <= kMostElements / ranks ? c.sent * ranks : 0;
  const std::int64_t gathered = c.received > 0 ? c.received : all;
  const std::int64_t elements = kind == CollectiveKind::kAllGather ? gathered : c.sent;
  return elements * bytes_of_nccl_type(c.dtype);
}

/// Ranks in "[0, 8, 16]"; empty if the list was truncated ("[0, 1, ...]").
std::vector<std::int64_t> ranks_in_text(std::string_view text) {
  std::vector<std::int64_t> ranks;
  if (text.find("...") != std::string_view::npos) return ranks;
  for (std::size_t i = 0; i < text.size();) {
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), rank);
    if (error == std::errc() && rank >= 0) {
      ranks.push_back(rank);
      i = static_cast<std::size_t>(end - text.data());
    } else {
      ++i;
    }
  }
  return ranks;
}

class CollectiveShapes {
 public:
  CollectiveShapes(const KinetoTrace& trace, const KinetoImportOptions& options)
      : trace_(trace),
        per_node_(
            options.gpus_per_node.value_or(trace.devices > 0 ? trace.devices : kUsualGpusPerNode)) {
    if (!options.gpus_per_node && trace.devices == 0)
      notes_.insert(fmt::format("assumed {} GPUs per node; set --gpus-per-node if different",
                                kUsualGpusPerNode));
  }

  GroupShape shape_of(const KinetoCollective& c) {
    std::vector<std::int64_t> ranks;
    if (const auto at = trace_.groups.find(c.group); at != trace_.groups.end()) ranks = at->second;
    if (ranks.empty()) ranks = ranks_in_text(c.ranks);
    GroupShape shape{
        .ranks = static_cast<int>(std::clamp<std::int64_t>(c.group_size, 0, kMostGroupSize))};
    if (shape.ranks == 0) shape.ranks = static_cast<int>(std::min(ranks.size(), kMostRankList));
    std::set<std::int64_t> nodes;
    for (const std::int64_t rank : ranks) nodes.insert(rank / per_node_);
    shape.nodes = static_cast<int>(nodes.size());
    if (ranks.size() != static_cast<std::size_t>(shape.ranks)) {
      shape.nodes = (shape.ranks + per_node_ - 1) / per_node_;
      notes_.insert("the ranks of some process groups were not recorded: assumed consecutive");
    }
    shape.nodes = std::clamp(shape.nodes, 1, std::max(1, shape.ranks));
    const int on_node = std::max(1, shape.ranks / shape.nodes);
    shape.groups_per_node = shape.nodes == 1 ? 1 : std::max(1, per_node_ / on_node);
    return shape;
  }
  const std::set<std::string>& notes() const { return notes_; }

 private:
  static constexpr std::int64_t kMostGroupSize = std::int64_t{1} << 20;
  static constexpr std::size_t kMostRankList = std::size_t{1} << 20;
  const KinetoTrace& trace_;
  int per_node_;
  std::set<std::string> notes_;
};

double lower_decile(std::vector<double>& times) {
  const auto rank =
      static_cast<std::ptrdiff_t>(kTransferQuantile * static_cast<double>(times.size()));
  std::nth_element(times.begin(), times.begin() + rank, times.end());
  return times[static_cast<std::size_t>(rank)];
}

using CurveKey = std::tuple<CollectiveKind, int, int, int>;
using TimesBySize = std::map<std::int64_t, std::vector<double>>;

/// NCCL kernels by what keeps them from being learned.
struct UnlearnedNccl {
  std::int64_t kernels = 0;
  double seconds = 0;
};

void add_curve(const CurveKey& key, TimesBySize& by_size, const KinetoWindow& window,
               const std::string& source, KinetoCommunication& result) {
  const auto [kind, ranks, nodes, groups] = key;
  CollectiveCurve curve{.kind = kind,
                        .ranks = ranks,
                        .nodes = nodes,
                        .groups_per_node = groups,
                        .points = {},
                        .source = source};
  ImportedFamily family{.name = fmt::format("{} of {} ranks{}", name_of(kind), ranks,
                                            nodes > 1 ? fmt::format(" on {} nodes", nodes) : ""),
                        .note = {}};
  double seconds = 0;
  for (auto& [bytes, times] : by_size) {
    const double transfer = lower_decile(times);
    for (const double time : times) {
      seconds += time;
      result.waiting += std::max(0.0, time - transfer);
    }
    family.kernels += static_cast<std::int64_t>(times.size());
    curve.points.push_back({Bytes(bytes), Seconds(transfer)});
  }
  curve.points = level_points(std::move(curve.points)).points;
  if (curve.points.size() > kMostCurvePoints) curve.points.resize(kMostCurvePoints);
  family.kernels /= window.steps();
  family.time = Seconds(seconds / window.steps());
  family.shapes = static_cast<int>(curve.points.size());
  result.curves.push_back(std::move(curve));
  result.families.push_back(std::move(family));
}

}  // namespace

KinetoCommunication measure_collectives(const KinetoTrace& trace, const KinetoWindow& window,
                                        const KinetoImportOptions& options) {
  KinetoCommunication result;
  CollectiveShapes shapes(trace, options);
  std::map<CurveKey, TimesBySize> curves;
  std::map<std::string, UnlearnedNccl> unlearned;
  for (const KinetoGpuWork& work : trace.gpu) {
    if (!is_communication(trace, work) || !window.contains(work.start_ns)) continue;
    const double seconds = static_cast<double>(work.end_ns - work.start_ns) * kNcclSecondsPerNs;
    result.total += seconds;
    const auto skip = [&](const std::string& why) {
      unlearned[why].seconds += seconds;
      ++unlearned[why].kernels;
    };
    if (work.collective < 0) {
      skip("NCCL kernels without sizes");
      continue;
    }
    const KinetoCollective& c = trace.collectives[static_cast<std::size_t>(work.collective)];
    const auto kind = collective_kind_of(c.name);
    const std::int64_t bytes = kind ? buffer_bytes(*kind, c) : 0;
    const GroupShape shape = shapes.shape_of(c);
    if (!kind || bytes <= 0 || shape.ranks < 2 || seconds <= 0) {
      skip(kind ? fmt::format("{} without sizes", name_of(*kind))
                : fmt::format("NCCL {}", c.name.substr(0, 60)));
      continue;
    }
    curves[{*kind, shape.ranks, shape.nodes, shape.groups_per_node}][bytes].push_back(seconds);
  }
  for (auto& [key, by_size] : curves)
    if (result.curves.size() < kMostCurves) add_curve(key, by_size, window, options.source, result);
  for (const auto& [name, sum] : unlearned)
    result.families.push_back({.name = name,
                               .kernels = sum.kernels / window.steps(),
                               .time = Seconds(sum.seconds / window.steps()),
                               .note = "no size, or not a collective that a curve describes"});
  result.notes.assign(shapes.notes().begin(), shapes.notes().end());
  return result;
}

}  // namespace meshwright
