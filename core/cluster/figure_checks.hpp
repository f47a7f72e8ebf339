/// Checks of figures in device and cluster files. Private to core/cluster.
#pragma once

#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace meshwright {

/// Collects what is wrong with the figures of a file. `prefix` precedes all places.
class FigureChecks {
 protected:
  explicit FigureChecks(std::string prefix) : prefix_(std::move(prefix)) {}
  void report(const std::string& place, std::string what, std::string hint) {
    found_.push_back({prefix_ + place, std::move(what), std::move(hint)});
  }
  /// Written so that NaN fails too.
  void need_positive(const std::string& place, double value, std::string_view unit) {
    if (value > 0 && value <= std::numeric_limits<double>::max()) return;
    report(place, fmt::format("must be a positive {}, got {}", unit, value),
           "use the figure from the datasheet");
  }
  void need_not_negative(const std::string& place, double value, std::string_view unit) {
    if (value >= 0 && value <= std::numeric_limits<double>::max()) return;
    report(place, fmt::format("must be a non-negative {}, got {}", unit, value), "");
  }

  std::string prefix_;
  std::vector<Diagnostic> found_;
};

}  // namespace meshwright
