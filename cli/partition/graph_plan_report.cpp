#include "cli/partition/graph_plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/flags/usage_error.hpp"
#include "cli/partition/partition_step.hpp"
#include "cli/partition/replication_report.hpp"
#include "cli/partition/report_json.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "models/onnx/onnx.hpp"
#include "planner/partition/graph_plan.hpp"

namespace meshwright {
namespace {

constexpr const char* kGroupsNote =
    "The graph has more operators than are searched: some stay together.\n";

struct PlannedGraph {
  PricedModel model;
  SizedGraphPlans search;
};

std::vector<std::int64_t> micro_batches_of(const GraphPlanRequest& request, bool is_symbolic) {
  if (request.micro_batch) {
    if (request.global_batch % *request.micro_batch != 0)
      refuse_flag("--micro-batch",
                  fmt::format("{} does not divide the global batch size {}", *request.micro_batch,
                              request.global_batch),
                  "set a divisor");
    if (request.global_batch / *request.micro_batch > kMostMicrobatches)
      refuse_flag("--micro-batch",
                  fmt::format("{} micro-batches; at most {} are supported",
                              grouped(request.global_batch / *request.micro_batch),
                              grouped(kMostMicrobatches)),
                  "use larger micro-batches");
    return {*request.micro_batch};
  }
  if (!is_symbolic)
    refuse_flag("--micro-batch",
                fmt::format("the graph has no symbolic dimension '{}': its batch is fixed",
                            request.batch_dimension),
                "set --micro-batch to the number of samples of its inputs, or --batch-dim to the "
                "name of their dimension");
  std::vector<std::int64_t> sizes = searched_micro_batches(request.global_batch);
  if (sizes.empty())
    refuse_flag("--global-batch",
                fmt::format("{} samples are too many micro-batches of searched sizes",
                            grouped(request.global_batch)),
                "use a smaller global batch");
  return sizes;
}

/// Groups are within a node.
void check_tensor_degree(int tensor, const PricedModel& model) {
  const int of_node = node_of(model.cluster, DeviceId(0)).device_count;
  if (model.devices.count % tensor != 0 || of_node % tensor != 0)
    refuse_flag("--tp",
                fmt::format("{} tensor-parallel devices on {} GPUs in nodes of {}", tensor,
                            model.devices.count, of_node),
                "set a number that divides both");
  if (tensor > 1 && model.graph.units.empty())
    refuse_flag("--tp",
                fmt::format("the graph has {} operators; tensor parallelism is searched in smaller "
                            "graphs",
                            grouped(static_cast<std::int64_t>(model.graph.nodes.size()))),
                "remove it");
}

PlannedGraph search(const GraphPlanRequest& request, const NamedText& file) {
  const bool is_symbolic =
      std::ranges::count(symbolic_dimensions(file), request.batch_dimension) > 0;
  const std::vector<std::int64_t> sizes = micro_batches_of(request, is_symbolic);
  const auto flags_of = [&](std::int64_t size) {
    ModelGraphFlags flags = request.model;
    if (is_symbolic)
      flags.dimensions.push_back(fmt::format("{}={}", request.batch_dimension, size));
    return flags;
  };
  PricedModel model = price_model(
      file, flags_of(sizes.front()),
      {.devices = request.gpus, .microbatches = 1, .memory = {}, .devices_flag = "--gpus"});
  model.devices.tensor = request.tensor;
  if (request.tensor) check_tensor_degree(*request.tensor, model);
  const SizedGraph graph{.read =
                             [&](std::int64_t size) {
                               return size == sizes.front()
                                          ? std::move(model.graph)
                                          : read_model_graph(file, flags_of(size));
                             },
                         .micro_batches = sizes,
                         .global_batch = request.global_batch};
  SizedGraphPlans found = plan_graph(graph, model.cluster, *model.cost, model.devices, file.where,
                                     static_cast<std::size_t>(std::max(1, request.top)),
                                     [] { return is_interrupted(); });
  return {std::move(model), std::move(found)};
}

double samples_per_second(const SizedGraphPlan& plan) {
  return static_cast<double>(plan.micro_batch * plan.plan.training.problem.microbatches) /
         to_seconds(plan.plan.prediction.evaluation.step_time).value;
}

/// Replicas of every stage: "4+2+2", or "2 each".
std::string replicas_text(const GraphPlan& plan) {
  std::vector<std::string> counts;
  for (const ReplicatedStage& stage : plan.training.partition.stages)
    counts.push_back(std::to_string(stage.data));
  constexpr std::size_t kMostListed = 4;
  const bool are_equal = std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end();
  if (are_equal && counts.size() > kMostListed) return counts.front() + " each";
  return fmt::format("{}", fmt::join(counts, "+"));
}

Table plans_table(const std::vector<SizedGraphPlan>& plans, std::size_t top) {
  Table table = empty_table("#", "micro-batch", "stages", left_aligned("GPUs"), "TP", "ZeRO",
                            "step", "samples/s", "MFU", "bubble", "busiest", "exposed comm",
                            "peak memory", "headroom");
  for (std::size_t i = 0; i < std::min(top, plans.size()); ++i) {
    const Evaluation& e = plans[i].plan.prediction.evaluation;
    double exposed = 0;
    for (const Axis axis : kAxes) exposed += exposed_communication_share(e, axis);
    table.rows.push_back({std::to_string(i + 1), std::to_string(plans[i].micro_batch),
                          std::to_string(plans[i].plan.training.partition.stages.size()),
                          replicas_text(plans[i].plan), std::to_string(plans[i].plan.tensor),
                          std::to_string(plans[i].plan.zero), to_text(e.step_time),
                          fmt::format("{:.1f}", samples_per_second(plans[i])), percent(e.mfu),
                          percent(e.bubble_of_period), percent(e.busiest_rank_bubble),
                          percent(exposed), to_text(peak_memory(e)),
                          to_text(memory_capacity_of(e, fullest_rank(e)) - peak_memory(e))});
  }
  return table;
}

/// How often each layout occurs: "4 Shard, 1 Partial".
std::string tensor_parallel_text(const GraphPlan& plan) {
  std::map<std::string, int> counts;
  for (const std::string& placement : plan.placements)
    if (!placement.empty()) ++counts[placement.substr(0, placement.find('('))];
  std::vector<std::string> texts;
  for (const char* kind : {"Shard", "Partial", "Replicate"})
    if (counts[kind] > 0) texts.push_back(fmt::format("{} {}", counts[kind], kind));
  return fmt::format(
      "Tensor parallelism of plan 1: outputs of operators are {}; {} (DTensor placements: "
      "--json)\n\n",
      fmt::join(texts, ", "),
      plan.has_best_placements ? "proved least time of kernels and collectives"
                               : "the best that was found");
}

Document report_text(const GraphPlanRequest& request, const PlannedGraph& found) {
  const PricedModel& model = found.model;
  const SizedGraphPlan& best = found.search.plans.front();
  const TrainingPartition& training = best.plan.training;
  Document text = fmt::format(
      "{} on {}: {}, global batch size {}\n\n", request.file, model.cluster.name,
      count_text(static_cast<std::size_t>(model.devices.count), "GPU"), request.global_batch);
  text += plans_table(found.search.plans, static_cast<std::size_t>(request.top));
  text += fmt::format(
      "GPUs: replicas of every stage, each of TP GPUs; bubble: share of the period, mean over "
      "ranks "
      "and busiest rank; exposed comm: share of the step\n\n"
      "Plan 1, {} of {} samples per step:\n",
      count_text(static_cast<std::size_t>(training.problem.microbatches), "micro-batch", "es"),
      best.micro_batch);
  text += replicated_stages_table(training.partition, training.problem, best.plan.tensor);
  text += "\n";
  if (best.plan.tensor > 1) text += tensor_parallel_text(best.plan);
  text += breakdown_table(best.plan.prediction.graph.ranks, best.plan.prediction.evaluation);
  text += fmt::format(
      "\nSearched {}: every number of equal pipelines, whose stages are those with the fastest\n"
      "slowest stage, with tensor parallelism within nodes, and with ZeRO 0, 1 and 3. A step is\n"
      "1F1B with a flush.\n"
      "Simulated {}{}.\n"
      "{}Cost model: {}; {}.\n",
      count_text(static_cast<std::size_t>(found.search.sizes), "micro-batch size"),
      count_text(found.search.plans.size(), "plan"),
      found.search.is_complete ? "" : "; others are slower than those that are shown",
      best.plan.is_exact ? "" : kGroupsNote, model.cost->provenance(), model.cost->validation());
  return text;
}

Json sized_plan_json(const SizedGraphPlan& plan) {
  Json stages = Json::array();
  for (const ReplicatedStage& stage : plan.plan.training.partition.stages)
    stages.push_back({{"data", stage.data}, {"nodes", stage.nodes.size()}});
  const Evaluation& e = plan.plan.prediction.evaluation;
  return {{"micro_batch", plan.micro_batch},
          {"stages", std::move(stages)},
          {"tensor", plan.plan.tensor},
          {"zero", plan.plan.zero},
          {"step_ns", to_nanoseconds(e.step_time)},
          {"samples_per_second", samples_per_second(plan)},
          {"mfu", e.mfu},
          {"bubble_of_period", e.bubble_of_period},
          {"peak_memory_bytes", peak_memory(e).value}};
}

/// Layouts of what the nodes pass on; null without tensor parallelism.
Json tensor_parallel_json(const KernelGraph& graph, const GraphPlan& plan) {
  if (plan.tensor == 1) return nullptr;
  Json placements = Json::object();
  for (std::size_t v = 0; v < plan.placements.size(); ++v)
    if (!plan.placements[v].empty()) placements[graph.nodes[v].name] = plan.placements[v];
  return {{"devices", plan.tensor},
          {"proved_optimal", plan.has_best_placements},
          {"placements", std::move(placements)}};
}

std::string report_json(const GraphPlanRequest& request, const PlannedGraph& found) {
  Json json{{"schema", 1},
            {"graph", request.file},
            {"cluster", found.model.cluster.name},
            {"gpus", found.model.devices.count},
            {"global_batch", request.global_batch},
            {"plans", Json::array()}};
  for (std::size_t i = 0;
       i < std::min<std::size_t>(found.search.plans.size(), static_cast<std::size_t>(request.top));
       ++i)
    json["plans"].push_back(sized_plan_json(found.search.plans[i]));
  if (!found.search.plans.empty()) {
    const TrainingPartition& best = found.search.plans.front().plan.training;
    json["tensor_parallel"] =
        tensor_parallel_json(found.search.graph, found.search.plans.front().plan);
    json["stage_map"] = Json::parse(stage_map_json(best.partition, best.problem));
  }
  json["cost_model"] = found.model.cost ? found.model.cost->provenance() : "";
  return json_text(json);
}

}  // namespace

Outcome plan_graph(const GraphPlanRequest& request, const OutputFlags& output) {
  const NamedText file = read_graph_file(request.file);
  if (!is_model_graph(file))
    refuse_flag("--graph", fmt::format("'{}' is not an ONNX file", request.file),
                "partition graphs with measured times by 'meshwright partition'");
  const PartialResults partial_results;
  const PlannedGraph found = search(request, file);
  if (found.search.plans.empty()) stop_if_interrupted();
  if (!output.file.empty() && !found.search.plans.empty()) {
    const TrainingPartition& best = found.search.plans.front().plan.training;
    write_file(output.file, stage_map_json(best.partition, best.problem));
  }
  if (!request.timeline.empty() && !found.search.plans.empty())
    write_file(request.timeline, to_pftrace(timeline_of(found.search.plans.front().plan.prediction,
                                                        found.model, request.file)));
  Outcome outcome;
  if (output.json)
    outcome = outcome_of(report_json(request, found), output);
  else if (!found.search.plans.empty())
    outcome = outcome_of(report_text(request, found), output);
  else
    outcome = outcome_of(
        fmt::format("No plan fits: with micro-batches of {} the partitions of {} need more than {} "
                    "per GPU.\nUse more GPUs or a smaller --micro-batch.\n",
                    count_text(static_cast<std::size_t>(request.micro_batch.value_or(1)), "sample"),
                    count_text(static_cast<std::size_t>(found.model.devices.count), "GPU"),
                    to_text(found.model.devices.memory)),
        output);
  if (output.file == "-" && !found.search.plans.empty()) outcome.text.clear();
  if (found.search.plans.empty()) outcome.exit_code = kExitNoPlanFits;
  if (is_interrupted()) {
    outcome.exit_code = kExitInterrupted;
    outcome.notes += "interrupted: the plans so far\n";
  }
  return outcome;
}

}  // namespace meshwright
