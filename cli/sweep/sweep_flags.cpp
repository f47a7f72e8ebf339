#include "cli/sweep/sweep_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/flags/help_formatter.hpp"
#include "cli/flags/sweep_axes.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {

SweepPart sweep_part_from_text(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string_view view = text;
  if (slash != std::string::npos) {
    const auto index = number_from_text<std::size_t>(view.substr(0, slash));
    const auto count = number_from_text<std::size_t>(view.substr(slash + 1));
    if (index && count && *index >= 1 && *index <= *count && *count <= kMostSweepPoints)
      return {.index = *index - 1, .count = *count};
  }
  throw UsageError(
      {.where = "--part",
       .what = fmt::format("invalid value '{}': expected I/N with I from 1 to N", text),
       .hint = fmt::format("use for example --part 1/4; N is at most {}", kMostSweepPoints)});
}

CLI::App* add_sweep_command(CLI::App& app, SweepFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Simulate all combinations of the values of some options, in one table.");
  add_source_flags(*command, flags.sources);
  {
    const OptionGroup group(*command, kSourceOptions);
    add_count(*command, "--gpus", flags.gpus, kGpuRange,
              "total number of GPUs (default: product of the parallel sizes)");
  }
  {
    const OptionGroup group(*command, "Sweep");
    add_value(*command, "--over", flags.over, "OPTION=V,V,...",
              "a batch or parallelism option and its values; repeatable")
        ->take_all();
    add_value(*command, "--show", flags.show, "{step,period,bubble,busiest,mfu,tokens,memory}",
              "figure to show if several options are swept; its best value is marked "
              "(default: step)");
    add_count(*command, "--threads", flags.threads, kThreadRange,
              "threads; 0: all cores (default: 0), per process under mpirun and srun");
    add_value(*command, "--points", flags.points, "FILE",
              "continue from the evaluated combinations in FILE, and add new ones (default: the "
              "file of --output with the suffix .points, which a complete sweep removes)");
    add_value(*command, "--part", flags.part, "I/N",
              "evaluate only every Nth combination from the Ith on, and print lines for --points");
  }
  add_batch_flags(*command, flags.strategy);
  add_choice_flags(*command, flags.strategy.choices);
  add_report_flags(*command, flags.output, "the figures of all combinations, as CSV,");
  command->footer(
      "Examples:\n"
      "  meshwright sweep --model gpt2 --cluster dgx-a100 --gpus 8 --global-batch 64 --seq 1024 "
      "\\\n"
      "      --over tp=1,2,4 -o sweep.csv\n"
      "  meshwright sweep --model llama-3.1-70b --cluster dgx-h100 --gpus 64 --tp 8 --seq 8192 \\\n"
      "      --sequence-parallel --zero 1 --over pp=1,2,4,8 --over global-batch=32,64,128,256 \\\n"
      "      --show bubble\n"
      "  mpirun -n 64 meshwright sweep --model gpt2 --cluster dgx-a100 --gpus 8 --seq 1024 \\\n"
      "      --over tp=1,2,4 --over global-batch=8,16,32,64 -o sweep.csv");
  return command;
}

}  // namespace meshwright
