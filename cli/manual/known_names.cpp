#include "cli/manual/known_names.hpp"

#include <CLI/CLI.hpp>
#include <functional>
#include <map>

#include "cli/flags/strategy_flags.hpp"
#include "core/base/kernel.hpp"
#include "core/schedule/schedule.hpp"
#include "models/load/load.hpp"
#include "models/load/published_runs.hpp"
#include "models/load/this_machine.hpp"
#include "models/load/trainer_toml.hpp"

namespace meshwright {
namespace {

using Names = std::vector<std::string>;

Names cluster_names() {
  Names names = cluster_preset_names();
  names.emplace_back(kThisMachine);
  return names;
}

Names schedule_choices() {
  Names names = schedule_names();
  names.emplace_back("auto");
  return names;
}

Names collective_names() {
  Names names;
  for (const CollectiveTraits& traits : kCollectives) names.emplace_back(traits.name);
  return names;
}

/// What `show` takes.
Names page_names() {
  Names names{"models", "clusters", "devices", "schedules"};
  for (const Names& more :
       {model_preset_names(), cluster_names(), device_preset_names(), schedule_names()})
    names.insert(names.end(), more.begin(), more.end());
  return names;
}

/// "pp=" for every strategy flag that takes a value.
Names swept_flags() {
  StrategyFlags flags;
  CLI::App strategy;
  strategy.set_help_flag();
  add_batch_flags(strategy, flags);
  add_choice_flags(strategy, flags.choices);
  Names names;
  for (const OptionDescription& option : describe(strategy).options)
    if (!option.value.empty()) names.push_back(option.flags.back().substr(2) + "=");
  return names;
}

/// Names that help does not enumerate, by the option or positional argument that takes them.
std::map<std::string, std::function<Names()>> names_of_options() {
  return {{"--model", model_preset_names},
          {"--cluster", cluster_names},
          {"--trainer", trainer_preset_names},
          {"--like", cluster_names},
          {"--schedule", schedule_choices},
          {"--name", schedule_choices},
          {"--collective", collective_names},
          {"--over", swept_flags},
          {"what", page_names},
          {"--set", published_set_names},
          {"files", published_set_names}};
}

}  // namespace

void add_known_names(CommandDescription& program) {
  const auto names = names_of_options();
  for (std::vector<OptionDescription>* options : {&program.options, &program.positionals})
    for (OptionDescription& option : *options) {
      const std::string& key = option.flags.empty() ? option.positional : option.flags.back();
      if (const auto found = names.find(key); found != names.end() && option.choices.empty())
        option.choices = found->second();
    }
  for (CommandDescription& command : program.commands) add_known_names(command);
}

}  // namespace meshwright
