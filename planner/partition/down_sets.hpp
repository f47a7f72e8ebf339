/// All down-sets of a DAG: sets of items that contain whatever precedes their items. They are the
/// possible unions of the first stages of a pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace meshwright {

struct DownSetStep {
  std::int32_t item = 0;
  std::int32_t next = 0;  ///< the down-set with this item added
};

/// Numbered by size: the empty set is 0, the set of all items is the last one.
class DownSets {
 public:
  std::size_t size() const { return first_step_.size() - 1; }
  bool contains(std::int32_t set, std::int32_t item) const {
    return (bits_[static_cast<std::size_t>(set) * words_ + static_cast<std::size_t>(item) / 64] >>
            (item % 64)) &
           1U;
  }
  /// One step for each item that can be added.
  std::span<const DownSetStep> steps(std::int32_t set) const {
    const auto s = static_cast<std::size_t>(set);
    return {steps_.data() + first_step_[s], first_step_[s + 1] - first_step_[s]};
  }
  /// The 64-bit words of the set, lowest items first.
  std::span<const std::uint64_t> words(std::int32_t set) const {
    return {bits_.data() + static_cast<std::size_t>(set) * words_, words_};
  }

 private:
  friend std::optional<DownSets> enumerate_down_sets(
      const std::vector<std::vector<std::int32_t>>& before,
      const std::vector<std::vector<std::int32_t>>& after, std::size_t most);
  std::size_t words_ = 1;
  std::vector<std::uint64_t> bits_;
  std::vector<std::size_t> first_step_;
  std::vector<DownSetStep> steps_;
};

/// Empty if there are more than `most`. Items adjacent to each item: `before`, `after`.
std::optional<DownSets> enumerate_down_sets(const std::vector<std::vector<std::int32_t>>& before,
                                            const std::vector<std::vector<std::int32_t>>& after,
                                            std::size_t most);

}  // namespace meshwright
