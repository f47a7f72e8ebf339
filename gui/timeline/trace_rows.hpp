/// Converts profiler events to rows: finds the compute stream,
/// the pass and micro-batch of slices, and communication.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/formats/trace_events.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// The trace of one rank; `rank` is a fallback if the file does not specify it.
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
/// Parses F, B, I and W actions; nullopt for messages and other names.
std::optional<PipelineAction> pipeline_action(std::string_view name);

/// Classifies a slice by its category, name and arguments.
SliceKind kind_of(const TraceEvents& events, const TraceSlice& slice);

/// Aligns the clocks of the files: all members leave a collective at
/// the same time. Uses the median over the collectives shared by two
/// files, along a tree from the lowest rank. Sets clock_shift_ns.
struct ClockAlignment {
  Nanoseconds residual;             ///< median distance of shared collective ends after alignment
  std::size_t shared = 0;           ///< collectives in at least two files
  std::vector<std::int32_t> alone;  ///< ranks without shared collectives
};
ClockAlignment align_clocks(std::vector<RankTrace>& traces);

/// Builds the rows of all ranks. Nested slices become separate rows, at most four levels.
TimelineTracks tracks_of_events(const std::vector<RankTrace>& traces);

}  // namespace meshwright::gui
