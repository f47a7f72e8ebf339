/// Measured collectives in cluster and device files.
///
///   [devices.a100.collectives]            # in a device file: [collectives]
///   own_part = 0.45
///   [devices.a100.collectives.simple]     # also ll, ll128, nvls
///   base = "17.8 us"
///   hop = 1.4
///   bandwidth = 0.99
///   blend = 0.9
///   [devices.a100.collectives.all_to_all]
///   small_base = "9 us"
///   [fabric.collectives]
///   base = "20 us"
///
/// Absent keys have the defaults of core/collective_parameters.hpp.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/collective_parameters.hpp"
#include "models/toml_reader.hpp"

namespace meshwright {

CollectiveParameters read_collective_parameters(TomlReader& reader);
NetworkParameters read_network_parameters(TomlReader& reader);

/// One table to be written; keys with default values are left out.
struct ParameterTable {
  std::string name;  ///< "simple"; empty: the outer table
  struct Line {
    std::string key;
    std::variant<double, Seconds> value;
  };
  std::vector<Line> lines;
};
/// The outer table first. Reading them back gives the same parameters.
std::vector<ParameterTable> tables_of(const CollectiveParameters& parameters);
std::vector<ParameterTable> tables_of(const NetworkParameters& parameters);

}  // namespace meshwright
