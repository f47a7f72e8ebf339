#include "planner/partition/threshold_pass.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/base/check.hpp"
#include "core/base/indices.hpp"

namespace meshwright {
namespace {

using Index = std::int32_t;

/// The product of two numbers >= 0, or `most` if it is larger.
std::int64_t product_up_to(std::int64_t most, std::int64_t a, std::int64_t b) {
  return a > 0 && b > most / a ? most : a * b;
}

class ThresholdPass {
 public:
  ThresholdPass(std::int64_t threshold, const PartitionLattice& lattice,
                const SignalMembers& signals, std::int64_t most_extensions)
      : threshold_(threshold),
        most_extensions_(most_extensions),
        lattice_(lattice),
        signals_(signals),
        items_(lattice.items->items),
        host_counts_(static_cast<std::size_t>(lattice.hosts) + 1),
        has_memory_for_all_(lattice.of_set.back().memory <= lattice.accelerator_memory),
        labels_(lattice.sets.size() * host_counts_),
        inside_(signals.time.size()),
        before_(signals.time.size()),
        in_set_(items_.size()) {
    bound_hosts();
  }

  std::vector<LatticeStage> run();
  std::int64_t extensions() const { return extensions_; }

 private:
  static constexpr Index kUnreached = std::numeric_limits<Index>::max();
  /// Of a down-set and a number of hosts: the fewest accelerators, and the last stage. Among
  /// equals the smallest load, so that a pass that finds a partition finds a good one.
  struct Label {
    Index accelerators = kUnreached;
    Index from = -1;
    bool on_host = false;
    std::int64_t load = 0;  ///< of the busiest device so far

    bool is_better_than(const Label& other) const {
      return std::tie(accelerators, load) < std::tie(other.accelerators, other.load);
    }
  };

  /// What was left out of a stage while it was extended.
  struct Exclusions {
    PartitionPotential own;     ///< the sum over excluded items
    PartitionPotential shared;  ///< the maximum over excluded items
    /// Least addition to the load by an item that would relieve later stages.
    std::int64_t cheapest_relief = std::numeric_limits<std::int64_t>::max();
  };

  Label* labels(Index set) { return labels_.data() + to_index(set) * host_counts_; }
  void bound_hosts();
  /// Below the threshold; 1 in place of 0, to divide by it.
  std::int64_t largest_load() const { return std::max<std::int64_t>(1, threshold_ - 1); }
  std::int64_t accelerators_needed(Index set, std::size_t hosts_left) const;
  bool is_dominated(Index set, std::size_t hosts);
  void drop_hopeless(Index set);
  void enter(Index set);
  void extend_on_accelerator(Index set, std::size_t first, std::size_t last, Exclusions exclusions);
  bool is_hopeless(Index set, const Exclusions& exclusions) const;
  void extend_on_host(Index set, std::size_t first, std::size_t last, std::int64_t time);
  void record(Index set, std::int64_t load, bool on_host);
  std::size_t push_enabled(Index item);
  bool would_relieve_later_stages(Index item) const;
  void add_to_stage(Index item);
  void exclude(Index item, Exclusions& exclusions) const;
  Index step_to(Index set, Index item) const;
  std::vector<LatticeStage> stages() const;

  const std::int64_t threshold_, most_extensions_;
  const PartitionLattice& lattice_;
  const SignalMembers& signals_;
  const std::vector<PartitionItem>& items_;
  const std::size_t host_counts_;
  const bool has_memory_for_all_;
  std::vector<Label> labels_;
  std::int64_t absorbed_by_host_ = 0;  ///< accelerator time that a host saves at most

