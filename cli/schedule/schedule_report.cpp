/// The result of the command `schedule` as text and JSON.
///
/// Its bubble is the bubble rate of Zero Bubble (Qi et al., arXiv 2401.10241): for m micro-batches
/// (x - m (tF + tB + tW)) / x, with x the makespan or the period and the times averaged over the
/// devices. Message latency counts as bubble, unlike in the bubble of a plan
/// (core/timeline/evaluation.hpp).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/flags/decimal_time.hpp"
#include "cli/schedule/schedule_figures.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

double gap(Ticks value, Ticks bound) { return ratio(value - bound, bound); }

/// Peaks in bytes; empty without --activation.
std::vector<Bytes> peak_bytes(const ScheduleFigures& f, const ScheduleFlags& flags) {
  std::vector<Bytes> peaks;
  if (flags.activation.empty()) return peaks;
  const Bytes one = parse_bytes(flags.activation, "--activation");
  for (const double held : f.timing.peak_activations)
    peaks.emplace_back(static_cast<std::int64_t>(std::ceil(held * static_cast<double>(one.value))));
  return peaks;
}

std::string schedule_title(const ScheduleFigures& f) {
  const int slices = f.schedule.slices_per_microbatch;
  return fmt::format("{}: {} devices, {} stages, {} micro-batches{}{}\n", f.schedule.name,
                     f.schedule.placement.devices, f.schedule.placement.device_of_stage.size(),
                     f.schedule.microbatch_count / slices,
                     slices > 1 ? fmt::format(" of {} slices", slices) : "",
                     f.origin.empty() ? "" : fmt::format("; found by {}", f.origin));
}

Table timing_table(const ScheduleFigures& f, const ScheduleFlags& flags) {
  const Ticks unit = ticks_of_unit(flags.unit);
  const auto in_unit = [&](Ticks time) { return fmt::format("{:.10g}", ratio(time, unit)); };
  Table table =
      empty_table(left_aligned("figure"), fmt::format("time [{}]", flags.unit), "bubble rate",
                  fmt::format("lower bound [{}]", flags.unit), left_aligned("proved optimal"));
  const auto add = [&](const char* name, Ticks value, double bubble, Ticks bound) {
    table.rows.push_back({name, in_unit(value), fmt::format("{:.2f} %", 100 * bubble),
                          in_unit(bound), value == bound ? "yes" : "no"});
  };
  const ScheduleTiming& t = f.timing;
  add("makespan", t.makespan, t.makespan_bubble, f.makespan_bound);
  add("period", t.period, t.period_bubble, f.period_bound);
  return table;
}

/// Peaks, weight versions and the order of passes of every device.
Table devices_table(const ScheduleFigures& f, const ScheduleFlags& flags) {
  const std::vector<Bytes> peaks = peak_bytes(f, flags);
  const bool has_versions = f.weight_versions.front() > 1;
  Table table = empty_table("device", "peak micro-batches");
  if (!peaks.empty()) table.columns.push_back({"peak memory"});
  if (has_versions) table.columns.push_back({"weight versions"});
  table.columns.push_back(left_aligned("order"));
  for (std::size_t d = 0; d < f.schedule.orders.size(); ++d) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {std::to_string(d), fmt::format("{:.4g}", f.timing.peak_activations[d])};
    if (!peaks.empty()) row.push_back(to_text(peaks[d]));
    if (has_versions) row.push_back(std::to_string(f.weight_versions[d]));
    row.push_back(to_text(f.schedule.orders[d]));
  }
  return table;
}

constexpr const char* kBubbleRateNote =
    "bubble rate: 1 - m (tF + tB + tW) / x, mean over devices; x: makespan or period "
    "(Zero Bubble, arXiv 2401.10241); message latency counts as bubble\n";

}  // namespace

Document schedule_tables(const ScheduleFigures& f, const ScheduleFlags& flags) {
  return schedule_title(f) + Document(timing_table(f, flags)) + kBubbleRateNote +
         devices_table(f, flags);
}

std::string schedule_json(const ScheduleFigures& f, const ScheduleFlags& flags) {
  const Ticks unit = ticks_of_unit(flags.unit);
  const ScheduleTiming& t = f.timing;
  const auto both = [](auto makespan, auto period) {
    return Json{{"makespan", makespan}, {"period", period}};
  };
  Json json{{"schema", 1},
            {"name", f.schedule.name},
            {"makespan", ratio(t.makespan, unit)},
            {"period", ratio(t.period, unit)},
            {"bubble", both(t.makespan_bubble, t.period_bubble)},
            {"lower_bound", both(ratio(f.makespan_bound, unit), ratio(f.period_bound, unit))},
            {"gap", both(gap(t.makespan, f.makespan_bound), gap(t.period, f.period_bound))},
            {"proved_optimal", both(t.makespan == f.makespan_bound, t.period == f.period_bound)},
            {"peak_activations", t.peak_activations},
            {"weight_versions", f.weight_versions}};
  if (!flags.activation.empty()) {
    Json& bytes = json["peak_activation_bytes"] = Json::array();
    for (const Bytes peak : peak_bytes(f, flags)) bytes.push_back(peak.value);
  }
  if (!f.origin.empty()) json["origin"] = f.origin;
  Json& orders = json["orders"] = Json::array();
  for (const auto& order : f.schedule.orders) {
    Json& words = orders.emplace_back(Json::array());
    for (const Action& action : order) words.push_back(to_text(std::span(&action, 1)));
  }
  constexpr int kIndent = 2;
  return json.dump(kIndent) + "\n";
}

std::string schedule_text(const ScheduleFigures& f, const ScheduleFlags& flags) {
  const Ticks unit = ticks_of_unit(flags.unit);
  const auto line = [&](const char* name, Ticks value, double bubble, Ticks bound) {
    const std::string verdict =
        value == bound ? "proved optimal"
                       : fmt::format("within {:.3g} % of the lower bound {:.10g} {}",
                                     100 * gap(value, bound), ratio(bound, unit), flags.unit);
    return fmt::format("{:<9} {:.10g} {}, bubble rate {:.2f} %, {}\n", name, ratio(value, unit),
                       flags.unit, 100 * bubble, verdict);
  };
  const ScheduleTiming& t = f.timing;
  std::string text = schedule_title(f);
  text += line("makespan", t.makespan, t.makespan_bubble, f.makespan_bound);
  text += line("period", t.period, t.period_bubble, f.period_bound);
  text +=
      "          bubble rate: 1 - m (tF + tB + tW) / x, mean over devices; x: makespan or period\n";
  text += "          (Zero Bubble, arXiv 2401.10241); message latency counts as bubble\n";
  text += fmt::format("peak      {:.4g} micro-batches per device\n",
                      fmt::join(t.peak_activations, " "));
  std::vector<std::string> bytes;
  for (const Bytes peak : peak_bytes(f, flags)) bytes.push_back(to_text(peak));
  if (!bytes.empty()) text += fmt::format("          {}\n", fmt::join(bytes, ", "));
  if (f.weight_versions.front() > 1)
    text += fmt::format("weights   {} versions per device\n", fmt::join(f.weight_versions, " "));
  constexpr std::size_t kMostShown = 64;
  for (std::size_t d = 0; d < f.schedule.orders.size(); ++d)
    if (f.schedule.orders[d].size() <= kMostShown)
      text += fmt::format("device {}: {}\n", d, to_text(f.schedule.orders[d]));
  return text;
}

}  // namespace meshwright
