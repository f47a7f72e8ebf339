#include "planner/partition/latency_partition.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/check.hpp"
#include "core/base/indices.hpp"
#include "planner/partition/down_sets.hpp"
#include "planner/partition/partition_items.hpp"
#include "planner/partition/partition_lattice.hpp"

namespace meshwright {
namespace {

using Item = std::int32_t;
using Adjacent = std::vector<std::vector<Item>>;

constexpr std::int64_t kNoLatency = std::numeric_limits<std::int64_t>::max();

/// How items of a down-set can have been computed.
struct LatencyLabel {
  int accelerators = 0;
  std::int64_t finished = 0;  ///< what no item reads
  /// When calls can start that read an item, in the order of `readable`.
  std::vector<std::int64_t> ready;
  std::int32_t from_set = -1, from_label = -1;
  bool on_host = false;  ///< what `from_set` has not
};

bool dominates(const LatencyLabel& a, const LatencyLabel& b) {
  return a.accelerators <= b.accelerators && a.finished <= b.finished &&
         std::equal(a.ready.begin(), a.ready.end(), b.ready.begin(), std::less_equal<>());
}

/// The shortest latency over the down-sets of one lattice.
class LatencySearch {
 public:
  LatencySearch(const PartitionProblem& problem, const PartitionItems& items,
                const SignalMembers& signals, const DownSets& sets);

  /// Looks for a latency below `best`; false if it takes more than `most_extensions`.
  bool run(std::int64_t best, std::int64_t most_extensions);
  /// Of the best partition; kNoLatency if none is below `best`.
  std::int64_t latency() const;
  /// By node: its accelerator, in the order of the data flow; -1: on a host.
  std::vector<int> accelerator_of_nodes() const;
  std::int64_t longest_path() const;
  std::int64_t extensions() const { return extensions_; }

