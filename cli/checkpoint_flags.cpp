#include "cli/checkpoint_flags.hpp"

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "core/io_file.hpp"

namespace meshwright {

void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags) {
  command
      .add_option("--save", flags.save,
                  "write parameters and optimizer state here: a file, or a folder for a file each")
      ->type_name("PATH");
  command
      .add_option("--save-every", flags.every,
                  "steps between checkpoints; else one behind the last step")
      ->check(CLI::Range(1, 100'000))
      ->type_name("N")
      ->needs("--save");
  command.add_option("--resume", flags.resume, "go on from what --save wrote, under any plan")
      ->type_name("FILE");
}

std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy) {
  if (flags.resume.empty()) return std::nullopt;
  Checkpoint checkpoint =
      checkpoint_from_file(read_file(flags.resume, kLargestTensorFile), model, flags.resume);
  check_resumable(checkpoint, strategy, flags.resume);
  return checkpoint;
}

CheckpointOptions checkpoint_options(const CheckpointFlags& flags,
                                     const std::optional<Checkpoint>& resumed, bool trains) {
  if (!trains && (!flags.save.empty() || !flags.resume.empty()))
    throw InputError(Diagnostic{flags.save.empty() ? "--resume" : "--save",
                                "nothing is trained by the clock 'replay'",
                                "use --clock virtual or wall"});
  return {.save = flags.save,
          .every = flags.every.value_or(0),
          .resume = resumed ? &*resumed : nullptr};
}

}  // namespace meshwright
