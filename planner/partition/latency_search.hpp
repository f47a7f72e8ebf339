/// The search of latency_partition.hpp over the down-sets of one lattice.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/indices.hpp"
#include "planner/partition/down_sets.hpp"
#include "planner/partition/partition_items.hpp"
#include "planner/partition/partition_lattice.hpp"

namespace meshwright {

inline constexpr std::int64_t kNoLatency = std::numeric_limits<std::int64_t>::max();

/// Picoseconds, on the faster device.
std::int64_t least_item_time(const PartitionItem& item, bool has_hosts);
/// A bound of the latency.
std::int64_t longest_path(const PartitionItems& items, bool has_hosts);

/// One way to compute the items of a down-set.
struct LatencyLabel {
  int accelerators = 0;
  std::int64_t finished = 0;  ///< outputs that no item reads
  /// When calls can start that read an item, in the order of `readable`.
  std::vector<std::int64_t> ready;
  std::int32_t from_set = -1, from_label = -1;
  bool on_host = false;  ///< what `from_set` has not
};

/// The shortest latency over the down-sets of one lattice.
class LatencySearch {
 public:
  using Item = std::int32_t;

  LatencySearch(const PartitionProblem& problem, const PartitionItems& items,
                const SignalMembers& signals, const DownSets& sets);

  /// Looks for a latency below `best`; false if it takes more than `most_extensions`.
  bool run(std::int64_t best, std::int64_t most_extensions);
  /// Of the best partition; kNoLatency if none is below `best`.
  std::int64_t latency() const;
  /// By node: its accelerator, in the order of the data flow; -1: on a host.
  std::vector<int> accelerator_of_nodes() const;
  std::int64_t extensions() const { return extensions_; }

 private:
  /// Each item of `item`'s readers is in a call that reads all of one of `others`, or after one.
  struct JointReaders {
    std::size_t item = 0;                          ///< index of readable items
    std::vector<std::vector<std::size_t>> others;  ///< the same
  };
  bool is_in(Item set, Item item) const { return sets_.contains(set, item); }
  std::int64_t least_time_of(Item item) const {
    return least_item_time(items_.items[to_index(item)], has_hosts_);
  }
  void reach(Item set);
  void find_joint_readers(Item set);
  void add_label(Item set, LatencyLabel label);
  LatencyLabel next_label(Item set, std::size_t label, Item next, bool has_end,
                          std::int64_t finish) const;
  void add_host_items(Item set);
  void add_stages(Item set);
  void grow(Item end, const std::vector<std::int64_t>& starts);
  void join(Item item);
  void leave(Item item);
  std::int64_t longest_tail(Item end) const;

  const PartitionItems& items_;
  const SignalMembers& signals_;
  const DownSets& sets_;
  int accelerators_;
  bool has_hosts_;
  std::int64_t memory_;
  std::vector<std::int64_t> tail_;  ///< by item: the least time from its end to the end of all
  std::vector<std::vector<Item>> readable_;  ///< by set: items that others read, ascending
  /// By set: sets of readable items of which each reader of a readable item needs one.
  std::vector<std::vector<JointReaders>> joint_readers_;
  std::vector<std::vector<std::int64_t>> tails_;   ///< of readable items, by later readers
  std::vector<bool> is_reached_;                   ///< by set: the lists above are made
  std::vector<std::vector<LatencyLabel>> labels_;  ///< by set
  std::int64_t below_ = kNoLatency, extensions_ = 0, most_extensions_ = 0;
  /// The stage that grows from the set `begin`.
  struct Stage {
    Item begin = 0;
    std::vector<Item> items;
    std::int64_t memory = 0, compute = 0;
    int ends = 0;                   ///< items that are not read
    std::int64_t transfers = 0;     ///< of signals with members in the stage and elsewhere
    std::int64_t transfers_in = 0;  ///< of those from before the stage
  } stage_;
  std::vector<std::int32_t> members_in_stage_;  ///< by signal
  std::vector<Item> reached_from_;              ///< by set: the last `begin` with a stage to it
  std::vector<std::int64_t> ready_before_;      ///< scratch
};

}  // namespace meshwright
