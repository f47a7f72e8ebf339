#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/job/job.hpp"
#include "cli/plan/fit_question.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/check.hpp"
#include "core/cluster/device_parameters.hpp"
#include "core/cluster/visit_collective_parameters.hpp"
#include "core/formats/file.hpp"
#include "models/load/load.hpp"
#include "simulator/fit/fit_device.hpp"
#include "simulator/fit/measured_collectives.hpp"
#include "simulator/fit/measured_kernels.hpp"

namespace meshwright {
namespace {

struct FitFlags {
  PlanFlags question;  ///< with --model: does the job fit in memory?
  std::string kernels, collectives, device, like;
  std::optional<double> holdout;
  OutputFlags output;
};

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargestKernelFile = std::size_t{64} << 20;
constexpr double kUsualHoldout = 0.2, kLargestHoldout = 0.9;

std::vector<std::string> error_cells(const ErrorFigures& figures) {
  if (figures.kernels == 0) return {"-", "-", "-", "-"};
  return {fmt::format("{}", figures.kernels), fmt::format("{:.1f} %", 100 * figures.median),
          fmt::format("{:.1f} %", 100 * figures.p90), fmt::format("{:+.1f} %", 100 * figures.bias)};
}

Table errors_table(const DeviceFit& fit) {
  Table table = empty_table(left_aligned("family"), "kernels", "median", "p90", "bias", "held back",
                            "median", "p90", "bias");
  for (const FamilyError& family : fit.families) {
    std::vector<std::string> cells{family.family};
    for (const ErrorFigures* figures : {&family.fitted, &family.held_back})
      for (std::string& cell : error_cells(*figures)) cells.push_back(std::move(cell));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Json json_of(const ErrorFigures& figures) {
  return {{"kernels", figures.kernels},
          {"median", figures.median},
          {"p90", figures.p90},
          {"bias", figures.bias}};
}

std::string json_text(const DeviceFit& fit, const std::vector<std::string>& notes) {
  Json families = Json::array();
  for (const FamilyError& family : fit.families)
    families.push_back({{"family", family.family},
                        {"fitted", json_of(family.fitted)},
                        {"held_back", json_of(family.held_back)}});
  return Json{{"schema", 1},
              {"device", fit.device.name},
              {"families", families},
              {"parameters", fit.sources},
              {"notes", notes}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

/// The keys of the kernel models that have no source yet were not fitted.
void name_defaults(LoadedDevice& loaded) {
  const auto name = [&](const std::string& key) {
    loaded.sources.emplace(key, "typical of current GPUs; not fitted");
  };
  const auto visitor = [&](const std::string& table) {
    return
        [&name, table](const std::string& key, const auto&, ParameterBounds) { name(table + key); };
  };
  name("gemm.tile_m");
  name("gemm.tile_n");
  visit_parameters_of_gemm(loaded.device.gemm, visitor("gemm."));
  visit_parameters_of_stream(loaded.device.memory_efficiency, visitor("memory_efficiency."));
  visit_parameters_of_attention(loaded.device.attention, visitor("attention."));
  if (loaded.device.flash_attention_2)
    visit_parameters_of_attention(*loaded.device.flash_attention_2, visitor("flash_attention_2."));
}

/// The start with the fitted parameters and their sources. Figures of training that were not
/// measured stay those of the start, and say so.
LoadedDevice fitted_device(LoadedDevice start, const DeviceFit& fit) {
  LoadedDevice loaded{fit.device, std::move(start.sources)};
  for (const auto& [key, source] : fit.sources) loaded.sources[key] = source;
  const bool is_measured = fit.sources.contains("gemm.sustained_efficiency");
  if (!is_measured && !loaded.device.gemm.sustained_efficiency) {
    loaded.device.gemm.sustained_efficiency =
        loaded.device.gemm.long_efficiency.value_or(loaded.device.gemm.max_efficiency);
    loaded.sources["gemm.sustained_efficiency"] =
        "provisional: as a long burst; no sustained measurement";
  }
  name_defaults(loaded);
  return loaded;
}

/// Fits the collectives of `fit.device` on the nodes of a cluster, and adds their errors to `fit`.
void fit_collectives_of(const FitFlags& flags, DeviceFit& fit) {
  if (flags.question.sources.cluster.empty())
    throw InputError({"--cluster", "missing required option '--cluster'",
                      "name a cluster with the nodes that the collectives were measured on"});
  const std::string where = flags.collectives == "-" ? "standard input" : flags.collectives;
  const MeasuredCollectives measured = read_measured_collectives(
      read_file(flags.collectives, kLargestKernelFile), where, flags.device);
  Cluster cluster = cluster_from_toml(find_cluster(flags.question.sources.cluster));
  const NodeModel& node = cluster.nodes.at(cluster.groups.front().node);
  if (!fit.device.compute_capability || !is_homogeneous(cluster))
    throw InputError({"--cluster", "cannot fit collectives without NCCL or on mixed nodes",
                      "use a device with a compute_capability and a cluster of one node type"});
  if (measured.rows.empty())
    throw InputError({where, "no collectives on one node", "see 'meshwright fit --help'"});
  cluster.devices.at(node.device) = fit.device;
  DeviceCollectivesFit collectives =
      fit_device_collectives(cluster, measured.rows, flags.holdout.value_or(kUsualHoldout));
  const std::string source = fmt::format("fitted to {} collectives of {}", measured.rows.size(),
                                         flags.device.empty() ? where : flags.device);
  const auto visitor = [&](const std::string& table) {
    return [&fit, &source, table](std::string_view key, const auto&, ParameterBounds) {
      fit.sources[fmt::format("{}{}", table, key)] = source;
    };
  };
  visit_parameters_of_collectives(collectives.parameters, visitor("collectives."));
  visit_collective_tables(collectives.parameters, [&](std::string_view name, const auto& table) {
    visit_parameters_of_table(table, visitor(fmt::format("collectives.{}.", name)));
  });
  fit.device.collectives = collectives.parameters;
  fit.families.insert(fit.families.end(), collectives.families.begin(), collectives.families.end());
  fit.notes.insert(fit.notes.end(), measured.notes.begin(), measured.notes.end());
}

std::string device_file(const LoadedDevice& device) {
  std::string toml = device_to_toml(device, {"Written by meshwright fit."});
  const LoadedDevice again =
      device_from_toml({.name = device.device.name, .where = "the fitted device", .text = toml});
  MW_CHECK(again.device == device.device);
  return toml;
}

CLI::App* add_fit_command(CLI::App& app, FitFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "fit", "Tell whether a job fits in memory, or fit a device to measurements.");
  add_value(*command, "kernels", flags.kernels, "KERNELS.csv",
            "CSV with measured kernels, or - for standard input");
  add_value(*command, "collectives", flags.collectives, "COLLECTIVES.csv",
            "CSV with measured collectives, on nodes of --cluster");
  add_fit_question_flags(*command, flags.question);
  const OptionGroup group(*command, "Fit to measurements");
  add_value(*command, "--device", flags.device, "NAME",
            "device whose rows are used (default: the only one of the file)");
  add_value(*command, "--like", flags.like, "NAME|FILE",
            "device with the datasheet figures, and parameters that are not fitted");
  add_value(*command, "--holdout", flags.holdout, "FRACTION",
            "fraction of the shapes held back to report errors on (default: 0.2)")
      ->check(CLI::Range(0.0, kLargestHoldout));
  add_report_flags(*command, flags.output, "the device file, or the answer");
  command->footer(
      "Columns of the CSV: op, dtype, time_us, and sizes: m, n, k (gemm, batched_gemm,\n"
      "grouped_gemm); batch, heads, kv_heads, head_dim, seq_q, seq_kv, causal (attention_forward,\n"
      "attention_backward); tokens, hidden (norm, activation, gated_activation, add, softmax, "
      "cast,\n"
      "embedding, and their _backward). Optional: device, software, source_repo, note, method.\n"
      "Columns of the collectives: op, ranks, bytes, time_us; optional: device, nodes, note.\n"
      "Methods: burst, sustained, kernel, running, host (see simulator/fit/measured_kernels.hpp).\n"
      "\n"
      "Examples:\n"
      "  meshwright fit --model llama-3.1-70b --cluster dgx-h100 --gpus 8 --seq 8192\n"
      "  meshwright fit kernels.csv --like a100-sxm4-80gb -o mine.toml\n"
      "  meshwright fit kernels.csv --device H100-SXM5-80GB --like h100-sxm5-80gb --json");
  return command;
}

Outcome answer_question(const FitFlags& flags) {
  const PlanFlags question = with_fit_defaults(flags.question);
  const PlanRequest request = fit_request(question);
  const PlanModel model = load_plan_model(request.models.front());
  const PlanCluster cluster =
      load_plan_cluster(request.clusters.front(), question.sources, request.memory_margin);
  const FitAnswer answer = answer_fit_question(question, request, model, cluster);
  Outcome outcome = deliver(
      flags.output.json ? fit_json(answer) : fit_text(answer, flags.output.format), flags.output);
  if (answer.search.figures.empty()) outcome.exit_code = kExitNoPlanFits;
  return outcome;
}

Outcome fit_to_measurements(const FitFlags& flags) {
  if (flags.like.empty())
    refuse_flag("--like", "missing required option",
                "name the device with the datasheet figures, see 'meshwright show devices'");
  const std::string text = read_file(flags.kernels, kLargestKernelFile);
  const std::string where = flags.kernels == "-" ? "standard input" : flags.kernels;
  LoadedDevice start = device_from_toml(find_device(flags.like));
  const MeasuredKernels measured = read_measured_kernels(text, where, flags.device);
  if (measured.kernels.empty())
    throw InputError({where, "no kernels that the device model prices",
                      "see 'meshwright fit --help' for the kernels"});
  DeviceFit fit = fit_device(start.device, measured.kernels, flags.holdout.value_or(kUsualHoldout));
  if (!flags.collectives.empty()) fit_collectives_of(flags, fit);
  std::vector<std::string> notes = fit.notes;
  notes.insert(notes.end(), measured.notes.begin(), measured.notes.end());
  Document report =
      flags.output.json ? Document(json_text(fit, notes)) : Document(errors_table(fit));
  if (!flags.output.json)
    for (const std::string& note : notes) report += fmt::format("Note: {}.\n", note);
  if (flags.output.file.empty()) return outcome_of(report, flags.output);
  const std::string file = device_file(fitted_device(std::move(start), fit));
  if (flags.output.file == "-") return {.text = file, .notes = to_text(report)};
  write_file(flags.output.file, file);
  if (!flags.output.json) report += fmt::format("Wrote {}.\n", flags.output.file);
  return outcome_of(report, flags.output);
}

Outcome run_fit(const FitFlags& flags) {
  const bool asks = !flags.question.sources.model.empty();
  if (!asks && flags.kernels.empty())
    refuse_flag("command line", "missing --model or KERNELS.csv",
                "run 'meshwright fit --help' for usage");
  if (asks && (!flags.kernels.empty() || !flags.like.empty() || !flags.device.empty()))
    refuse_flag("--model", "cannot be combined with a fit to measurements",
                "remove KERNELS.csv, --like and --device, or --model");
  return asks ? answer_question(flags) : fit_to_measurements(flags);
}

}  // namespace

Command fit_command(CLI::App& app) { return make_command(app, add_fit_command, run_fit); }

}  // namespace meshwright
