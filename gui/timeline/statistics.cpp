#include "gui/timeline/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace meshwright::gui {
namespace {

RowStatistics row_statistics(const TimelineTracks& tracks, std::size_t row,
                             const TimelineArea& area) {
  RowStatistics result{.row = row, .slices = 0, .busy = {}, .idle = {}};
  result.busy = busy_times(tracks, row, area.from, area.to);
  result.idle = area.to - area.from - total(result.busy);
  const std::size_t first = tracks.first_ending_after(row, area.from);
  const std::size_t last = tracks.first_starting_from(row, area.to);
  result.slices = first < last ? last - first : 0;
  return result;
}

void add_idle(const std::vector<IdleSpan>& spans, const TimelineArea& area,
              AreaStatistics& statistics) {
  auto span = std::partition_point(spans.begin(), spans.end(),
                                   [&](const IdleSpan& s) { return s.to <= area.from; });
  for (; span != spans.end() && span->from < area.to; ++span)
    statistics.idle[static_cast<std::size_t>(span->cause)] +=
        std::min(span->to, area.to) - std::max(span->from, area.from);
}

/// Kinds that occur in the area.
std::vector<SliceKind> kinds_of(const AreaStatistics& statistics) {
  std::vector<SliceKind> kinds;
  for (std::size_t k = 0; k < kSliceKindCount; ++k)
    if (statistics.busy[k] > Nanoseconds(0)) kinds.push_back(static_cast<SliceKind>(k));
  return kinds;
}

std::string row_name(const TimelineTracks& tracks, std::size_t row) {
  const TimelineRow& r = tracks.rows[row];
  return r.rank >= 0 ? fmt::format("r{}.{}", r.rank, r.label) : r.label;
}

/// A JSON string; escaped because row labels come from files.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

/// A table with a header, a line per row and a total.
std::vector<std::vector<std::string>> table_of(const TimelineTracks& tracks,
                                               const AreaStatistics& statistics) {
  const std::vector<SliceKind> kinds = kinds_of(statistics);
  std::vector<std::vector<std::string>> table{{"row", "slices"}};
  for (const SliceKind kind : kinds) table[0].push_back(fmt::format("{} ns", name_of(kind)));
  table[0].push_back("idle ns");
  const auto add = [&](std::string name, std::size_t slices, const BusyTimes& busy,
                       Nanoseconds idle) {
    std::vector<std::string> line{std::move(name), fmt::format("{}", slices)};
    for (const SliceKind kind : kinds)
      line.push_back(fmt::format("{}", busy[static_cast<std::size_t>(kind)].value));
    line.push_back(fmt::format("{}", idle.value));
    table.push_back(std::move(line));
  };
  Nanoseconds idle;
  for (const RowStatistics& row : statistics.rows) {
    add(row_name(tracks, row.row), row.slices, row.busy, row.idle);
    idle += row.idle;
  }
  add("total", statistics.slices, statistics.busy, idle);
  return table;
}

}  // namespace

AreaStatistics area_statistics(const TimelineTracks& tracks, const TimelineArea& area,
                               const TimelineCauses* causes) {
  AreaStatistics result{};
  result.span = std::max(Nanoseconds(0), area.to - area.from);
  for (const std::size_t row : area.rows) {
    result.rows.push_back(row_statistics(tracks, row, area));
    const RowStatistics& added = result.rows.back();
    result.slices += added.slices;
    for (std::size_t k = 0; k < kSliceKindCount; ++k) result.busy[k] += added.busy[k];
    if (!tracks.rows[row].is_compute) continue;
    result.compute_span += result.span;
    result.compute_idle += added.idle;
    if (causes != nullptr && row < causes->idle_of_row.size())
      add_idle(causes->idle_of_row[row], area, result);
  }
  return result;
}

std::string to_tsv(const TimelineTracks& tracks, const AreaStatistics& statistics) {
  std::string text;
  for (const auto& line : table_of(tracks, statistics))
    text += fmt::format("{}\n", fmt::join(line, "\t"));
  return text;
}

std::string to_markdown(const TimelineTracks& tracks, const AreaStatistics& statistics) {
  std::string text;
  bool is_header = true;
  for (const auto& line : table_of(tracks, statistics)) {
    text += fmt::format("| {} |\n", fmt::join(line, " | "));
    if (!is_header) continue;
    is_header = false;
    text += "|";
    for (std::size_t c = 0; c < line.size(); ++c) text += c == 0 ? " --- |" : " ---: |";
    text += "\n";
  }
  return text;
}

std::string to_json(const TimelineTracks& tracks, const AreaStatistics& statistics) {
  const auto busy_text = [](const BusyTimes& busy) {
    std::string text;
    for (std::size_t k = 0; k < kSliceKindCount; ++k)
      if (busy[k] > Nanoseconds(0))
        text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",",
                            name_of(static_cast<SliceKind>(k)), busy[k].value);
    return text;
  };
  std::string text =
      fmt::format("{{\"span_ns\":{},\"slices\":{},\"busy_ns\":{{{}}},\"rows\":[",
                  statistics.span.value, statistics.slices, busy_text(statistics.busy));
  for (std::size_t i = 0; i < statistics.rows.size(); ++i) {
    const RowStatistics& row = statistics.rows[i];
    text += fmt::format("{}{{\"row\":{},\"slices\":{},\"busy_ns\":{{{}}},\"idle_ns\":{}}}",
                        i == 0 ? "" : ",", quoted(row_name(tracks, row.row)), row.slices,
                        busy_text(row.busy), row.idle.value);
  }
  return text + "]}";
}

}  // namespace meshwright::gui
