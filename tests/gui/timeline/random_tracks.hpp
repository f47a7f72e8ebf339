/// Random tracks for tests and benchmarks, reproducible by seed.
#pragma once

#include <random>
#include <string>

#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

struct RandomTracks {
  int rows = 4;
  int slices_per_row = 100;
  std::int64_t longest_ns = 2000;  ///< longest slice; gaps are at most half as long
};

/// One compute row per rank.
inline TimelineTracks random_tracks(unsigned seed, const RandomTracks& shape = {}) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  TracksBuilder builder;
  builder.reserve(static_cast<std::size_t>(shape.rows) *
                  static_cast<std::size_t>(shape.slices_per_row));
  for (int row = 0; row < shape.rows; ++row) {
    builder.add_row(
        {.label = "compute", .rank = row, .stream = 0, .pipeline_rank = row, .is_compute = true});
    std::int64_t now = below(shape.longest_ns);
    std::array<std::uint32_t, 4> labels{};
    for (std::size_t k = 0; k < labels.size(); ++k)
      labels[k] = builder.label(name_of(static_cast<SliceKind>(k)), row);
    for (int i = 0; i < shape.slices_per_row; ++i) {
      if (below(2) == 0) now += below(shape.longest_ns / 2 + 1);
      const std::int64_t duration = below(shape.longest_ns + 1);
      const auto kind = static_cast<std::size_t>(below(4));
      builder.add({.start_ns = now,
                   .duration_ns = duration,
                   .label = labels[kind],
                   .kind = static_cast<SliceKind>(kind),
                   .microbatch = static_cast<std::uint16_t>(i % 512)});
      now += duration;
    }
  }
  return builder.finish();
}

}  // namespace meshwright::gui
