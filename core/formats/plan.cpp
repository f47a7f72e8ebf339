/// Reads plan files; see plan_write.cpp for writing.
#include "core/formats/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/json_value.hpp"
#include "core/formats/file.hpp"
#include "core/plan/parallel_sizes.hpp"

namespace meshwright {
namespace {

using Presence = JsonObjectReader::Presence;

// Limits chosen so that the product of any two fits int64; check_plan() does the real validation.
constexpr std::int64_t kLargestDegree = 1'000'000;
constexpr std::int64_t kMostStagesInFile = std::int64_t{1} << 20;
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 28;
constexpr std::int64_t kLongestSequence = std::int64_t{1} << 28;
constexpr std::int64_t kLargestBytes = std::int64_t{1} << 60;
constexpr std::int64_t kLongestNanoseconds = Ticks::max().value / kTicksPerNanosecond - 1;
constexpr double kLargestFigure = 1e30;

int degree(JsonObjectReader& reader, std::string_view key) {
  return static_cast<int>(reader.integer(key, 1, kLargestDegree, 1));
}

/// Reads a string with `parse`, which returns an empty optional for unknown values.
template <class Parse, class Value>
void read_word(JsonObjectReader& reader, std::string_view key, Parse parse, Value& value,
               std::string_view hint) {
  if (!reader.optional(key)) return;
  const std::string word = reader.text(key);
  if (const auto parsed = parse(word)) {
    value = *parsed;
    return;
  }
  if (word.empty()) return;  // not a string: already reported
  reader.note(key, fmt::format("invalid value '{}'", word.substr(0, 60)), std::string(hint));
}

ParallelDegrees read_degrees(JsonObjectReader& reader) {
  ParallelDegrees d;
  for (const ParallelSize& size : kParallelSizes) d.*size.size = degree(reader, size.key);
  std::int64_t ranks = 1;
  std::vector<std::string_view> factors;
  for (const ParallelSize& size : kParallelSizes) {
    if (!spans_ranks(size)) continue;
    factors.push_back(size.key);
    if (ranks <= kMostRanksInFile) ranks *= d.*size.size;
  }
  if (ranks > kMostRanksInFile)
    reader.note(
        "tp", fmt::format("{} exceeds {} ranks", fmt::join(factors, " x "), kMostRanksInFile), "");
  if (stage_count(d) > kMostStagesInFile)
    reader.note("vpp", fmt::format("pp x vpp exceeds {} stages", kMostStagesInFile), "");
  return d;
}

/// These keys are written only if they differ from their defaults.
DataParallelism read_data_parallelism(JsonObjectReader& reader) {
  constexpr std::int64_t kMostServers = 1'000'000, kLargestPrefetch = 1'000;
  DataParallelism d;
  read_word(
      reader, "data_parallel", data_parallel_from_name, d.kind,
      "expected one of: collective, ring, parameter-server, async-parameter-server, one-process");
  read_word(reader, "collective_algorithm", collective_algorithm_from_name, d.algorithm,
            "expected one of: auto, ring, tree, nvls, hierarchical");
  read_word(reader, "bucket", buckets_from_text, d.buckets,
            "expected one of: none, pytorch, megatron, or a size such as 25MiB");
  d.overlap_gather = reader.boolean("overlap_gather", d.overlap_gather);
  d.prefetch = static_cast<int>(reader.integer("fsdp_prefetch", 0, kLargestPrefetch, d.prefetch));
  d.reshard_after_forward = reader.boolean("fsdp_reshard", d.reshard_after_forward);
  d.shard_ranks = static_cast<int>(reader.integer("shard_ranks", 0, kLargestDegree, d.shard_ranks));
  d.offload_optimizer = reader.boolean("offload_optimizer", d.offload_optimizer);
  d.servers = static_cast<int>(reader.integer("servers", 1, kMostServers, d.servers));
  d.colocated_servers = reader.boolean("colocated_servers", d.colocated_servers);
  read_word(reader, "ring_order", ring_order_from_name, d.ring_order,
            "expected one of: neighbours, alternating");
  return d;
}

double number_or(JsonObjectReader& reader, std::string_view key, double most, double when_missing) {
  return reader.optional(key) ? reader.number(key, 0, most) : when_missing;
}

ModelParallelism read_model_parallelism(JsonObjectReader& reader) {
  ModelParallelism m;
  m.tensor_overlap = reader.boolean("tp_comm_overlap", false);
  read_word(reader, "context_algorithm", context_algorithm_from_name, m.context,
            "expected one of: all-gather, ring, all-to-all");
  constexpr double kLargestRatio = 1e6;
  m.routing.capacity = number_or(reader, "expert_capacity", kLargestRatio, m.routing.capacity);
  m.routing.imbalance = number_or(reader, "expert_imbalance", kLargestRatio, m.routing.imbalance);
  m.routing.fp8_dispatch = reader.boolean("expert_fp8_dispatch", false);
  m.routing.node_limit =
      static_cast<int>(reader.integer("expert_node_limit", 0, kLargestDegree, 0));
  m.routing.overlap = reader.boolean("expert_overlap", false);
  read_word(reader, "rank_order", rank_order_from_text, m.order,
            "use tp-cp-ep-dp-pp or another order of these five axes");
  return m;
}

Precision read_precision(JsonObjectReader& reader) {
  Precision p;
  read_word(reader, "fp8_recipe", fp8_recipe_from_name, p.fp8_recipe,
            "expected one of: delayed, tensorwise, blockwise, mxfp8");
  p.fp8_parameters = reader.boolean("fp8_param_gather", false);
  p.wide_blocks = static_cast<int>(reader.integer("bf16_end_layers", 0, kLargestDegree, 0));
  read_word(reader, "grad_dtype", gradient_dtype_from_name, p.gradients,
            "expected one of: fp32, bf16, fp16");
  return p;
}

Strategy read_strategy(JsonObjectReader& reader) {
  Strategy s;
  s.degrees = read_degrees(reader);
  s.sequence_parallel = reader.boolean("sequence_parallel", false);
  s.micro_batch = static_cast<int>(reader.integer("micro_batch", 1, kLargestBatch, 1));
  s.global_batch = reader.integer("global_batch", 1, kLargestBatch);
  s.sequence_length = reader.integer("seq", 1, kLongestSequence);
  if (reader.optional("schedule")) s.schedule = reader.text("schedule");
  read_word(reader, "recompute", recompute_from_text, s.recompute,
            "expected one of: none, selective, full, block:N");
  s.zero = static_cast<int>(reader.integer("zero", 0, 3, 0));
  read_word(reader, "dtype", dtype_from_name, s.dtype,
            "expected one of: fp32, tf32, bf16, fp16, fp8, nvfp4");
  read_word(reader, "attention", attention_from_name, s.attention,
            "expected one of: flash, standard");
  read_word(reader, "optimizer", optimizer_from_name, s.optimizer,
            "expected one of: adamw, sgd, muon");
  s.data_parallelism = read_data_parallelism(reader);
  s.model_parallelism = read_model_parallelism(reader);
  s.precision = read_precision(reader);
  read_word(reader, "layer_options", layer_options_from_text, s.layer_options,
            "use for example 0-7:recompute=full+60-79:fsdp-reshard=no+3:tp=1");
  read_word(reader, "batch_shares", batch_shares_from_text, s.batch_shares,
            "use for example 0-7:12+8-15:4, the micro-batches of data-parallel ranks");
  return s;
}

Ticks read_time(JsonObjectReader& reader, std::string_view key) {
  return Ticks(kTicksPerNanosecond * reader.integer(key, 0, kLongestNanoseconds));
}

Bytes read_bytes(JsonObjectReader& reader, std::string_view key) {
  return Bytes(reader.integer(key, 0, kLargestBytes));
}

void read_bubble(JsonObjectReader& reader, PlanFigures& figures) {
  figures.bubble_of_period = reader.number("period", -1, 1);
  figures.bubble_of_makespan = reader.number("makespan", -1, 1);
  // Earlier versions wrote the bubble of the busiest rank as `period`, and no mean over ranks.
  figures.busiest_rank_bubble = reader.optional("busiest_rank_period") != nullptr
                                    ? reader.number("busiest_rank_period", -1, 1)
                                    : figures.bubble_of_period;
}

void read_exposed(JsonObjectReader& reader, PlanFigures& figures) {
  for (int axis = 0; axis < kAxisCount; ++axis)
    figures.exposed_communication[static_cast<std::size_t>(axis)] =
        reader.number(name_of(static_cast<Axis>(axis)), 0, 1);
}

StepTimeRange read_range(JsonObjectReader& reader) {
  StepTimeRange range;
  range.p10 = read_time(reader, "p10_ns");
  range.p90 = read_time(reader, "p90_ns");
  range.validated_runs = static_cast<int>(reader.integer("validated_runs", 0, 1 << 30));
  return range;
}

PlanFigures read_figures(JsonObjectReader& reader) {
  PlanFigures f;
  reader.object("strategy", Presence::kRequired,
                [&](JsonObjectReader& r) { f.strategy = read_strategy(r); });
  f.step_time = read_time(reader, "step_time_ns");
  reader.object("step_time_range", Presence::kOptionalOrNull,
                [&](JsonObjectReader& r) { f.range = read_range(r); });
  f.period = read_time(reader, "period_ns");
  f.tokens_per_second_per_gpu = reader.number("tokens_per_s_per_gpu", 0, kLargestFigure);
  f.model_tflops_per_gpu = reader.number("model_tflops_per_gpu", 0, kLargestFigure);
  f.mfu = reader.number("mfu", 0, kLargestFigure);
  f.hfu = reader.number("hfu", 0, kLargestFigure);
  reader.object("bubble", Presence::kRequired, [&](JsonObjectReader& r) { read_bubble(r, f); });
  reader.object("exposed_communication", Presence::kRequired,
                [&](JsonObjectReader& r) { read_exposed(r, f); });
  f.peak_memory = read_bytes(reader, "peak_memory_bytes");
  f.memory_capacity = read_bytes(reader, "memory_capacity_bytes");
  // Earlier versions wrote only the total.
  if (reader.optional("peak_memory_allocated_bytes"))
    f.peak_memory_allocated = read_bytes(reader, "peak_memory_allocated_bytes");
  if (reader.optional("peak_memory_reserved_bytes"))
    f.peak_memory_reserved = read_bytes(reader, "peak_memory_reserved_bytes");
  for (const std::int64_t bytes : reader.integers("peak_memory_bytes_per_stage", 0, kLargestBytes,
                                                  static_cast<std::size_t>(kMostStagesInFile)))
    f.peak_memory_per_stage.emplace_back(bytes);
  f.why = reader.text("why");
  return f;
}

/// Texts of the job, each with the name that it was found by.
void read_sources(JsonObjectReader& reader, PlanFile& file) {
  reader.object("model", Presence::kRequired, [&](JsonObjectReader& r) {
    file.model_name = r.text("name");
    file.model_config = r.text("config");
  });
  reader.object("cluster", Presence::kRequired, [&](JsonObjectReader& r) {
    file.cluster_name = r.text("name");
    file.cluster_toml = r.text("toml");
    if (r.optional("calibration")) file.calibration = r.text("calibration");
  });
  reader.object("trainer", Presence::kOptional, [&](JsonObjectReader& r) {
    file.trainer_name = r.text("name");
    file.trainer_toml = r.text("toml");
  });
}

/// One string per pipeline rank, as written by to_text().
std::vector<std::vector<Action>> read_orders(JsonObjectReader& reader,
                                             std::vector<Diagnostic>& problems) {
  std::vector<std::vector<Action>> orders;
  const JsonValue* value = reader.optional("orders");
  if (!value) return orders;
  const auto* array = value->as<JsonArray>();
  if (!array || array->size() > static_cast<std::size_t>(kLargestDegree)) {
    reader.note("orders", "expected an array of strings, one per pipeline rank", "");
    return orders;
  }
  for (const JsonValue& entry : *array) {
    const auto* text = entry.as<std::string>();
    const std::string place = fmt::format("{}/{}", reader.place_of("orders"), orders.size());
    if (!text) {
      problems.push_back({place, fmt::format("expected a string, got {}", describe(entry)), ""});
      return orders;
    }
    try {
      orders.push_back(order_from_text(*text));
    } catch (const InputError& error) {
      for (Diagnostic problem : error.diagnostics()) {
        problem.where = fmt::format("{}, {}", place, problem.where);
        problems.push_back(std::move(problem));
      }
      return orders;
    }
  }
  return orders;
}

/// A whole object: keys that `read` does not know are problems.
template <class Read>
auto read_object(const JsonValue& value, const std::string& place,
                 std::vector<Diagnostic>& problems, Read read) {
  JsonObjectReader reader(value, place, problems);
  auto made = read(reader);
  reader.finish();
  return made;
}

}  // namespace

Strategy strategy_from_json(const JsonValue& value, const std::string& place,
                            std::vector<Diagnostic>& problems) {
  return read_object(value, place, problems, read_strategy);
}

PlanFigures figures_from_json(const JsonValue& value, const std::string& place,
                              std::vector<Diagnostic>& problems) {
  return read_object(value, place, problems, read_figures);
}

PlanFile plan_file_from_json(std::string_view text, std::string_view where) {
  constexpr std::int64_t kSchema = 1;
  const JsonValue root = parse_json(text, where);
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(root, std::string(where), problems);
  // Other versions have other keys: report nothing else in that case.
  const JsonValue* schema = reader.required("schema");
  if (schema) {
    const auto* version = schema->as<std::int64_t>();
    if (!version || *version != kSchema)
      reader.note("schema", fmt::format("expected {}, got {}", kSchema, describe(*schema)),
                  "check that this is a plan file written by this version of Meshwright");
  }
  throw_if_any(problems);

  PlanFile file;
  read_sources(reader, file);
  reader.object("strategy", Presence::kRequired,
                [&](JsonObjectReader& r) { file.plan.strategy = read_strategy(r); });
  for (const std::int64_t blocks : reader.integers("blocks_per_stage", 0, kMostStagesInFile,
                                                   static_cast<std::size_t>(kMostStagesInFile)))
    file.plan.blocks_per_stage.push_back(static_cast<int>(blocks));
  file.plan.orders = read_orders(reader, problems);
  if (reader.optional("device_of_stage"))
    for (const std::int64_t device : reader.integers("device_of_stage", 0, kLargestDegree,
                                                     static_cast<std::size_t>(kMostStagesInFile)))
      file.plan.device_of_stage.push_back(static_cast<int>(device));
  reader.object("predicted", Presence::kOptionalOrNull,
                [&](JsonObjectReader& r) { file.predicted = read_figures(r); });
  if (problems.empty() && file.predicted && file.predicted->strategy != file.plan.strategy)
    reader.note("predicted", "the strategy of the prediction differs from the plan's strategy",
                "set \"predicted\" to null, and simulate the plan again");
  file.cost_model = reader.text("cost_model");
  reader.finish();
  throw_if_any(problems);
  return file;
}

}  // namespace meshwright
