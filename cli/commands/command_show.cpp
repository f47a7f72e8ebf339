#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/commands/show_pages.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/job/job.hpp"
#include "models/load/load.hpp"
#include "models/load/this_machine.hpp"

namespace meshwright {
namespace {

struct ShowFlags {
  std::string what;
  bool lowering = false;
  OutputFlags output;
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void throw_unknown(const std::string& what) {
  std::vector<std::string> known{"models", "clusters", "devices", "schedules",
                                 std::string(kThisMachine)};
  for (const auto& names :
       {model_preset_names(), cluster_preset_names(), device_preset_names(), schedule_names()})
    known.insert(known.end(), names.begin(), names.end());
  const std::vector<std::string> near = nearest_names(what, known);
  throw InputError(
      {.where = what,
       .what = "unknown name or file type",
       .hint = near.empty() ? "run 'meshwright show models', 'clusters', 'devices' or 'schedules'"
                            : fmt::format("did you mean '{}'?", fmt::join(near, "', '"))});
}

Page page_of(const std::string& what) {
  if (what == "models") return models_page();
  if (what == "clusters") return clusters_page();
  if (what == "devices") return devices_page();
  if (what == "schedules") return schedules_page();
  if (what.ends_with(".pftrace")) return timeline_page(what);
  if (what.ends_with(".plan.json")) return plan_page(what);
  if (contains(device_preset_names(), what) ||
      (what.ends_with(".toml") && describes_device(find_device_file(what))))
    return device_page(find_device(what));
  if (what.ends_with(".toml") || what == kThisMachine || contains(cluster_preset_names(), what))
    return cluster_page(find_cluster(what));
  if (what.ends_with(".json") || contains(model_preset_names(), what))
    return model_page(find_model(what));
  if (const ScheduleRule* rule = find_schedule_rule(what)) return schedule_page(*rule);
  throw_unknown(what);
}

CLI::App* add_show_command(CLI::App& app, ShowFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "show", "Show models, clusters, devices and schedules, or the contents of a file.");
  add_value(*command, "what", flags.what, "NAME|FILE",
            "models, clusters, devices or schedules; the name of one of them; or a "
            ".plan.json, .pftrace, config.json, cluster.toml or device.toml file")
      ->required();
  command->add_flag("--lowering", flags.lowering,
                    "print what each pass of the compiler changes (WHAT is a plan file)");
  add_report_flags(*command, flags.output, "the result");
  command->footer(
      "Examples:\n"
      "  meshwright show models\n"
      "  meshwright show h100-sxm5-80gb\n"
      "  meshwright show best.plan.json\n"
      "  meshwright show --lowering best.plan.json");
  return command;
}

Outcome run_show(const ShowFlags& flags) {
  const Page page = flags.lowering ? lowering_page(flags.what) : page_of(flags.what);
  return deliver(flags.output.json ? Document(page.json) : page.text, flags.output);
}

}  // namespace

Command show_command(CLI::App& app) { return make_command(app, add_show_command, run_show); }

}  // namespace meshwright
