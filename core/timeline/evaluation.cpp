#include "core/timeline/evaluation.hpp"

#include <algorithm>
#include <functional>

#include "core/base/check.hpp"
#include "core/base/value_named.hpp"

namespace meshwright {
namespace {

template <std::size_t N>
Ticks sum(const std::array<Ticks, N>& parts) {
  Ticks ticks;
  for (const Ticks part : parts) ticks += part;
  return ticks;
}

/// Mean of `part` over ranks, weighted by multiplicity, as a share of the step.
template <class Part>
double share(const Evaluation& evaluation, Part part) {
  if (evaluation.step_time <= Ticks(0)) return 0;
  double weighted = 0;
  double ranks = 0;
  for (std::size_t r = 0; r < evaluation.ranks.size(); ++r) {
    const double multiplicity = evaluation.multiplicity[r];
    weighted += multiplicity * ratio(part(evaluation.ranks[r]), evaluation.step_time);
    ranks += multiplicity;
  }
  return ranks > 0 ? weighted / ranks : 0;
}

}  // namespace

std::string_view name_of(BubbleCause cause) {
  constexpr std::array<std::string_view, kBubbleCauseCount> kNames{"warm-up", "drain", "dependency",
                                                                   "imbalance"};
  return entry_of(kNames, cause);
}

Ticks total(const RankBreakdown& b) {
  return sum(b.compute) + b.recompute + b.optimizer + b.launch + sum(b.exposed_communication) +
         sum(b.bubble);
}

Bytes memory_capacity_of(const Evaluation& evaluation, std::size_t rank) {
  return evaluation.memory_capacities.empty() ? evaluation.memory_capacity
                                              : evaluation.memory_capacities[rank];
}

std::size_t fullest_rank(const Evaluation& evaluation) {
  const auto headroom = [&](std::size_t rank) {
    return memory_capacity_of(evaluation, rank) - total(evaluation.peak_memory[rank]);
  };
  std::size_t fullest = 0;
  for (std::size_t rank = 1; rank < evaluation.peak_memory.size(); ++rank)
    if (headroom(rank) < headroom(fullest)) fullest = rank;
  return fullest;
}

Bytes peak_memory(const Evaluation& evaluation) {
  return evaluation.peak_memory.empty() ? Bytes()
                                        : total(evaluation.peak_memory[fullest_rank(evaluation)]);
}

Bytes peak_allocated_memory(const Evaluation& evaluation) {
  Bytes peak;
  for (const MemoryAmounts& amounts : evaluation.peak_memory)
    peak = std::max(peak, allocated_bytes(amounts));
  return peak;
}

Bytes peak_reserved_memory(const Evaluation& evaluation) {
  Bytes peak;
  for (std::size_t r = 0; r < evaluation.peak_memory.size(); ++r)
    peak = std::max(
        peak, allocated_bytes(evaluation.peak_memory[r]) +
                  (evaluation.allocator_slack.empty() ? Bytes(0) : evaluation.allocator_slack[r]));
  return peak;
}

bool fits_in_memory(const Evaluation& evaluation) {
  return peak_memory(evaluation) <= memory_capacity_of(evaluation, fullest_rank(evaluation));
}

double exposed_communication_share(const Evaluation& evaluation, Axis axis) {
  return share(evaluation, [axis](const RankBreakdown& b) {
    return b.exposed_communication[static_cast<std::size_t>(axis)];
  });
}

double bubble_share(const Evaluation& evaluation, BubbleCause cause) {
  return share(evaluation, [cause](const RankBreakdown& b) {
    return b.bubble[static_cast<std::size_t>(cause)];
  });
}

double compute_share(const Evaluation& evaluation) {
  return share(evaluation, [](const RankBreakdown& b) {
    return sum(b.compute) + b.recompute + b.optimizer + b.launch;
  });
}

StepShares step_shares(const Evaluation& evaluation) {
  StepShares shares;
  for (std::size_t kind = 0; kind < shares.compute.size(); ++kind)
    shares.compute[kind] =
        share(evaluation, [kind](const RankBreakdown& b) { return b.compute[kind]; });
  shares.recompute = share(evaluation, [](const RankBreakdown& b) { return b.recompute; });
  shares.optimizer = share(evaluation, [](const RankBreakdown& b) { return b.optimizer; });
  shares.launch = share(evaluation, [](const RankBreakdown& b) { return b.launch; });
  for (std::size_t axis = 0; axis < shares.exposed_communication.size(); ++axis)
    shares.exposed_communication[axis] =
        share(evaluation, [axis](const RankBreakdown& b) { return b.exposed_communication[axis]; });
  for (std::size_t cause = 0; cause < shares.bubble.size(); ++cause)
    shares.bubble[cause] =
        share(evaluation, [cause](const RankBreakdown& b) { return b.bubble[cause]; });
  return shares;
}

RankBreakdown mean_breakdown(const Evaluation& evaluation) {
  RankBreakdown mean;
  std::int64_t ranks = 0;
  for (const int multiplicity : evaluation.multiplicity) ranks += multiplicity;
  if (ranks == 0) return mean;
  struct Part {
    Ticks* mean;
    std::int64_t remainder = 0;  // in 1 / ranks of a Tick
  };
  std::vector<Part> parts;
  visit_parts(mean, [&](const std::string&, Ticks& part) { parts.push_back({.mean = &part}); });
  // Sums of time x ranks would overflow: quotients and remainders are added up apart.
  for (std::size_t r = 0; r < evaluation.ranks.size(); ++r) {
    const std::int64_t multiplicity = evaluation.multiplicity[r];
    std::size_t i = 0;
    visit_parts(evaluation.ranks[r], [&](const std::string&, Ticks time) {
      parts[i].mean->value += time.value / ranks * multiplicity;
      parts[i++].remainder += time.value % ranks * multiplicity;
    });
  }
  for (Part& part : parts) {
    part.mean->value += part.remainder / ranks;
    part.remainder %= ranks;
  }
  std::ranges::stable_sort(parts, std::ranges::greater(), &Part::remainder);
  const Ticks left = evaluation.step_time - total(mean);
  MW_CHECK(left >= Ticks(0));
  MW_CHECK(left.value < static_cast<std::int64_t>(parts.size()));
  for (std::int64_t i = 0; i < left.value; ++i)
    *parts[static_cast<std::size_t>(i)].mean += Ticks(1);
  return mean;
}

}  // namespace meshwright
