#include "planner/partition/down_sets.hpp"

#include <algorithm>
#include <bit>

#include "core/base/random.hpp"

namespace meshwright {
namespace {

using Index = std::int32_t;
using Adjacency = std::vector<std::vector<Index>>;

/// Finds down-sets by a hash that is the sum of hashes of their items; open addressing.
class SetTable {
 public:
  SetTable() : slots_(kFirstSlots, -1) {}
  /// The number of the set with this hash for which is_equal(number) holds, or -1; then the next
  /// insert() puts it where the search ended.
  template <class IsEqual>
  Index find(std::uint64_t hash, const IsEqual& is_equal) {
    for (at_ = hash & (slots_.size() - 1);; at_ = (at_ + 1) & (slots_.size() - 1)) {
      if (slots_[at_] < 0) return -1;
      if (hashes_[static_cast<std::size_t>(slots_[at_])] == hash && is_equal(slots_[at_]))
        return slots_[at_];
    }
  }
  void insert(std::uint64_t hash) {
    slots_[at_] = static_cast<Index>(hashes_.size());
    hashes_.push_back(hash);
    if (hashes_.size() * 2 > slots_.size()) grow();
  }
  std::uint64_t hash(std::size_t set) const { return hashes_[set]; }

 private:
  static constexpr std::size_t kFirstSlots = 1024;
  void grow() {
    slots_.assign(slots_.size() * 2, -1);
    for (std::size_t set = 0; set < hashes_.size(); ++set) {
      std::size_t slot = hashes_[set] & (slots_.size() - 1);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<Index>(set);
    }
  }
  std::vector<Index> slots_;
  std::vector<std::uint64_t> hashes_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<DownSets> enumerate_down_sets(const Adjacency& before, const Adjacency& after,
                                            std::size_t most) {
  DownSets sets;
  sets.words_ = std::max<std::size_t>(1, (before.size() + 63) / 64);
  sets.bits_.assign(sets.words_, 0);
  SetTable table;
  table.find(0, [](Index) { return false; });
  table.insert(0);

  // Items that can be added to a set: those of the set it was first reached from, without the added
  // one, and what that one enables.
  std::vector<std::pair<Index, Index>> reached_by{{-1, -1}};  // set, item
  std::vector<std::uint64_t> next(sets.words_);
  std::vector<Index> addable;
  sets.first_step_.push_back(0);
  for (std::size_t set = 0; set < reached_by.size(); ++set) {
    addable.clear();
    const auto [from, item] = reached_by[set];
    if (from < 0) {
      for (std::size_t i = 0; i < before.size(); ++i)
        if (before[i].empty()) addable.push_back(static_cast<Index>(i));
    } else {
      for (std::size_t s = sets.first_step_[static_cast<std::size_t>(from)];
           s < sets.first_step_[static_cast<std::size_t>(from) + 1]; ++s)
        if (sets.steps_[s].item != item) addable.push_back(sets.steps_[s].item);
      for (const Index reader : after[static_cast<std::size_t>(item)]) {
        const auto& needed = before[static_cast<std::size_t>(reader)];
        if (std::all_of(needed.begin(), needed.end(),
                        [&](Index i) { return sets.contains(static_cast<Index>(set), i); }))
          addable.push_back(reader);
      }
    }
    for (const Index added : addable) {
      std::copy_n(sets.bits_.begin() + static_cast<std::ptrdiff_t>(set * sets.words_), sets.words_,
                  next.begin());
      next[static_cast<std::size_t>(added) / 64] |= std::uint64_t{1} << (added % 64);
      const std::uint64_t hash =
          table.hash(set) + mixed_bits(static_cast<std::uint64_t>(added) + 1);
      Index number = table.find(hash, [&](Index other) {
        return std::equal(next.begin(), next.end(), sets.words(other).begin());
      });
      if (number < 0) {
        if (reached_by.size() >= most) return std::nullopt;
        number = static_cast<Index>(reached_by.size());
        table.insert(hash);
        sets.bits_.insert(sets.bits_.end(), next.begin(), next.end());
        reached_by.emplace_back(static_cast<Index>(set), added);
      }
      sets.steps_.push_back({added, number});
    }
    sets.first_step_.push_back(sets.steps_.size());
  }
  return sets;
}

}  // namespace meshwright
