/// Options of `sweep`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/output_flags.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/job/job.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct SweepFlags {
  SourceFlags sources;
  std::string show = "step";
  std::optional<int> gpus, threads;
  std::vector<std::string> over;
  std::string part;    ///< "I/N"; empty: all
  std::string points;  ///< file; empty: next to the output
  StrategyFlags strategy;
  OutputFlags output;
};
CLI::App* add_sweep_command(CLI::App& app, SweepFlags& flags);

/// One of `count` parts of a sweep: the combinations index, index + count, …
struct SweepPart {
  std::size_t index = 0, count = 1;
};
/// "1/4" is the first of four. Throws UsageError.
SweepPart sweep_part_from_text(const std::string& text);

}  // namespace meshwright
