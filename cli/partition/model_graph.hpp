/// Models as operator graphs: the options of `partition` that price them, and what it reports about
/// them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/kernel_graph.hpp"
#include "models/text/named_text.hpp"
#include "planner/partition/kernel_graph_partition.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct ModelGraphFlags {
  std::string cluster, trainer, unknown_operators, costs_file;
  std::vector<std::string> dimensions;
  std::optional<Dtype> dtype;
  bool inference = false;
};
void add_model_graph_flags(CLI::App& command, ModelGraphFlags& flags);

/// Options that `partition` has for all graphs.
struct DeviceFlags {
  std::optional<int> devices = {}, microbatches = {};
  std::optional<Bytes> memory = {};
  const char* devices_flag = "--devices";  ///< for messages
};

/// A model with the cost model and devices that its graph is priced with.
struct PricedModel {
  KernelGraph graph;
  Cluster cluster;
  std::unique_ptr<CostModel> cost;
  GraphDevices devices;
};
/// Reads ONNX, as torch.onnx or `python -m meshwright.export_graph` write it.
KernelGraph read_model_graph(const NamedText& file, const ModelGraphFlags& flags);
/// With its costs. UsageError for missing options.
PricedModel price_model(const NamedText& file, const ModelGraphFlags& flags,
                        const DeviceFlags& devices);

/// A graph in any format, uncompressed; "-": standard input.
NamedText read_graph_file(const std::string& path);

/// True if the options of this file are needed to read a graph.
bool is_model_graph(const NamedText& file);
/// UsageError if an option was given that other graphs do not have.
void refuse_model_graph_flags(const ModelGraphFlags& flags);

/// "25,557,032 parameters, …", and which cost model was used.
std::string model_notes(const PricedModel& model, std::size_t groups);
/// The JSON object with a member "model".
std::string with_model(const std::string& json, const PricedModel& model, std::size_t groups);
/// Costs of every node.
std::string node_costs_csv(const PricedModel& model);

}  // namespace meshwright
