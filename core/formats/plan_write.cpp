/// Writes plan files; see plan.cpp for reading.
#include <nlohmann/json.hpp>

#include <algorithm>

#include "core/base/check.hpp"
#include "core/formats/plan.hpp"
#include "core/plan/parallel_sizes.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

/// Adds the options that differ from their defaults.
void add_data_parallelism(const DataParallelism& d, Json& json) {
  const DataParallelism usual;
  if (d.kind != usual.kind) json["data_parallel"] = name_of(d.kind);
  if (d.algorithm != usual.algorithm) json["collective_algorithm"] = name_of(d.algorithm);
  if (d.buckets != usual.buckets) json["bucket"] = to_text(d.buckets);
  if (d.overlap_gather != usual.overlap_gather) json["overlap_gather"] = d.overlap_gather;
  if (d.prefetch != usual.prefetch) json["fsdp_prefetch"] = d.prefetch;
  if (d.reshard_after_forward != usual.reshard_after_forward)
    json["fsdp_reshard"] = d.reshard_after_forward;
  if (d.shard_ranks != usual.shard_ranks) json["shard_ranks"] = d.shard_ranks;
  if (d.offload_optimizer != usual.offload_optimizer)
    json["offload_optimizer"] = d.offload_optimizer;
  if (d.servers != usual.servers) json["servers"] = d.servers;
  if (d.colocated_servers != usual.colocated_servers)
    json["colocated_servers"] = d.colocated_servers;
  if (d.ring_order != usual.ring_order) json["ring_order"] = name_of(d.ring_order);
}

/// Adds the options that differ from their defaults.
void add_model_parallelism(const ModelParallelism& m, Json& json) {
  constexpr ModelParallelism kUsual;
  const auto add = [&json](const char* key, bool is_usual, const auto& value) {
    if (!is_usual) json[key] = value;
  };
  add("tp_comm_overlap", m.tensor_overlap == kUsual.tensor_overlap, m.tensor_overlap);
  add("context_algorithm", m.context == kUsual.context, name_of(m.context));
  const ExpertRouting& routing = m.routing;
  add("expert_capacity", routing.capacity == kUsual.routing.capacity, routing.capacity);
  add("expert_imbalance", routing.imbalance == kUsual.routing.imbalance, routing.imbalance);
  add("expert_fp8_dispatch", !routing.fp8_dispatch, routing.fp8_dispatch);
  add("expert_node_limit", routing.node_limit == 0, routing.node_limit);
  add("expert_overlap", !routing.overlap, routing.overlap);
  add("rank_order", m.order == kUsual.order, to_text(m.order));
}

/// Adds the options that differ from their defaults.
void add_precision(const Precision& p, Json& json) {
  constexpr Precision kUsual;
  if (p.fp8_recipe != kUsual.fp8_recipe) json["fp8_recipe"] = name_of(p.fp8_recipe);
  if (p.fp8_parameters != kUsual.fp8_parameters) json["fp8_param_gather"] = p.fp8_parameters;
  if (p.wide_blocks != kUsual.wide_blocks) json["bf16_end_layers"] = p.wide_blocks;
  if (p.gradients != kUsual.gradients) json["grad_dtype"] = name_of(p.gradients);
}

Json json_of(const Strategy& s) {
  Json json;
  for (const ParallelSize& size : kParallelSizes)
    json[std::string(size.key)] = s.degrees.*size.size;
  json.update(Json{{"sequence_parallel", s.sequence_parallel},
                   {"micro_batch", s.micro_batch},
                   {"global_batch", s.global_batch},
                   {"seq", s.sequence_length},
                   {"schedule", s.schedule},
                   {"recompute", to_text(s.recompute)},
                   {"zero", s.zero},
                   {"dtype", name_of(s.dtype)},
                   {"attention", name_of(s.attention)}});
  if (s.optimizer != OptimizerKind::kAdamW) json["optimizer"] = name_of(s.optimizer);
  add_data_parallelism(s.data_parallelism, json);
  add_model_parallelism(s.model_parallelism, json);
  add_precision(s.precision, json);
  if (!s.layer_options.empty()) json["layer_options"] = to_text(s.layer_options);
  if (!s.batch_shares.empty()) json["batch_shares"] = to_text(s.batch_shares);
  return json;
}

Json json_of(const std::optional<StepTimeRange>& range) {
  if (!range) return nullptr;
  return Json{{"p10_ns", to_nanoseconds(range->p10)},
              {"p90_ns", to_nanoseconds(range->p90)},
              {"validated_runs", range->validated_runs}};
}

