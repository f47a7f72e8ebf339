#include "cli/flags/checkpoint_flags.hpp"

#include <CLI/CLI.hpp>

#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "core/base/error.hpp"
#include "core/formats/file.hpp"

namespace meshwright {

void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags) {
  const OptionGroup group(command, "Checkpoints");
  add_value(command, "--save", flags.save, "PATH",
            "save checkpoints to this file, or to one file each in this directory");
  add_count(command, "--save-every", flags.every, {.smallest = 1, .largest = 100'000},
            "steps between checkpoints (default: save after the last step only)");
  add_value(command, "--resume", flags.resume, "FILE",
            "resume from a checkpoint, which may have been saved by another plan");
}

std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy) {
  if (flags.resume.empty()) return std::nullopt;
  Checkpoint checkpoint =
      checkpoint_from_file(read_file(flags.resume, kLargestTensorFile), model, flags.resume);
  check_resumable(checkpoint, strategy, flags.resume);
  return checkpoint;
}

void check_checkpoint_flags(const CheckpointFlags& flags) {
  if (flags.every && flags.save.empty())
    throw UsageError({.where = "--save-every",
                      .what = "requires '--save'",
                      .hint = "set the file or directory to save to, for example --save states"});
}

CheckpointOptions checkpoint_options(const CheckpointFlags& flags,
                                     const std::optional<Checkpoint>& resumed, bool trains) {
  if (!trains && (!flags.save.empty() || !flags.resume.empty()))
    throw InputError(Diagnostic{flags.save.empty() ? "--resume" : "--save",
                                "cannot be combined with '--clock replay', which does not train",
                                "use --clock virtual or --clock wall"});
  return {.save = flags.save,
          .every = flags.every.value_or(0),
          .resume = resumed ? &*resumed : nullptr};
}

}  // namespace meshwright
