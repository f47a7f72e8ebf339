/// Builds tracks from a list of slices per row.
#pragma once

#include <vector>

#include "gui/timeline/colors.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

constexpr SliceKind kF = SliceKind::kForward, kB = SliceKind::kBackward,
                    kI = SliceKind::kBackwardInput, kW = SliceKind::kBackwardWeight,
                    kO = SliceKind::kOptimizer, kH = SliceKind::kHost;

struct Piece {
  SliceKind kind;
  int microbatch;
  std::int64_t from, to;  ///< nanoseconds
};

/// The compute rows of ranks 0, 1, …, all of pipeline rank and stage 0; times are shifted so that
/// the first start is zero.
inline TimelineTracks rows_of_pieces(const std::vector<std::vector<Piece>>& rows) {
  TracksBuilder builder;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    builder.add_row({.label = "compute",
                     .rank = static_cast<std::int32_t>(r),
                     .stream = 0,
                     .pipeline_rank = 0,
                     .is_compute = true});
    for (const Piece& piece : rows[r])
      builder.add({.start_ns = piece.from,
                   .duration_ns = piece.to - piece.from,
                   .label = builder.label(name_of(piece.kind), 0),
                   .kind = piece.kind,
                   .microbatch = static_cast<std::uint16_t>(piece.microbatch)});
  }
  return builder.finish();
}

inline TimelineTracks row_of_pieces(const std::vector<Piece>& pieces) {
  return rows_of_pieces({pieces});
}

}  // namespace meshwright::gui
