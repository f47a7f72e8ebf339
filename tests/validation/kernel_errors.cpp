#include "tests/validation/kernel_errors.hpp"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "cli/terminal/table.hpp"

namespace meshwright {
namespace {

struct Sums {
  Seconds predicted, measured;
  double calls = 0;
};

std::string names_of(const TimedKernels& timed) {
  std::vector<std::string> names;
  for (const Kernel& kernel : timed.kernels)
    names.push_back(fmt::format("{} {}", name_of(kernel.routine), name_of(kernel.phase)));
  return fmt::format("{}", fmt::join(names, " + "));
}

}  // namespace

std::string kernel_errors(std::span<const TimedKernels> measured, const CostModel& costs) {
  std::map<std::string, Sums> families;
  Seconds all;
  for (const TimedKernels& timed : measured) {
    Sums& sums = families[names_of(timed)];
    const auto calls = static_cast<double>(timed.times.size());
    for (const Kernel& kernel : timed.kernels) sums.predicted += calls * costs.time_of(kernel);
    for (const Ticks time : timed.times) {
      sums.measured += to_seconds(time);
      all += to_seconds(time);
    }
    sums.calls += calls;
  }
  Table table{.columns = {{"kernels", Align::kLeft}, {"share"}, {"per call"}, {"error"}},
              .rows = {}};
  for (const auto& [name, sums] : families)
    table.rows.push_back(
        {name, fmt::format("{:.1f} %", 100 * ratio(sums.measured, all)),
         fmt::format("{:.1f} us", 1e6 * sums.measured.value / sums.calls),
         fmt::format("{:+.1f} %", 100 * (ratio(sums.predicted, sums.measured) - 1))});
  return to_text(table);
}

}  // namespace meshwright
