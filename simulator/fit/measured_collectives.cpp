#include "simulator/fit/measured_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "simulator/fit/csv_table.hpp"

namespace meshwright {
namespace {

constexpr double kMicrosecond = 1e-6;
constexpr double kMostCollectiveRanks = 1e6, kMostCollectiveBytes = 1e15;
constexpr Bytes kLargeCollective(1 << 20);
constexpr double kWeightOfSmall = 0.6;  ///< of messages below 1 MiB, whose times scatter more

bool is_fitted(const CollectiveTraits& traits) {
  return traits.pattern == TrafficPattern::kRing || traits.pattern == TrafficPattern::kPairs;
}
/// "all_reduce"
std::string operation_name(CollectiveKind kind) {
  std::string name(name_of(kind));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
std::optional<CollectiveKind> operation_of(std::string_view name) {
  for (const CollectiveTraits& traits : kCollectives)
    if (is_fitted(traits) && operation_name(traits.kind) == name) return traits.kind;
  return std::nullopt;
}
std::string fitted_operations() {
  std::vector<std::string> names;
  for (const CollectiveTraits& traits : kCollectives)
    if (is_fitted(traits)) names.push_back(operation_name(traits.kind));
  return enumeration(names);
}

double whole_number_in(const CsvTable& table, const CsvTable::Row& row, std::string_view column,
                       double most) {
  const double value = number_in(table, row, column);
  if (value == std::floor(value) && value <= most) return value;
  throw InputError(
      {fmt::format("{}:{}", table.file, row.line),
       fmt::format("invalid value '{}' for '{}': expected a whole number of at most {}", value,
                   column, most),
       ""});
}

/// "2x8 NVSwitch" → 2; 1 if there is neither column.
int nodes_of(const CsvTable& table, const CsvTable::Row& row) {
  if (!table.text(row, "nodes").empty())
    return static_cast<int>(whole_number_in(table, row, "nodes", kMostCollectiveRanks));
  const std::string& topology = table.text(row, "topology");
  int nodes = 0;
  const char* const end = topology.data() + topology.size();
  const auto [after, error] = std::from_chars(topology.data(), end, nodes);
  if (error != std::errc() || after == end || *after != 'x' || nodes < 1) return 1;
  return nodes;
}

MeasuredCollective collective_in(const CsvTable& table, const CsvTable::Row& row,
                                 CollectiveKind kind) {
  MeasuredCollective measured;
  measured.collective.kind = kind;
  measured.collective.group.ranks =
      static_cast<int>(whole_number_in(table, row, "ranks", kMostCollectiveRanks));
  measured.collective.bytes =
      Bytes(static_cast<std::int64_t>(whole_number_in(table, row, "bytes", kMostCollectiveBytes)));
  measured.time = Seconds(number_in(table, row, "time_us") * kMicrosecond);
  measured.weight = measured.collective.bytes < kLargeCollective ? kWeightOfSmall : 1.0;
  return measured;
}

using ErrorsByOperation = std::map<std::string, std::vector<double>, std::less<>>;
void add_errors(const std::vector<MeasuredCollective>& rows, const std::vector<double>& errors,
                ErrorsByOperation& into) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].collective.bytes >= kLargeCollective)
      into[operation_name(rows[i].collective.kind)].push_back(errors[i]);
}

/// A number in [0, 1) that depends on the shape only.
double share_of_shape(const Collective& collective) {
  constexpr std::uint64_t kOddMultiplier = 0x9E3779B97F4A7C15ULL;  // golden ratio (Knuth)
  const auto shape = static_cast<std::uint64_t>(collective.group.ranks) * 16 +
                     static_cast<std::uint64_t>(collective.kind) + 1;
  constexpr int kBits = 53;
  return static_cast<double>((shape * kOddMultiplier) >> (64 - kBits)) / std::exp2(kBits);
}

constexpr CollectiveFitScope kDeviceOnly{.device = true, .network = false};

}  // namespace

MeasuredCollectives read_measured_collectives(std::string_view text, const std::string& file,
                                              const std::string& device) {
  const CsvTable table = read_csv_table(text, file);
  MeasuredCollectives measured;
  std::map<std::string, int> skipped;
  for (const CsvTable::Row& row : table.rows) {
    if (!device.empty() && table.has("device") && table.text(row, "device") != device) continue;
    const std::optional<CollectiveKind> kind = operation_of(table.text(row, "op"));
    if (!kind)
      ++skipped["operations other than " + fitted_operations()];
    else if (table.text(row, "note").find("not NCCL") != std::string::npos)
      ++skipped["kernels other than NCCL's"];
    else if (nodes_of(table, row) > 1)
      ++skipped["collectives across nodes, whose parameters belong to a network"];
    else if (const MeasuredCollective one = collective_in(table, row, *kind);
             one.collective.group.ranks > 1)
      measured.rows.push_back(one);
  }
  for (const auto& [reason, count] : skipped)
    measured.notes.push_back(fmt::format("{} rows skipped: {}", count, reason));
  return measured;
}

DeviceCollectivesFit fit_device_collectives(const Cluster& cluster,
                                            const std::vector<MeasuredCollective>& all,
                                            double holdout) {
  const int most_ranks = cluster.nodes.at(cluster.groups.front().node).device_count;
  std::vector<MeasuredCollective> rows, known, held_back;
  for (const MeasuredCollective& row : all) {
    if (row.collective.group.ranks > most_ranks) continue;
    rows.push_back(row);
    (share_of_shape(row.collective) < holdout ? held_back : known).push_back(row);
  }
  const CollectiveFit fit = fit_collectives({cluster}, rows, kDeviceOnly);
  ErrorsByOperation fitted, unseen;
  add_errors(rows, fit.errors, fitted);
  if (!held_back.empty() && !known.empty()) {
    Cluster without = cluster;
    for (auto& [key, device] : without.devices)
      device.collectives = fit_collectives({cluster}, known, kDeviceOnly).device;
    add_errors(held_back, collective_errors(std::span(&without, 1), held_back), unseen);
  }
  DeviceCollectivesFit result{fit.device, {}};
  for (const auto& [operation, errors] : fitted)
    result.families.push_back({operation, figures_of(errors), figures_of(unseen[operation])});
  return result;
}

}  // namespace meshwright
