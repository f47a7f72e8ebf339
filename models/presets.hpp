/// Texts of the folders presets, clusters, devices, trainers and published, embedded by
/// embed_presets.cmake.
#pragma once

#include <span>
#include <string_view>

namespace meshwright {

struct EmbeddedText {
  std::string_view name, text;
};

std::span<const EmbeddedText> embedded_models();          ///< sorted by name
std::span<const EmbeddedText> embedded_clusters();        ///< sorted by name
std::span<const EmbeddedText> embedded_trainers();        ///< sorted by name
std::span<const EmbeddedText> embedded_devices();         ///< sorted by name
std::span<const EmbeddedText> embedded_published_sets();  ///< sorted by name

}  // namespace meshwright
