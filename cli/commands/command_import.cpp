#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <span>

#include "cli/commands/commands.hpp"
#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/reports/kineto_report.hpp"
#include "core/base/check.hpp"
#include "core/formats/file.hpp"
#include "core/formats/gzip.hpp"
#include "core/formats/kineto.hpp"
#include "core/formats/plan.hpp"
#include "core/plan/placement.hpp"
#include "core/plan/strategy_text.hpp"
#include "models/import/import.hpp"
#include "models/kineto/import_kineto.hpp"
#include "models/load/load.hpp"
#include "planner/search/search.hpp"

namespace meshwright {
namespace {

struct ImportFlags {
  std::string file, format = "auto", like, collective, cluster, model;
  std::optional<int> nodes, gpus_per_node, gpus;
  OutputFlags output;
};

constexpr std::size_t kLargestImport = std::size_t{16} << 20;
constexpr CountRange kGpusPerNodeRange{.smallest = 1, .largest = 1 << 16};
constexpr CountRange kNodeRange{.smallest = 1, .largest = 1 << 20};

std::vector<std::string> format_names() {
  std::vector<std::string> names{"auto"};
  for (const ImportFormat& format : kImportFormats) names.emplace_back(format.name);
  return names;
}

/// "  NAME  what it is", with further lines indented alike.
std::string formats_text() {
  std::string text;
  for (const ImportFormat& format : kImportFormats) {
    constexpr std::size_t kColumn = 17;
    text += fmt::format("  {:<{}}", format.name, kColumn - 2);
    for (const char c : format.help) {
      text += c;
      if (c == '\n') text.append(kColumn, ' ');
    }
    text += '\n';
  }
  return text;
}

const ImportFormat& format_of(const ImportFlags& flags, const NamedText& source) {
  if (flags.format != "auto") {
    if (const ImportFormat* format = find_import_format(flags.format)) return *format;
    throw UsageError({.where = "--format",
                      .what = fmt::format("invalid value '{}'", flags.format),
                      .hint = suggest(flags.format, format_names())});
  }
  if (const ImportFormat* format = guess_import_format(source.text)) return *format;
  const std::vector<std::string> names = format_names();
  throw InputError(
      {source.where, "unrecognized format",
       fmt::format("set --format to one of: {}", fmt::join(std::span(names).subspan(1), ", "))});
}

std::optional<CollectiveKind> kind_of(const ImportFlags& flags) {
  if (flags.collective.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const CollectiveTraits& traits : kCollectives) {
    if (traits.name == flags.collective) return traits.kind;
    names.emplace_back(traits.name);
  }
  throw UsageError({.where = "--collective",
                    .what = fmt::format("invalid value '{}'", flags.collective),
                    .hint = suggest(flags.collective, names)});
}

std::string imported_cluster(const ImportedCluster& imported, const std::string& where) {
  std::vector<std::string> notes{fmt::format("Imported by meshwright from {}.", where)};
  for (const std::string& note : imported.notes) notes.push_back("Note: " + note + ".");
  std::string toml = cluster_to_toml(imported.cluster, notes);
  const NamedText again{
      .name = imported.cluster.name, .where = "the imported cluster", .text = toml};
  MW_CHECK(cluster_from_toml(again) == imported.cluster);
  return toml;
}

/// The calibration goes to the file of -o and the report to standard output; without -o, the
/// calibration to standard output and the report to standard error.
Outcome import_trace(const ImportFlags& flags, const NamedText& source) {
  const KinetoTrace trace = read_kineto_trace(source.text, source.where);
  const ImportedTrace imported =
      import_kineto(trace, {.source = source.where, .gpus_per_node = flags.gpus_per_node});
  std::string calibration = to_json(imported.calibration);
  if (flags.output.file.empty() || flags.output.file == "-")
    return {.text = std::move(calibration), .notes = to_text(kineto_report_text(imported))};
  write_file(flags.output.file, calibration);
  if (flags.output.json) return {.text = kineto_report_json(imported, flags.output.file)};
  return {.text = to_text(kineto_report_text(imported)) +
                  fmt::format("Wrote {}.\n", flags.output.file)};
}

// ---- jobs ---------------------------------------------------------------------------------------

constexpr std::string_view kAssumedCluster = "dgx-h100";

Plan plan_of_import(const ImportedJob& imported, const Job& job, const std::string& where) {
  Plan plan{.strategy = imported.strategy, .blocks_per_stage = imported.blocks_per_stage};
  if (!plan.blocks_per_stage.empty()) return plan;
  // The placement is defined for valid strategies only: others are refused with their reasons.
  complete_plan(imported.strategy, job.model, job.cluster, *job.cost_model);
  plan.blocks_per_stage = cut_uniformly(imported.cut, static_cast<int>(block_count(job.model)),
                                        placement_of(plan), where);
  return plan;
}

std::string import_notes(const ImportedJob& imported, const Job& job) {
  std::string text =
      fmt::format("{} on {}: {}, {} GPUs\n", job.file.model_name, job.file.cluster_name,
                  strategy_text(imported.strategy), rank_count(imported.strategy.degrees));
  for (const std::string& one : imported.notes) text += fmt::format("note: {}\n", one);
  if (!imported.not_modeled.empty())
    text += fmt::format("warning: these options change time or memory and are not modeled: {}\n",
                        fmt::join(imported.not_modeled, " "));
  if (!imported.ignored.empty())
    text += fmt::format("ignored: {}\n", fmt::join(imported.ignored, " "));
  return text;
}

Outcome import_job(const ImportFormat& format, const ImportFlags& flags, const NamedText& source) {
  JobImportOptions options{.model = {}, .gpus = flags.gpus};
  if (!flags.model.empty()) options.model = find_model(flags.model);
  ImportedJob imported = format.job(source, options);
  if (flags.cluster.empty())
    imported.notes.push_back(
        fmt::format("cluster {} is assumed; set --cluster to yours", kAssumedCluster));
  SourceFlags sources;
  sources.cluster = flags.cluster.empty() ? std::string(kAssumedCluster) : flags.cluster;
  sources.trainer = imported.trainer;
  const std::string where = source.where + ": ";
  const Job job = make_job(
      imported.model, sources,
      [&](const Job& made) { return plan_of_import(imported, made, source.where); }, where);
  Outcome outcome = deliver(to_json(job.file), flags.output);
  outcome.notes += import_notes(imported, job);
  return outcome;
}

CLI::App* add_import_command(CLI::App& app, ImportFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "import", "Create a plan, cluster or calibration from files of other programs.");
  add_value(*command, "file", flags.file, "FILE", "file to import, or - for standard input")
      ->required();
  add_value(*command, "--format", flags.format, choices_text(format_names()),
            "format of the file (default: auto)");
  add_value(*command, "--like", flags.like, "NAME|FILE",
            "cluster with the same devices, for properties that the file does not contain");
  add_count(*command, "--nodes", flags.nodes, kNodeRange,
            "number of nodes of the described type (default: 1)");
  add_value(*command, "--collective", flags.collective, "KIND",
            "measured collective, for output of nccl-tests that does not name it");
  add_count(*command, "--gpus-per-node", flags.gpus_per_node, kGpusPerNodeRange,
            "GPUs per node, for traces (default: as recorded, or 8)");
  add_value(*command, "--cluster", flags.cluster, "NAME|FILE",
            "cluster on which an imported job runs (default: dgx-h100)");
  add_value(*command, "--model", flags.model, "NAME|FILE",
            "model of an imported job, instead of the one that its options describe");
  add_count(*command, "--gpus", flags.gpus, kGpuRange,
            "number of GPUs of an imported job (default: as its launcher says)");
  add_output_flags(*command, flags.output, "the plan, cluster or calibration file");
  command->footer(
      "Formats:\n" + formats_text() +
      "Assumptions are listed in the comments of the cluster file.\n"
      "\n"
      "Examples:\n"
      "  meshwright import train.sh --cluster dgx-a100 -o job.plan.json\n"
      "  nvidia-smi topo -m | meshwright import - --like dgx-h100 --nodes 4 -o mine.toml\n"
      "  meshwright import topo.xml -o mine.toml\n"
      "  meshwright import all_reduce.txt -o mine.calib.json\n"
      "  meshwright import rank0_trace.json.gz -o mine.calib.json");
  return command;
}

Outcome run_import(const ImportFlags& flags) {
  const bool from_pipe = flags.file == "-";
  NamedText source{
      .name = from_pipe ? "imported" : std::filesystem::path(flags.file).stem().string(),
      .where = from_pipe ? "standard input" : flags.file,
      .text = read_file(flags.file, kLargestTraceFile)};
  if (is_gzip(source.text))
    source.text = decompress_gzip(source.text, source.where, kLargestTraceFile);
  const ImportFormat& format = format_of(flags, source);
  if (format.cluster == nullptr && format.calibration == nullptr && format.job == nullptr)
    return import_trace(flags, source);
  if (source.text.size() > kLargestImport)
    throw InputError({source.where,
                      fmt::format("exceeds the size limit of {} bytes", kLargestImport),
                      "check that this is the right file"});
  if (format.job != nullptr) return import_job(format, flags, source);
  if (format.calibration != nullptr)
    return deliver(to_json(format.calibration(source, kind_of(flags)).calibration), flags.output);
  ImportOptions options;
  if (!flags.like.empty()) options.like = find_cluster(flags.like);
  options.nodes = flags.nodes.value_or(1);
  return deliver(imported_cluster(format.cluster(source, options), source.where), flags.output);
}

}  // namespace

Command import_command(CLI::App& app) { return make_command(app, add_import_command, run_import); }

}  // namespace meshwright
