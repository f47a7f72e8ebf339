#include "cli/sweep/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/reports/report.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

using SweepJson = nlohmann::ordered_json;

constexpr SweepFigure kFigures[]{
    {"step", "step time", [](const PlanFigures& f) { return to_text(f.step_time); },
     [](const PlanFigures& f) { return static_cast<double>(f.step_time.value); }, false},
    {"period", "period (steady-state step time without an optimizer barrier)",
     [](const PlanFigures& f) { return to_text(f.period); },
     [](const PlanFigures& f) { return static_cast<double>(f.period.value); }, false},
    {"bubble", "bubble fraction of the period, mean over ranks",
     [](const PlanFigures& f) { return percent(f.bubble_of_period); },
     [](const PlanFigures& f) { return f.bubble_of_period; }, false},
    {"busiest", "bubble fraction of the period, busiest rank",
     [](const PlanFigures& f) { return percent(f.busiest_rank_bubble); },
     [](const PlanFigures& f) { return f.busiest_rank_bubble; }, false},
    {"mfu", "model FLOPs utilization (MFU)", [](const PlanFigures& f) { return percent(f.mfu); },
     [](const PlanFigures& f) { return f.mfu; }, true},
    {"tokens", "tokens/s/GPU",
     [](const PlanFigures& f) { return fmt::format("{:.1f}", f.tokens_per_second_per_gpu); },
     [](const PlanFigures& f) { return f.tokens_per_second_per_gpu; }, true},
    {"memory", "peak memory of the rank with the highest peak",
     [](const PlanFigures& f) { return to_text(f.peak_memory); },
     [](const PlanFigures& f) { return static_cast<double>(f.peak_memory.value); }, false}};

bool fits(const PlanFigures& figures) { return figures.peak_memory <= figures.memory_capacity; }

/// "pp 4, schedule zb-h1": the values of the first `count` flags.
std::string name_of(const SweepStudy& study, std::size_t point, std::size_t count) {
  std::string name;
  for (std::size_t f = 0; f < count; ++f)
    name += fmt::format("{}{} {}", f == 0 ? "" : ", ", study.swept[f].flag.substr(2),
                        study.swept[f].values[study.combinations[point].value_of_flag[f]]);
  return name;
}

std::string cell(const SweepPoint& point, const SweepFigure& figure, bool says_full, bool is_best) {
  if (!point.figures) return "-";
  const bool is_full = says_full && !fits(*point.figures);
  return figure.text(*point.figures) + (is_full ? " !" : "") + (is_best ? " *" : "");
}

/// One flag: a row per value with all figures. Several: the values of the last flag are columns.
Table table_of(const SweepStudy& study, const SweepFigure& figure) {
  const std::size_t best = best_point(study, figure);
  const bool is_list = study.swept.size() == 1;
  Table table;
  table.columns.push_back({"", Align::kLeft});
  if (is_list)
    for (const SweepFigure& each : kFigures) table.columns.push_back({each.name});
  else
    for (const std::string& value : study.swept.back().values)
      table.columns.push_back({study.swept.back().flag.substr(2) + " " + value});
  const std::size_t across = is_list ? 1 : study.swept.back().values.size();
  for (std::size_t i = 0; i < study.points.size(); i += across) {
    std::vector<std::string> row{name_of(study, i, is_list ? 1 : study.swept.size() - 1)};
    if (is_list)
      for (const SweepFigure& each : kFigures)
        row.push_back(cell(study.points[i], each, std::string_view(each.name) == "memory",
                           i == best && &each == &figure));
    else
      for (std::size_t j = i; j < i + across; ++j)
        row.push_back(cell(study.points[j], figure, true, j == best));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The first few invalid combinations, with the reason.
std::string problems_text(const SweepStudy& study) {
  constexpr std::size_t kMostShown = 5;
  std::string text;
  std::size_t count = 0;
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    if (study.points[i].problems.empty() || ++count > kMostShown) continue;
    const Diagnostic& first = study.points[i].problems.front();
    text += fmt::format("  {}: {}: {}\n", name_of(study, i, study.swept.size()), first.where,
                        first.what);
  }
  if (count > kMostShown) text += fmt::format("  and {} more\n", count - kMostShown);
  return text.empty() ? "" : "\n-: invalid or unsupported combination\n" + text;
}

SweepJson values_of(const SweepStudy& study, std::size_t point) {
  SweepJson values = SweepJson::object();
  for (std::size_t f = 0; f < study.swept.size(); ++f)
    values[study.swept[f].flag.substr(2)] =
        study.swept[f].values[study.combinations[point].value_of_flag[f]];
  return values;
}

}  // namespace

