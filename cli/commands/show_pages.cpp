/// Pages about one model, cluster, schedule, plan or timeline.
#include "cli/commands/show_pages.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/job/job.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/base/value_named.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "core/formats/plan.hpp"
#include "core/timeline/timeline.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

const char* name_of(LayerKind kind) {
  constexpr std::array kNames{"embedding", "block", "head"};
  return entry_of(kNames, kind);
}

/// One row per class of identical layers, with the operators of the first of them.
Table layers_table(const ModelGraph& model, Json& entries) {
  Table table = empty_table(left_aligned("layer"), "count", "parameters per layer");
  std::vector<int> counts(static_cast<std::size_t>(layer_class_count(model)));
  for (const Layer& layer : model.layers) ++counts[static_cast<std::size_t>(layer.layer_class)];
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    int& count = counts[static_cast<std::size_t>(layer.layer_class)];
    if (count == 0) continue;  // its class was listed before
    const std::int64_t parameters = parameter_count(model, LayerId(i));
    table.rows.push_back({name_of(layer.kind), std::to_string(count), grouped(parameters)});
    Json operators = Json::array();
    for (const Operator& op : operators_of(model, LayerId(i))) operators.push_back(op.name);
    entries.push_back({{"kind", name_of(layer.kind)},
                       {"count", count},
                       {"parameters_each", parameters},
                       {"operators", operators}});
    count = 0;
  }
  return table;
}

Document sources_text(const std::map<std::string, std::string>& sources) {
  std::vector<NamedValue> list;
  list.reserve(sources.size());
  for (const auto& [figure, source] : sources) list.push_back({figure, source});
  if (list.empty()) return {};
  return Document("Sources of the figures\n") + std::move(list);
}

std::vector<NamedValue> device_properties(const DeviceModel& device) {
  std::vector<NamedValue> list{
      {"memory", fmt::format("{} at {}, {} reserved", to_text(device.memory),
                             to_text(device.memory_bandwidth), to_text(device.reserved_memory))}};
  for (std::size_t d = 0; d < device.peak.size(); ++d)
    if (device.peak[d])
      list.push_back(
          {fmt::format("peak {}", name_of(static_cast<Dtype>(d))), to_text(*device.peak[d])});
  return list;
}

Json peaks_of(const DeviceModel& device) {
  Json peaks = Json::object();
  for (std::size_t d = 0; d < device.peak.size(); ++d)
    if (device.peak[d]) peaks[std::string(name_of(static_cast<Dtype>(d)))] = device.peak[d]->value;
  return peaks;
}

/// The properties of one node type.
std::vector<NamedValue> node_properties(const Cluster& cluster, const NodeGroup& group) {
  const NodeModel& node = cluster.nodes.at(group.node);
  const DeviceModel& device = cluster.devices.at(node.device);
  std::vector<NamedValue> list{{"nodes", fmt::format("{} x {}, {} x {} each", group.count,
                                                     node.name, node.device_count, device.name)}};
  for (NamedValue& property : device_properties(device)) list.push_back(std::move(property));
  list.push_back(
      {"intra-node", fmt::format("{} per device, latency {}", to_text(node.local.bandwidth),
                                 to_text(node.local.latency))});
  if (node.ports > 0)
    list.push_back(
        {"inter-node", fmt::format("{} ports x {} per node, latency {}", node.ports,
                                   to_text(node.port_bandwidth), to_text(cluster.fabric.latency))});
  if (node.price_per_hour)
    list.push_back({"price", fmt::format("{:.2f} USD per node and hour, {:.2f} per device",
                                         node.price_per_hour->value,
                                         node.price_per_hour->value / node.device_count)});
  return list;
}

Table orders_table(const ScheduleRule& rule, const ScheduleRequest& request, Json& orders) {
  Table table = empty_table("device", left_aligned("order"));
  for (const std::vector<Action>& order : rule.generate(request).orders) {
    const std::string text = to_text(order);
    table.rows.push_back({std::to_string(table.rows.size()), text});
    orders.push_back(text);
  }
  return table;
}

}  // namespace

