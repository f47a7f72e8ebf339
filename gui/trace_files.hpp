/// Opens timeline files: .pftrace (ours), Chrome JSON (ours and others'), PyTorch Kineto traces,
/// all of them plain or gzipped. Several files are the ranks of one job, laid over each other in
/// time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

struct TraceFileProgress {
  /// Called now and then from the reading thread with bytes read and in all; may throw to stop.
  std::function<void(std::int64_t done, std::int64_t of)> report;
};

/// One job. Clocks of several files are aligned on their collectives: members of one leave it
/// together. InputError names the file and the place in it.
TimelineTracks read_trace_files(const std::vector<std::string>& paths,
                                const TraceFileProgress& progress = {});

/// The same for contents that are in memory; `where` names it in messages.
TimelineTracks tracks_of_trace(std::string_view bytes, const std::string& where,
                               const TraceFileProgress& progress = {});

}  // namespace meshwright::gui