 private:
  /// Each item of `item`'s readers is in a call that reads all of one of `others`, or after one.
  struct JointReaders {
    std::size_t item = 0;                          ///< index of readable items
    std::vector<std::vector<std::size_t>> others;  ///< the same
  };
  bool is_in(Item set, Item item) const { return sets_.contains(set, item); }
  std::int64_t least_time(Item item) const;
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
  std::vector<std::vector<std::int64_t>> tails_;  ///< of readable items, by later readers
  std::vector<bool> has_joint_readers_;
  std::vector<std::vector<LatencyLabel>> labels_;  ///< by set
  std::int64_t below_ = kNoLatency, extensions_ = 0, most_extensions_ = 0;
  /// The stage that grows from the set `begin`.
  struct Stage {
    Item begin = 0;
    std::vector<Item> items;
    std::int64_t memory = 0, compute = 0;
    int ends = 0;                   ///< items that are not read
    std::int64_t transfers = 0;     ///< of signals with members in the stage and elsewhere
    std::int64_t transfers_in = 0;  ///< of those that were computed before
  } stage_;
  std::vector<std::int32_t> members_in_stage_;  ///< by signal
  std::vector<Item> reached_from_;              ///< by set: the last `begin` with a stage to it
  std::vector<std::int64_t> ready_before_;      ///< scratch
};

LatencySearch::LatencySearch(const PartitionProblem& problem, const PartitionItems& items,
                             const SignalMembers& signals, const DownSets& sets)
    : items_(items),
      signals_(signals),
      sets_(sets),
      accelerators_(problem.accelerators),
      has_hosts_(problem.hosts > 0),
      memory_(problem.accelerator_memory.value),
      tail_(items.items.size(), 0),
      readable_(sets.size()),
      joint_readers_(sets.size()),
      tails_(sets.size()),
      has_joint_readers_(sets.size(), false),
      labels_(sets.size()),
      members_in_stage_(signals.members.size(), 0),
      reached_from_(sets.size(), -1) {
  for (std::size_t i = items.items.size(); i-- > 0;)
    for (const Item reader : items.after[i])
      tail_[i] = std::max(tail_[i], least_time(reader) + tail_[to_index(reader)]);
  for (std::size_t set = 0; set < sets.size(); ++set)
    for (std::size_t i = 0; i < items.items.size(); ++i) {
      const auto is_missing = [&](Item reader) { return !is_in(static_cast<Item>(set), reader); };
      if (is_in(static_cast<Item>(set), static_cast<Item>(i)) &&
          std::ranges::any_of(items.after[i], is_missing))
        readable_[set].push_back(static_cast<Item>(i));
    }
}

/// A call that reads an item reads, or comes after a call that reads, all items of the set from
/// which paths lead to its reader. So the item is of no use before all of these are ready.
void LatencySearch::find_joint_readers(Item set) {
  has_joint_readers_[to_index(set)] = true;
  const std::vector<Item>& readable = readable_[to_index(set)];
  std::vector<std::vector<std::uint64_t>> sources(items_.items.size());  // of items after the set
  const std::size_t words = readable.size() / 64 + 1;
  for (std::size_t i = 0; i < items_.items.size(); ++i) {
    if (is_in(set, static_cast<Item>(i))) continue;
    std::vector<std::uint64_t>& here = sources[i];
    here.assign(words, 0);
    for (const Item before : items_.before[i])
      if (is_in(set, before)) {
        const auto at = static_cast<std::size_t>(
            std::lower_bound(readable.begin(), readable.end(), before) - readable.begin());
        here[at / 64] |= std::uint64_t{1} << (at % 64);
      } else {
        for (std::size_t w = 0; w < words; ++w) here[w] |= sources[to_index(before)][w];
      }
  }
  tails_[to_index(set)].assign(readable.size(), 0);
  for (std::size_t at = 0; at < readable.size(); ++at) {
    std::set<std::vector<std::uint64_t>> masks;
    for (const Item reader : items_.after[to_index(readable[at])]) {
      if (is_in(set, reader)) continue;
      masks.insert(sources[to_index(reader)]);
      std::int64_t& tail = tails_[to_index(set)][at];
      tail = std::max(tail, least_time(reader) + tail_[to_index(reader)]);
    }
    JointReaders joint{.item = at, .others = {}};
    for (const std::vector<std::uint64_t>& mask : masks) {
      joint.others.emplace_back();
      for (std::size_t other = 0; other < readable.size(); ++other)
        if (other != at && (mask[other / 64] >> (other % 64) & 1U) != 0)
          joint.others.back().push_back(other);
    }
    if (std::ranges::none_of(joint.others, [](const auto& list) { return list.empty(); }))
      joint_readers_[to_index(set)].push_back(std::move(joint));
  }
}

std::int64_t LatencySearch::least_time(Item item) const {
  const PartitionItem& i = items_.items[to_index(item)];
  if (!has_hosts_) return i.accelerator_time;
  return i.runs_on_accelerator ? std::min(i.accelerator_time, i.host_time) : i.host_time;
}

std::int64_t LatencySearch::longest_path() const {
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < tail_.size(); ++i)
    longest = std::max(longest, least_time(static_cast<Item>(i)) + tail_[i]);
  return longest;
}

/// Keeps it if the rest can be fast enough, and no other one is as good.
void LatencySearch::add_label(Item set, LatencyLabel label) {
  const std::vector<Item>& readable = readable_[to_index(set)];
  if (!has_joint_readers_[to_index(set)]) find_joint_readers(set);
  std::vector<std::int64_t>& ready = ready_before_;
  ready = label.ready;
  for (const JointReaders& joint : joint_readers_[to_index(set)]) {
    std::int64_t least = kNoLatency;
    for (const std::vector<std::size_t>& others : joint.others) {
      std::int64_t latest = 0;
      for (const std::size_t other : others) latest = std::max(latest, ready[other]);
      least = std::min(least, latest);
    }
    label.ready[joint.item] = std::max(label.ready[joint.item], least);
  }
  std::int64_t bound = label.finished;
  for (std::size_t i = 0; i < readable.size(); ++i)
    bound = std::max(bound, label.ready[i] + tails_[to_index(set)][i]);
  if (bound >= below_) return;
  std::vector<LatencyLabel>& labels = labels_[to_index(set)];
  extensions_ += static_cast<std::int64_t>(labels.size());
  for (const LatencyLabel& other : labels)
    if (dominates(other, label)) return;
  std::erase_if(labels, [&](const LatencyLabel& other) { return dominates(label, other); });
  if (to_index(set) + 1 == sets_.size()) below_ = label.finished;
  labels.push_back(std::move(label));
}

/// The label of `next` if what it has more than `set` is finished at `finish`. `has_end`: some of
/// it is not read by others.
LatencyLabel LatencySearch::next_label(Item set, std::size_t label, Item next, bool has_end,
                                       std::int64_t finish) const {
  const LatencyLabel& from = labels_[to_index(set)][label];
  LatencyLabel made{.accelerators = from.accelerators,
                    .finished = has_end ? std::max(from.finished, finish) : from.finished,
                    .ready = {},
                    .from_set = set,
                    .from_label = static_cast<std::int32_t>(label)};
  std::size_t at = 0;
  const std::vector<Item>& before = readable_[to_index(set)];
  for (const Item item : readable_[to_index(next)]) {
    while (at < before.size() && before[at] < item) ++at;
    const bool is_old = at < before.size() && before[at] == item;
    made.ready.push_back(is_old ? from.ready[at] : finish);
  }
  return made;
}

void LatencySearch::add_host_items(Item set) {
  const std::vector<Item>& readable = readable_[to_index(set)];
  for (const auto& [item, next] : sets_.steps(set))
    for (std::size_t l = 0; l < labels_[to_index(set)].size(); ++l) {
      std::int64_t start = 0;
      for (const Item source : items_.before[to_index(item)]) {
        const auto at = std::lower_bound(readable.begin(), readable.end(), source);
        start = std::max(
            start,
            labels_[to_index(set)][l].ready[static_cast<std::size_t>(at - readable.begin())]);
      }
      LatencyLabel label = next_label(set, l, next, items_.after[to_index(item)].empty(),
                                      start + items_.items[to_index(item)].host_time);
      label.on_host = true;
      add_label(next, std::move(label));
    }
}

void LatencySearch::join(Item item) {
  const PartitionItem& joined = items_.items[to_index(item)];
  stage_.items.push_back(item);
  stage_.memory += joined.memory;
  stage_.compute += joined.accelerator_time;
  stage_.ends += items_.after[to_index(item)].empty() ? 1 : 0;
  for (const Item signal : signals_.of_item[to_index(item)]) {
    const auto& members = signals_.members[to_index(signal)];
    const std::int64_t time = signals_.time[to_index(signal)];
    const std::int32_t inside = ++members_in_stage_[to_index(signal)];
    const auto is_before = [&](Item member) { return is_in(stage_.begin, member); };
    if (inside == 1) stage_.transfers += time;
    if (inside == 1 && std::ranges::any_of(members, is_before)) stage_.transfers_in += time;
    if (to_index(inside) == members.size()) stage_.transfers -= time;
  }
}

void LatencySearch::leave(Item item) {
  const PartitionItem& left = items_.items[to_index(item)];
  stage_.items.pop_back();
  stage_.memory -= left.memory;
  stage_.compute -= left.accelerator_time;
  stage_.ends -= items_.after[to_index(item)].empty() ? 1 : 0;
  for (const Item signal : signals_.of_item[to_index(item)]) {
    const auto& members = signals_.members[to_index(signal)];
    const std::int64_t time = signals_.time[to_index(signal)];
    const std::int32_t inside = members_in_stage_[to_index(signal)]--;
    const auto is_before = [&](Item member) { return is_in(stage_.begin, member); };
    if (inside == 1) stage_.transfers -= time;
    if (inside == 1 && std::ranges::any_of(members, is_before)) stage_.transfers_in -= time;
    if (to_index(inside) == members.size()) stage_.transfers += time;
  }
}

/// Of paths that leave the stage.
std::int64_t LatencySearch::longest_tail(Item end) const {
  std::int64_t longest = 0;
  for (const Item item : stage_.items)
    for (const Item reader : items_.after[to_index(item)])
      if (!is_in(end, reader))
        longest = std::max(longest, least_time(reader) + tail_[to_index(reader)]);
  return longest;
}

/// All stages with the items of `stage_` and more. `starts`: by label of its begin, when the stage
/// can start; kNoLatency if no accelerator is left.
void LatencySearch::grow(Item end, const std::vector<std::int64_t>& starts) {
  const std::vector<Item>& readable = readable_[to_index(stage_.begin)];
  const std::vector<LatencyLabel>& labels = labels_[to_index(stage_.begin)];
  for (const auto& [item, next] : sets_.steps(end)) {
    if (extensions_ > most_extensions_) return;
    const PartitionItem& added = items_.items[to_index(item)];
    if (reached_from_[to_index(next)] == stage_.begin || !added.runs_on_accelerator ||
        stage_.memory + added.memory > memory_)
      continue;
    reached_from_[to_index(next)] = stage_.begin;
    ++extensions_;
    std::vector<std::int64_t> later = starts;
    for (const Item source : items_.before[to_index(item)]) {
      if (!is_in(stage_.begin, source)) continue;
      const auto at = static_cast<std::size_t>(
          std::lower_bound(readable.begin(), readable.end(), source) - readable.begin());
      for (std::size_t l = 0; l < labels.size(); ++l)
        later[l] = std::max(later[l], labels[l].ready[at]);
    }
    join(item);
    const std::int64_t first = *std::ranges::min_element(later);
    // A larger stage takes as much longer as the paths that leave it become shorter.
    const std::int64_t tail = longest_tail(next);
    if (first < kNoLatency && first + stage_.compute + stage_.transfers_in + tail < below_) {
      const std::int64_t latest = below_ - stage_.compute - stage_.transfers - tail;
      for (std::size_t l = 0; l < later.size(); ++l) {
        if (later[l] >= latest) continue;
        LatencyLabel label = next_label(stage_.begin, l, next, stage_.ends > 0,
                                        later[l] + stage_.compute + stage_.transfers);
        ++label.accelerators;
        add_label(next, std::move(label));
      }
      grow(next, later);
    }
    leave(item);
  }
}

void LatencySearch::add_stages(Item set) {
  stage_ = {.begin = set, .items = {}};
  std::vector<std::int64_t> starts;
  for (const LatencyLabel& label : labels_[to_index(set)])
    starts.push_back(label.accelerators < accelerators_ ? 0 : kNoLatency);
  grow(set, starts);
}

bool LatencySearch::run(std::int64_t best, std::int64_t most_extensions) {
  below_ = best;
  most_extensions_ = most_extensions;
  labels_.front() = {LatencyLabel{}};
  for (std::size_t set = 0; set + 1 < sets_.size(); ++set) {
    if (labels_[set].empty()) continue;
    if (extensions_ > most_extensions_) return false;
    add_stages(static_cast<Item>(set));
    if (has_hosts_) add_host_items(static_cast<Item>(set));
  }
  return extensions_ <= most_extensions_;
}

std::int64_t LatencySearch::latency() const {
  std::int64_t least = kNoLatency;
  for (const LatencyLabel& label : labels_.back()) least = std::min(least, label.finished);
  return least;
}

std::vector<int> LatencySearch::accelerator_of_nodes() const {
  std::vector<int> of_item(items_.items.size(), -1);
  const std::vector<LatencyLabel>& last = labels_.back();
  const LatencyLabel* label = &*std::ranges::min_element(last, {}, &LatencyLabel::finished);
  auto set = static_cast<Item>(sets_.size() - 1);
  while (label->from_set >= 0) {
    if (!label->on_host)
      for (std::size_t i = 0; i < of_item.size(); ++i)
        if (is_in(set, static_cast<Item>(i)) && !is_in(label->from_set, static_cast<Item>(i)))
          of_item[i] = label->accelerators - 1;
    set = label->from_set;
    label = &labels_[to_index(set)][to_index(label->from_label)];
  }
  std::vector<int> of_node;
  for (const Item item : items_.item_of_node) of_node.push_back(of_item[to_index(item)]);
  return of_node;
}

std::vector<PartitionStage> stages_of(const std::vector<int>& accelerator_of_node) {
  const int last = *std::ranges::max_element(accelerator_of_node);
  std::vector<PartitionStage> stages(static_cast<std::size_t>(last + 2));
  stages.back().on_host = true;
  for (std::size_t v = 0; v < accelerator_of_node.size(); ++v) {
    const int accelerator = accelerator_of_node[v];
    PartitionStage& stage =
        accelerator < 0 ? stages.back() : stages[static_cast<std::size_t>(accelerator)];
    stage.nodes.push_back(static_cast<std::int32_t>(v));
  }
  if (stages.back().nodes.empty()) stages.pop_back();
  return stages;
}

/// Topological orders of items: as they are numbered; depth first; the longest path first.
std::vector<std::vector<Item>> orders_of(const PartitionItems& items) {
  const std::size_t count = items.items.size();
  std::vector<std::int64_t> tail(count, 0);
  for (std::size_t i = count; i-- > 0;)
    for (const Item reader : items.after[i])
      tail[i] = std::max(tail[i],
                         items.items[to_index(reader)].accelerator_time + tail[to_index(reader)]);
  const auto ordered = [&](const auto& take_next) {
    std::vector<std::size_t> missing(count);
    std::vector<Item> open, order;
    for (std::size_t i = 0; i < count; ++i) {
      missing[i] = items.before[i].size();
      if (missing[i] == 0) open.push_back(static_cast<Item>(i));
    }
    while (!open.empty()) {
      const auto next = open.begin() + static_cast<std::ptrdiff_t>(take_next(open));
      order.push_back(*next);
      open.erase(next);
      for (const Item reader : items.after[to_index(order.back())])
        if (--missing[to_index(reader)] == 0) open.push_back(reader);
    }
    return order;
  };
  return {
      ordered([](const std::vector<Item>& open) {
        return static_cast<std::size_t>(std::ranges::min_element(open) - open.begin());
      }),
      ordered([](const std::vector<Item>& open) { return open.size() - 1; }),
      ordered([&](const std::vector<Item>& open) {
        const auto by_tail = [&](Item item) { return tail[to_index(item)]; };
        return static_cast<std::size_t>(std::ranges::max_element(open, {}, by_tail) - open.begin());
      })};
}

/// Items that take no time, read one item and are not read join that item, with their memory or
/// without. With it, that is a partition; without it, none is faster.
PartitionItems without_free_ends(const PartitionItems& items, bool keep_memory) {
  const auto is_free_end = [&](std::size_t i) {
    return items.after[i].empty() && items.before[i].size() == 1 &&
           items.items[i].accelerator_time == 0 && items.items[i].host_time == 0 &&
           items.items[i].runs_on_accelerator;
  };
  PartitionItems kept;
  std::vector<Item> new_item(items.items.size());
  for (std::size_t i = 0; i < items.items.size(); ++i) {
    if (is_free_end(i)) {
      new_item[i] = new_item[to_index(items.before[i][0])];
      if (keep_memory) kept.items[to_index(new_item[i])].memory += items.items[i].memory;
      continue;
    }
    new_item[i] = static_cast<Item>(kept.items.size());
    kept.items.push_back(items.items[i]);
    kept.before.emplace_back();
    kept.after.emplace_back();
    for (const Item before : items.before[i]) {
      kept.before.back().push_back(new_item[to_index(before)]);
      kept.after[to_index(new_item[to_index(before)])].push_back(new_item[i]);
    }
  }
  for (const Item item : items.item_of_node) kept.item_of_node.push_back(new_item[to_index(item)]);
  for (PartitionSignal signal : items.signals) {
    std::erase_if(signal.readers, [&](Item reader) { return is_free_end(to_index(reader)); });
    signal.home = new_item[to_index(signal.home)];
    for (Item& reader : signal.readers) reader = new_item[to_index(reader)];
    if (!signal.readers.empty()) kept.signals.push_back(std::move(signal));
  }
  return kept;
}

/// Items that take no time on hosts and only one item reads are computed by the same call as their
/// reader, or on a host, where they are always ready. So they can come after all other inputs of
/// it, one after the other, which leaves fewer down-sets.
void order_free_inputs(const PartitionItems& items, Adjacent& before, Adjacent& after) {
  for (std::size_t reader = 0; reader < items.items.size(); ++reader) {
    std::vector<Item> free, others;
    for (const Item input : items.before[reader]) {
      const bool is_free = items.before[to_index(input)].empty() &&
                           items.after[to_index(input)].size() == 1 &&
                           items.items[to_index(input)].host_time == 0;
      (is_free ? free : others).push_back(input);
    }
    for (const Item input : free) {
      for (const Item other : others) {
        before[to_index(input)].push_back(other);
        after[to_index(other)].push_back(input);
      }
      others = {input};
    }
  }
}

DownSets chain_of(const std::vector<Item>& order) {
  Adjacent before(order.size()), after(order.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    before[to_index(order[i])].push_back(order[i - 1]);
    after[to_index(order[i - 1])].push_back(order[i]);
  }
  auto sets = enumerate_down_sets(before, after, order.size() + 1);
  MW_CHECK(sets.has_value());
  return std::move(*sets);
}

}  // namespace

