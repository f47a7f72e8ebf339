/// Memory in use over time, at the times where it can be highest.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/sharding_problem.hpp"
#include "planner/sharding/strategy_graph.hpp"

namespace meshwright {

class MemoryProfile {
 public:
  explicit MemoryProfile(const ShardingProblem& problem);

  /// Times at which the set of nodes in use is not part of that of a neighboring time.
  std::size_t time_count() const { return times_; }
  bool has_limit() const { return limit_ >= 0; }
  double limit() const { return static_cast<double>(limit_); }
  /// The times [first, last) of a node.
  struct Range {
    std::int32_t first = 0, last = 0;
  };
  const Range& range(std::size_t node) const { return ranges_[node]; }
  double usage(std::size_t node, std::size_t strategy) const {
    return usages_[begin_[node] + strategy];
  }
  std::vector<double> usages_of(const Strategies& chosen) const;
  /// No time exceeds the limit.
  bool fits(const std::vector<double>& usages) const;

 private:
  std::int64_t limit_ = -1;  ///< -1: none
  std::size_t times_ = 0;
  std::vector<Range> ranges_;
  std::vector<std::size_t> begin_;
  std::vector<double> usages_;
};

}  // namespace meshwright
