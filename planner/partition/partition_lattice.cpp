#include "planner/partition/partition_lattice.hpp"

#include <algorithm>
#include <utility>

#include "core/base/indices.hpp"

namespace meshwright {
namespace {

using Index = std::int32_t;

/// Change of the cut when `item` is added to `set`.
std::int64_t cut_change(const PartitionLattice& lattice, const SignalMembers& signals, Index set,
                        Index item) {
  std::int64_t change = 0;
  for (const Index signal : signals.of_item[to_index(item)]) {
    bool any_inside = false, others_inside = true;
    for (const Index member : signals.members[to_index(signal)]) {
      if (member == item) continue;
      const bool inside = lattice.sets.contains(set, member);
      any_inside |= inside;
      others_inside &= inside;
    }
    if (!any_inside) change += signals.time[to_index(signal)];
    if (others_inside) change -= signals.time[to_index(signal)];
  }
  return change;
}

/// Quadratic in the items.
void find_dependents(const PartitionItems& items, PartitionLattice& lattice) {
  const std::size_t count = items.items.size();
  std::vector<Index> reached, seen(count, -1), counted(count, -1), inputs(count);
  for (std::size_t item = 0; item < count; ++item) {
    PartitionDependents& dependents = lattice.dependents[item];
    dependents.own = lattice.of_item[item];
    const auto mark = static_cast<Index>(item);
    // In breadth-first order, inputs are own before what reads them is seen for the last time.
    reached.assign(1, mark);
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const Index reader : items.after[to_index(reached[i])]) {
        if (counted[to_index(reader)] != mark)
          counted[to_index(reader)] = mark, inputs[to_index(reader)] = 0;
        if (++inputs[to_index(reader)] < static_cast<Index>(items.before[to_index(reader)].size()))
          continue;
        dependents.own += lattice.of_item[to_index(reader)];
        reached.push_back(reader);
      }
    seen[item] = mark;
    reached.assign(1, mark);
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const Index reader : items.after[to_index(reached[i])]) {
        if (seen[to_index(reader)] == mark) continue;
        seen[to_index(reader)] = mark;
        dependents.shared += lattice.of_item[to_index(reader)];
        reached.push_back(reader);
      }
    dependents.shared += lattice.of_item[item];
    dependents.shared -= dependents.own;
  }
}

}  // namespace

SignalMembers::SignalMembers(const PartitionItems& items) : of_item(items.items.size()) {
  for (const PartitionSignal& signal : items.signals) {
    members.push_back(signal.readers);
    members.back().push_back(signal.home);
    std::sort(members.back().begin(), members.back().end());
  }
  // Signals with the same members cost the same devices.
  std::vector<std::size_t> order(members.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return members[a] < members[b]; });
  std::vector<std::vector<Index>> merged;
  for (const std::size_t i : order) {
    if (merged.empty() || merged.back() != members[i]) {
      merged.push_back(members[i]);
      time.push_back(0);
    }
    time.back() += items.signals[i].time;
  }
  members = std::move(merged);
  for (std::size_t signal = 0; signal < members.size(); ++signal)
    for (const Index item : members[signal])
      of_item[to_index(item)].push_back(static_cast<Index>(signal));
}

PartitionPotential& PartitionPotential::operator+=(const PartitionPotential& other) {
  time += other.time;
  load += other.load;
  memory += other.memory;
  return *this;
}

PartitionPotential& PartitionPotential::operator-=(const PartitionPotential& other) {
  time -= other.time;
  load -= other.load;
  memory -= other.memory;
  return *this;
}

PartitionLattice make_lattice(const PartitionItems& items, const SignalMembers& signals,
                              DownSets sets, const PartitionProblem& problem) {
  PartitionLattice lattice{.items = &items,
                           .sets = std::move(sets),
                           .of_item = {},
                           .dependents = std::vector<PartitionDependents>(items.items.size()),
                           .of_set = {},
                           .cut = {},
                           .accelerators = problem.accelerators,
                           .hosts = problem.hosts,
                           .accelerator_memory = problem.accelerator_memory.value};
  for (std::size_t item = 0; item < items.items.size(); ++item) {
    const PartitionItem& i = items.items[item];
    PartitionPotential potential{i.accelerator_time, i.accelerator_time, i.memory};
    for (const Index signal : signals.of_item[item])
      potential.load += signals.time[to_index(signal)];
    lattice.of_item.push_back(potential);
  }
  find_dependents(items, lattice);

  const std::size_t count = lattice.sets.size();
  std::vector<bool> is_known(count, false);
  lattice.of_set.resize(count);
  lattice.cut.assign(count, 0);
  for (std::size_t set = 0; set < count; ++set)
    for (const auto& [item, next] : lattice.sets.steps(static_cast<Index>(set))) {
      if (is_known[to_index(next)]) continue;
      is_known[to_index(next)] = true;
      lattice.of_set[to_index(next)] = lattice.of_set[set];
      lattice.of_set[to_index(next)] += lattice.of_item[to_index(item)];
      lattice.cut[to_index(next)] =
          lattice.cut[set] + cut_change(lattice, signals, static_cast<Index>(set), item);
    }
  return lattice;
}

}  // namespace meshwright
