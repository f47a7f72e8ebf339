#include "planner/partition/latency_partition.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/check.hpp"
#include "planner/partition/latency_search.hpp"

namespace meshwright {
namespace {

using Item = LatencySearch::Item;
using Adjacent = std::vector<std::vector<Item>>;

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
  load.reserve(stages.size());
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
  std::int64_t latency = kNoLatency;
  LatencyPartition result;
  /// True if it is proved that no partition with these items is faster.
  const auto run = [&](const PartitionItems& items, const DownSets& sets, bool has_all_memory) {
    const SignalMembers signals(items);
    LatencySearch search(problem, items, signals, sets);
    const bool is_complete = search.run(latency, limits.extensions);
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
  if (all.items.size() <= limits.items) {
    for (const std::vector<Item>& order : orders_of(all)) run(all, chain_of(order), true);
  } else {
    const PartitionItems blocks = chain_of_blocks(all);
    std::vector<Item> order(blocks.items.size());
    std::iota(order.begin(), order.end(), Item{0});
    run(blocks, chain_of(order), true);
  }
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
      is_optimal ? result.latency
                 : Ticks(std::min(result.latency.value, longest_path(all, problem.hosts > 0)));
  return result;
}

}  // namespace meshwright
