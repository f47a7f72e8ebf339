#include "cli/partition/sharding_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/partition/report_json.hpp"
#include "cli/terminal/table.hpp"

namespace meshwright {
namespace {

double gap(const ShardingResult& result) {
  const auto bound = static_cast<double>(std::max<std::int64_t>(1, result.lower_bound));
  return result.is_optimal() ? 0 : static_cast<double>(result.best->cost) / bound - 1;
}

std::string why_none(const ShardingResult& result) {
  return result.is_infeasible() ? "no choice of strategies fits in memory"
                                : "no choice of strategies that fits in memory was found";
}

}  // namespace

Document sharding_text(const ShardingResult& result, const ShardingProblem& problem,
                       const std::string& name) {
  const std::string head =
      fmt::format("{}: {}, {}\n", name, count_text(problem.nodes.size(), "node"),
                  count_text(problem.edges.size(), "edge"));
  if (!result.best)
    return head + fmt::format("{}; set {}a larger --memory\n", why_none(result),
                              result.is_infeasible() ? "" : "a longer --time-limit, or ");
  std::vector<NamedValue> list{
      {"cost", grouped(result.best->cost)},
      {"lower bound", grouped(result.lower_bound)},
      {"gap",
       result.is_optimal() ? "none: proved optimal" : fmt::format("{:.3g} %", 100 * gap(result))},
      {"peak usage", grouped(result.best->peak_usage)}};
  if (problem.usage_limit) list.push_back({"usage limit", grouped(*problem.usage_limit)});
  return Document(head) + std::move(list);
}

std::string sharding_json(const ShardingResult& result, const ShardingProblem& problem) {
  Json json{{"schema", 1},
            {"nodes", problem.nodes.size()},
            {"edges", problem.edges.size()},
            {"cost", nullptr},
            {"lower_bound", result.lower_bound},
            {"gap", nullptr},
            {"proved_optimal", result.is_optimal()},
            {"peak_usage", nullptr},
            {"usage_limit", problem.usage_limit ? Json(*problem.usage_limit) : Json()},
            {"strategies", Json::array()},
            {"infeasible", nullptr}};
  if (result.best) {
    json["cost"] = result.best->cost;
    json["gap"] = gap(result);
    json["peak_usage"] = result.best->peak_usage;
    json["strategies"] = result.best->strategies;
  } else {
    json["infeasible"] = {{"reason", why_none(result)}, {"nearest", nullptr}};
  }
  return json_text(json);
}

std::string strategies_json(const ShardingChoice& choice) {
  return json_text(Json{{"strategies", choice.strategies}});
}

}  // namespace meshwright
