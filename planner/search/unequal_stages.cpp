#include "planner/search/unequal_stages.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

const LayerTimes& times_of(const UnequalStages& stages, std::size_t stage) {
  return stages.of_kind[static_cast<std::size_t>(stages.kind_of_stage[stage])];
}

int most_of(const UnequalStages& stages, std::size_t stage) {
  return stages.most_of_kind.empty()
             ? std::numeric_limits<int>::max()
             : stages.most_of_kind[static_cast<std::size_t>(stages.kind_of_stage[stage])];
}

bool is_outer(const UnequalStages& stages, std::size_t stage) {
  return stage == 0 || stage + 1 == stages.kind_of_stage.size();
}

/// Time of the embedding and the head, if the stage has them.
Ticks fixed_time(const UnequalStages& stages, std::size_t stage) {
  Ticks time;
  if (stage == 0) time += times_of(stages, stage).embedding;
  if (stage + 1 == stages.kind_of_stage.size()) time += times_of(stages, stage).head;
  return time;
}

/// Dynamic programming from the last stage to the first. A state is (stage, first block).
class UnequalCut {
 public:
  explicit UnequalCut(const UnequalStages& stages)
      : stages_(stages),
        count_(stages.kind_of_stage.size()),
        blocks_(static_cast<int>(times_of(stages, 0).blocks.size())) {
    for (const LayerTimes& kind : stages.of_kind) {
      std::vector<Ticks> before(kind.blocks.size() + 1);
      for (std::size_t i = 0; i < kind.blocks.size(); ++i)
        before[i + 1] = before[i] + kind.blocks[i];
      before_.push_back(std::move(before));
    }
  }

  std::vector<int> run() {
    // First the smallest bottleneck, then the most even partition with that bottleneck.
    solve(Ticks::max());
    MW_CHECK(best_.front().count >= 0);
    const Ticks limit = best_.front().bottleneck;
    solve(limit);
    std::vector<int> cut;
    int first = 0;
    for (std::size_t stage = 0; stage < count_; ++stage) {
      cut.push_back(best_[at(stage, first)].count);
      first += cut.back();
    }
    return cut;
  }

 private:
  struct Best {
    Ticks bottleneck = Ticks::max();
    std::int64_t squares = 0;
    int count = -1;  ///< blocks of this stage; -1: infeasible
  };

  std::size_t at(std::size_t stage, int first) const {
    return stage * (static_cast<std::size_t>(blocks_) + 1) + static_cast<std::size_t>(first);
  }

  Ticks time_of(std::size_t stage, int first, int count) const {
    const auto kind = static_cast<std::size_t>(stages_.kind_of_stage[stage]);
    const auto begin = before_[kind].begin() + first;
    return begin[count] - *begin + fixed_time(stages_, stage);
  }

  /// Minimizes the bottleneck; with a limit, the sum of squared block counts.
  void solve(Ticks limit) {
    best_.assign(count_ * static_cast<std::size_t>(blocks_ + 1), {});
    for (std::size_t stage = count_; stage-- > 0;)
      for (int first = 0; first <= blocks_; ++first) settle(stage, first, limit);
  }

  void settle(std::size_t stage, int first, Ticks limit) {
    const bool is_last = stage + 1 == count_, limited = limit != Ticks::max();
    const int most = std::min(blocks_ - first, most_of(stages_, stage));
    Best& here = best_[at(stage, first)];
    for (int count = is_outer(stages_, stage) ? 0 : 1; count <= most; ++count) {
      if (is_last && first + count != blocks_) continue;
      const Ticks time = time_of(stage, first, count);
      if (time > limit) continue;
      Best found{time, std::int64_t{count} * count, count};
      if (!is_last) {
        const Best& rest = best_[at(stage + 1, first + count)];
        if (rest.count < 0) continue;
        found.bottleneck = std::max(found.bottleneck, rest.bottleneck);
        found.squares += rest.squares;
      }
      const bool better =
          limited ? found.squares < here.squares : found.bottleneck < here.bottleneck;
      if (here.count < 0 || better) here = found;
    }
  }

  const UnequalStages& stages_;
  std::size_t count_;
  int blocks_;
  std::vector<std::vector<Ticks>> before_;  ///< by type: total time of the blocks before each one
  std::vector<Best> best_;
};

/// The same partition in closed form if all blocks of a type take the same time.
class AlikeBlocksCut {
 public:
  explicit AlikeBlocksCut(const UnequalStages& stages)
      : stages_(stages), blocks_(static_cast<int>(times_of(stages, 0).blocks.size())) {
    std::vector<std::optional<std::size_t>> inner(stages.of_kind.size());
    load_of_stage_.reserve(stages.kind_of_stage.size());
    for (std::size_t s = 0; s < stages.kind_of_stage.size(); ++s) {
      auto& alike = inner[static_cast<std::size_t>(stages.kind_of_stage[s])];
      const std::size_t load = is_outer(stages, s) ? loads_.size() : alike.value_or(loads_.size());
      if (load == loads_.size()) loads_.push_back(load_of(s));
      if (!is_outer(stages, s)) alike = load;
      ++loads_[load].count;
      load_of_stage_.push_back(load);
    }
  }