Ticks price_latency(const PartitionProblem& problem, std::vector<PartitionStage>& stages) {
  price_stages(problem, stages);
  const PartitionItems items = make_partition_items(problem);
  // What is computed at once: a stage of an accelerator, or an item on a host.
  std::vector<std::size_t> call_of_item(items.items.size());
  std::vector<std::int64_t> load;
  std::vector<std::size_t> stage_of_node(problem.nodes.size());
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (const std::int32_t node : stages[s].nodes) stage_of_node[to_index(node)] = s;
  for (const PartitionStage& stage : stages) load.push_back(stage.load.value);
  for (std::size_t v = problem.nodes.size(); v-- > 0;) {
    const std::size_t item = to_index(items.item_of_node[v]);
    call_of_item[item] = stage_of_node[v];
  }
  for (std::size_t item = 0; item < items.items.size(); ++item) {
    if (!stages[call_of_item[item]].on_host) continue;
    call_of_item[item] = load.size();
    load.push_back(items.items[item].host_time);
  }
  std::vector<std::set<std::size_t>> after(load.size());
  std::vector<std::size_t> missing(load.size(), 0);
  for (std::size_t item = 0; item < items.items.size(); ++item)
    for (const Item reader : items.after[item]) {
      const std::size_t a = call_of_item[item], b = call_of_item[to_index(reader)];
      if (a != b && after[a].insert(b).second) ++missing[b];
    }
  std::vector<std::int64_t> start(load.size(), 0);
  std::vector<std::size_t> open;
  for (std::size_t call = 0; call < load.size(); ++call)
    if (missing[call] == 0) open.push_back(call);
  std::int64_t latency = 0;
  std::size_t finished = 0;
  for (; finished < open.size(); ++finished) {
    const std::size_t call = open[finished];
    const bool is_empty = call < stages.size() && stages[call].on_host;
    const std::int64_t finish = start[call] + (is_empty ? 0 : load[call]);
    latency = std::max(latency, finish);
    for (const std::size_t reader : after[call]) {
      start[reader] = std::max(start[reader], finish);
      if (--missing[reader] == 0) open.push_back(reader);
    }
  }
  MW_CHECK(finished == load.size());  // stages are contiguous
  return Ticks(latency);
}

