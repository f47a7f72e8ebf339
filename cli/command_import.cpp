#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/commands.hpp"
#include "core/check.hpp"
#include "core/io_file.hpp"
#include "models/import.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kLargestImport = std::size_t{16} << 20;
constexpr CountRange kNodeRange{.smallest = 1, .largest = 1 << 20};

std::vector<std::string> format_names() {
  std::vector<std::string> names{"auto"};
  for (int f = 0; f < kImportFormatCount; ++f)
    names.emplace_back(name_of(static_cast<ImportFormat>(f)));
  return names;
}

ImportFormat format_of(const ImportFlags& flags, const NamedText& source) {
  if (flags.format != "auto") {
    if (const auto format = import_format_from_name(flags.format)) return *format;
    throw UsageError({.where = "--format",
                      .what = fmt::format("there is no format '{}'", flags.format),
                      .hint = suggest(flags.format, format_names())});
  }
  if (const auto format = guess_import_format(source.text)) return *format;
  throw InputError({source.where, "is none of the formats that can be imported",
                    "nvidia-smi topo -m, NCCL's topology XML, nccl-tests, Slurm's topology; or say "
                    "which with --format"});
}

std::optional<CollectiveKind> kind_of(const ImportFlags& flags) {
  if (flags.collective.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (int k = 0; k < kCollectiveKindCount; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    if (name_of(kind) == flags.collective) return kind;
    names.emplace_back(name_of(kind));
  }
  throw UsageError({.where = "--collective",
                    .what = fmt::format("there is no collective '{}'", flags.collective),
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

}  // namespace

CLI::App* add_import_command(CLI::App& app, ImportFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "import", "Turn what other programs say about a machine into a cluster or a calibration.");
  command->add_option("file", flags.file, "a file, or - for standard input")->type_name("FILE");
  command->add_option("--format", flags.format, "what the file is (auto)")
      ->type_name(fmt::format("{}", fmt::join(format_names(), "|")));
  command
      ->add_option("--like", flags.like,
                   "a cluster with the same devices: for what the file does not say")
      ->type_name("NAME|FILE");
  add_count(*command, "--nodes", flags.nodes, kNodeRange, "nodes like the one described (1)");
  command
      ->add_option("--collective", flags.collective,
                   "what was measured, if nccl-tests does not say it")
      ->type_name("KIND");
  add_output_flags(*command, flags.output, "the cluster file, or the calibration");
  command->footer(
      "Examples:\n"
      "  nvidia-smi topo -m | meshwright import - --like dgx-h100 --nodes 4 -o mine.toml\n"
      "  meshwright import topo.xml -o mine.toml\n"
      "  meshwright import all_reduce.txt -o mine.calib.json");
  return command;
}

Outcome run_import(const ImportFlags& flags) {
  if (flags.file.empty())
    throw UsageError({.where = "command line",
                      .what = "a file to import is needed",
                      .hint = "for example meshwright import topo.xml -o mine.toml"});
  const bool from_pipe = flags.file == "-";
  const NamedText source{
      .name = from_pipe ? "imported" : std::filesystem::path(flags.file).stem().string(),
      .where = from_pipe ? "standard input" : flags.file,
      .text = read_file(flags.file, kLargestImport)};
  const ImportFormat format = format_of(flags, source);
  if (format == ImportFormat::kNcclTests)
    return deliver(to_json(import_nccl_tests(source, kind_of(flags)).calibration), flags.output);
  ImportOptions options;
  if (!flags.like.empty()) options.like = find_cluster(flags.like);
  options.nodes = flags.nodes.value_or(1);
  ImportedCluster imported;
  if (format == ImportFormat::kNvidiaSmi) imported = import_nvidia_smi(source, options);
  if (format == ImportFormat::kNcclTopology) imported = import_nccl_topology(source, options);
  if (format == ImportFormat::kSlurm) imported = import_slurm(source, options);
  return deliver(imported_cluster(imported, source.where), flags.output);
}

}  // namespace meshwright
