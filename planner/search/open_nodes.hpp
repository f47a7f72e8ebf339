/// The open nodes of the search, as priority queues.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include "planner/search/branching.hpp"

namespace meshwright {

/// The nodes that are still to be judged, by how far they are divided.
class OpenNodes {
 public:
  enum Stage : std::uint8_t { kLayout, kPipeline, kCandidate, kStageCount };

  void push(Node node) {
    node.order = created_++;
    queues_[stage_of(node)].push(node);
  }

  bool empty() const { return std::ranges::all_of(queues_, &Queue::empty); }
  bool empty(Stage stage) const { return queues_[stage].empty(); }
  /// The stage of the node with the lowest bound. kStageCount if there is none.
  Stage lowest() const {
    Stage lowest = kStageCount;
    for (const Stage stage : {kLayout, kPipeline, kCandidate})
      if (!empty(stage) &&
          (lowest == kStageCount || IsLater()(queues_[lowest].top(), queues_[stage].top())))
        lowest = stage;
    return lowest;
  }
  const Node& next(Stage stage) const { return queues_[stage].top(); }
  Node take(Stage stage) {
    const Node node = queues_[stage].top();
    queues_[stage].pop();
    return node;
  }
  /// Of everything that is open, which must not be nothing.
  Ticks lowest_bound() const { return queues_[lowest()].top().bound; }

 private:
  struct IsLater {
    bool operator()(const Node& a, const Node& b) const {
      return std::tie(a.bound, a.order) > std::tie(b.bound, b.order);
    }
  };
  using Queue = std::priority_queue<Node, std::vector<Node>, IsLater>;

  static Stage stage_of(const Node& node) {
    if (node.pipeline < 0) return kLayout;
    return node.replication < 0 ? kPipeline : kCandidate;
  }

  std::array<Queue, kStageCount> queues_;
  std::size_t created_ = 0;
};

}  // namespace meshwright
