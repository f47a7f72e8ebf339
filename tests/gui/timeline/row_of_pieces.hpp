/// Builds tracks with a single row from a list of slices.
#pragma once

#include <vector>

#include "gui/timeline/colors.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

struct Piece {
  SliceKind kind;
  int microbatch;
  std::int64_t from, to;  ///< nanoseconds
};

/// The compute row of rank 0; times are shifted so that the first start is zero.
inline TimelineTracks row_of_pieces(const std::vector<Piece>& pieces) {
  TracksBuilder builder;
  builder.add_row(
      {.label = "compute", .rank = 0, .stream = 0, .pipeline_rank = 0, .is_compute = true});
  for (const Piece& piece : pieces)
    builder.add({.start_ns = piece.from,
                 .duration_ns = piece.to - piece.from,
                 .label = builder.label(name_of(piece.kind), 0),
                 .kind = piece.kind,
                 .microbatch = static_cast<std::uint16_t>(piece.microbatch)});
  return builder.finish();
}

}  // namespace meshwright::gui
