#include "planner/search/stage_partition.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// True if [embedding, blocks..., head] can be split into at most `stages` runs, none above
/// `limit`. Filling runs greedily needs the fewest runs; a run can always be split further without
/// making any run longer, so "at most" is equivalent to "exactly" as long as there are enough
/// layers.
bool fits_under(const LayerTimes& times, int stages, Ticks limit) {
  int runs = 1;
  Ticks run = times.embedding;
  if (run > limit) return false;
  const auto put = [&](Ticks layer) {
    if (layer > limit) return false;
    if (run + layer > limit) {
      ++runs;
      run = Ticks{};
    }
    run += layer;
    return runs <= stages;
  };
  for (const Ticks block : times.blocks)
    if (!put(block)) return false;
  return put(times.head);
}

/// The smallest `limit` with fits_under().
Ticks least_bottleneck(const LayerTimes& times, int stages) {
  Ticks sum = times.embedding + times.head;
  Ticks longest = std::max(times.embedding, times.head);
  for (const Ticks block : times.blocks) {
    sum += block;
    longest = std::max(longest, block);
  }
  return least_time(longest, sum, [&](Ticks limit) { return fits_under(times, stages, limit); });
}

/// Among all partitions with no stage above `limit`: smallest sum of squares, then the smallest
/// counts first.
class EvenCut {
 public:
  EvenCut(const LayerTimes& times, int stages, Ticks limit)
      : blocks_(static_cast<int>(times.blocks.size())),
        stages_(stages),
        capacity_(blocks_),
        limit_(limit),
        embedding_(times.embedding),
        head_(times.head),
        before_(times.blocks.size() + 1) {
    for (std::size_t i = 0; i < times.blocks.size(); ++i)
      before_[i + 1] = before_[i] + times.blocks[i];
    const auto shortest = std::ranges::min_element(times.blocks);
    if (shortest != times.blocks.end() && shortest->value > 0)
      capacity_ = static_cast<int>(std::min<std::int64_t>(blocks_, limit.value / shortest->value));
    const std::size_t states = static_cast<std::size_t>(stages_ + 1) * before_.size();
    cost_.assign(states, kUnreachable);
    choice_.assign(states, 0);
  }

  std::vector<int> run() {
    cost_[at(stages_, blocks_)] = 0;
    for (int stage = stages_ - 1; stage >= 0; --stage) {
      const auto [least, most] = blocks_before(stage);
      for (int first = least; first <= most; ++first) settle(stage, first);
    }
    MW_CHECK(cost_[at(0, 0)] != kUnreachable);
    std::vector<int> cut;
    for (int stage = 0, first = 0; stage < stages_; ++stage) {
      cut.push_back(choice_[at(stage, first)]);
      first += cut.back();
    }
    return cut;
  }

 private:
  static constexpr std::int64_t kUnreachable = std::int64_t{1} << 60;

  std::size_t at(int stage, int first) const {
    return static_cast<std::size_t>(stage) * before_.size() + static_cast<std::size_t>(first);
  }

  /// The least and the most: inner stages have at least one, and all have at most `capacity_`.
  std::pair<int, int> blocks_before(int stage) const {
    if (stage == 0) return {0, 0};
    const std::int64_t least = blocks_ - std::int64_t{capacity_} * (stages_ - stage);
    const std::int64_t most = std::int64_t{capacity_} * stage;
    return {static_cast<int>(std::max<std::int64_t>(stage - 1, least)),
            static_cast<int>(std::min<std::int64_t>(blocks_ - (stages_ - stage - 1), most))};
  }

  /// Best partition of blocks [first, ...) over stages [stage, ...).
  void settle(int stage, int first) {
    const bool outer = stage == 0 || stage == stages_ - 1;
    Ticks fixed;
    if (stage == 0) fixed += embedding_;
    if (stage == stages_ - 1) fixed += head_;
    const std::size_t here = at(stage, first);
    for (int count = outer ? 0 : 1; first + count <= blocks_; ++count) {
      const int end = first + count;
      const Ticks time =
          fixed + before_[static_cast<std::size_t>(end)] - before_[static_cast<std::size_t>(first)];
      if (time > limit_) break;
      const std::int64_t rest = cost_[at(stage + 1, first + count)];
      if (rest == kUnreachable) continue;
      const std::int64_t cost = rest + std::int64_t{count} * count;
      if (cost < cost_[here]) {  // counts ascend: the smallest count with this cost is kept
        cost_[here] = cost;
        choice_[here] = count;
      }
    }
  }

