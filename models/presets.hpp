/// Texts of models/presets, models/clusters and models/devices, embedded by embed_presets.cmake.
#pragma once

#include <span>
#include <string_view>

namespace meshwright {

struct EmbeddedText {
  std::string_view name, text;
};

std::span<const EmbeddedText> embedded_models();    ///< sorted by name
std::span<const EmbeddedText> embedded_clusters();  ///< sorted by name
std::span<const EmbeddedText> embedded_devices();   ///< sorted by name

}  // namespace meshwright
