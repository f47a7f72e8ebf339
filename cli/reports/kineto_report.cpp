#include "cli/reports/kineto_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/reports/report.hpp"
#include "cli/terminal/document.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

using ReportJson = nlohmann::ordered_json;

std::int64_t nanoseconds_of(Seconds time) { return std::llround(1e9 * time.value); }

std::string of_step(Seconds time, const KinetoReport& report) {
  return fmt::format("{} ({})", to_text(time), percent(ratio(time, report.step_time)));
}

std::vector<NamedValue> figures_of(const ImportedTrace& imported) {
  const KinetoReport& r = imported.report;
  const MeasuredTrainer& t = *imported.calibration.trainer;
  std::vector<NamedValue> list{
      {"step time", fmt::format("{} (median of {}; {} to {})", to_text(r.step_time), r.steps,
                                to_text(r.shortest_step), to_text(r.longest_step))},
      {"GPU busy", of_step(r.busy, r)},
      {"idle, waiting for launches", of_step(r.idle_for_host, r)},
      {"idle, other", of_step(r.idle_other, r)}};
  if (r.communication.value > 0) {
    list.push_back({"communication", of_step(r.communication, r)});
    list.push_back({"  beside compute kernels", percent(r.overlapped)});
    list.push_back({"  waiting for other ranks", of_step(r.waiting, r)});
    list.push_back({"  products beside it", fmt::format("{:.2f} x their time alone", t.slowdown)});
  }
  list.push_back({"layers per step", fmt::format("{:.6g}", r.layers)});
  list.push_back({"host per kernel", to_text(t.host_per_kernel)});
  if (t.host_per_collective.value > 0)
    list.push_back({"host per collective", to_text(t.host_per_collective)});
  list.push_back(
      {"host per layer", fmt::format("{} forward, {} backward", to_text(t.host_per_layer_forward),
                                     to_text(t.host_per_layer_backward))});
  list.push_back({"host per step", to_text(t.host_per_step)});
  list.push_back({"gap between kernels", to_text(r.kernel_gap)});
  return list;
}

IndentedTable families_table(const KinetoReport& report) {
  Table table = empty_table(left_aligned("family"), "kernels/step", "time/step", "of step",
                            "shapes", left_aligned(""));
  for (const ImportedFamily& family : report.families)
    table.rows.push_back({family.name, grouped(family.kernels), to_text(family.time),
                          percent(family.share), grouped(family.shapes),
                          family.shapes > 0 ? family.note : "not learned: " + family.note});
  return indented(std::move(table));
}

ReportJson json_of(const ImportedFamily& family) {
  return {{"name", family.name},
          {"kernels_per_step", family.kernels},
          {"time_ns", nanoseconds_of(family.time)},
          {"share", family.share},
          {"shapes", family.shapes},
          {"learned", family.shapes > 0},
          {"note", family.note}};
}

}  // namespace

Document kineto_report_text(const ImportedTrace& imported) {
  const KinetoReport& report = imported.report;
  Document text =
      fmt::format("Trace of {}\n", report.device.empty() ? "an unnamed device" : report.device);
  text += figures_of(imported);
  text += "\n";
  text += families_table(report);
  text += "\n";
  text += fmt::format("Not in the trace, as before: {}.\n", fmt::join(report.defaults, ", "));
  for (const std::string& note : report.notes) text += fmt::format("Note: {}.\n", note);
  return text;
}

std::string kineto_report_json(const ImportedTrace& imported, const std::string& file) {
  const KinetoReport& r = imported.report;
  const MeasuredTrainer& t = *imported.calibration.trainer;
  ReportJson families = ReportJson::array();
  for (const ImportedFamily& family : r.families) families.push_back(json_of(family));
  const ReportJson json{{"schema", 1},
                        {"file", file},
                        {"device", r.device},
                        {"steps", r.steps},
                        {"step_time_ns", nanoseconds_of(r.step_time)},
                        {"shortest_step_ns", nanoseconds_of(r.shortest_step)},
                        {"longest_step_ns", nanoseconds_of(r.longest_step)},
                        {"busy_ns", nanoseconds_of(r.busy)},
                        {"idle_for_host_ns", nanoseconds_of(r.idle_for_host)},
                        {"idle_other_ns", nanoseconds_of(r.idle_other)},
                        {"communication",
                         {{"time_ns", nanoseconds_of(r.communication)},
                          {"overlapped", r.overlapped},
                          {"waiting_ns", nanoseconds_of(r.waiting)},
                          {"slowdown", t.slowdown}}},
                        {"layers_per_step", r.layers},
                        {"host",
                         {{"per_kernel_ns", nanoseconds_of(t.host_per_kernel)},
                          {"per_collective_ns", nanoseconds_of(t.host_per_collective)},
                          {"per_layer_forward_ns", nanoseconds_of(t.host_per_layer_forward)},
                          {"per_layer_backward_ns", nanoseconds_of(t.host_per_layer_backward)},
                          {"per_step_ns", nanoseconds_of(t.host_per_step)}}},
                        {"kernel_gap_ns", nanoseconds_of(r.kernel_gap)},
                        {"families", std::move(families)},
                        {"defaults", r.defaults},
                        {"notes", r.notes},
                        {"provenance", imported.calibration.provenance}};
  return json.dump(2, ' ', false, ReportJson::error_handler_t::replace) + "\n";
}

}  // namespace meshwright
