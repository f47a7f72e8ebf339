#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/flags/checkpoint_flags.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/job/job.hpp"
#include "core/formats/file.hpp"
#include "models/families/weight_names.hpp"

namespace meshwright {
namespace {

namespace fs = std::filesystem;

struct ConvertFlags {
  std::string input, model, output;
};

CLI::App* add_convert_command(CLI::App& app, ConvertFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "convert", "Convert weights between checkpoints of 'run' and HuggingFace checkpoints.");
  add_value(*command, "input", flags.input, "PATH",
            "checkpoint of 'run --save', or a HuggingFace checkpoint: a folder, a safetensors file "
            "or an index")
      ->required();
  add_value(*command, "--model", flags.model, "NAME|FILE",
            "model preset, or HuggingFace config.json (default: the config.json in PATH)");
  {
    const OptionGroup group(*command, kGeneralOptions);
    add_value(*command, "-o,--output", flags.output, "PATH",
              "checkpoint to write, or the folder of a HuggingFace checkpoint")
        ->required();
  }
  command->footer(
      "Optimizer state has no counterpart in HuggingFace checkpoints: it is left out, and zero\n"
      "where a run resumes.\n"
      "\n"
      "Examples:\n"
      "  meshwright convert states/step-000120.safetensors --model gpt2 -o trained/\n"
      "  meshwright convert ./gpt2-hf/ -o start.safetensors");
  return command;
}

bool is_own_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored) || path.ends_with(".json")) return false;
  const SafetensorsFile file(path);
  const auto format = file.metadata().find("format");
  return format != file.metadata().end() && format->second.starts_with("meshwright");
}

NamedText config_of(const ConvertFlags& flags) {
  if (!flags.model.empty()) return find_model(flags.model);
  const fs::path config = fs::path(flags.input) / "config.json";
  std::error_code ignored;
  if (fs::exists(config, ignored)) return find_model(config.string());
  throw UsageError({.where = "--model",
                    .what = "missing required option",
                    .hint = "set the model of the weights: a preset or a config.json"});
}

Outcome run_convert(const ConvertFlags& flags) {
  const bool is_own = is_own_checkpoint(flags.input);
  const NamedText config = config_of(flags);
  const ModelGraph model = load_model_and_warn(config);
  const WeightLayout layout = external_layout_of(model, "--model");
  if (!is_own) {
    const ExternalWeights weights = external_weights(flags.input, model, layout);
    write_file(flags.output, to_file(to_checkpoint(weights, model), model));
    return {.text = fmt::format("wrote the checkpoint {}\n", flags.output)};
  }
  const Checkpoint checkpoint =
      checkpoint_from_file(read_file(flags.input, kLargestTensorFile), model, flags.input);
  const std::string file = (fs::path(flags.output) / "model.safetensors").string();
  write_model_directory(file, config.text);
  write_file(file, to_external_file(checkpoint, model, layout));
  return {.text = fmt::format("wrote the weights of step {} to {}\n", checkpoint.step, file)};
}

}  // namespace

Command convert_command(CLI::App& app) {
  return make_command(app, add_convert_command, run_convert);
}

}  // namespace meshwright
