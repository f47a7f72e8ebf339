#include "cli/partition/model_graph.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/partition/report_json.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/number_from_text.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/formats/file.hpp"
#include "core/formats/gzip.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "models/onnx/onnx.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {
namespace {

constexpr const char* kMemoryBound = "memory-bound";
constexpr std::int64_t kLargestDimension = std::int64_t{1} << 40;

/// "batch=8": all of them by name.
std::map<std::string, std::int64_t> dimensions_of(const std::vector<std::string>& texts) {
  std::map<std::string, std::int64_t> dimensions;
  for (const std::string& text : texts) {
    const std::size_t at = text.rfind('=');
    const auto value = number_from_text<std::int64_t>(
        at == std::string::npos ? std::string_view() : std::string_view(text).substr(at + 1));
    if (at == 0 || !value || *value < 1 || *value > kLargestDimension)
      refuse_flag("--dim", fmt::format("invalid value '{}': expected DIMENSION=N", text),
                  "write the name of a dimension and a positive integer, such as batch=8");
    if (!dimensions.emplace(text.substr(0, at), *value).second)
      refuse_flag("--dim", fmt::format("'{}' is given twice", text.substr(0, at)), "remove one");
  }
  return dimensions;
}

Cluster load_cluster(const ModelGraphFlags& flags) {
  if (flags.cluster.empty())
    refuse_flag("--cluster", "missing required option: the graph has operators without times",
                "set it to a cluster whose devices run them, such as --cluster dgx-a100");
  return cluster_from_toml(find_cluster(flags.cluster));
}

GraphDevices devices_of(const Cluster& cluster, const DeviceFlags& flags) {
  const int available = device_count(cluster);
  const int of_node = node_of(cluster, DeviceId(0)).device_count;
  const int count = flags.devices.value_or(std::min(available, of_node));
  if (count < 1 || count > available)
    refuse_flag(flags.devices_flag,
                fmt::format("{} devices on a cluster with {}", count, available),
                fmt::format("set it from 1 to {}", available));
  GraphDevices devices = graph_devices(cluster, count);
  devices.microbatches = flags.microbatches.value_or(4 * count);
  if (flags.memory) devices.memory = *flags.memory;
  return devices;
}

void check_dtype(Dtype dtype, const Cluster& cluster) {
  if (is_quantized(dtype))
    refuse_flag("--dtype", fmt::format("'{}' is not supported for graphs", name_of(dtype)),
                "use fp32, tf32, bf16 or fp16");
  for (const auto& [name, device] : cluster.devices)
    if (!peak_of(device, product_format_of(dtype)))
      refuse_flag("--dtype", fmt::format("'{}' has no {} products", device.name, name_of(dtype)),
                  "use another dtype, such as fp16");
}

struct Totals {
  std::int64_t parameters = 0;
  Flops forward, backward;
  Bytes saved;
};
Totals totals_of(const KernelGraph& graph) {
  Totals totals;
  for (const KernelGraphNode& node : graph.nodes) {
    totals.parameters += node.parameters;
    totals.forward += forward_flops(node);
    totals.backward += backward_flops(node);
    totals.saved += node.saved;
  }
  return totals;
}

constexpr const char* kStandardInput = "standard input";

/// Of a file, where data of its tensors may be; empty for standard input.
std::string directory_of(const std::string& file) {
  if (file == kStandardInput) return "";
  const std::filesystem::path directory = std::filesystem::path(file).parent_path();
  return directory.empty() ? "." : directory.string();
}

}  // namespace

void add_model_graph_flags(CLI::App& command, ModelGraphFlags& flags) {
  const OptionGroup group(command, "ONNX and PyTorch models");
  add_value(command, "--cluster", flags.cluster, "CLUSTER",
            "cluster whose devices run the operators: built-in name or FILE");
  command.add_option("--dim", flags.dimensions, "size of a symbolic dimension, such as batch=8")
      ->type_name("DIMENSION=N")
      ->allow_extra_args(false);
  add_choice(command, "--dtype", flags.dtype, dtype_from_name, {"fp32", "tf32", "bf16", "fp16"},
             "number format of weights and activations (default: bf16)");
  command.add_flag("--inference", flags.inference,
                   "forward pass only (default: training with AdamW)");
  add_choice(command, "--unknown-operators", flags.unknown_operators, {kMemoryBound},
             "operators that are not known read and write their tensors once (default: error)");
  add_value(command, "--trainer", flags.trainer, "NAME|FILE",
            "training program whose costs are used: preset of models/trainers, or trainer.toml "
            "(default: megatron-core)");
  add_value(command, "--costs", flags.costs_file, "FILE",
            "write FLOPs, bytes and times of all nodes to FILE (CSV)");
}

