/// Flags and help of `run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/checkpoint_flags.hpp"
#include "cli/flags/output_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/run/optimizer_flags.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct RunFlags {
  JobFlags job;
  std::string recipe;  ///< file with options, which the program has added to these flags
  std::string ranks = "threads", clock = "virtual", links, kernels = "cpu", device = "cpu";
  std::string text;
  std::vector<std::string> tokens;  ///< files and patterns
  std::string token_type;           ///< empty: as the file says, or uint16
  bool shuffle = false;
  std::string validation;  ///< file with held-out tokens
  std::optional<int> every, validation_steps;
  std::string watchdog_timeout, fault;  ///< not parsed yet
  std::string activity;                 ///< file for the kernels and copies of a GPU
  std::optional<int> steps, total_steps, seed;
  bool all_steps = false;   ///< in the timeline; else the median step
  std::string log;          ///< file for the figures of every step
  std::string tensorboard;  ///< folder for the same
  bool live = false;        ///< write the timeline after every step
  std::string watch;        ///< file with the range of the step time; empty: none
  OptimizerFlags optimizer;
  CheckpointFlags checkpoints;
  OutputFlags output;
};

CLI::App* add_run_flags(CLI::App& app, RunFlags& flags);

}  // namespace meshwright