Page model_page(const NamedText& config) {
  const ModelGraph model = load_model_and_warn(config);
  const ModelTraits traits = traits_of(model);
  Json layers = Json::array();
  const Table table = layers_table(model, layers);
  std::vector<NamedValue> list{{"parameters", grouped(parameter_count(model))},
                               {"active per token", grouped(active_parameter_count(model))},
                               {"hidden size", std::to_string(traits.hidden)},
                               {"vocabulary size", grouped(traits.vocabulary)}};
  if (traits.heads) list.push_back({"attention heads", std::to_string(*traits.heads)});
  if (traits.key_value_heads)
    list.push_back({"key/value heads", std::to_string(*traits.key_value_heads)});
  if (traits.experts)
    list.push_back({"experts", fmt::format("{}, {} per token", *traits.experts,
                                           traits.experts_per_token.value_or(0))});
  if (model.longest_sequence > 0)
    list.push_back({"max sequence length", grouped(model.longest_sequence)});
  list.push_back({"embeddings", model.tied_embeddings ? "tied" : "untied"});
  const Document text =
      fmt::format("{} ({})\n", config.name, model.family) + Document(std::move(list));
  const Json json{{"schema", 1},
                  {"name", config.name},
                  {"family", model.family},
                  {"parameters", parameter_count(model)},
                  {"active_parameters", active_parameter_count(model)},
                  {"blocks", traits.blocks},
                  {"hidden", traits.hidden},
                  {"vocabulary", traits.vocabulary},
                  {"longest_sequence", model.longest_sequence},
                  {"layers", layers}};
  return {text + "\n" + table, text_of(json)};
}

Page cluster_page(const NamedText& toml) {
  const Cluster cluster = cluster_from_toml(toml);
  std::vector<NamedValue> properties;
  Json groups = Json::array();
  for (const NodeGroup& group : cluster.groups) {
    const NodeModel& node = cluster.nodes.at(group.node);
    const DeviceModel& device = cluster.devices.at(node.device);
    for (NamedValue& property : node_properties(cluster, group))
      properties.push_back(std::move(property));
    groups.push_back(
        {{"node", node.name},
         {"count", group.count},
         {"devices_per_node", node.device_count},
         {"device", device.name},
         {"memory_bytes", device.memory.value},
         {"peak_flop_per_s", peaks_of(device)},
         {"local_bytes_per_s", node.local.bandwidth.value},
         {"ports", node.ports},
         {"port_bytes_per_s", node.port_bandwidth.value},
         {"price_usd_per_hour", node.price_per_hour ? Json(node.price_per_hour->value) : Json()}});
  }
  const Json json{{"schema", 1},
                  {"name", toml.name},
                  {"devices", device_count(cluster)},
                  {"groups", groups},
                  {"sources", cluster.sources}};
  const Document text = fmt::format("{}: {} devices\n", toml.name, device_count(cluster)) +
                        Document(std::move(properties)) + "\n" + sources_text(cluster.sources);
  return {text, text_of(json)};
}

Page device_page(const NamedText& toml) {
  const LoadedDevice loaded = device_from_toml(toml);
  const DeviceModel& device = loaded.device;
  std::vector<NamedValue> list = device_properties(device);
  list.push_back({"multiprocessors", std::to_string(device.multiprocessors)});
  if (device.compute_capability)
    list.push_back({"compute capability", fmt::format("{}.{}", *device.compute_capability / 10,
                                                      *device.compute_capability % 10)});
  const Json json{{"schema", 1},
                  {"name", toml.name},
                  {"device", device.name},
                  {"memory_bytes", device.memory.value},
                  {"memory_bytes_per_s", device.memory_bandwidth.value},
                  {"peak_flop_per_s", peaks_of(device)},
                  {"multiprocessors", device.multiprocessors},
                  {"sources", loaded.sources}};
  return {fmt::format("{}: {}\n", toml.name, device.name) + Document(std::move(list)) + "\n" +
              sources_text(loaded.sources),
          text_of(json)};
}

