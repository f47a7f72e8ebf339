#include "tests/properties/job_parts.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"

namespace meshwright {
namespace {

/// The configuration of a preset with another number of blocks.
NamedText with_blocks(const char* preset, int blocks) {
  NamedText text = find_model(preset);
  nlohmann::json config = nlohmann::json::parse(text.text);
  for (const char* key : {"num_hidden_layers", "n_layer"})
    if (config.contains(key)) config[key] = blocks;
  if (config.contains("layer_types")) {
    nlohmann::json types = nlohmann::json::array();
    for (int b = 0; b < blocks; ++b)
      types.push_back(config["layer_types"][static_cast<std::size_t>(b)]);
    config["layer_types"] = types;
  }
  text.name += fmt::format("-{}", blocks);
  text.text = config.dump();
  return text;
}

constexpr const char* kTwoNodeTypes = R"(
schema = 1
name = "two-node-types"

[nodes.fast]
device = "h100-sxm5-80gb"
device_count = 4
ports = 4
port_bandwidth = "400 Gbit/s"
[nodes.fast.local]
kind = "nvswitch"
bandwidth = "450 GB/s"
latency = "4 us"
in_network_reduction = true

[nodes.slow]
device = "a100-sxm4-80gb"
device_count = 4
ports = 2
port_bandwidth = "200 Gbit/s"
[nodes.slow.local]
kind = "nvswitch"
bandwidth = "300 GB/s"
latency = "5 us"

[[groups]]
node = "fast"
count = 4
[[groups]]
node = "slow"
count = 4

[fabric]
latency = "10 us"
)";

constexpr const char* kRailsAndLevels = R"(
extends = "dgx-h100"
name = "rails-and-levels"

[fabric]
rails = true
oversubscription = 2.0
[[fabric.levels]]
nodes = 2
oversubscription = 1.5
[[fabric.levels]]
nodes = 4
oversubscription = 2.0
)";

NamedText cluster_text(const char* name, const char* toml) {
  return {.name = name, .where = name, .text = toml};
}

std::vector<NamedText> cluster_texts() {
  std::vector<NamedText> texts{cluster_text("two-node-types", kTwoNodeTypes),
                               cluster_text("rails-and-levels", kRailsAndLevels)};
  for (const char* preset : {"dgx-a100", "dgx-h100", "dgx-v100", "dgx-b200", "gb200-nvl72",
                             "gh200-single", "mi300x-8", "l4-8", "pcie-8gpu", "cpu-laptop"})
    texts.push_back(find_cluster(preset));
  return texts;
}

}  // namespace

JobParts load_job_parts() {
  JobParts parts;
  for (const auto& [preset, blocks] :
       {std::pair("gpt2", 12), std::pair("llama-3.1-8b", 8), std::pair("mixtral-8x7b", 8),
        std::pair("deepseek-v2", 6), std::pair("gemma-2-9b", 6), std::pair("gpt-oss-20b", 8),
        std::pair("bert-base", 12), std::pair("glm-4.5-air", 9), std::pair("nemotron-4-15b", 16),
        std::pair("mlp", 8)}) {
    NamedText config = with_blocks(preset, blocks);
    ModelGraph graph = model_from_config(config);
    parts.models.push_back({std::move(config), std::move(graph)});
  }
  for (NamedText& text : cluster_texts()) {
    Cluster cluster = cluster_from_toml(text);
    text.text = cluster_to_toml(cluster);  // without references, as in plan files
    parts.clusters.push_back({std::move(text), std::move(cluster)});
  }
  parts.trainers.emplace_back();  // runs everything
  for (const std::string& name : trainer_preset_names())
    parts.trainers.push_back(trainer_from_toml(find_trainer(name)));
  return parts;
}

}  // namespace meshwright
