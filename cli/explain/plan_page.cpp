#include "cli/explain/plan_page.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "cli/reports/report.hpp"
#include "cli/reports/timeline_svg.hpp"
#include "core/plan/strategy_text.hpp"

namespace meshwright {
namespace {

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1280px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.5em; margin-bottom: 0 } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; display: block; overflow-x: auto }
th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap }
th:first-child, td:first-child, .left { text-align: left }
#scroll { overflow-x: auto } #clicked { min-height: 1.5em; color: #777 }
.timeline .name { paint-order: stroke; stroke: Canvas; stroke-width: 5px; stroke-linejoin: round }
.timeline g { cursor: pointer } .timeline g:hover rect { stroke: #d55e00; stroke-width: 2 }
.sources { font-size: .85em } .sources span { color: #777; overflow-wrap: anywhere }
@page { size: A4 landscape; margin: 12mm }
@media print {
  .screen { display: none } body { font-size: 9pt; margin: 0; max-width: none }
  table { display: table } th, td { padding: .15em .5em } tr, li { break-inside: avoid }
  h2 { break-after: avoid } #scroll { overflow: visible }
}
</style>
)";

/// Zooms around the middle of what is visible; labels appear where there is room, and the names of
/// the ranks stay at the left edge, above the tasks.
constexpr const char* kScript = R"(<script>
const scroll = document.getElementById("scroll"), svg = scroll.querySelector("svg");
const ranks = svg.querySelectorAll('.name[x="0"]');
svg.append(...ranks);
scroll.addEventListener("scroll", () => ranks.forEach(name => name.setAttribute("x", scroll.scrollLeft)));
let zoom = 1;
function setZoom(value, anchor) {
  const x = (scroll.scrollLeft + anchor) / zoom;
  zoom = Math.min(200, Math.max(1, value));
  svg.style.width = 100 * zoom + "%";
  scroll.scrollLeft = x * zoom - anchor;
  const pixels = scroll.clientWidth * zoom / 100;
  for (const label of svg.querySelectorAll("text[data-width]"))
    label.setAttribute("display", label.dataset.width * pixels < 14 ? "none" : "inline");
}
const middle = () => scroll.clientWidth / 2;
document.getElementById("in").onclick = () => setZoom(zoom * 2, middle());
document.getElementById("out").onclick = () => setZoom(zoom / 2, middle());
scroll.addEventListener("wheel", event => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  setZoom(zoom * Math.exp(-event.deltaY / 300), event.clientX - scroll.getBoundingClientRect().left);
}, { passive: false });
svg.addEventListener("click", event => {
  const title = event.target.closest("g")?.querySelector("title");
  if (title) document.getElementById("clicked").textContent = title.textContent;
});
</script>
)";

std::string section(std::string_view title, const std::string& content) {
  return fmt::format("<h2>{}</h2>\n{}", title, content);
}

std::string timeline_section(const Timeline& timeline) {
  return section(
      "Timeline of one step",
      "<p class=\"screen\"><button id=\"in\">zoom in</button> <button id=\"out\">zoom out</button> "
      "Ctrl and wheel zoom too; click on a task for its name and times. Numbers are "
      "micro-batches.</p>\n<div id=\"scroll\">\n" +
          timeline_svg(timeline) + "</div>\n<p id=\"clicked\" class=\"screen\"></p>\n");
}

/// One line per source, with the figures taken from it.
std::string sources_list(const Job& job, const std::string& validation) {
  std::string text =
      fmt::format("<p>Cost model: {}; {}.</p>\n<ul class=\"sources\">\n",
                  escaped_for_html(job.cost_model->provenance()), escaped_for_html(validation));
  std::map<std::string, std::vector<std::string>> figures_by_source;
  for (const auto& [figure, source] : job.cluster.sources)
    figures_by_source[source].push_back(figure);
  for (const auto& [source, figures] : figures_by_source)
    text += fmt::format("<li>{}: <span>{}</span></li>\n", escaped_for_html(source),
                        escaped_for_html(fmt::format("{}", fmt::join(figures, ", "))));
  return text + "</ul>\n";
}

}  // namespace

std::string plan_page(const Job& job, const Explanation& e, const Timeline& timeline) {
  const Strategy& s = job.file.plan.strategy;
  const std::string title = escaped_for_html(fmt::format(
      "{} on {}: {} GPUs, global batch size {}, sequence length {}", job.file.model_name,
      job.file.cluster_name, rank_count(s.degrees), s.global_batch, s.sequence_length));
  std::string page = kHead;
  page += fmt::format("<title>{}</title></head><body>\n<h1>{}</h1>\n<p>{}</p>\n", title, title,
                      escaped_for_html(strategy_text(s)));
  page += to_html(figures_list(e.figures));
  if (!e.figures.why.empty()) page += fmt::format("<p>{}</p>\n", escaped_for_html(e.figures.why));
  page += timeline_section(timeline);
  page += section("Step time, mean over all ranks", to_html(step_parts_table(e.evaluation)));
  page += section("Step time by pipeline rank", to_html(breakdown_table(e.ranks, e.evaluation)));
  page += section("Peak memory by pipeline rank", to_html(memory_table(e.ranks, e.evaluation)));
  page += section("Single changes", to_html(neighbors_table("this plan", e.figures, e.neighbors)));
  page += section("Assumptions and sources", sources_list(job, e.validation));
  return page + kScript + "</body></html>\n";
}

}  // namespace meshwright
