/// The best plans found so far, one for each row of the table.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/space.hpp"

namespace meshwright {

class Incumbents {
 public:
  struct Row {
    Ticks step_time;
    Candidate candidate;
  };

  Incumbents() = default;
  /// `longest_step`: slower plans are not kept.
  Incumbents(const SearchSpace& space, int top, std::optional<Ticks> longest_step = {});

  void offer(const Candidate& candidate, Ticks step_time);
  /// True if a faster plan has the row of everything with this lower bound, or if all rows are
  /// faster. `pipeline`: null if it is not chosen yet.
  bool beat(Ticks bound, const Layout& layout, const PipelineChoice* pipeline) const;
  /// At most `top` rows, best first; ties are broken by simplicity.
  std::vector<const Row*> ranked() const;
  /// Rows differ in more than parallel sizes, since there are few of these.
  bool has_fine_rows() const { return fine_rows_; }
  bool empty() const { return best_of_row_.empty(); }
  Ticks best() const { return *best_; }  ///< there must be one

 private:
  using RowKey = std::tuple<ParallelDegrees, const ScheduleRule*, int>;
  RowKey key_of(const Layout& layout, const PipelineChoice* pipeline) const;

  std::size_t top_ = 1;
  /// Rows differ in their parallel sizes. If there are fewer combinations than rows, they also
  /// differ in chunks, schedule and micro-batch.
  bool fine_rows_ = false;
  std::map<RowKey, Row> best_of_row_;
  std::optional<Ticks> best_;
  std::optional<Ticks> limit_;  ///< the longest step, or that of the last row of a full table
};

}  // namespace meshwright