Page schedule_page(const ScheduleRule& rule) {
  Document text = fmt::format("{}: {}\n", rule.name, rule.summary);
  text += std::vector<NamedValue>{{"source", std::string(rule.source)}};
  Json json{{"schema", 1},
            {"name", rule.name},
            {"summary", rule.summary},
            {"source", rule.source},
            {"example", nullptr}};
  // The first of these requests that the schedule supports is the example.
  for (const int chunks : {1, 2}) {
    ScheduleRequest request;
    request.devices = 4;
    request.chunks = chunks;
    request.microbatches = 8;
    if (rule.problem(request)) continue;
    Json orders = Json::array();
    const Table table = orders_table(rule, request, orders);
    text += fmt::format(
        "\n{} devices, {} micro-batches, {} stage{} per device. 1F3: forward pass of micro-batch "
        "3\n"
        "on stage 1; B: backward; I: backward-input; W: backward-weight.\n\n",
        request.devices, request.microbatches, chunks, chunks > 1 ? "s" : "");
    text += table;
    json["example"] = {{"devices", request.devices},
                       {"chunks", chunks},
                       {"microbatches", request.microbatches},
                       {"orders", orders}};
    break;
  }
  return {text, text_of(json)};
}

Page plan_page(const std::string& path) {
  const PlanFile file = plan_file_from_json(read_file(path), path);
  const Strategy& strategy = file.plan.strategy;
  Document text = fmt::format("{} on {}: {} GPUs, global batch size {}, sequence length {}\n",
                              file.model_name, file.cluster_name, rank_count(strategy.degrees),
                              strategy.global_batch, strategy.sequence_length);
  text += strategy_text(strategy) + "\n";
  text += fmt::format("layers per stage: {}\n", fmt::join(file.plan.blocks_per_stage, " "));
  if (file.predicted) {
    text += "\n";
    text += figures_list(*file.predicted);
    if (!file.predicted->why.empty()) text += file.predicted->why + "\n";
  }
  text += fmt::format("\nCost model: {}\n", file.cost_model);
  Json json{{"schema", 1}, {"model", file.model_name}, {"cluster", file.cluster_name}};
  json["strategy"] = Json::parse(to_json(strategy));
  json["blocks_per_stage"] = file.plan.blocks_per_stage;
  json["predicted"] = file.predicted ? Json::parse(to_json(*file.predicted)) : Json();
  json["cost_model"] = file.cost_model;
  return {text, text_of(json)};
}

Page timeline_page(const std::string& path) {
  const Timeline timeline = timeline_from_pftrace(read_file(path, kLargestTraceFile), path);
  std::map<std::string, std::int64_t> spans_by_kind;
  for (const TimelineSpan& span : timeline.spans) ++spans_by_kind[std::string(name_of(span.kind))];
  const bool is_measured = timeline.origin == TimelineOrigin::kMeasured;
  std::vector<NamedValue> list{
      {"makespan", to_text(makespan(timeline))},
      {"tracks", std::to_string(timeline.tracks.size())},
      {"spans", grouped(static_cast<std::int64_t>(timeline.spans.size()))}};
  for (const auto& [kind, count] : spans_by_kind) list.push_back({"  " + kind, grouped(count)});
  list.push_back({"flows", grouped(static_cast<std::int64_t>(timeline.flows.size()))});
  list.push_back({"memory samples", grouped(static_cast<std::int64_t>(timeline.memory.size()))});
  for (const auto& [what, origin] : timeline.provenance) list.push_back({what, origin});
  const Document text = fmt::format("{} timeline\n", is_measured ? "measured" : "predicted") +
                        Document(std::move(list));
  const Json json{{"schema", 1},
                  {"origin", is_measured ? "measured" : "predicted"},
                  {"makespan_ns", to_nanoseconds(makespan(timeline))},
                  {"tracks", timeline.tracks.size()},
                  {"spans", timeline.spans.size()},
                  {"spans_by_kind", spans_by_kind},
                  {"flows", timeline.flows.size()},
                  {"memory_samples", timeline.memory.size()},
                  {"provenance", timeline.provenance}};
  return {text, text_of(json)};
}

}  // namespace meshwright
