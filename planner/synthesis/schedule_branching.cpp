#include "planner/synthesis/schedule_branching.hpp"

#include <algorithm>
#include <utility>

namespace meshwright {
ScheduleBranching::ScheduleBranching(const OperationNetwork& network)
    : network_(network), propagation_(network) {}

BranchingOutcome ScheduleBranching::improve(Starts known, Ticks bound, std::int64_t most_nodes) {
  BranchingOutcome outcome{std::move(known), bound, 0};
  nodes_left_ = most_nodes;
  for (;;) {
    const Ticks value = objective_of(network_, outcome.starts);
    if (value <= outcome.bound) break;
    Node root;
    Verdict verdict = Verdict::kExhausted;
    if (propagation_.could_meet(value - network_.grain)) {
      root.earliest = propagation_.earliest_;
      root.latest = propagation_.latest_;
      root.is_placed.assign(at(network_.size()), 0);
      verdict = descend(std::move(root), 0);
    }
    if (verdict == Verdict::kExhausted) outcome.bound = value;
    // Left-packed, the schedule may be even better than its target.
    if (verdict == Verdict::kImproved && objective_of(network_, found_) < value)
      outcome.starts = found_;
    else
      break;
  }
  outcome.nodes = most_nodes - nodes_left_;
  return outcome;
}

bool ScheduleBranching::narrow(Node& node) {
  propagation_.earliest_ = std::move(node.earliest);
  propagation_.latest_ = std::move(node.latest);
  const bool possible = propagation_.propagate();
  node.earliest = propagation_.earliest_;
  node.latest = propagation_.latest_;
  return possible;
}

ScheduleBranching::Verdict ScheduleBranching::descend(Node node, int placed) {
  if (placed == network_.size()) {
    found_ = node.earliest;
    return Verdict::kImproved;
  }
  if (nodes_left_-- <= 0) return Verdict::kStopped;
  // Branch on the machine with the earliest possible end of an open operation.
  std::int32_t first = -1;
  Ticks first_end = Ticks::max();
  for (std::int32_t o = 0; o < network_.size(); ++o)
    if (const Ticks end = node.earliest[at(o)] + network_.duration[at(o)];
        !node.is_placed[at(o)] && end < first_end) {
      first = o;
      first_end = end;
    }
  const auto& operations = network_.of_machine[at(network_.machine[at(first)])];
  std::vector<std::int32_t> rivals;
  for (const std::int32_t o : operations)
    if (!node.is_placed[at(o)] && (o == first || node.earliest[at(o)] < first_end))
      rivals.push_back(o);
  std::sort(rivals.begin(), rivals.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(node.latest[at(a)] - network_.duration[at(a)], a) <
           std::pair(node.latest[at(b)] - network_.duration[at(b)], b);
  });
  bool stopped = false;
  for (const std::int32_t chosen : rivals) {
    Node child = node;
    child.is_placed[at(chosen)] = 1;
    const Ticks end = child.earliest[at(chosen)] + network_.duration[at(chosen)];
    child.latest[at(chosen)] = std::min(child.latest[at(chosen)], end);
    for (const std::int32_t o : operations)
      if (!child.is_placed[at(o)]) child.earliest[at(o)] = std::max(child.earliest[at(o)], end);
    if (!narrow(child)) continue;
    const Verdict verdict = descend(std::move(child), placed + 1);
    if (verdict == Verdict::kImproved) return verdict;
    stopped |= verdict == Verdict::kStopped;
    if (stopped && nodes_left_ <= 0) break;
  }
  return stopped ? Verdict::kStopped : Verdict::kExhausted;
}

}  // namespace meshwright
