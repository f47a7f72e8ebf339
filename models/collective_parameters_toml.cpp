#include "models/collective_parameters_toml.hpp"

#include <algorithm>
#include <optional>

namespace meshwright {
namespace {

// Measurements outside these bounds are mistakes in the file.
constexpr double kMostTimes = 1000;   ///< of an estimated latency
constexpr double kMostBandwidth = 4;  ///< of an estimated bandwidth
constexpr double kMostOwnPart = 10;
constexpr double kMostBlend = 16;

std::optional<Seconds> optional_seconds(TomlReader& reader, std::string_view key) {
  if (!reader.has(key)) return std::nullopt;
  return reader.seconds(key);
}

/// The reader takes numbers above zero only; zero is the default.
double number_or_zero(TomlReader& reader, std::string_view key, double most) {
  return reader.has(key) ? reader.number(key, most, 1.0) : 0.0;
}

ProtocolParameters read_protocol(TomlReader& reader) {
  ProtocolParameters protocol;
  protocol.base = optional_seconds(reader, "base");
  protocol.hop = reader.number("hop", kMostTimes, protocol.hop);
  protocol.bandwidth = reader.number("bandwidth", kMostBandwidth, protocol.bandwidth);
  protocol.blend = reader.number("blend", kMostBlend, protocol.blend);
  return protocol;
}

ExchangeParameters read_exchange(TomlReader& reader) {
  ExchangeParameters exchange;
  exchange.small_base = optional_seconds(reader, "small_base");
  exchange.large_base = optional_seconds(reader, "large_base");
  exchange.bandwidth = reader.number("bandwidth", kMostBandwidth, exchange.bandwidth);
  exchange.own_part = number_or_zero(reader, "own_part", kMostOwnPart);
  exchange.blend = reader.number("blend", kMostBlend, exchange.blend);
  return exchange;
}

class TableWriter {
 public:
  explicit TableWriter(std::string name) { table_.name = std::move(name); }
  void add(std::string key, double value, double absent) {
    if (value != absent) table_.lines.push_back({std::move(key), value});
  }
  void add(std::string key, const std::optional<Seconds>& value) {
    if (value) table_.lines.push_back({std::move(key), *value});
  }
  ParameterTable take() { return std::move(table_); }

 private:
  ParameterTable table_;
};

ParameterTable protocol_table(std::string name, const ProtocolParameters& protocol) {
  const ProtocolParameters plain;
  TableWriter table(std::move(name));
  table.add("base", protocol.base);
  table.add("hop", protocol.hop, plain.hop);
  table.add("bandwidth", protocol.bandwidth, plain.bandwidth);
  table.add("blend", protocol.blend, plain.blend);
  return table.take();
}

ParameterTable exchange_table(std::string name, const ExchangeParameters& exchange) {
  const ExchangeParameters plain;
  TableWriter table(std::move(name));
  table.add("small_base", exchange.small_base);
  table.add("large_base", exchange.large_base);
  table.add("bandwidth", exchange.bandwidth, plain.bandwidth);
  table.add("own_part", exchange.own_part, plain.own_part);
  table.add("blend", exchange.blend, plain.blend);
  return table.take();
}

}  // namespace

CollectiveParameters read_collective_parameters(TomlReader& reader) {
  CollectiveParameters parameters;
  const auto protocol = [&](std::string_view key, ProtocolParameters& into) {
    reader.table(key, false, [&](TomlReader& r) { into = read_protocol(r); });
  };
  parameters.own_part = number_or_zero(reader, "own_part", kMostOwnPart);
  protocol("ll", parameters.ll);
  protocol("ll128", parameters.ll128);
  protocol("simple", parameters.simple);
  protocol("nvls", parameters.nvls);
  reader.table("all_to_all", false,
               [&](TomlReader& r) { parameters.all_to_all = read_exchange(r); });
  return parameters;
}

NetworkParameters read_network_parameters(TomlReader& reader) {
  NetworkParameters network;
  network.base = reader.seconds("base", network.base);
  network.hop = reader.number("hop", kMostTimes, network.hop);
  network.bandwidth = reader.number("bandwidth", kMostBandwidth, network.bandwidth);
  network.all_to_all = reader.number("all_to_all", kMostBandwidth, network.all_to_all);
  if (reader.has("blend")) network.blend = reader.number("blend", kMostBlend, 1.0);
  return network;
}

std::vector<ParameterTable> tables_of(const CollectiveParameters& parameters) {
  TableWriter outer("");
  outer.add("own_part", parameters.own_part, 0.0);
  std::vector<ParameterTable> tables = {outer.take(),
                                        protocol_table("ll", parameters.ll),
                                        protocol_table("ll128", parameters.ll128),
                                        protocol_table("simple", parameters.simple),
                                        protocol_table("nvls", parameters.nvls),
                                        exchange_table("all_to_all", parameters.all_to_all)};
  const auto is_empty = [](const ParameterTable& t) { return !t.name.empty() && t.lines.empty(); };
  tables.erase(std::remove_if(tables.begin(), tables.end(), is_empty), tables.end());
  return tables;
}

std::vector<ParameterTable> tables_of(const NetworkParameters& network) {
  const NetworkParameters plain;
  TableWriter outer("");
  if (network.base != plain.base) outer.add("base", std::optional(network.base));
  outer.add("hop", network.hop, plain.hop);
  outer.add("bandwidth", network.bandwidth, plain.bandwidth);
  outer.add("all_to_all", network.all_to_all, plain.all_to_all);
  if (network.blend) outer.add("blend", *network.blend, 0.0);
  return {outer.take()};
}

}  // namespace meshwright
