#include "cli/run/run_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/run/run_device.hpp"

namespace meshwright {
namespace {

void add_machine_flags(CLI::App& command, RunFlags& flags) {
  const OptionGroup group(command, "Execution");
  add_choice(command, "--ranks", flags.ranks, {"threads", "processes", "mpi", "job", "nccl"},
             "how ranks run, see below (default: threads)");
  add_choice(command, "--clock", flags.clock, {"wall", "virtual", "replay"},
             "clock of the timeline, see below (default: virtual)");
  add_choice(command, "--links", flags.links, {"real", "modelled"},
             "message times of --clock wall: measured, or modeled by the cluster's links "
             "(default: real)");
  add_choice(command, "--kernels", flags.kernels, {"cpu", "reference"},
             "CPU kernels: optimized (cpu) or reference (default: cpu)");
  add_choice(command, "--device", flags.device, device_names(),
             "device to compute on (default: cpu)");
  add_value(command, "--activity", flags.activity, "FILE",
            "write a Perfetto trace of all GPU kernels and copies (CUPTI); ranks that are "
            "processes write one each: trace.rank0.json, ...");
  add_value(command, "--patience", flags.watchdog_timeout, "TIME",
            fmt::format("time without progress before a rank is declared hung (default: 6s; "
                        "5s with --ranks mpi; 30s with --device {})",
                        gpu_names()));
  command.add_option("--inject-fault", flags.fault)->group("");  // hidden; see executor/README.md
}

void add_training_flags(CLI::App& command, RunFlags& flags) {
  const OptionGroup group(command, "Training");
  add_count(
      command, "--steps", flags.steps, {0, 100'000},
      "number of training steps of this run (default: 5, or all up to --total-steps); 0: only "
      "--validation and --save");
  add_count(command, "--total-steps", flags.total_steps, {1, 100'000},
            "number of training steps including those of the checkpoint to resume: the end of "
            "--lr-schedule (default: set by --steps)");
  add_count(command, "--seed", flags.seed, {0, 1'000'000'000},
            "random seed of initial parameters, dropout and --shuffle (default: 1)");
  add_value(command, "--text", flags.text, "FILE",
            "text to train on, one token per byte (default: a built-in text)");
  add_value(
      command, "--tokens", flags.tokens, "FILE",
      "token IDs to train on: a file or a quoted pattern such as 'data/*.bin', also repeated; "
      "little-endian integers, or the formats of llm.c and Megatron-LM (.bin with .idx)")
      ->allow_extra_args(false);  // what follows the value may be PLAN
  add_choice(command, "--token-type", flags.token_type, {"uint16", "uint32"},
             "integer type of --tokens without a header (default: uint16)");
  command.add_flag("--shuffle", flags.shuffle,
                   "read the sequences in a random order, which --seed chooses");
  add_value(command, "--validation", flags.validation, "FILE",
            "compute the loss of held-out tokens in this file, of the kind of --tokens or --text: "
            "after the last step, and see --every");
  add_count(command, "--every", flags.every, {1, 100'000},
            "steps between computations of the validation loss");
  add_count(command, "--validation-steps", flags.validation_steps, {1, 100'000},
            "number of global batches of --validation to read (default: all of the file)");
}

}  // namespace

CLI::App* add_run_flags(CLI::App& app, RunFlags& flags) {
  CLI::App* command =
      app.add_subcommand("run", "Run a plan on this machine and measure its timeline.");
  add_job_flags(*command, flags.job);
  command->get_option("plan")->description(
      "plan file, - for standard input, or SET#ID for a published run, instead of --model, "
      "--cluster and parallelism options; or a recipe (*.toml)");
  add_value(*command, "--recipe", flags.recipe, "FILE",
            "read options from this TOML file, see below; options of the command line override it");
  add_machine_flags(*command, flags);
  add_training_flags(*command, flags);
  add_optimizer_flags(*command, flags.optimizer);
  add_checkpoint_flags(*command, flags.checkpoints);
  {
    const OptionGroup group(*command, "Timeline and log");
    command->add_flag("--all-steps", flags.all_steps,
                      "write all steps to the timeline, not only the median step");
    add_value(
        *command, "--log", flags.log, "FILE",
        "write loss, gradient norm, learning rate, tokens/s, MFU and memory of every step, and "
        "the validation loss, as JSON lines; --resume appends");
    add_value(*command, "--tensorboard", flags.tensorboard, "FOLDER",
              "write the same figures as an event file of TensorBoard");
    command->add_flag("--live", flags.live, "write the timeline after every step");
    add_value(*command, "--watch", flags.watch, "FILE",
              "exit with status 1 if the median step time leaves the range in FILE, written by "
              "simulate --write-watch");
  }
  add_output_flags(*command, flags.output, "the timeline (Perfetto trace)");
  command->footer(
      "Ranks:\n"
      "  threads    threads of this process\n"
      "  processes  forked processes on this machine\n"
      "  mpi        processes started by mpirun, connected by MPI\n"
      "  job        processes connected over TCP, started by torchrun, srun or mpirun; without a\n"
      "             launcher, meshwright starts them on this machine\n"
      "  nccl       like job, with one GPU per process, connected by NCCL\n"
      "Set MESHWRIGHT_JOB_SECRET to the same text for all processes of a job, so that no other\n"
      "program on the network can join it.\n"
      "\n"
      "Clocks:\n"
      "  virtual    CPU time of each kernel, and modeled message times\n"
      "  wall       elapsed time\n"
      "  replay     no computation: every rank sleeps for the predicted times\n"
      "\n"
      "With --device " +
      gpu_names() +
      ", threads share one GPU; --clock virtual then runs and times one kernel\n"
      "at a time. Processes of mpirun and --ranks nccl use one GPU each and need --clock wall.\n"
      "Ctrl-C stops the run and writes what was measured. With --save it first completes the step\n"
      "and saves a checkpoint, as SIGTERM does; a second Ctrl-C stops it without a checkpoint.\n"
      "\n"
      "A recipe has a line 'OPTION = VALUE' for each option, for example:\n"
      "  plan = \"best.plan.json\"\n"
      "  tokens = [\"data/*.bin\"]\n"
      "  lr = 3e-4\n"
      "  shuffle = true\n"
      "\n"
      "Examples:\n"
      "  meshwright run best.plan.json --steps 10 -o measured.pftrace\n"
      "  meshwright run pretrain.toml --lr 1e-4\n"
      "  meshwright run --model gpt2 --cluster cpu-laptop --gpus 2 --pp 2 --dtype fp32 \\\n"
      "      --global-batch 8 --seq 64 --clock wall --ranks processes");
  return command;
}

}  // namespace meshwright
