#include "cli/reports/timeline_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

constexpr int kRowHeight = 24, kRowGap = 4, kLegendHeight = 22;
constexpr double kLabelWidth = 14;   ///< pixels; narrower boxes have no label
constexpr double kNamesPercent = 6;  ///< of the width, for the names of the ranks
constexpr double kHundred = 100;
constexpr const char* kMixedFill = "#999";
/// Boxes of all rows: a page of two megabytes. The width of the narrowest follows.
constexpr std::int64_t kMostBoxes = 8000;

struct KindStyle {
  TaskKind kind;
  const char* name;
  const char* fill;  ///< Okabe and Ito, "Color Universal Design", 2008
  const char* text;
};
constexpr std::array<KindStyle, 5> kKinds{{
    {TaskKind::kForward, "forward", "#56b4e9", "#000"},
    {TaskKind::kBackward, "backward", "#009e73", "#fff"},
    {TaskKind::kBackwardInput, "backward-input", "#f0e442", "#000"},
    {TaskKind::kBackwardWeight, "backward-weight", "#e69f00", "#000"},
    {TaskKind::kOptimizer, "optimizer", "#cc79a7", "#000"},
}};

const KindStyle& style_of(TaskKind kind) {
  const auto* found = std::ranges::find(kKinds, kind, &KindStyle::kind);
  return found == kKinds.end() ? kKinds.back() : *found;
}

/// A task, or several that are together narrower than the narrowest box.
struct SvgBox {
  const TimelineSpan* first;
  Ticks end;
  int tasks = 1;
  bool is_mixed = false;  ///< tasks of several kinds
};

std::vector<SvgBox> boxes_of(const Timeline& timeline, std::int32_t track, Ticks shortest) {
  std::vector<SvgBox> boxes;
  for (const TimelineSpan& span : timeline.spans) {
    if (span.track != track) continue;
    if (boxes.empty() || span.end - boxes.back().first->start >= shortest) {
      boxes.push_back({.first = &span, .end = span.end});
      continue;
    }
    SvgBox& last = boxes.back();
    last.end = span.end;
    last.is_mixed = last.is_mixed || last.first->kind != span.kind;
    ++last.tasks;
  }
  return boxes;
}

/// Positions on the horizontal axis.
struct SvgScale {
  Ticks begin, span;
  double percent(Ticks time) const {
    const double share = static_cast<double>((time - begin).value) /
                         static_cast<double>(std::max<std::int64_t>(1, span.value));
    return kNamesPercent + (kHundred - kNamesPercent) * share;
  }
};

std::string box_text(const Timeline& timeline, const SvgBox& box, const SvgScale& scale, int top) {
  const TimelineSpan& first = *box.first;
  const KindStyle& style = style_of(first.kind);
  const double left = scale.percent(first.start), width = scale.percent(box.end) - left;
  const std::string title = box.tasks == 1
                                ? std::string(timeline.names[static_cast<std::size_t>(first.name)])
                                : fmt::format("{} tasks from {}", box.tasks,
                                              timeline.names[static_cast<std::size_t>(first.name)]);
  std::string text = fmt::format(
      "<g><title>{}: {} from {} to {}</title><rect x=\"{:.4f}%\" y=\"{}\" width=\"{:.4f}%\" "
      "height=\"{}\" fill=\"{}\"/>",
      escaped_for_html(title), to_text(box.end - first.start), to_text(first.start - scale.begin),
      to_text(box.end - scale.begin), left, top, width, kRowHeight,
      box.is_mixed ? kMixedFill : style.fill);
  if (first.microbatch >= 0 && box.tasks == 1)
    text += fmt::format(
        "<text x=\"{:.4f}%\" y=\"{}\" fill=\"{}\" data-width=\"{:.4f}\"{}>{}</text>",
        left + width / 2, top + kRowHeight * 2 / 3, style.text, width,
        width / kHundred * kSvgWidth < kLabelWidth ? " display=\"none\"" : "", first.microbatch);
  return text + "</g>\n";
}

std::string legend_text(const Timeline& timeline, int top) {
  std::string text;
  double left = kNamesPercent;
  constexpr double kEntryPercent = 14, kTextOffset = 1.2;
  constexpr int kSquare = 12;
  for (const KindStyle& style : kKinds) {
    if (std::ranges::find(timeline.spans, style.kind, &TimelineSpan::kind) == timeline.spans.end())
      continue;
    text += fmt::format(
        "<rect x=\"{:.1f}%\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/><text x=\"{:.1f}%\" "
        "y=\"{}\" class=\"name\">{}</text>\n",
        left, top, kSquare, kSquare, style.fill, left + kTextOffset + 0.3, top + kSquare - 1,
        style.name);
    left += kEntryPercent;
  }
  return text;
}

}  // namespace

std::string timeline_svg(const Timeline& timeline) {
  SvgScale scale{.begin = Ticks(0), .span = makespan(timeline)};
  if (!timeline.spans.empty())
    scale.begin = std::ranges::min(timeline.spans, {}, &TimelineSpan::start).start;
  const std::int64_t ranks =
      std::ranges::count(timeline.tracks, Stream::kCompute, &TimelineTrack::stream);
  const std::int64_t shown = std::min<std::int64_t>(ranks, kMostSvgRows);
  const Ticks shortest(scale.span.value * shown / kMostBoxes);
  std::string rows;
  int top = 0, row = 0;
  for (std::size_t t = 0; t < timeline.tracks.size(); ++t) {
    if (timeline.tracks[t].stream != Stream::kCompute) continue;
    if (++row > kMostSvgRows) break;
    rows += fmt::format("<text x=\"0\" y=\"{}\" class=\"name\">rank {}</text>\n",
                        top + kRowHeight * 2 / 3, timeline.tracks[t].rank.value);
    rows += fmt::format(
        "<rect x=\"{:.1f}%\" y=\"{}\" width=\"{:.1f}%\" height=\"{}\" "
        "class=\"idle\"/>\n",
        kNamesPercent, top, kHundred - kNamesPercent, kRowHeight);
    for (const SvgBox& box : boxes_of(timeline, static_cast<std::int32_t>(t), shortest))
      rows += box_text(timeline, box, scale, top);
    top += kRowHeight + kRowGap;
  }
  const std::string more =
      ranks > shown ? fmt::format("; {} of {} ranks shown", shown, ranks) : std::string();
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" width=\"100%\" "
             "height=\"{}\" font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n"
             "<style>.timeline .name{{text-anchor:start;fill:#555}} .timeline .idle{{fill:#8882}}"
             " .timeline text{{pointer-events:none}}</style>\n"
             "<title>{} on the compute stream of each rank{}</title>\n",
             top + kLegendHeight, to_text(scale.span), more) +
         rows + legend_text(timeline, top + kRowGap) + "</svg>\n";
}

}  // namespace meshwright
