/// Flags of `schedule`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/output_flags.hpp"

namespace meshwright {

/// Times are text until --unit has been parsed.
struct ScheduleFlags {
  std::string name;
  std::optional<int> stages, microbatches, chunks, slices, cap;
  std::vector<std::string> forward{"1"}, backward_input{"1"}, backward_weight{"1"}, latency{"0"},
      output_scores{"0"}, output_gradients{"0"};
  std::string barrier = "0", unit = "ms", objective = "makespan", activation, check_file;
  std::string csv_file, csv_content = "compute", csv_dialect = "current";
  std::string placement;  ///< of auto: "loop", "v" or "wave"; empty: the faster one
  OutputFlags output;
};

}  // namespace meshwright
