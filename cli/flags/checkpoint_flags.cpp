#include "cli/flags/checkpoint_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/base/error.hpp"
#include "core/formats/file.hpp"
#include "executor/checkpoint/external_weights.hpp"
#include "models/families/weight_names.hpp"

namespace meshwright {

void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags) {
  const OptionGroup group(command, "Checkpoints");
  add_value(
      command, "--init", flags.init, "PATH",
      "start from the weights of a HuggingFace checkpoint: a folder, a safetensors file or an "
      "index");
  add_value(command, "--save", flags.save, "PATH",
            "save checkpoints to this file, or to one file each in this directory");
  add_count(command, "--save-every", flags.every, {.smallest = 1, .largest = 100'000},
            "steps between checkpoints (default: save after the last step only)");
  add_count(command, "--keep", flags.keep, {.smallest = 1, .largest = 100'000},
            "number of newest checkpoints to keep in the directory of --save (default: all)");
  add_choice(command, "--format", flags.format, {"meshwright", "hf"},
             "format of saved checkpoints; hf: weights that transformers loads, in a directory of "
             "the model for each checkpoint (default: meshwright)");
  add_value(
      command, "--resume", flags.resume, "PATH",
      "resume from a checkpoint, or from the newest one in a directory; another plan may have "
      "saved it");
}

std::optional<WeightLayout> external_layout(const CheckpointFlags& flags, const ModelGraph& model) {
  if (flags.init.empty() && flags.format != "hf") return std::nullopt;
  return external_layout_of(model, flags.init.empty() ? "--format" : "--init");
}

WeightLayout external_layout_of(const ModelGraph& model, const std::string& where) {
  std::optional<WeightLayout> layout = weight_layout(model);
  if (!layout)
    throw InputError(
        Diagnostic{where, fmt::format("not supported for model_type '{}'", model.family),
                   where == "--model" ? "use a model of another family" : "remove it"});
  return std::move(*layout);
}

ExternalWeights external_weights(const std::string& path, const ModelGraph& model,
                                 const WeightLayout& layout) {
  ExternalWeights weights(path, model, layout);
  if (const std::vector<std::string>& unused = weights.unused(); !unused.empty())
    print_to_stderr(fmt::format("warning: {}: {} tensors are not used, the first one is '{}'\n",
                                path, unused.size(), unused.front()));
  return weights;
}

namespace {

Checkpoint checkpoint_at(const std::string& path, const ModelGraph& model,
                         const Strategy& strategy) {
  Checkpoint checkpoint = checkpoint_from_file(read_file(path, kLargestTensorFile), model, path);
  check_resumable(checkpoint, strategy, path);
  return checkpoint;
}

/// A job that was killed may leave its last checkpoint damaged: the one before is used then.
Checkpoint newest_checkpoint(const std::string& directory, const ModelGraph& model,
                             const Strategy& strategy) {
  const std::map<std::int64_t, std::string> files = checkpoints_in(directory);
  std::optional<InputError> of_newest;
  for (auto file = files.rbegin(); file != files.rend(); ++file) try {
      Checkpoint checkpoint = checkpoint_at(file->second, model, strategy);
      if (of_newest)
        print_to_stderr(fmt::format("warning: {}: {}; resuming from {}\n",
                                    of_newest->diagnostics().front().where,
                                    of_newest->diagnostics().front().what, file->second));
      return checkpoint;
    } catch (const InputError& error) {
      if (!of_newest) of_newest = error;
    }
  if (of_newest) throw InputError(*of_newest);
  throw InputError(Diagnostic{directory, "contains no checkpoint (step-*.safetensors)",
                              "use a directory that --save wrote to, or a file"});
}

}  // namespace

std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy) {
  if (flags.resume.empty()) return std::nullopt;
  std::error_code ignored;
  return std::filesystem::is_directory(flags.resume, ignored)
             ? newest_checkpoint(flags.resume, model, strategy)
             : checkpoint_at(flags.resume, model, strategy);
}

std::optional<ExternalWeights> initial_weights(const CheckpointFlags& flags,
                                               const ModelGraph& model,
                                               const std::optional<WeightLayout>& layout) {
  if (flags.init.empty()) return std::nullopt;
  return external_weights(flags.init, model, layout.value());
}

void check_checkpoint_flags(const CheckpointFlags& flags) {
  if (!flags.init.empty() && !flags.resume.empty())
    throw UsageError({.where = "--init",
                      .what = "conflicts with '--resume', which also sets the weights",
                      .hint = "remove one of them"});
  if (flags.format == "hf" && flags.save.empty())
    throw UsageError({.where = "--format",
                      .what = "requires '--save'",
                      .hint = "set the file or directory to save to, for example --save trained/"});
  const auto needs_save = [&](const std::optional<int>& flag, const char* name) {
    if (flag && flags.save.empty())
      throw UsageError({.where = name,
                        .what = "requires '--save'",
                        .hint = "set the file or directory to save to, for example --save states"});
  };
  needs_save(flags.every, "--save-every");
  needs_save(flags.keep, "--keep");
  std::error_code ignored;
  if (flags.keep && !flags.save.ends_with('/') &&
      !std::filesystem::is_directory(flags.save, ignored))
    throw UsageError(
        {.where = "--keep",
         .what = fmt::format("requires a directory, but '--save' is the file '{}'", flags.save),
         .hint = "save to a directory: a file holds one checkpoint anyway"});
}

CheckpointOptions checkpoint_options(const CheckpointFlags& flags, const StartingPoint& start,
                                     const std::optional<WeightLayout>& layout, bool trains) {
  if (!trains && (!flags.save.empty() || start.resumed || start.weights))
    throw InputError(Diagnostic{!flags.save.empty()  ? "--save"
                                : flags.init.empty() ? "--resume"
                                                     : "--init",
                                "cannot be combined with '--clock replay', which does not train",
                                "use --clock virtual or --clock wall"});
  return {.save = flags.save,
          .layout = flags.format == "hf" ? &layout.value() : nullptr,
          .model_config = {},
          .every = flags.every.value_or(0),
          .keep = flags.keep.value_or(0),
          .settings = {},
          .resume = start.resumed ? &*start.resumed : nullptr,
          .init = start.weights ? &*start.weights : nullptr};
}

}  // namespace meshwright
