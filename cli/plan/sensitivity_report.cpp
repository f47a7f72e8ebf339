#include "cli/plan/sensitivity_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/plan/node_comparison.hpp"
#include "cli/terminal/document.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/strategy_text.hpp"

namespace meshwright {
namespace {

using SensitivityJson = nlohmann::ordered_json;

constexpr double kLess = 0.9, kMore = 1.1;
constexpr std::array kFigures{HardwareFigure::kLinkBandwidth, HardwareFigure::kPeakCompute,
                              HardwareFigure::kMemory};

/// A cluster that differs by one perturbation, and its costs.
struct PerturbedHardware {
  Cluster cluster;
  std::unique_ptr<CostModel> by_figures, cost_model;  ///< the second refers to the first
};

PerturbedHardware perturb(const PlanCluster& on, const Perturbation& perturbation) {
  PerturbedHardware hardware;
  hardware.cluster = perturbed(on.cluster, perturbation);
  std::optional<Calibration> calibration = on.calibration;
  if (calibration) calibration = perturbed(*calibration, perturbation);
  hardware.by_figures = make_cost_model(hardware.cluster, on.trainer, calibration);
  const bool links = perturbation.figure == HardwareFigure::kLinkBandwidth;
  hardware.cost_model =
      scaled_links(*hardware.by_figures, hardware.cluster, links ? perturbation.factor : 1);
  return hardware;
}

bool stays_first(const SensitivityCase& result) {
  return result.winner && result.winner->listed == std::size_t{0};
}

std::string change_text(const Perturbation& p) {
  constexpr double kPercent = 100;
  return fmt::format("{} {:+.0f} %", name_of(p.figure), kPercent * (p.factor - 1));
}

std::string first_plan_text(const PlanOutcome& first) {
  if (first.missing_memory == Bytes(0)) return to_text(first.step_time);
  return fmt::format("lacks {}", to_text(first.missing_memory));
}

/// Gives winners that the plan table does not list the letters A, B, ….
class WinnerNames {
 public:
  std::string name_of(const Winner& winner) {
    if (winner.listed) return fmt::format("plan {}", *winner.listed + 1);
    const Other other{winner.strategy, winner.nodes};
    auto found = std::ranges::find(others_, other);
    if (found == others_.end()) found = others_.insert(others_.end(), other);
    return fmt::format("plan {}", letter(found - others_.begin()));
  }
  /// "plan A: TP4 DP8 …": one line each.
  std::string legend() const {
    std::string text;
    for (std::size_t i = 0; i < others_.size(); ++i)
      text += fmt::format("plan {}: {}{}{}\n", letter(static_cast<std::ptrdiff_t>(i)),
                          strategy_text(others_[i].strategy),
                          others_[i].nodes.empty() ? "" : " on ", nodes_text(others_[i].nodes));
    return text;
  }