  std::vector<int> run() const {
    if (stages_.kind_of_stage.size() == 1) return {blocks_};
    const Ticks limit = least_limit();
    int low = 0, high = blocks_;  // the highest level that is not above the number of blocks
    while (low < high) {
      const int middle = low + (high - low + 1) / 2;
      if (blocks_at(middle, limit) <= blocks_)
        low = middle;
      else
        high = middle - 1;
    }
    std::vector<int> counts, more;  // of a stage of every load, also one level higher
    for (const Load& load : loads_) {
      counts.push_back(count_at(low, load, limit));
      more.push_back(count_at(low + 1, load, limit));
    }
    std::vector<int> cut;
    cut.reserve(load_of_stage_.size());
    for (const std::size_t load : load_of_stage_) cut.push_back(counts[load]);
    std::int64_t left = blocks_ - blocks_at(low, limit);
    for (std::size_t s = cut.size(); left > 0 && s-- > 0;) {
      if (more[load_of_stage_[s]] <= cut[s]) continue;
      ++cut[s];
      --left;
    }
    return cut;
  }

 private:
  /// Stages that are alike.
  struct Load {
    Ticks block, fixed;
    int least = 0, most = 0;
    int count = 0;
  };

  Load load_of(std::size_t stage) const {
    return {.block = times_of(stages_, stage).blocks.front(),
            .fixed = fixed_time(stages_, stage),
            .least = is_outer(stages_, stage) ? 0 : 1,
            .most = std::min(blocks_, most_of(stages_, stage))};
  }
  int count_at(int level, const Load& load, Ticks limit) const {
    std::int64_t most = load.most;
    if (load.block > Ticks()) most = std::min(most, (limit - load.fixed).value / load.block.value);
    return std::clamp(level, load.least, static_cast<int>(most));
  }
  /// Blocks of all stages if each has as many as `level` and the limit allow.
  std::int64_t blocks_at(int level, Ticks limit) const {
    std::int64_t sum = 0;
    for (const Load& load : loads_) sum += std::int64_t{load.count} * count_at(level, load, limit);
    return sum;
  }

  bool has_room(Ticks limit) const { return blocks_at(blocks_, limit) >= blocks_; }

  /// The smallest limit with room for all blocks. There a stage has no time left: once the interval
  /// is as short as a block, only one limit per load remains.
  Ticks least_limit() const {
    Ticks low, high, shortest = Ticks::max();
    for (const Load& load : loads_) {
      low = std::max(low, load.fixed + load.block * std::int64_t{load.least});
      high = std::max(high, load.fixed + load.block * std::int64_t{load.most});
      if (load.block > Ticks()) shortest = std::min(shortest, load.block);
    }
    MW_CHECK(has_room(high));
    if (has_room(low)) return low;
    while (high - low > shortest) {
      const Ticks middle(low.value + (high - low).value / 2);
      (has_room(middle) ? high : low) = middle;
    }
    Ticks least = high;
    for (const Load& load : loads_) {
      if (load.block == Ticks() || load.fixed > high) continue;
      const Ticks full = high - Ticks((high - load.fixed).value % load.block.value);
      if (full > low && full < least && has_room(full)) least = full;
    }
    return least;
  }

  const UnequalStages& stages_;
  int blocks_;
  std::vector<Load> loads_;
  std::vector<std::size_t> load_of_stage_;
};

bool are_blocks_alike(const LayerTimes& times) {
  return std::ranges::adjacent_find(times.blocks, std::not_equal_to<>()) == times.blocks.end();
}

}  // namespace

Ticks slowest_stage_of(const UnequalStages& stages, std::span<const int> blocks_per_stage) {
  MW_CHECK(stages.kind_of_stage.size() == blocks_per_stage.size());
  Ticks slowest;
  std::size_t block = 0;
  for (std::size_t stage = 0; stage < blocks_per_stage.size(); ++stage) {
    Ticks time = fixed_time(stages, stage);
    for (int i = 0; i < blocks_per_stage[stage]; ++i)
      time += times_of(stages, stage).blocks[block++];
    slowest = std::max(slowest, time);
  }
  return slowest;
}

std::vector<int> cut_blocks_for(const UnequalStages& stages) {
  MW_CHECK(!stages.kind_of_stage.empty());
  const std::size_t blocks = times_of(stages, 0).blocks.size();
  MW_CHECK(can_cut(static_cast<int>(blocks), static_cast<int>(stages.kind_of_stage.size())));
  if (blocks > 0 && std::ranges::all_of(stages.of_kind, are_blocks_alike))
    return AlikeBlocksCut(stages).run();
  return UnequalCut(stages).run();
}

}  // namespace meshwright