Json json_of(const PlanFigures& f) {
  Json exposed = Json::object();
  const auto add = [&](Axis axis) {
    exposed[std::string(name_of(axis))] = f.exposed_communication[static_cast<std::size_t>(axis)];
  };
  // The order of schema 1, then the others.
  for (const Axis axis : {Axis::kTensor, Axis::kData, Axis::kPipeline, Axis::kExpert}) add(axis);
  for (const Axis axis : kAxes) add(axis);
  Json per_stage = Json::array();
  for (const Bytes bytes : f.peak_memory_per_stage) per_stage.push_back(bytes.value);
  return Json{{"strategy", json_of(f.strategy)},
              {"step_time_ns", to_nanoseconds(f.step_time)},
              {"step_time_range", json_of(f.range)},
              {"period_ns", to_nanoseconds(f.period)},
              {"tokens_per_s_per_gpu", f.tokens_per_second_per_gpu},
              {"model_tflops_per_gpu", f.model_tflops_per_gpu},
              {"mfu", f.mfu},
              {"hfu", f.hfu},
              {"bubble", Json{{"period", f.bubble_of_period},
                              {"makespan", f.bubble_of_makespan},
                              {"busiest_rank_period", f.busiest_rank_bubble}}},
              {"exposed_communication", std::move(exposed)},
              {"peak_memory_bytes", f.peak_memory.value},
              {"peak_memory_allocated_bytes", f.peak_memory_allocated.value},
              {"peak_memory_reserved_bytes", f.peak_memory_reserved.value},
              {"memory_capacity_bytes", f.memory_capacity.value},
              {"peak_memory_bytes_per_stage", std::move(per_stage)},
              {"why", f.why}};
}

/// Replaces bytes that are not UTF-8 (e.g. in a file name) by U+FFFD, so the JSON is always valid.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Strategy& strategy, int indent) {
  return text_of(json_of(strategy), indent);
}

std::string to_json(const PlanFigures& figures, int indent) {
  return text_of(json_of(figures), indent);
}

std::string to_json(const PlanFile& file) {
  Json json{{"schema", 1},
            {"model", Json{{"name", file.model_name}, {"config", file.model_config}}},
            {"cluster", Json{{"name", file.cluster_name}, {"toml", file.cluster_toml}}},
            {"strategy", json_of(file.plan.strategy)},
            {"blocks_per_stage", file.plan.blocks_per_stage}};
  if (!file.calibration.empty()) json["cluster"]["calibration"] = file.calibration;
  if (!file.trainer_toml.empty())
    json["trainer"] = Json{{"name", file.trainer_name}, {"toml", file.trainer_toml}};
  if (!file.plan.orders.empty()) {
    Json& orders = json["orders"] = Json::array();
    for (const auto& order : file.plan.orders) orders.push_back(to_text(order));
  }
  if (!file.plan.device_of_stage.empty()) json["device_of_stage"] = file.plan.device_of_stage;
  json["predicted"] = file.predicted ? json_of(*file.predicted) : Json();
  json["cost_model"] = file.cost_model;
  constexpr int kIndent = 2;
  return text_of(json, kIndent) + "\n";
}

PlanFigures figures_of(const Strategy& strategy, const Evaluation& evaluation, std::string why) {
  constexpr double kTera = 1e12;
  PlanFigures f;
  f.strategy = strategy;
  f.step_time = evaluation.step_time;
  f.period = evaluation.period;
  f.tokens_per_second_per_gpu = evaluation.tokens_per_second_per_gpu;
  f.model_tflops_per_gpu = evaluation.model_flops_per_gpu.value / kTera;
  f.mfu = evaluation.mfu;
  f.hfu = evaluation.hfu;
  f.bubble_of_period = evaluation.bubble_of_period;
  f.bubble_of_makespan = evaluation.bubble_of_makespan;
  f.busiest_rank_bubble = evaluation.busiest_rank_bubble;
  for (int axis = 0; axis < kAxisCount; ++axis)
    f.exposed_communication[static_cast<std::size_t>(axis)] =
        exposed_communication_share(evaluation, static_cast<Axis>(axis));
  f.peak_memory = peak_memory(evaluation);
  f.peak_memory_allocated = peak_allocated_memory(evaluation);
  f.peak_memory_reserved = peak_reserved_memory(evaluation);
  f.memory_capacity = evaluation.memory_capacity;

  // Ranks are ordered by pipeline rank, and every pipeline rank has the same number of ranks.
  const auto positions = static_cast<std::size_t>(strategy.degrees.pipeline);
  const std::size_t ranks = evaluation.peak_memory.size();
  MW_CHECK(ranks % positions == 0);
  f.peak_memory_per_stage.resize(positions);
  for (std::size_t r = 0; r < ranks; ++r) {
    Bytes& peak = f.peak_memory_per_stage[r / (ranks / positions)];
    peak = std::max(peak, total(evaluation.peak_memory[r]));
  }
  f.why = std::move(why);
  return f;
}

}  // namespace meshwright