 private:
  struct Other {
    Strategy strategy;
    std::vector<NodeGroup> nodes;
    friend bool operator==(const Other&, const Other&) = default;
  };
  static char letter(std::ptrdiff_t index) { return static_cast<char>('A' + index); }
  std::vector<Other> others_;  ///< at most one per change of the hardware
};

std::string gap_text(const SensitivityCase& result) {
  if (result.gap == 0) return "";
  return result.winner ? fmt::format(" (gap {})", percent(result.gap)) : " (none found)";
}

std::vector<std::string> row_of(const PerturbedSearch& search, WinnerNames& names) {
  const PlanOutcome& first = search.result.listed.front();
  const std::optional<Winner>& winner = search.result.winner;
  const bool compares = winner && !stays_first(search.result) && first.missing_memory == Bytes(0);
  return {change_text(search.perturbation), first_plan_text(first),
          (winner ? names.name_of(*winner) : "no plan") + gap_text(search.result),
          winner ? to_text(winner->step_time) : "",
          compares ? percent(ratio(first.step_time, winner->step_time) - 1) : ""};
}

std::vector<std::string> row_of(const RangeCase& range) {
  return {range.name, to_text(range.first), fmt::format("plan {}", range.winner + 1),
          to_text(range.step_time),
          range.winner == 0 ? "" : percent(ratio(range.first, range.step_time) - 1)};
}

std::string verdict_text(const PlanSensitivity& sensitivity) {
  const auto& hardware = sensitivity.hardware;
  const auto stays = std::ranges::count_if(
      hardware, [](const PerturbedSearch& s) { return stays_first(s.result); });
  const auto proved =
      std::ranges::count_if(hardware, [](const PerturbedSearch& s) { return s.result.gap == 0; });
  const auto all = static_cast<std::ptrdiff_t>(hardware.size());
  std::string text = fmt::format(
      "Plan 1 stays the fastest in {} of {} changes of the hardware. Each was searched again{}\n",
      stays, all,
      proved == all ? ": its fastest plan is optimal within the searched space."
                    : ", until the time limit. Gap: how much faster the optimum can be at most.");
  text += sensitivity.ranges.empty()
              ? "The prediction is unvalidated: it has no range p10 to p90.\n"
              : "p10 and p90: of measured / predicted step time, among the listed plans.\n";
  return text;
}

SensitivityJson json_of(const PerturbedSearch& search) {
  SensitivityJson plans = SensitivityJson::array(), fastest;
  for (const PlanOutcome& plan : search.result.listed)
    plans.push_back({{"step_time_ns", to_nanoseconds(plan.step_time)},
                     {"missing_memory_bytes", plan.missing_memory.value}});
  if (const std::optional<Winner>& winner = search.result.winner)
    fastest = {{"plan", winner->listed ? SensitivityJson(*winner->listed + 1) : SensitivityJson()},
               {"strategy", SensitivityJson::parse(to_json(winner->strategy))},
               {"step_time_ns", to_nanoseconds(winner->step_time)}};
  return {{"figure", name_of(search.perturbation.figure)},
          {"factor", search.perturbation.factor},
          {"plans", plans},
          {"fastest", fastest},
          {"plan_1_stays_fastest", stays_first(search.result)},
          {"gap", search.result.gap}};
}

}  // namespace

std::optional<PlanSensitivity> plan_sensitivity(const PlanFlags& flags, const PlanSearch& search) {
  if (search.result.plans.empty()) return std::nullopt;
  PlanSensitivity sensitivity{.hardware = {}, .ranges = range_cases(search.figures)};
  for (const HardwareFigure figure : kFigures)
    for (const double factor : {kLess, kMore})
      sensitivity.hardware.push_back({{.figure = figure, .factor = factor}, {}});
  std::vector<PerturbedHardware> hardware;
  for (const PerturbedSearch& perturbed_search : sensitivity.hardware)
    hardware.push_back(perturb(*search.cluster, perturbed_search.perturbation));
  const SizingJob job = sizing_job(search, flags.choices);
  std::vector<SizingJob> jobs;
  jobs.reserve(hardware.size());
  for (const PerturbedHardware& h : hardware)
    jobs.push_back({job.model, h.cluster, *h.cost_model, job.goal, job.choices});
  std::vector<RankedPlan> further;  // with the same fixed choices, may fit where others do not
  for (const BestOfTrainer& best : search.trainers)
    if (best.plan) further.push_back(*best.plan);
  const std::vector<SensitivityCase> cases =
      find_sensitivity(search.result.plans, further, jobs, sizing_options(flags));
  for (std::size_t i = 0; i < cases.size(); ++i) sensitivity.hardware[i].result = cases[i];
  return sensitivity;
}

Document sensitivity_text(const PlanSearch& search) {
  if (!search.sensitivity) return "";
  Table table = empty_table(left_aligned("change"), "plan 1", left_aligned("fastest"), "step",
                            "faster than plan 1");
  WinnerNames names;
  for (const PerturbedSearch& perturbed_search : search.sensitivity->hardware)
    table.rows.push_back(row_of(perturbed_search, names));
  for (const RangeCase& range : search.sensitivity->ranges) table.rows.push_back(row_of(range));
  const char* gap = search.trainers.empty() ? "\n" : "";  // their table ends with an empty line
  return gap + Document("Sensitivity: does plan 1 stay the fastest?\n") + std::move(table) +
         names.legend() + verdict_text(*search.sensitivity) + "\n";
}

std::string sensitivity_json(const PlanSearch& search) {
  SensitivityJson hardware = SensitivityJson::array(), ranges = SensitivityJson::array();
  for (const PerturbedSearch& perturbed_search : search.sensitivity->hardware)
    hardware.push_back(json_of(perturbed_search));
  for (const RangeCase& range : search.sensitivity->ranges)
    ranges.push_back({{"case", range.name},
                      {"plan_1_step_time_ns", to_nanoseconds(range.first)},
                      {"fastest_plan", range.winner + 1},
                      {"step_time_ns", to_nanoseconds(range.step_time)}});
  return SensitivityJson{{"hardware", hardware}, {"prediction_error", ranges}}.dump(
      -1, ' ', false, SensitivityJson::error_handler_t::replace);
}

}  // namespace meshwright
