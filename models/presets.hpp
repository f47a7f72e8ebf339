/// Texts of models/presets, models/clusters, models/devices and models/trainers, embedded by
/// embed_presets.cmake.
#pragma once

#include <span>
#include <string_view>

namespace meshwright {

struct EmbeddedText {
  std::string_view name, text;
};

std::span<const EmbeddedText> embedded_models();    ///< sorted by name
std::span<const EmbeddedText> embedded_clusters();  ///< sorted by name
std::span<const EmbeddedText> embedded_trainers();  ///< sorted by name
std::span<const EmbeddedText> embedded_devices();   ///< sorted by name

}  // namespace meshwright
