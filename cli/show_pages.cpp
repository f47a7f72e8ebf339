/// Pages about one thing.
#include "cli/show_pages.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/report.hpp"
#include "cli/table.hpp"
#include "core/io_file.hpp"
#include "core/io_pftrace.hpp"
#include "core/io_plan.hpp"
#include "core/parse_quantity.hpp"
#include "core/timeline.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string row(std::string_view name, std::string_view value) {
  return fmt::format("  {:<20}{}\n", name, value);
}

const char* name_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kEmbedding:
      return "embedding";
    case LayerKind::kBlock:
      return "block";
    case LayerKind::kHead:
      return "head";
  }
  return "?";
}

/// One row per class of equal layers, with the operators of its first member.
Table layers_table(const ModelGraph& model, Json& entries) {
  Table table{.columns = {{"layers", Align::kLeft}, {"count"}, {"parameters each"}}, .rows = {}};
  std::vector<int> counts(static_cast<std::size_t>(layer_class_count(model)));
  for (const Layer& layer : model.layers) ++counts[static_cast<std::size_t>(layer.layer_class)];
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    int& count = counts[static_cast<std::size_t>(layer.layer_class)];
    if (count == 0) continue;  // shown with the first layer of its class
    const std::int64_t parameters = parameter_count(model, LayerId(i));
    table.rows.push_back({name_of(layer.kind), std::to_string(count), grouped(parameters)});
    Json operators = Json::array();
    for (std::int32_t o = 0; o < layer.operator_count; ++o)
      operators.push_back(model.operators[static_cast<std::size_t>(layer.first_operator + o)].name);
    entries.push_back({{"kind", name_of(layer.kind)},
                       {"count", count},
                       {"parameters_each", parameters},
                       {"operators", operators}});
    count = 0;
  }
  return table;
}

std::string sources_text(const Cluster& cluster) {
  std::string text = "sources of the figures\n";
  for (const auto& [figure, source] : cluster.sources) text += row(figure, source);
  return cluster.sources.empty() ? "" : text;
}

Table orders_table(const ScheduleRule& rule, const ScheduleRequest& request, Json& orders) {
  Table table{.columns = {{"device"}, {"order", Align::kLeft}}, .rows = {}};
  for (const std::vector<Action>& order : rule.generate(request).orders) {
    const std::string text = to_text(order);
    table.rows.push_back({std::to_string(table.rows.size()), text});
    orders.push_back(text);
  }
  return table;
}

}  // namespace

Page model_page(const NamedText& config) {
  const ModelGraph model = model_from_config(config);
  const ModelTraits traits = traits_of(model);
  Json layers = Json::array();
  const Table table = layers_table(model, layers);
  std::string text = fmt::format("{} ({})\n", config.name, model.family);
  text += row("parameters", grouped(parameter_count(model)));
  text += row("active per token", grouped(active_parameter_count(model)));
  text += row("hidden size", std::to_string(traits.hidden));
  text += row("vocabulary", grouped(traits.vocabulary));
  if (traits.heads) text += row("attention heads", std::to_string(*traits.heads));
  if (traits.key_value_heads)
    text += row("key/value heads", std::to_string(*traits.key_value_heads));
  if (traits.experts)
    text += row("experts", fmt::format("{}, {} for each token", *traits.experts,
                                       traits.experts_per_token.value_or(0)));
  if (model.longest_sequence > 0) text += row("longest sequence", grouped(model.longest_sequence));
  text += row("embeddings", model.tied_embeddings ? "shared by input and output" : "not shared");
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
  return {text + "\n" + to_text(table), text_of(json)};
}