NamedText read_graph_file(const std::string& path) {
  // ONNX files may hold weights, and sharding problems matrices.
  constexpr std::size_t kLargestGraphFile = std::size_t{512} << 20;
  const std::string where = path == "-" ? kStandardInput : path;
  std::string bytes =
      read_file(path, path.ends_with(".onnx") ? kLargestOnnxFile : kLargestGraphFile);
  if (is_gzip(bytes)) bytes = decompress_gzip(bytes, where, kLargestGraphFile);
  return {.name = where, .where = where, .text = std::move(bytes)};
}

bool is_model_graph(const NamedText& file) { return looks_like_onnx(file.text); }

void refuse_model_graph_flags(const ModelGraphFlags& flags) {
  const bool any_given = !flags.cluster.empty() || !flags.dimensions.empty() || flags.dtype ||
                         flags.inference || !flags.unknown_operators.empty() ||
                         !flags.trainer.empty() || !flags.costs_file.empty();
  if (any_given)
    refuse_flag("--cluster",
                "the graph has times: --cluster, --dim, --dtype, --inference, "
                "--unknown-operators, --trainer and --costs are for ONNX and PyTorch models",
                "remove them");
}

KernelGraph read_model_graph(const NamedText& file, const ModelGraphFlags& flags) {
  return read_onnx(file, {.dimensions = dimensions_of(flags.dimensions),
                          .dtype = flags.dtype.value_or(Dtype::kBf16),
                          .is_training = !flags.inference,
                          .allows_unknown_operators = flags.unknown_operators == kMemoryBound,
                          .directory = directory_of(file.where)});
}

PricedModel price_model(const NamedText& file, const ModelGraphFlags& flags,
                        const DeviceFlags& device_flags) {
  PricedModel model{.graph = {}, .cluster = load_cluster(flags), .cost = {}, .devices = {}};
  check_dtype(flags.dtype.value_or(Dtype::kBf16), model.cluster);
  model.devices = devices_of(model.cluster, device_flags);
  const Trainer trainer = trainer_from_toml(find_trainer(
      flags.trainer.empty() ? std::string(default_trainer(model.cluster)) : flags.trainer));
  if (!flags.inference)
    model.devices.reserved =
        trainer.memory.context.value_or(device_of(model.cluster, DeviceId(0)).reserved_memory);
  model.graph = read_model_graph(file, flags);
  model.cost = make_device_cost_model(model.cluster, trainer);
  return model;
}

std::string model_notes(const PricedModel& model, std::size_t groups) {
  constexpr double kTera = 1e12;
  const Totals totals = totals_of(model.graph);
  std::string text = fmt::format("model: {} parameters, {:.6g} TFLOP forward",
                                 grouped(totals.parameters), totals.forward.value / kTera);
  if (totals.backward.value > 0)
    text += fmt::format(", {:.6g} TFLOP backward, {} saved", totals.backward.value / kTera,
                        to_text(totals.saved));
  text += fmt::format(" per micro-batch\ncosts: {} ({})\n", model.cost->provenance(),
                      model.cost->validation());
  if (groups < model.graph.nodes.size())
    text += fmt::format("searched: partitions of {} groups of nodes that stay together\n",
                        grouped(static_cast<std::int64_t>(groups)));
  return text;
}

std::string with_model(const std::string& json, const PricedModel& model, std::size_t groups) {
  const Totals totals = totals_of(model.graph);
  Json object = Json::parse(json);
  object["model"] = {
      {"nodes", model.graph.nodes.size()},      {"groups", groups},
      {"parameters", totals.parameters},        {"forward_flop", totals.forward.value},
      {"backward_flop", totals.backward.value}, {"saved_bytes", totals.saved.value},
      {"dtype", name_of(model.graph.dtype)},    {"cost_model", model.cost->provenance()},
      {"validation", model.cost->validation()}};
  return json_text(object);
}

std::string node_costs_csv(const PricedModel& model) {
  constexpr double kNanosecondsPerSecond = 1e9;
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
  };
  const auto traffic = [](const std::vector<Kernel>& kernels) {
    Bytes sum;
    for (const Kernel& kernel : kernels) sum += kernel.memory_traffic;
    return sum.value;
  };
  std::string csv =
      "node,operator,forward_flop,backward_flop,forward_traffic_bytes,backward_traffic_bytes,"
      "forward_ns,backward_ns,parameters,output_bytes,saved_bytes\n";
  for (const KernelGraphNode& node : model.graph.nodes)
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", quoted(node.name),
                       quoted(node.operation), forward_flops(node).value,
                       backward_flops(node).value, traffic(node.forward), traffic(node.backward),
                       kNanosecondsPerSecond * time_of(node.forward, *model.cost).value,
                       kNanosecondsPerSecond * time_of(node.backward, *model.cost).value,
                       node.parameters, node.output.value, node.saved.value);
  return csv;
}

}  // namespace meshwright
