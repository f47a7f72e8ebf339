/// Options that take a number.
#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace meshwright {

struct RealRange {
  double smallest = 0, largest = 1;
  bool excludes_smallest = false, excludes_largest = false;
};
/// UsageError with the flag, the value and the range if `text` is anything else.
double parse_real(const std::string& flag, const std::string& text, RealRange range);
void add_real(CLI::App& app, const std::string& flag, std::optional<double>& value, RealRange range,
              const std::string& description);

}  // namespace meshwright
