#include "planner/partition/latency_search.hpp"

#include <algorithm>
#include <set>

namespace meshwright {
namespace {

using Item = LatencySearch::Item;

bool dominates(const LatencyLabel& a, const LatencyLabel& b) {
  return a.accelerators <= b.accelerators && a.finished <= b.finished &&
         std::equal(a.ready.begin(), a.ready.end(), b.ready.begin(), std::less_equal<>());
}

/// By item: the longest path from its end to the end of all, with the least times.
std::vector<std::int64_t> least_tails(const PartitionItems& items, bool has_hosts) {
  std::vector<std::int64_t> tails(items.items.size(), 0);
  for (std::size_t i = tails.size(); i-- > 0;)
    for (const Item reader : items.after[i])
      tails[i] = std::max(tails[i], least_item_time(items.items[to_index(reader)], has_hosts) +
                                        tails[to_index(reader)]);
  return tails;
}

}  // namespace

std::int64_t least_item_time(const PartitionItem& item, bool has_hosts) {
  if (!has_hosts) return item.accelerator_time;
  return item.runs_on_accelerator ? std::min(item.accelerator_time, item.host_time)
                                  : item.host_time;
}

std::int64_t longest_path(const PartitionItems& items, bool has_hosts) {
  const std::vector<std::int64_t> tails = least_tails(items, has_hosts);
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < tails.size(); ++i)
    longest = std::max(longest, least_item_time(items.items[i], has_hosts) + tails[i]);
  return longest;
}

LatencySearch::LatencySearch(const PartitionProblem& problem, const PartitionItems& items,
                             const SignalMembers& signals, const DownSets& sets)
    : items_(items),
      signals_(signals),
      sets_(sets),
      accelerators_(problem.accelerators),
      has_hosts_(problem.hosts > 0),
      memory_(problem.accelerator_memory.value),
      tail_(least_tails(items, problem.hosts > 0)),
      readable_(sets.size()),
      joint_readers_(sets.size()),
      tails_(sets.size()),
      is_reached_(sets.size(), false),
      labels_(sets.size()),
      members_in_stage_(signals.members.size(), 0),
      reached_from_(sets.size(), -1) {}

/// Makes the lists of a down-set, before its first label.
void LatencySearch::reach(Item set) {
  if (is_reached_[to_index(set)]) return;
  is_reached_[to_index(set)] = true;
  const auto is_missing = [&](Item reader) { return !is_in(set, reader); };
  for (std::size_t i = 0; i < items_.items.size(); ++i)
    if (is_in(set, static_cast<Item>(i)) && std::ranges::any_of(items_.after[i], is_missing))
      readable_[to_index(set)].push_back(static_cast<Item>(i));
  find_joint_readers(set);
}

/// A call that reads an item reads, or comes after a call that reads, all items of the set from
/// which paths lead to its reader. So the item is of no use before all of these are ready.
void LatencySearch::find_joint_readers(Item set) {
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
      tail = std::max(tail, least_time_of(reader) + tail_[to_index(reader)]);
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

/// Keeps it if the rest can be fast enough, and no other one is as good.
void LatencySearch::add_label(Item set, LatencyLabel label) {
  const std::vector<Item>& readable = readable_[to_index(set)];
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
      reach(next);
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
        longest = std::max(longest, least_time_of(reader) + tail_[to_index(reader)]);
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
        reach(next);
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
  reach(0);
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

}  // namespace meshwright
