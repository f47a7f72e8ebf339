#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/launch/export_formats.hpp"
#include "models/launch/launch_settings.hpp"

namespace meshwright {

/// JSON has no comments. DeepSpeed reads the keys that it knows at the top level and ignores others
/// (runtime/config.py: DeepSpeedConfig._initialize_params()); the tables below reject them.
LaunchText deepspeed_configuration(const LaunchJob& job) {
  LaunchText settings = deepspeed_settings(job.plan);
  nlohmann::ordered_json file;
  file["comment"] = {headline(job),
                     fmt::format("deepspeed --num_nodes {} --num_gpus {} TRAIN.py --deepspeed "
                                 "--deepspeed_config THIS_FILE",
                                 job.nodes, job.ranks_per_node)};
  for (const std::string& one : settings.unsupported)
    file["comment"].push_back("Not expressible: " + one);
  file.update(nlohmann::ordered_json::parse(settings.text));
  file["optimizer"] = {
      {"type", "AdamW"},
      {"params", {{"lr", 1e-4}, {"betas", {0.9, 0.95}}, {"eps", 1e-8}, {"weight_decay", 0.1}}}};
  file["gradient_clipping"] = 1.0;
  file["steps_per_print"] = 1;
  settings.text = file.dump(2) + "\n";
  return settings;
}

}  // namespace meshwright
