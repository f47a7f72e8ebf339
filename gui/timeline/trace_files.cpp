#include "gui/timeline/trace_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/formats/file.hpp"
#include "core/formats/gzip.hpp"
#include "core/formats/pftrace.hpp"
#include "gui/timeline/ruler.hpp"
#include "gui/timeline/trace_rows.hpp"

namespace meshwright::gui {
namespace {

bool is_json(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (bytes[first] == '{' || bytes[first] == '[');
}

std::string content_of(const std::string& path) {
  std::string bytes = read_file(path, kLargestTraceFile);
  if (is_gzip(bytes)) return decompress_gzip(bytes, path, kLargestTraceFile);
  return bytes;
}

/// Such files are read piece by piece, since they can be as large as memory.
bool is_plain_pftrace(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::string head = read_part(path, 0, 4096);
  return !is_gzip(head) && !is_json(head);
}

/// The number after the last "rank" in a file name: "rank12_trace.json".
std::optional<std::int32_t> rank_in_name(const std::string& path) {
  const std::size_t folder = path.rfind('/');
  const std::string_view name =
      std::string_view(path).substr(folder == std::string::npos ? 0 : folder + 1);
  std::size_t at = name.rfind("rank");
  if (at == std::string_view::npos) return std::nullopt;
  at += 4;
  while (at < name.size() && (name[at] == '_' || name[at] == '-')) ++at;
  std::int32_t rank = 0;
  const auto result = std::from_chars(name.data() + at, name.data() + name.size(), rank);
  if (result.ec != std::errc() || rank < 0) return std::nullopt;
  return rank;
}

std::string file_name(const std::string& path) {
  const std::size_t folder = path.rfind('/');
  return folder == std::string::npos ? path : path.substr(folder + 1);
}

TimelineTracks tracks_of_ranks(std::vector<RankTrace> traces) {
  std::stable_sort(traces.begin(), traces.end(),
                   [](const RankTrace& a, const RankTrace& b) { return a.rank < b.rank; });
  for (std::size_t i = 1; i < traces.size(); ++i)
    if (traces[i].rank == traces[i - 1].rank)
      throw InputError(
          Diagnostic{traces[i].where,
                     fmt::format("same rank {} as in '{}'", traces[i].rank, traces[i - 1].where),
                     "open one file per rank"});
  std::vector<std::string> notes;
  if (traces.size() > 1) {
    const ClockAlignment alignment = align_clocks(traces);
    if (alignment.shared > 0)
      notes.push_back(fmt::format("clocks aligned on {} shared collectives, residual {}",
                                  alignment.shared, format_time(alignment.residual)));
    if (!alignment.alone.empty())
      notes.push_back(
          fmt::format("ranks {} share no collectives with rank {}: their clocks are not aligned",
                      fmt::join(alignment.alone, ", "), traces.front().rank));
  }
  TimelineTracks tracks = tracks_of_events(traces);
  tracks.notes.insert(tracks.notes.begin(), notes.begin(), notes.end());
  return tracks;
}

RankTrace rank_trace_of(std::string_view bytes, const std::string& where, std::int32_t fallback,
                        const std::function<void(std::size_t)>& progress) {
  RankTrace trace{
      .events = read_trace_events(bytes, where, progress), .rank = fallback, .where = where};
  if (const auto named = rank_in_name(where)) trace.rank = *named;
  if (trace.events.rank && *trace.events.rank >= 0 && *trace.events.rank < 0x7fff'ffff)
    trace.rank = static_cast<std::int32_t>(*trace.events.rank);
  return trace;
}

void refuse_several(const std::string& path) {
  throw InputError(Diagnostic{path, "contains all ranks and cannot be combined with other files",
                              "open it separately, or compare two timelines"});
}

}  // namespace

TimelineTracks tracks_of_trace(std::string_view bytes, const std::string& where,
                               const TraceFileProgress& progress) {
  std::string plain;
  if (is_gzip(bytes)) {
    plain = decompress_gzip(bytes, where, kLargestTraceFile);
    bytes = plain;
  }
  TimelineTracks tracks;
  if (is_json(bytes)) {
    std::vector<RankTrace> traces;
    const auto report = [&](std::size_t read) {
      if (progress.report)
        progress.report(static_cast<std::int64_t>(read), static_cast<std::int64_t>(bytes.size()));
    };
    traces.push_back(rank_trace_of(bytes, where, 0, report));
    tracks = tracks_of_ranks(std::move(traces));
  } else {
    tracks = timeline_tracks_of(timeline_from_pftrace(bytes, where));
  }
  tracks.title = file_name(where);
  return tracks;
}

TimelineTracks read_trace_files(const std::vector<std::string>& paths,
                                const TraceFileProgress& progress) {
  if (paths.empty())
    throw InputError(Diagnostic{"files", "no files given", "select at least one file"});
  std::vector<RankTrace> traces;
  const auto all = static_cast<std::int64_t>(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const bool in_pieces = is_plain_pftrace(paths[i]);
    const std::string bytes = in_pieces ? "" : content_of(paths[i]);
    const std::size_t size = in_pieces ? size_of_file(paths[i]) : bytes.size();
    // Each file counts as 1000 steps of progress, because sizes are not known in advance.
    const auto report = [&](std::size_t read) {
      if (progress.report)
        progress.report(static_cast<std::int64_t>(i) * 1000 +
                            static_cast<std::int64_t>(1000 * read / std::max<std::size_t>(1, size)),
                        all * 1000);
    };
    report(0);
    if (in_pieces || !is_json(bytes)) {
      if (paths.size() > 1) refuse_several(paths[i]);
      TimelineTracks tracks =
          timeline_tracks_of(in_pieces ? read_pftrace(paths[i], report)
                                       : timeline_from_pftrace(bytes, paths[i], report));
      tracks.title = file_name(paths[i]);
      return tracks;
    }
    traces.push_back(rank_trace_of(bytes, paths[i], static_cast<std::int32_t>(i), report));
    if (paths.size() > 1 && traces.back().events.origin) refuse_several(paths[i]);
  }
  TimelineTracks tracks = tracks_of_ranks(std::move(traces));
  tracks.title = paths.size() == 1
                     ? file_name(paths[0])
                     : fmt::format("{} and {} more", file_name(paths[0]), paths.size() - 1);
  return tracks;
}

}  // namespace meshwright::gui