Page cluster_page(const NamedText& toml) {
  const Cluster cluster = cluster_from_toml(toml);
  std::string text = fmt::format("{}: {} devices\n", toml.name, device_count(cluster));
  Json groups = Json::array();
  for (const NodeGroup& group : cluster.groups) {
    const NodeModel& node = cluster.nodes.at(group.node);
    const DeviceModel& device = cluster.devices.at(node.device);
    text += row("nodes", fmt::format("{} x {}, each {} x {}", group.count, node.name,
                                     node.device_count, device.name));
    text += row("memory",
                fmt::format("{} at {}, {} reserved", to_text(device.memory),
                            to_text(device.memory_bandwidth), to_text(device.reserved_memory)));
    Json peaks = Json::object();
    for (std::size_t d = 0; d < device.peak.size(); ++d) {
      if (!device.peak[d]) continue;
      const std::string name(name_of(static_cast<Dtype>(d)));
      text += row("peak " + name, to_text(*device.peak[d]));
      peaks[name] = device.peak[d]->value;
    }
    text +=
        row("local network", fmt::format("{} per device, latency {}", to_text(node.local.bandwidth),
                                         to_text(node.local.latency)));
    if (node.ports > 0)
      text += row("network ports",
                  fmt::format("{} x {} per node, latency {}", node.ports,
                              to_text(node.port_bandwidth), to_text(cluster.fabric.latency)));
    groups.push_back({{"node", node.name},
                      {"count", group.count},
                      {"devices_per_node", node.device_count},
                      {"device", device.name},
                      {"memory_bytes", device.memory.value},
                      {"peak_flop_per_s", peaks},
                      {"local_bytes_per_s", node.local.bandwidth.value},
                      {"ports", node.ports},
                      {"port_bytes_per_s", node.port_bandwidth.value}});
  }
  const Json json{{"schema", 1},
                  {"name", toml.name},
                  {"devices", device_count(cluster)},
                  {"groups", groups},
                  {"sources", cluster.sources}};
  return {text + "\n" + sources_text(cluster), text_of(json)};
}

Page schedule_page(const ScheduleRule& rule) {
  std::string text = fmt::format("{}: {}\n", rule.name, rule.summary);
  text += row("source", rule.source);
  Json json{{"schema", 1},
            {"name", rule.name},
            {"summary", rule.summary},
            {"source", rule.source},
            {"example", nullptr}};
  // The first of these requests that the schedule allows is the example.
  for (const int chunks : {1, 2}) {
    ScheduleRequest request;
    request.devices = 4;
    request.chunks = chunks;
    request.microbatches = 8;
    if (rule.problem(request)) continue;
    Json orders = Json::array();
    const Table table = orders_table(rule, request, orders);
    text += fmt::format(
        "\n{} devices, {} micro-batches, {} stage{} on each device. 1F3: forward pass of\n"
        "micro-batch 3 on stage 1; B: backward; I, W: backward in two halves.\n\n{}",
        request.devices, request.microbatches, chunks, chunks > 1 ? "s" : "", to_text(table));
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
  std::string text = fmt::format("{} on {}: {} devices, global batch {}, sequences of {} tokens\n",
                                 file.model_name, file.cluster_name, rank_count(strategy.degrees),
                                 strategy.global_batch, strategy.sequence_length);
  text += strategy_text(strategy) + "\n";
  text += fmt::format("blocks in each stage: {}\n", fmt::join(file.plan.blocks_per_stage, " "));
  if (file.predicted) {
    text += fmt::format("\n{}", figures_text(*file.predicted));
    if (!file.predicted->why.empty()) text += file.predicted->why + "\n";
  }
  text += fmt::format("\nTimes: {}\n", file.cost_model);
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
  std::string text = fmt::format("{} timeline, {} long\n", is_measured ? "measured" : "predicted",
                                 to_text(makespan(timeline)));
  text += row("tracks", std::to_string(timeline.tracks.size()));
  text += row("spans", grouped(static_cast<std::int64_t>(timeline.spans.size())));
  for (const auto& [kind, count] : spans_by_kind) text += row("  " + kind, grouped(count));
  text += row("arrows", grouped(static_cast<std::int64_t>(timeline.flows.size())));
  text += row("memory samples", grouped(static_cast<std::int64_t>(timeline.memory.size())));
  for (const auto& [what, origin] : timeline.provenance) text += row(what, origin);
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
