/// Events of profilers → rows: which stream computes, which slices are passes of which micro-batch,
/// what is communication.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/io_trace_events.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// One file; `rank` where the file does not say it itself.
struct RankTrace {
  TraceEvents events;
  std::int32_t rank = 0;
  std::string where;
  std::int64_t clock_shift_ns = 0;  ///< added to its times (align_clocks)
};

/// PyTorch's pipeline actions: "PP:2F0" is the forward of stage 2, micro-batch 0.
struct PipelineAction {
  std::int32_t stage = 0, microbatch = 0;
  SliceKind kind = SliceKind::kForward;
  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};
/// F, B, I and W; nothing for messages and for names that are none.
std::optional<PipelineAction> pipeline_action(std::string_view name);

/// By category, name and what the slice says of itself.
SliceKind kind_of(const TraceEvents& events, const TraceSlice& slice);

/// Offsets of the files' clocks: members of one collective leave it together, and a message is
/// received when it has been sent. Median over what two files share, along a tree from the lowest
/// rank. Sets clock_shift_ns.
struct ClockAlignment {
  Nanoseconds residual;             ///< median distance of what should coincide, afterwards
  std::size_t shared = 0;           ///< collectives that at least two files have
  std::vector<std::int32_t> alone;  ///< ranks that share none with the others
};
ClockAlignment align_clocks(std::vector<RankTrace>& traces);

/// Rows of all ranks. Slices that nest become rows below each other, four at most.
TimelineTracks tracks_of_events(const std::vector<RankTrace>& traces);

}  // namespace meshwright::gui