std::optional<LatencyPartition> partition_for_latency(const PartitionProblem& problem,
                                                      const PartitionLimits& limits) {
  const PartitionItems all = make_partition_items(problem);
  std::vector<int> best;
  std::int64_t latency = kNoLatency, longest_path = 0;
  LatencyPartition result;
  /// True if it is proved that no partition with these items is faster.
  const auto run = [&](const PartitionItems& items, const DownSets& sets, bool has_all_memory) {
    const SignalMembers signals(items);
    LatencySearch search(problem, items, signals, sets);
    const bool is_complete = search.run(latency, limits.extensions);
    longest_path = std::max(longest_path, search.longest_path());
    result.down_sets += static_cast<std::int64_t>(sets.size());
    result.extensions += search.extensions();
    if (search.latency() == kNoLatency) return is_complete;
    if (!has_all_memory) return false;
    latency = search.latency();
    best = search.accelerator_of_nodes();
    return is_complete;
  };
  const auto down_sets_of = [&](const PartitionItems& items) -> std::optional<DownSets> {
    if (items.items.size() > limits.items) return std::nullopt;
    Adjacent before = items.before, after = items.after;
    if (problem.hosts > 0) order_free_inputs(items, before, after);
    return enumerate_down_sets(before, after, limits.down_sets);
  };
  for (const std::vector<Item>& order : orders_of(all)) run(all, chain_of(order), true);
  bool is_optimal = false;
  if (const auto sets = down_sets_of(all)) {
    is_optimal = run(all, *sets, true);
  } else {
    const PartitionItems joined = without_free_ends(all, true);
    const auto joined_sets = down_sets_of(joined);
    is_optimal = joined_sets && run(joined, *joined_sets, true) &&
                 run(without_free_ends(all, false), *joined_sets, false);
  }
  if (best.empty()) return std::nullopt;
  result.stages = stages_of(best);
  result.latency = price_latency(problem, result.stages);
  MW_CHECK(result.latency.value <= latency);
  result.lower_bound =
      is_optimal ? result.latency : Ticks(std::min(result.latency.value, longest_path));
  return result;
}

}  // namespace meshwright
