/// Reads parameters that are visited by core/cluster/device_parameters.hpp and
/// core/cluster/visit_collective_parameters.hpp; an absent one keeps its value.
#pragma once

#include <optional>
#include <string_view>

#include "core/cluster/device_parameters.hpp"
#include "models/text/toml_reader.hpp"

namespace meshwright {

struct ParameterReader {
  TomlReader& reader;
  void operator()(std::string_view key, double& value, ParameterBounds bounds) const {
    value = bounds.positive ? reader.number(key, bounds.most, value)
                            : reader.number(key, bounds.least, bounds.most, value);
  }
  void operator()(std::string_view key, std::optional<double>& value,
                  ParameterBounds bounds) const {
    if (reader.has(key)) value = reader.number(key, bounds.most, bounds.most);
  }
  void operator()(std::string_view key, Seconds& value, ParameterBounds /*checked later*/) const {
    value = reader.seconds(key, value);
  }
  void operator()(std::string_view key, std::optional<Seconds>& value,
                  ParameterBounds /*checked later*/) const {
    if (reader.has(key)) value = reader.seconds(key);
  }
  void operator()(std::string_view key, Bytes& value, ParameterBounds /*checked later*/) const {
    value = reader.bytes(key, value);
  }
};

}  // namespace meshwright
