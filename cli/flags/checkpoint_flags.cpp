#include "cli/flags/checkpoint_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

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
  add_choice(command, "--format", flags.format, {"meshwright", "hf"},
             "format of saved checkpoints; hf: weights that transformers loads (default: "
             "meshwright)");
  add_value(command, "--resume", flags.resume, "FILE",
            "resume from a checkpoint, which may have been saved by another plan");
}

std::optional<WeightLayout> external_layout(const CheckpointFlags& flags, const ModelGraph& model) {
  if (flags.init.empty() && flags.format != "hf") return std::nullopt;
  std::optional<WeightLayout> layout = weight_layout(model);
  if (!layout)
    throw InputError(Diagnostic{flags.init.empty() ? "--format" : "--init",
                                fmt::format("not supported for model_type '{}'", model.family),
                                "remove it"});
  return layout;
}

namespace {

Checkpoint checkpoint_of_weights(const std::string& path, const ModelGraph& model,
                                 const WeightLayout& layout) {
  InitialWeights weights = initial_weights(path, model, layout);
  if (!weights.unused.empty())
    print_to_stderr(fmt::format("warning: {}: {} tensors are not used, the first one is '{}'\n",
                                path, weights.unused.size(), weights.unused.front()));
  return std::move(weights.checkpoint);
}

}  // namespace

std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy,
                                             const std::optional<WeightLayout>& layout) {
  if (!flags.init.empty()) return checkpoint_of_weights(flags.init, model, layout.value());
  if (flags.resume.empty()) return std::nullopt;
  Checkpoint checkpoint =
      checkpoint_from_file(read_file(flags.resume, kLargestTensorFile), model, flags.resume);
  check_resumable(checkpoint, strategy, flags.resume);
  return checkpoint;
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
  if (flags.every && flags.save.empty())
    throw UsageError({.where = "--save-every",
                      .what = "requires '--save'",
                      .hint = "set the file or directory to save to, for example --save states"});
}

CheckpointOptions checkpoint_options(const CheckpointFlags& flags,
                                     const std::optional<Checkpoint>& resumed,
                                     const std::optional<WeightLayout>& layout, bool trains) {
  if (!trains && (!flags.save.empty() || resumed))
    throw InputError(Diagnostic{!flags.save.empty()  ? "--save"
                                : flags.init.empty() ? "--resume"
                                                     : "--init",
                                "cannot be combined with '--clock replay', which does not train",
                                "use --clock virtual or --clock wall"});
  return {.save = flags.save,
          .layout = flags.format == "hf" ? &layout.value() : nullptr,
          .every = flags.every.value_or(0),
          .resume = resumed ? &*resumed : nullptr};
}

}  // namespace meshwright