const SweepFigure& sweep_figure_named(const std::string& name) {
  std::vector<std::string> names;
  for (const SweepFigure& figure : kFigures) {
    if (figure.name == name) return figure;
    names.emplace_back(figure.name);
  }
  throw UsageError({.where = "--show",
                    .what = fmt::format("invalid value '{}'", name),
                    .hint = suggest(name, names)});
}

std::size_t best_point(const SweepStudy& study, const SweepFigure& figure) {
  std::size_t best = study.points.size();
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    if (!study.points[i].figures || !fits(*study.points[i].figures)) continue;
    const double value = figure.number(*study.points[i].figures);
    const bool is_better =
        best == study.points.size() ||
        (figure.more_is_better ? value > figure.number(*study.points[best].figures)
                               : value < figure.number(*study.points[best].figures));
    if (is_better) best = i;
  }
  return best;
}

Document sweep_text(const SweepStudy& study, const SweepFigure& figure) {
  const bool is_any_full =
      std::any_of(study.points.begin(), study.points.end(),
                  [](const SweepPoint& p) { return p.figures && !fits(*p.figures); });
  return fmt::format("{}; *: best that fits in memory{}\n\n", figure.title,
                     is_any_full ? "; !: out of memory" : "") +
         Document(table_of(study, figure)) + problems_text(study);
}

std::string sweep_json(const SweepStudy& study, const SweepFigure& figure) {
  SweepJson points = SweepJson::array();
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    const SweepPoint& point = study.points[i];
    SweepJson entry{{"values", values_of(study, i)}};
    entry["plan"] = point.figures ? SweepJson::parse(to_json(*point.figures)) : SweepJson();
    entry["problems"] = SweepJson::parse(problems_json(point.problems));
    points.push_back(std::move(entry));
  }
  const std::size_t best = best_point(study, figure);
  const SweepJson json{{"schema", 1},
                       {"shown", figure.name},
                       {"best", best < study.points.size() ? values_of(study, best) : SweepJson()},
                       {"points", std::move(points)}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, SweepJson::error_handler_t::replace) + "\n";
}

std::string sweep_csv(const SweepStudy& study) {
  std::string text;
  for (const SweptFlag& flag : study.swept) text += flag.flag.substr(2) + ",";
  text += "step_s,period_s,bubble,mfu,tokens_per_s_per_gpu,peak_memory_bytes,fits,";
  text += "busiest_rank_bubble\n";
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    for (std::size_t f = 0; f < study.swept.size(); ++f)
      text += study.swept[f].values[study.combinations[i].value_of_flag[f]] + ",";
    if (const auto& figures = study.points[i].figures) {
      text += fmt::format("{:.9g},{:.9g},{:.6f},{:.6f},{:.3f},{},{},{:.6f}\n",
                          to_seconds(figures->step_time).value, to_seconds(figures->period).value,
                          figures->bubble_of_period, figures->mfu,
                          figures->tokens_per_second_per_gpu, figures->peak_memory.value,
                          fits(*figures) ? 1 : 0, figures->busiest_rank_bubble);
    } else {
      text += ",,,,,,,\n";
    }
  }
  return text;
}

}  // namespace meshwright
