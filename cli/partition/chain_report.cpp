#include "cli/partition/chain_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/partition/report_json.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

double gap(const ChainPartition& partition) {
  return partition.is_optimal() ? 0 : ratio(partition.plan.time, partition.lower_bound) - 1;
}

const std::string& name_at(const ChainProblem& problem, std::size_t position) {
  return problem.operators[static_cast<std::size_t>(problem.chain[position])].name;
}

/// "2", or "2, 4" if operators differ.
std::string tensor_degrees(const ChainPlan& plan, const ChainStage& stage) {
  std::set<int> degrees;
  for (std::size_t i = stage.begin; i < stage.end; ++i) degrees.insert(plan.strategies[i].tensor);
  return fmt::format("{}", fmt::join(degrees, ", "));
}

std::int64_t recomputed_count(const ChainPlan& plan, const ChainStage& stage) {
  return std::count_if(plan.strategies.begin() + static_cast<std::ptrdiff_t>(stage.begin),
                       plan.strategies.begin() + static_cast<std::ptrdiff_t>(stage.end),
                       [](const ChainStrategy& strategy) { return strategy.is_recomputed; });
}

/// A list of one value per operator for every stage.
template <class Value>
Json per_operator(const ChainPlan& plan, Value value) {
  Json stages = Json::array();
  for (const ChainStage& stage : plan.stages) {
    stages.push_back(Json::array());
    for (std::size_t i = stage.begin; i < stage.end; ++i)
      stages.back().push_back(value(plan.strategies[i]));
  }
  return stages;
}

template <class Value>
Json per_stage(const ChainPlan& plan, Value value) {
  Json stages = Json::array();
  for (const ChainStage& stage : plan.stages) stages.push_back(value(stage));
  return stages;
}

std::string reason_of_no_chain(const ChainProblem& problem) {
  return fmt::format(
      "no stages on {} x {} devices fit in {} per device, with any measured "
      "micro-batch size that divides {}",
      problem.devices_per_node, problem.nodes, to_text(problem.device_memory),
      problem.global_batch);
}

}  // namespace

Document chain_text(const ChainPartition& partition, const ChainProblem& problem,
                    const std::string& name) {
  const ChainPlan& plan = partition.plan;
  std::string text = fmt::format("{}: {}, {} x {} devices, batch {}\n", name,
                                 count_text(problem.chain.size(), "operator"),
                                 problem.devices_per_node, problem.nodes, problem.global_batch);
  const std::string verdict =
      partition.is_optimal() ? "optimal"
                             : fmt::format("within {:.3g} % of the lower bound {}",
                                           100 * gap(partition), to_text(partition.lower_bound));
  text += fmt::format("step: {}, {}\n", to_text(plan.time), verdict);
  text += fmt::format("micro-batch: {}, {:.4g} samples/s\n\n", plan.microbatch,
                      problem.global_batch / plan.time.value);
  Table table = empty_table("stage", "operators", "devices", "tensor", "recomputed", "time",
                            "memory", left_aligned("first operator"));
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const ChainStage& stage = plan.stages[s];
    table.rows.push_back(
        {fmt::format("{}", s), grouped(static_cast<std::int64_t>(stage.end - stage.begin)),
         fmt::format("{}", stage.devices), tensor_degrees(plan, stage),
         grouped(recomputed_count(plan, stage)), fmt::format("{:.6g} ms", stage.time.value * 1e3),
         to_text(stage.memory), name_at(problem, stage.begin)});
  }
  return Document(std::move(text)) + std::move(table);
}

std::string chain_json(const ChainPartition& partition, const ChainProblem& problem) {
  const ChainPlan& plan = partition.plan;
  Json stages = Json::array();
  for (const ChainStage& stage : plan.stages) {
    Json operators = Json::array();
    for (std::size_t i = stage.begin; i < stage.end; ++i) {
      const ChainStrategy& strategy = plan.strategies[i];
      operators.push_back({{"name", name_at(problem, i)},
                           {"tensor", strategy.tensor},
                           {"data", strategy.data},
                           {"algorithm", strategy.algorithm},
                           {"recomputed", strategy.is_recomputed}});
    }
    stages.push_back({{"devices", stage.devices},
                      {"time_ns", stage.time.value * 1e9},
                      {"memory_bytes", stage.memory.value},
                      {"operators", std::move(operators)}});
  }
  return json_text(Json{{"schema", 1},
                        {"devices_per_node", problem.devices_per_node},
                        {"nodes", problem.nodes},
                        {"global_batch", problem.global_batch},
                        {"microbatch", plan.microbatch},
                        {"step_ns", plan.time.value * 1e9},
                        {"lower_bound_ns", partition.lower_bound.value * 1e9},
                        {"gap", gap(partition)},
                        {"proved_optimal", partition.is_optimal()},
                        {"stages", std::move(stages)},
                        {"infeasible", nullptr}});
}

std::string aceso_json(const ChainPartition& partition, const ChainProblem& problem,
                       const std::string& name, std::optional<int> layers) {
  const ChainPlan& plan = partition.plan;
  const std::string model = std::filesystem::path(name).filename().string();
  const std::size_t end = std::min(model.find('_'), model.size());
  const auto differs = [&](const ChainStage& stage) {
    for (std::size_t i = stage.begin + 1; i < stage.end; ++i) {
      ChainStrategy before = plan.strategies[i - 1];
      before.is_recomputed = plan.strategies[i].is_recomputed;
      if (before != plan.strategies[i]) return true;
    }
    return false;
  };
  Json config{{"model_name", model.substr(0, end)},
              {"model_size", end < model.size() ? model.substr(end + 1) : ""}};
  if (layers) config["num_layers"] = *layers;
  config["global_batch_size"] = problem.global_batch;
  config["micro_batch_size"] = plan.microbatch;
  config["num_stages"] = plan.stages.size();
  config["num_gpus"] = per_stage(plan, [](const ChainStage& stage) { return stage.devices; });
  config["checkpoint_activations"] =
      per_stage(plan, [&](const ChainStage& stage) { return recomputed_count(plan, stage) > 0; });
  config["resharding_stages"] = per_stage(plan, differs);
  config["num_ops_in_each_stage"] =
      per_stage(plan, [](const ChainStage& stage) { return stage.end - stage.begin; });
  config["model_parallel_size_of_each_op"] =
      per_operator(plan, [](const ChainStrategy& strategy) { return strategy.tensor; });
  config["data_parallel_size_of_each_op"] =
      per_operator(plan, [](const ChainStrategy& strategy) { return strategy.data; });
  config["recompute_ops"] = per_operator(
      plan, [](const ChainStrategy& strategy) { return strategy.is_recomputed ? 1 : 0; });
  config["algo_of_each_op"] =
      per_operator(plan, [](const ChainStrategy& strategy) { return strategy.algorithm; });
  return json_text(config);
}

std::string no_chain_text(const ChainProblem& problem) {
  return fmt::format("No partition found: {}.\nUse more devices, or set --memory.\n",
                     reason_of_no_chain(problem));
}

std::string no_chain_json(const ChainProblem& problem) {
  return infeasible_json(reason_of_no_chain(problem));
}

}  // namespace meshwright