  // The stage that is extended.
  Index begin_ = 0;
  Index least_accelerators_ = 0;
  std::int64_t fixed_ = 0, transfers_ = 0, memory_ = 0;
  std::int64_t required_time_ = 0;    ///< accelerator time of down-sets that leave enough devices
  std::vector<Index> inside_;         ///< by signal: members in the stage
  std::vector<Index> before_;         ///< by signal: members before the stage
  std::vector<std::uint8_t> in_set_;  ///< by item: before or in the stage
  std::vector<Index> candidates_;
  std::int64_t extensions_ = 0;
};

void ThresholdPass::bound_hosts() {
  double absorbed = 0, best_rate = 0;
  for (const PartitionItem& item : items_) {
    const auto time = static_cast<double>(item.accelerator_time);
    if (item.host_time == 0)
      absorbed += time;
    else
      best_rate = std::max(best_rate, time / static_cast<double>(item.host_time));
  }
  constexpr double kRounding = 1 + 1e-12;
  absorbed = (absorbed + best_rate * static_cast<double>(threshold_)) * kRounding + 1;
  const std::int64_t all = lattice_.of_set.back().time;
  absorbed_by_host_ =
      absorbed < static_cast<double>(all) ? static_cast<std::int64_t>(absorbed) : all;
}

/// A lower bound for what is outside of `set`.
std::int64_t ThresholdPass::accelerators_needed(Index set, std::size_t hosts_left) const {
  std::int64_t work = lattice_.of_set.back().time - lattice_.of_set[to_index(set)].time;
  if (hosts_left == 0)
    work += lattice_.cut[to_index(set)];  // every crossing signal is paid by a later stage
  else
    work -= product_up_to(work, absorbed_by_host_, static_cast<std::int64_t>(hosts_left));
  return divide_up(work, largest_load());
}

/// With one more item in the stages so far, at no more devices, is what follows not slower? The
/// stage that loses the item saves its time, and pays for signals between the item and itself.
bool ThresholdPass::is_dominated(Index set, std::size_t hosts) {
  const Index accelerators = labels(set)[hosts].accelerators;
  for (const DownSetStep& step : lattice_.sets.steps(set)) {
    const Label* larger = labels(step.next);
    for (std::size_t h = 0; h <= hosts; ++h)
      if (larger[h].accelerators <= accelerators &&
          lattice_.cut[to_index(step.next)] <=
              lattice_.cut[to_index(set)] + items_[to_index(step.item)].accelerator_time)
        return true;
  }
  return false;
}

void ThresholdPass::drop_hopeless(Index set) {
  Label* of_set = labels(set);
  Index fewest = kUnreached;
  for (std::size_t h = 0; h < host_counts_; ++h) {
    const Index a = of_set[h].accelerators;
    if (a == kUnreached) continue;
    if (a >= fewest || a + accelerators_needed(set, host_counts_ - 1 - h) > lattice_.accelerators ||
        is_dominated(set, h))
      of_set[h].accelerators = kUnreached;
    else
      fewest = a;
  }
}

void ThresholdPass::enter(Index set) {
  begin_ = set;
  std::fill(in_set_.begin(), in_set_.end(), std::uint8_t{0});
  std::fill(before_.begin(), before_.end(), 0);
  for (std::size_t item = 0; item < items_.size(); ++item)
    if (lattice_.sets.contains(set, static_cast<Index>(item))) {
      in_set_[item] = 1;
      for (const Index signal : signals_.of_item[item]) ++before_[to_index(signal)];
    }
  candidates_.clear();
  for (const DownSetStep& step : lattice_.sets.steps(set)) candidates_.push_back(step.item);
  fixed_ = transfers_ = memory_ = 0;
  // Down-sets with less accelerator time leave too much work.
  required_time_ = std::numeric_limits<std::int64_t>::max();
  for (std::size_t h = 0; h < host_counts_; ++h) {
    const Index a = labels(set)[h].accelerators;
    if (a >= lattice_.accelerators) continue;
    const std::int64_t all = lattice_.of_set.back().time;
    const std::int64_t left =
        product_up_to(all, lattice_.accelerators - a - 1, largest_load()) +
        product_up_to(all, absorbed_by_host_, static_cast<std::int64_t>(host_counts_ - 1 - h));
    required_time_ = std::min(required_time_, all - left);
  }
}

/// Whether no stage that has what it has now and nothing excluded is of use: too much work would be
/// left, or an excluded item could be added too and would relieve later stages.
bool ThresholdPass::is_hopeless(Index set, const Exclusions& exclusions) const {
  PartitionPotential open = lattice_.of_set.back();
  open -= lattice_.of_set[to_index(set)];
  open -= exclusions.own;
  open -= exclusions.shared;
  if (extensions_ >= most_extensions_) return true;
  if (lattice_.of_set[to_index(set)].time + open.time < required_time_) return true;
  return exclusions.cheapest_relief < threshold_ - fixed_ - transfers_ - open.load;
}

/// Whether a later stage with the item is not slower without it; see is_dominated(). If it holds
/// for the stages so far, it holds for all that contain them.
bool ThresholdPass::would_relieve_later_stages(Index item) const {
  std::int64_t saved = items_[to_index(item)].accelerator_time;
  for (const Index signal : signals_.of_item[to_index(item)]) {
    const Index others = before_[to_index(signal)] + inside_[to_index(signal)];
    if (others == 0) saved -= signals_.time[to_index(signal)];
    if (to_index(others) + 1 == signals_.members[to_index(signal)].size())
      saved += signals_.time[to_index(signal)];
  }
  return saved >= 0;
}

std::size_t ThresholdPass::push_enabled(Index item) {
  for (const Index reader : lattice_.items->after[to_index(item)]) {
    const auto& needed = lattice_.items->before[to_index(reader)];
    if (std::all_of(needed.begin(), needed.end(),
                    [&](Index i) { return in_set_[to_index(i)] != 0; }))
      candidates_.push_back(reader);
  }
  return candidates_.size();
}

void ThresholdPass::record(Index set, std::int64_t load, bool on_host) {
  const Label* of_begin = labels(begin_);
  Label* of_set = labels(set) + (on_host ? 1 : 0);
  for (std::size_t h = 0; h + (on_host ? 1 : 0) < host_counts_; ++h) {
    if (of_begin[h].accelerators == kUnreached) continue;
    const Label label{.accelerators = of_begin[h].accelerators + (on_host ? 0 : 1),
                      .from = begin_,
                      .on_host = on_host,
                      .load = std::max(of_begin[h].load, load)};
    if (label.is_better_than(of_set[h])) of_set[h] = label;
  }
}

/// Visits the useful down-sets that contain `set`, have none of the candidates before `first`, and
/// end a stage below the threshold: each once.
void ThresholdPass::extend_on_accelerator(Index set, std::size_t first, std::size_t last,
                                          Exclusions exclusions) {
  for (std::size_t c = first; c < last && !is_hopeless(set, exclusions); ++c) {
    const Index item = candidates_[c];
    const PartitionItem& added = items_[to_index(item)];
    if (added.runs_on_accelerator && memory_ + added.memory <= lattice_.accelerator_memory) {
      const std::int64_t old_fixed = fixed_, old_transfers = transfers_;
      add_to_stage(item);
      if (fixed_ < threshold_) {
        ++extensions_;
        memory_ += added.memory;
        in_set_[to_index(item)] = 1;
        const Index next = step_to(set, item);
        if (fixed_ + transfers_ < threshold_) record(next, fixed_ + transfers_, false);
        extend_on_accelerator(next, c + 1, push_enabled(item), exclusions);
        candidates_.resize(last);
        in_set_[to_index(item)] = 0;
        memory_ -= added.memory;
      }
      fixed_ = old_fixed;
      transfers_ = old_transfers;
      for (const Index signal : signals_.of_item[to_index(item)]) --inside_[to_index(signal)];
    }
    exclude(item, exclusions);
  }
}

Index ThresholdPass::step_to(Index set, Index item) const {
  for (const DownSetStep& step : lattice_.sets.steps(set))
    if (step.item == item) return step.next;
  MW_CHECK(false);
  return -1;
}

void ThresholdPass::add_to_stage(Index item) {
  fixed_ += items_[to_index(item)].accelerator_time;
  for (const Index signal : signals_.of_item[to_index(item)]) {
    const std::int64_t time = signals_.time[to_index(signal)];
    const Index count = ++inside_[to_index(signal)];
    if (count == 1) (before_[to_index(signal)] > 0 ? fixed_ : transfers_) += time;
    if (before_[to_index(signal)] == 0 &&
        to_index(count) == signals_.members[to_index(signal)].size())
      transfers_ -= time;
  }
}

void ThresholdPass::exclude(Index item, Exclusions& exclusions) const {
  const PartitionDependents& dependents = lattice_.dependents[to_index(item)];
  exclusions.own += dependents.own;
  exclusions.shared.time = std::max(exclusions.shared.time, dependents.shared.time);
  exclusions.shared.load = std::max(exclusions.shared.load, dependents.shared.load);
  exclusions.shared.memory = std::max(exclusions.shared.memory, dependents.shared.memory);
  if (items_[to_index(item)].runs_on_accelerator && has_memory_for_all_ &&
      would_relieve_later_stages(item))
    exclusions.cheapest_relief =
        std::min(exclusions.cheapest_relief, lattice_.of_item[to_index(item)].load);
}

void ThresholdPass::extend_on_host(Index set, std::size_t first, std::size_t last,
                                   std::int64_t time) {
  for (std::size_t c = first; c < last; ++c) {
    const Index item = candidates_[c];
    const std::int64_t longer = time + items_[to_index(item)].host_time;
    if (longer >= threshold_) continue;
    ++extensions_;
    in_set_[to_index(item)] = 1;
    const Index next = step_to(set, item);
    record(next, longer, true);
    const std::size_t old_size = candidates_.size();
    extend_on_host(next, c + 1, push_enabled(item), longer);
    candidates_.resize(old_size);
    in_set_[to_index(item)] = 0;
  }
}

std::vector<LatticeStage> ThresholdPass::stages() const {
  std::size_t hosts = 0;
  auto set = static_cast<Index>(lattice_.sets.size() - 1);
  while (labels_[to_index(set) * host_counts_ + hosts].accelerators > lattice_.accelerators) {
    if (++hosts == host_counts_) return {};
  }
  std::vector<LatticeStage> result;
  while (set != 0) {
    const Label& label = labels_[to_index(set) * host_counts_ + hosts];
    result.push_back({label.from, set, label.on_host});
    if (label.on_host) --hosts;
    set = label.from;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

std::vector<LatticeStage> ThresholdPass::run() {
  if (threshold_ <= 0) return {};
  labels(0)[0].accelerators = 0;
  const auto full = static_cast<Index>(lattice_.sets.size() - 1);
  for (Index set = 0; set < full && extensions_ < most_extensions_; ++set) {
    Label* of_set = labels(set);
    if (std::all_of(of_set, of_set + host_counts_,
                    [](const Label& l) { return l.accelerators == kUnreached; }))
      continue;
    drop_hopeless(set);
    bool on_accelerator = false, on_host = false;
    for (std::size_t h = 0; h < host_counts_; ++h)
      if (of_set[h].accelerators != kUnreached) {
        on_accelerator |= of_set[h].accelerators < lattice_.accelerators;
        on_host |= h + 1 < host_counts_;
      }
    if (!on_accelerator && !on_host) continue;
    enter(set);
    const std::size_t count = candidates_.size();
    if (on_accelerator) extend_on_accelerator(set, 0, count, {});
    if (on_host) extend_on_host(set, 0, count, 0);
  }
  return stages();
}

}  // namespace

std::optional<std::vector<LatticeStage>> find_partition_below(std::int64_t threshold,
                                                              const PartitionLattice& lattice,
                                                              const SignalMembers& signals,
                                                              std::int64_t most_extensions,
                                                              std::int64_t& extensions) {
  ThresholdPass pass(threshold, lattice, signals, most_extensions - extensions);
  std::vector<LatticeStage> stages = pass.run();
  extensions += pass.extensions();
  if (extensions >= most_extensions) return std::nullopt;
  return stages;
}

}  // namespace meshwright
