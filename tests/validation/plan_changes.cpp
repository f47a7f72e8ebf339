#include "tests/validation/plan_changes.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/base/random.hpp"
#include "core/formats/plan.hpp"
#include "planner/search/neighbors.hpp"

namespace meshwright {
namespace {

constexpr int kLargestShardGroup = 64;  ///< ranks; larger ones span many nodes

/// Collects changes of one strategy.
class Changes {
 public:
  explicit Changes(const Strategy& base) : base_(base) {}

  template <class Edit>
  void add(const Edit& edit) {
    Strategy changed = base_;
    edit(changed);
    if (changed != base_) changed_.push_back(std::move(changed));
  }
  /// One more, one less, twice and half of a number.
  template <class Member>
  void add_near(const Member& member) {
    Strategy read = base_;
    const int value = member(read);
    for (const int other : {value / 2, value - 1, value + 1, 2 * value})
      if (other >= 1) add([&](Strategy& s) { member(s) = other; });
  }
  std::vector<Strategy> take() { return std::move(changed_); }

 private:
  const Strategy& base_;
  std::vector<Strategy> changed_;
};

void add_recomputations(const Strategy& base, Changes& changes) {
  const auto add = [&](const Recompute& recompute) {
    changes.add([&](Strategy& s) { s.recompute = recompute; });
  };
  add({.kind = RecomputeKind::kTorchSelective});
  for (int module = 0; module < kRecomputeModuleCount; ++module) {
    const std::uint32_t bit = 1U << static_cast<unsigned>(module);
    const std::uint32_t modules = base.recompute.modules ^ bit;
    if (modules != 0) add({.kind = RecomputeKind::kModules, .modules = modules});
  }
  const int blocks = base.recompute.blocks;
  for (const int other : {1, blocks / 2, blocks - 1, blocks + 1, 2 * blocks})
    if (other >= 1) add({.kind = RecomputeKind::kBlocks, .blocks = other});
}

void add_replications(Changes& changes) {
  changes.add([](Strategy& s) {
    s.data_parallelism.buckets = {.rule = BucketRule::kMegatron, .bytes = {}};
  });
  changes.add([](Strategy& s) { s.data_parallelism.overlap_gather ^= true; });
  changes.add([](Strategy& s) { s.data_parallelism.reshard_after_forward ^= true; });
  changes.add_near([](Strategy& s) -> int& { return s.data_parallelism.prefetch; });
  changes.add([](Strategy& s) { s.data_parallelism.shard_ranks = 0; });
  for (int ranks = 2; ranks <= kLargestShardGroup; ranks *= 2)
    changes.add([=](Strategy& s) { s.data_parallelism.shard_ranks = ranks; });
}

void add_model_options(Changes& changes) {
  changes.add([](Strategy& s) { s.model_parallelism.tensor_overlap ^= true; });
  for (int algorithm = 0; algorithm < kContextAlgorithmCount; ++algorithm)
    changes.add([=](Strategy& s) {
      s.model_parallelism.context = static_cast<ContextAlgorithm>(algorithm);
    });
  for (std::size_t axis = 1; axis < kAxisCount; ++axis)
    changes.add([=](Strategy& s) {
      std::swap(s.model_parallelism.order.axes[axis - 1], s.model_parallelism.order.axes[axis]);
    });
}

}  // namespace

std::vector<Strategy> changed_once(const Strategy& base) {
  Changes changes(base);
  for (const ChangedStrategy& change : single_changes(base))
    changes.add([&](Strategy& s) { s = change.strategy; });
  changes.add_near([](Strategy& s) -> int& { return s.micro_batch; });
  changes.add_near([](Strategy& s) -> int& { return s.degrees.chunks; });
  changes.add_near([](Strategy& s) -> int& { return s.degrees.expert; });
  changes.add_near([](Strategy& s) -> int& { return s.degrees.expert_tensor; });
  add_recomputations(base, changes);
  add_replications(changes);
  add_model_options(changes);
  return changes.take();
}

ChangedStrategies changed_at_most_twice(const Strategy& base, std::size_t most) {
  std::set<std::string> known{to_json(base, -1)};
  ChangedStrategies changed;
  const auto add_changes_of = [&](const Strategy& strategy) {
    for (Strategy& other : changed_once(strategy))
      if (known.insert(to_json(other, -1)).second) changed.strategies.push_back(std::move(other));
  };
  add_changes_of(base);
  const std::size_t once = changed.strategies.size();
  for (std::size_t i = 0; i < once; ++i) add_changes_of(Strategy(changed.strategies[i]));
  std::vector<Strategy>& all = changed.strategies;
  if (all.size() <= most) return changed;
  for (std::size_t i = once; i + 1 < all.size(); ++i)
    std::swap(all[i], all[i + mixed_bits(i) % (all.size() - i)]);
  changed.left_out = all.size() - most;
  all.resize(most);
  return changed;
}

}  // namespace meshwright
