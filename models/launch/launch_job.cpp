#include "models/launch/launch_job.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/plan/parallel_sizes.hpp"
#include "core/plan/strategy_text.hpp"
#include "models/families/load_model.hpp"

namespace meshwright {
namespace {

using nlohmann::json;

template <class Number>
std::optional<Number> number_at(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  return it->get<Number>();
}

std::string text_at(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

/// transformers 5 has rope_theta and the scaling in "rope_parameters".
void read_rotation(const json& config, LaunchModel& model) {
  model.rotary_base = number_at<std::int64_t>(config, "rope_theta");
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto it = config.find(key);
    if (it == config.end() || !it->is_object()) continue;
    if (!model.rotary_base) model.rotary_base = number_at<std::int64_t>(*it, "rope_theta");
    if (text_at(*it, "rope_type") == "llama3")
      model.rotary_factor = number_at<double>(*it, "factor");
  }
}

}  // namespace

LaunchModel launch_model(const NamedText& config) {
  std::optional<LoadedTransformer> loaded = load_transformer(config);
  if (!loaded)
    throw InputError({config.where, fmt::format("model '{}' is not a transformer", config.name),
                      "export plans of language models"});
  const json object = json::parse(loaded->object);
  LaunchModel model{.name = config.name,
                    .family = std::move(loaded->family),
                    .shape = std::move(loaded->config),
                    .graph = model_from_config(config)};
  read_rotation(object, model);
  for (const char* key : {"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_eps"})
    if (!model.norm_epsilon) model.norm_epsilon = number_at<double>(object, key);
  return model;
}

LaunchJob launch_job(const Plan& plan, LaunchModel model, const Cluster& cluster,
                     std::string cluster_name) {
  const std::int64_t ranks = rank_count(plan.strategy.degrees);
  const std::optional<int> per_node = used_devices_per_node(cluster, ranks);
  if (!per_node || (ranks > *per_node && ranks % *per_node != 0))
    throw InputError({cluster_name,
                      fmt::format("{} ranks cannot be spread evenly over its nodes", ranks),
                      "choose a number of GPUs that fills whole nodes"});
  LaunchJob job{.plan = plan, .model = std::move(model), .cluster_name = std::move(cluster_name)};
  job.ranks_per_node = static_cast<int>(std::min<std::int64_t>(ranks, *per_node));
  job.nodes = static_cast<int>(ranks / job.ranks_per_node);
  job.compute_capability = device_of(cluster, DeviceId(0)).compute_capability.value_or(0);
  return job;
}

std::string headline(const LaunchJob& job) {
  const Strategy& s = job.plan.strategy;
  return fmt::format("{} on {}: {}, {} GPUs ({} {} of {})", job.model.name, job.cluster_name,
                     split_text(s), rank_count(s.degrees), job.nodes,
                     job.nodes == 1 ? "node" : "nodes", job.ranks_per_node);
}

}  // namespace meshwright
