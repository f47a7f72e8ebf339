#include "planner/partition/merge_nodes.hpp"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

class NodeMerger {
 public:
  NodeMerger(const std::vector<Seconds>& times, const std::vector<PartitionEdge>& edges)
      : time_(times), before_(times.size()), after_(times.size()), group_(times.size()) {
    for (std::size_t v = 0; v < times.size(); ++v) group_[v] = static_cast<std::int32_t>(v);
    for (const PartitionEdge& edge : edges) {
      MW_CHECK(edge.source < edge.target);
      after_[index(edge.source)].insert(edge.target);
      before_[index(edge.target)].insert(edge.source);
    }
    count_ = times.size();
  }

  std::vector<std::int32_t> merge(std::size_t most) {
    if (count_ > most) {
      for (std::size_t v = 0; v < group_.size(); ++v) propose(static_cast<std::int32_t>(v));
      merge_pairs(most);
    }
    return numbered(most);
  }

 private:
  static std::size_t index(std::int32_t v) { return static_cast<std::size_t>(v); }

  struct Pair {
    Seconds time;
    std::int32_t source, target;
    friend bool operator>(const Pair& a, const Pair& b) {
      return std::tie(a.time, a.source, a.target) > std::tie(b.time, b.source, b.target);
    }
  };

  std::int32_t root(std::int32_t v) {
    while (group_[index(v)] != v) v = group_[index(v)] = group_[index(group_[index(v)])];
    return v;
  }

  bool can_merge(std::int32_t source, std::int32_t target) const {
    return after_[index(source)].contains(target) &&
           (after_[index(source)].size() == 1 || before_[index(target)].size() == 1);
  }

  void push(std::int32_t source, std::int32_t target) {
    pairs_.push({time_[index(source)] + time_[index(target)], source, target});
  }

  void propose(std::int32_t v) {
    if (after_[index(v)].size() == 1) push(v, *after_[index(v)].begin());
    if (before_[index(v)].size() == 1) push(*before_[index(v)].begin(), v);
  }

  void merge_pairs(std::size_t most) {
    while (count_ > most && !pairs_.empty()) {
      const Pair pair = pairs_.top();
      pairs_.pop();
      const bool is_stale = root(pair.source) != pair.source || root(pair.target) != pair.target ||
                            pair.time != time_[index(pair.source)] + time_[index(pair.target)];
      if (is_stale || !can_merge(pair.source, pair.target)) continue;
      unite(pair.source, pair.target);
      --count_;
    }
  }

  /// Moves the neighbors of `from` on one side to `into`, and their links back.
  void move_links(std::vector<std::set<std::int32_t>>& side,
                  std::vector<std::set<std::int32_t>>& back, std::int32_t from, std::int32_t into) {
    for (const std::int32_t neighbor : side[index(from)]) {
      back[index(neighbor)].erase(from);
      back[index(neighbor)].insert(into);
      side[index(into)].insert(neighbor);
      changed_.push_back(neighbor);
    }
    side[index(from)].clear();
  }

  void unite(std::int32_t source, std::int32_t target) {
    after_[index(source)].erase(target);
    before_[index(target)].erase(source);
    const auto degree = [&](std::int32_t v) {
      return before_[index(v)].size() + after_[index(v)].size();
    };
    const bool keeps_source = degree(source) >= degree(target);
    const std::int32_t into = keeps_source ? source : target;
    const std::int32_t from = keeps_source ? target : source;
    changed_.clear();
    move_links(before_, after_, from, into);
    move_links(after_, before_, from, into);
    time_[index(into)] += time_[index(from)];
    group_[index(from)] = into;
    propose(into);
    for (const std::int32_t neighbor : changed_) propose(neighbor);
  }

  std::vector<std::int32_t> roots_in_order() {
    std::vector<std::size_t> missing(group_.size(), 0);
    std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
    for (std::size_t v = 0; v < group_.size(); ++v) {
      if (root(static_cast<std::int32_t>(v)) != static_cast<std::int32_t>(v)) continue;
      missing[v] = before_[v].size();
      if (missing[v] == 0) ready.push(static_cast<std::int32_t>(v));
    }
    std::vector<std::int32_t> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const std::int32_t next : after_[index(order.back())])
        if (--missing[index(next)] == 0) ready.push(next);
    }
    MW_CHECK(order.size() == count_);
    return order;
  }

  std::vector<std::int32_t> numbered(std::size_t most) {
    const std::vector<std::int32_t> order = roots_in_order();
    Seconds total, done;
    for (const std::int32_t v : order) total += time_[index(v)];
    std::vector<std::int32_t> number(group_.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto part = [&](double share) {
        return std::min(most - 1, static_cast<std::size_t>(share * static_cast<double>(most)));
      };
      const double by_count = static_cast<double>(i) / static_cast<double>(order.size());
      const double share = total.value > 0 ? ratio(done, total) : by_count;
      number[index(order[i])] = static_cast<std::int32_t>(count_ <= most ? i : part(share));
      done += time_[index(order[i])];
    }
    std::vector<std::int32_t> result(group_.size());
    for (std::size_t v = 0; v < group_.size(); ++v)
      result[v] = number[index(root(static_cast<std::int32_t>(v)))];
    return without_gaps(std::move(result));
  }

  /// The same groups with consecutive numbers.
  static std::vector<std::int32_t> without_gaps(std::vector<std::int32_t> groups) {
    std::vector<std::int32_t> used = groups;
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (std::int32_t& group : groups)
      group = static_cast<std::int32_t>(std::ranges::lower_bound(used, group) - used.begin());
    return groups;
  }

  std::vector<Seconds> time_;
  std::vector<std::set<std::int32_t>> before_, after_;
  std::vector<std::int32_t> group_;
  std::vector<std::int32_t> changed_;
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs_;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<std::int32_t> merge_nodes(const std::vector<Seconds>& times,
                                      const std::vector<PartitionEdge>& edges, std::size_t most) {
  MW_CHECK(most >= 1);
  return NodeMerger(times, edges).merge(most);
}

}  // namespace meshwright
