#include "planner/search/incumbents.hpp"

#include <algorithm>
#include <set>

namespace meshwright {

Incumbents::Incumbents(const SearchSpace& space, int top, std::optional<Ticks> longest_step)
    : top_(static_cast<std::size_t>(top)), limit_(longest_step) {
  std::set<ParallelDegrees> sizes;
  for (const SearchSpace::Branch& branch : space.branches) sizes.insert(branch.layout.degrees);
  fine_rows_ = sizes.size() < top_;
}

Incumbents::RowKey Incumbents::key_of(const Layout& layout, const PipelineChoice* pipeline) const {
  if (!fine_rows_) return {layout.degrees, nullptr, 0};
  ParallelDegrees degrees = layout.degrees;
  degrees.chunks = pipeline->chunks;
  return {degrees, pipeline->rule, layout.micro_batch};
}

bool Incumbents::beat(Ticks bound, const Layout& layout, const PipelineChoice* pipeline) const {
  if (limit_ && bound > *limit_) return true;
  if (fine_rows_ && pipeline == nullptr) return false;
  const auto row = best_of_row_.find(key_of(layout, pipeline));
  return row != best_of_row_.end() && bound > row->second.step_time;
}

void Incumbents::offer(const Candidate& candidate, Ticks step_time) {
  if (limit_ && step_time > *limit_) return;
  const RowKey key = key_of(candidate.layout, &candidate.pipeline);
  const auto [row, is_new] = best_of_row_.try_emplace(key, Row{step_time, candidate});
  if (!is_new) {
    Row& best = row->second;
    if (step_time > best.step_time) return;
    if (step_time == best.step_time && !is_simpler(candidate, best.candidate)) return;
    best = {step_time, candidate};
  }
  if (!best_ || step_time < *best_) best_ = step_time;
  const std::vector<const Row*> rows = ranked();
  if (rows.size() == top_) limit_ = rows.back()->step_time;
}

std::vector<const Incumbents::Row*> Incumbents::ranked() const {
  std::vector<const Row*> rows;
  for (const auto& [key, row] : best_of_row_) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) {
    if (a->step_time != b->step_time) return a->step_time < b->step_time;
    return is_simpler(a->candidate, b->candidate);
  });
  if (rows.size() > top_) rows.resize(top_);
  return rows;
}

}  // namespace meshwright
