#include <fmt/format.h>

#include <algorithm>

#include "models/families/load_model.hpp"
#include "models/import/import_lines.hpp"
#include "models/import/megatron_options.hpp"
#include "models/import/model_config_text.hpp"

namespace meshwright {
namespace {

using Words = std::vector<ShellWord>;

bool is_option(const ShellWord& word) { return word.text.starts_with("--"); }
bool is_program(const ShellWord& word) { return word.text.ends_with(".py"); }

/// The command that trains: launcher, program, options.
struct TrainingCommand {
  Words launcher, options;
};

/// The command with most options after a Python program; without one, all lines of options.
TrainingCommand find_command(const ShellScript& script, const NamedText& source) {
  TrainingCommand found;
  std::size_t most = 0;
  for (const Words& words : script.commands) {
    const auto program = std::ranges::find_if(words, is_program);
    if (program == words.end()) continue;
    const auto count = static_cast<std::size_t>(std::count_if(program, words.end(), is_option));
    if (count < most || count == 0) continue;
    most = count;
    found = {.launcher = Words(words.begin(), program), .options = Words(program + 1, words.end())};
  }
  if (most > 0) return found;
  for (const Words& words : script.commands)
    if (is_option(words.front()))
      found.options.insert(found.options.end(), words.begin(), words.end());
  if (found.options.empty())
    throw InputError({source.where, "no command with options of Megatron-LM found",
                      "expected a line such as: torchrun … pretrain_gpt.py --num-layers 32 …"});
  return found;
}

std::optional<std::int64_t> value_after(std::string_view text, std::string_view name) {
  if (!text.starts_with(name) || text.size() <= name.size()) return std::nullopt;
  const char mark = text[name.size()];
  if (mark != '=' && mark != ' ') return std::nullopt;
  std::string_view rest = text.substr(name.size() + 1);
  rest = rest.substr(0, rest.find_first_of(" \t"));
  if (const std::size_t colon = rest.rfind(':'); colon != std::string_view::npos)
    rest = rest.substr(colon + 1);  // --gres=gpu:8
  return whole_number(rest);
}

/// "#SBATCH --nodes=8" and its GPUs or tasks per node.
std::optional<std::int64_t> slurm_ranks(const NamedText& source) {
  std::optional<std::int64_t> nodes, gpus, tasks;
  for (const TextLine& line : lines_of(source)) {
    constexpr std::string_view kMark = "#SBATCH ";
    if (!line.text.starts_with(kMark)) continue;
    const std::string option = trimmed(std::string_view(line.text).substr(kMark.size()));
    const auto read = [&](auto& value, std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names)
        if (const auto number = value_after(option, name)) value = number;
    };
    read(nodes, {"--nodes", "-N"});
    read(gpus, {"--gpus-per-node", "--gres"});
    read(tasks, {"--ntasks-per-node"});
  }
  const std::optional<std::int64_t> per_node = gpus ? gpus : tasks;
  if (!nodes || !per_node) return std::nullopt;
  return *nodes * *per_node;
}

/// Nodes x processes of torchrun, Slurm's header, or a variable WORLD_SIZE.
std::optional<std::int64_t> ranks_of(const NamedText& source, const ShellScript& script,
                                     const TrainingCommand& command) {
  OptionReader launcher(command.launcher, source.where);
  const std::optional<std::int64_t> nodes =
      launcher.has("standalone") ? 1 : whole_number(launcher.text("nnodes", "1"));
  if (const auto per_node = whole_number(launcher.text("nproc-per-node")); nodes && per_node)
    return *nodes * *per_node;
  if (const auto ranks = slurm_ranks(source)) return ranks;
  if (const auto found = script.variables.find("WORLD_SIZE");
      found != script.variables.end() && !found->second.empty())
    return whole_number(found->second.front());
  return std::nullopt;
}

std::int64_t required_ranks(const NamedText& source, const ShellScript& script,
                            const TrainingCommand& command, const JobImportOptions& options) {
  constexpr std::int64_t kMostRanks = 1 << 20;
  const std::optional<std::int64_t> ranks =
      options.gpus ? std::optional<std::int64_t>(*options.gpus) : ranks_of(source, script, command);
  if (ranks && *ranks > 0 && *ranks <= kMostRanks) return *ranks;
  throw InputError({source.where, "the number of GPUs is missing",
                    "set --gpus, or give torchrun's --nnodes and --nproc-per-node as numbers"});
}

}  // namespace

ImportedJob import_megatron(const NamedText& source, const JobImportOptions& options) {
  const ShellScript script = read_shell_script(source);
  const TrainingCommand command = find_command(script, source);
  OptionReader reader(command.options, source.where);
  ImportedJob job;
  job.trainer = "megatron-core";
  const std::int64_t ranks = required_ranks(source, script, command, options);
  read_megatron_strategy(reader, ranks, reader.count("num-layers", 1), job);
  // The options of the model are read even if another one is used: they are not unknown.
  OptionReader shape = reader;
  ImportedJob described = job;
  const TransformerConfig config = read_megatron_model(shape, described);
  if (!options.model) {
    job.notes = std::move(described.notes);
    shape.throw_complaints();
    ModelConfigText text = model_config_text(config);
    job.model = {.name = source.name, .where = source.where, .text = std::move(text.json)};
    for (const std::string& one : text.differences) job.notes.push_back("model: " + one);
  } else {
    reader.throw_complaints();
    job.model = *options.model;
  }
  for (const std::string& name : shape.unused())
    (affects_time_or_memory(name) ? job.not_modeled : job.ignored).push_back("--" + name);
  return job;
}

}  // namespace meshwright
