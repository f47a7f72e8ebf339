#include "cli/plan/run_cost_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace meshwright {
namespace {

using RunJson = nlohmann::ordered_json;

constexpr Seconds kOneDay(86'400);

template <class Claim>
bool any_cost(std::span<const std::optional<RunCost>> costs, Claim claim) {
  return std::any_of(costs.begin(), costs.end(),
                     [&](const std::optional<RunCost>& cost) { return cost && claim(*cost); });
}

}  // namespace

std::string days_text(Seconds time) {
  constexpr double kThreeDigits = 100;
  const double days = ratio(time, kOneDay);
  return days < kThreeDigits ? fmt::format("{:.3g}", days) : grouped(std::llround(days));
}

std::string tokens_text(std::int64_t tokens) {
  struct Suffix {
    std::int64_t factor;
    char name;
  };
  constexpr std::array<Suffix, 3> kSuffixes{
      {{1'000'000'000'000, 'T'}, {1'000'000'000, 'B'}, {1'000'000, 'M'}}};
  for (const auto& [factor, name] : kSuffixes)
    if (tokens >= factor && tokens % (factor / 10'000) == 0)
      return fmt::format("{}{}", static_cast<double>(tokens) / static_cast<double>(factor), name);
  return grouped(tokens);
}

Table run_cost_table(const PlannedRun& run, std::span<const std::optional<RunCost>> costs) {
  Table table = empty_table("days");
  const bool has_range = any_cost(costs, [](const RunCost& c) { return c.range.has_value(); });
  const bool has_cost = any_cost(costs, [](const RunCost& c) { return c.cost.has_value(); });
  if (has_range) table.columns.push_back({"p10 to p90"});
  table.columns.push_back({"GPU-hours"});
  if (has_cost) table.columns.push_back({"cost"});
  if (run.failures) table.columns.push_back({"goodput"});
  for (const std::optional<RunCost>& cost : costs) {
    std::vector<std::string>& row = table.rows.emplace_back();
    if (!cost) {
      row.assign(table.columns.size(), "-");
      row.front() = "never";
      continue;
    }
    row.push_back(days_text(cost->time));
    if (has_range)
      row.push_back(cost->range ? fmt::format("{} to {}", days_text(cost->range->p10),
                                              days_text(cost->range->p90))
                                : "-");
    row.push_back(grouped(std::llround(cost->device_hours.value)));
    if (has_cost) row.push_back(cost->cost ? "$" + grouped(std::llround(cost->cost->value)) : "-");
    if (run.failures) row.push_back(percent(cost->goodput));
  }
  return table;
}

std::string failures_note(const PlannedRun& run) {
  if (!run.failures) return "Days are without failures and checkpoints; --mtbf includes them.\n";
  return fmt::format(
      "Days include failures (MTBF of a GPU {:g} h, restarts of {:g} s) and checkpoints (writes of "
      "{:g} s{}).\n",
      run.failures->device_mtbf.value / 3600, run.failures->restart.value,
      run.failures->checkpoint_write.value,
      run.checkpoint_interval ? fmt::format(", every {:g} s", run.checkpoint_interval->value)
                              : ", at the best interval");
}

std::string price_note(const PlannedRun& run, const PlanCluster& on) {
  if (run.device_price)
    return fmt::format("Cost: {:g} USD per GPU-hour.\n", run.device_price->value);
  std::set<std::string> nodes;
  for (const NodeGroup& group : on.cluster.groups) nodes.insert(group.node);
  std::string text;
  for (const std::string& node : nodes) {
    const std::string name = nodes.size() == 1 ? "" : fmt::format(" '{}'", node);
    const auto& price = on.cluster.nodes.at(node).price_per_hour;
    if (!price) {
      text += fmt::format("No cost: {}cluster '{}' has no price; set --price.\n",
                          name.empty() ? "" : fmt::format("node{} of ", name), on.text.name);
      continue;
    }
    const auto source = on.cluster.sources.find(fmt::format("nodes.{}.price_per_hour", node));
    text +=
        fmt::format("Cost: {:g} USD per hour for each node{} of {}{}.\n", price->value, name,
                    on.text.name, source == on.cluster.sources.end() ? "" : ": " + source->second);
  }
  return text;
}

std::string run_cost_json(const std::optional<RunCost>& cost) {
  if (!cost) return "null";
  const auto days = [](Seconds time) { return ratio(time, kOneDay); };
  const RunJson none;
  return RunJson{{"steps", cost->steps},
                 {"days", days(cost->time)},
                 {"days_p10", cost->range ? RunJson(days(cost->range->p10)) : none},
                 {"days_p90", cost->range ? RunJson(days(cost->range->p90)) : none},
                 {"gpu_hours", cost->device_hours.value},
                 {"cost_usd", cost->cost ? RunJson(cost->cost->value) : none},
                 {"goodput", cost->goodput}}
      .dump();
}

}  // namespace meshwright
