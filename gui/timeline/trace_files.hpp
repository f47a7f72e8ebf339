/// Reads timeline files: Meshwright's .pftrace, Chrome JSON (from Meshwright and other programs)
/// and PyTorch Kineto traces, plain or gzipped. Several files are the ranks of one job; their
/// clocks are aligned.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

struct TraceFileProgress {
  /// Called periodically on the reading thread with progress and total; may throw to stop.
  std::function<void(std::int64_t done, std::int64_t of)> report;
};

/// Reads the traces of one job. Clocks of several files are aligned on shared collectives, which
/// all members leave at the same time. Throws InputError with file and location.
TimelineTracks read_trace_files(const std::vector<std::string>& paths,
                                const TraceFileProgress& progress = {});

/// The same for content in memory; `where` is its name in messages.
TimelineTracks tracks_of_trace(std::string_view bytes, const std::string& where,
                               const TraceFileProgress& progress = {});

}  // namespace meshwright::gui
