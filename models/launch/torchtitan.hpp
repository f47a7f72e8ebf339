/// torchtitan v0.2.2, the last version with job files in TOML: torchtitan/config/job_config.py.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/model/model_graph.hpp"

namespace meshwright {

/// A model of torchtitan (torchtitan/models/*/__init__.py), whose sizes are those of a preset.
struct TorchtitanFlavor {
  std::string_view model, flavor;  ///< keys `name` and `flavor` of table [model]
  std::string_view preset;
};
std::span<const TorchtitanFlavor> torchtitan_flavors();
/// The flavor with the same layers; null if there is none.
const TorchtitanFlavor* find_torchtitan_flavor(const ModelGraph& model);

}  // namespace meshwright