  int blocks_, stages_;
  int capacity_;  ///< blocks that a stage has at most
  Ticks limit_, embedding_, head_;
  std::vector<Ticks> before_;  ///< total time of the blocks before each block
  std::vector<std::int64_t> cost_;
  std::vector<int> choice_;
};

/// The same partition in closed form if all blocks take the same time.
class UniformCut {
 public:
  UniformCut(const LayerTimes& times, int stages)
      : times_(times),
        block_(times.blocks.front()),
        blocks_(static_cast<int>(times.blocks.size())),
        stages_(stages) {}

  std::vector<int> run() const {
    if (stages_ == 1) return {blocks_};
    const Ticks limit = least_limit();
    int low = 0, high = blocks_;  // the highest level that is not above the number of blocks
    while (low < high) {
      const int middle = low + (high - low + 1) / 2;
      if (blocks_at(middle, limit) <= blocks_)
        low = middle;
      else
        high = middle - 1;
    }
    std::vector<int> cut;
    cut.reserve(static_cast<std::size_t>(stages_));
    for (int stage = 0; stage < stages_; ++stage) cut.push_back(count_at(low, stage, limit));
    std::int64_t left = blocks_ - blocks_at(low, limit);
    for (int stage = stages_ - 1; left > 0; --stage) {
      if (count_at(low + 1, stage, limit) <= low) continue;
      ++cut[static_cast<std::size_t>(stage)];
      --left;
    }
    return cut;
  }

 private:
  bool is_outer(int stage) const { return stage == 0 || stage == stages_ - 1; }
  Ticks fixed_time(int stage) const {
    return stage == 0 ? times_.embedding : stage == stages_ - 1 ? times_.head : Ticks();
  }
  /// The most blocks of a stage within the limit.
  int capacity(int stage, Ticks limit) const {
    if (block_ == Ticks()) return blocks_;
    return static_cast<int>(
        std::min<std::int64_t>(blocks_, (limit - fixed_time(stage)).value / block_.value));
  }
  int count_at(int level, int stage, Ticks limit) const {
    return std::clamp(level, is_outer(stage) ? 0 : 1, capacity(stage, limit));
  }
  /// Blocks of all stages if each has as many as `level` and the limit allow.
  std::int64_t blocks_at(int level, Ticks limit) const {
    std::int64_t sum = count_at(level, 0, limit) + count_at(level, stages_ - 1, limit);
    if (stages_ > 2) sum += (std::int64_t{stages_} - 2) * count_at(level, 1, limit);
    return sum;
  }

  Ticks least_limit() const {
    return least_time(std::max({times_.embedding, times_.head, block_}),
                      times_.embedding + times_.head + block_ * std::int64_t{blocks_},
                      [&](Ticks limit) { return blocks_at(blocks_, limit) >= blocks_; });
  }

  const LayerTimes& times_;
  Ticks block_;
  int blocks_, stages_;
};

}  // namespace

std::vector<int> even_cut(int blocks, int stages) {
  MW_CHECK(can_cut(blocks, stages));
  std::vector<int> cut(static_cast<std::size_t>(stages), blocks / stages);
  const int skipped = stages > blocks ? 1 : 0;  // the embedding is enough for the first stage
  const auto from = cut.begin() + skipped;
  for (auto stage = from; stage != from + blocks % stages; ++stage) ++*stage;
  return cut;
}

Ticks slowest_stage(const LayerTimes& times, std::span<const int> blocks_per_stage) {
  Ticks slowest;
  std::size_t block = 0;
  for (std::size_t stage = 0; stage < blocks_per_stage.size(); ++stage) {
    Ticks time;
    if (stage == 0) time += times.embedding;
    if (stage + 1 == blocks_per_stage.size()) time += times.head;
    for (int i = 0; i < blocks_per_stage[stage]; ++i) time += times.blocks[block++];
    slowest = std::max(slowest, time);
  }
  return slowest;
}

std::vector<int> cut_blocks(const LayerTimes& times, int stages) {
  const int blocks = static_cast<int>(times.blocks.size());
  MW_CHECK(can_cut(blocks, stages));
  const bool are_alike = std::adjacent_find(times.blocks.begin(), times.blocks.end(),
                                            std::not_equal_to<>()) == times.blocks.end();
  if (blocks > 0 && are_alike) return UniformCut(times, stages).run();
  const Ticks limit = least_bottleneck(times, stages);
  if (blocks % stages == 0 && (blocks > 0 || stages <= 2)) {
    std::vector<int> equal = even_cut(blocks, stages);
    if (slowest_stage(times, equal) == limit) return equal;
  }
  return EvenCut(times, stages, limit).run();
}

}  // namespace meshwright
