/// Texts of the folders presets, clusters, collectives, devices, trainers and published, embedded
/// by embed_presets.cmake.
#pragma once

#include <span>
#include <string_view>

namespace meshwright {

struct EmbeddedText {
  std::string_view name, text;
};

// All sorted by name.
std::span<const EmbeddedText> embedded_models();
std::span<const EmbeddedText> embedded_clusters();
std::span<const EmbeddedText> embedded_collectives();
std::span<const EmbeddedText> embedded_devices();
std::span<const EmbeddedText> embedded_trainers();
std::span<const EmbeddedText> embedded_published_sets();
/// Errors of predictions for published runs: published/validated-runs.csv.
std::string_view embedded_validated_runs();

}  // namespace meshwright
