#include "core/cost/cost_model.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// A sequence of kernels with their launches: the longest paths from the start on the device or of
/// launching (since_launch) to the end on the device, and to the end of launching; see WorkPrice.
struct Launched {
  Ticks device, host, since_launch;
  std::optional<Ticks> host_since_start = std::nullopt;
};
/// The host waits for the device.
constexpr Launched kSynchronization{
    .device = Ticks(), .host = Ticks(), .since_launch = Ticks(), .host_since_start = Ticks()};

Launched in_sequence(const Launched& first, const Launched& second) {
  Launched both = {.device = first.device + second.device,
                   .host = first.host + second.host,
                   .since_launch = std::max(first.since_launch + second.device,
                                            first.host + second.since_launch)};
  if (second.host_since_start) {
    both.host = std::max(both.host, first.since_launch + *second.host_since_start);
    both.host_since_start = first.device + *second.host_since_start;
  }
  if (first.host_since_start) {
    both.device = std::max(both.device, *first.host_since_start + second.since_launch);
    both.host_since_start =
        std::max(both.host_since_start.value_or(Ticks()), *first.host_since_start + second.host);
  }
  return both;
}
/// `count` >= 1 times in sequence. Without synchronization the longest path crosses from host to
/// device in the first or the last repetition.
Launched repeated(Launched once, std::int64_t count) {
  if (once.host_since_start) {
    Launched all = once;
    for (--count; count > 0; count /= 2, once = in_sequence(once, once))
      if (count % 2 == 1) all = in_sequence(all, once);
    return all;
  }
  return {.device = once.device * count,
          .host = once.host * count,
          .since_launch = once.since_launch + std::max(once.device, once.host) * (count - 1)};
}

/// Cost components of one part; `total` is their sum.
struct PartPrice {
  Ticks total;
  std::array<Ticks, kKernelKindCount> kernels{};
  Ticks recompute;
  std::array<Ticks, kAxisCount> communication{};
  Flops flops;
  Launched launched;
};

/// FLOPs of a kernel for HFU. As for MFU, all attention scores count, masked or not, so that the
/// two differ only by recomputation (Korthikanti et al., arXiv 2205.05198, appendix A). For fused
/// attention see core/operators/attention.cpp.
Flops counted_flops(const Kernel& kernel) {
  if (kernel.kind != KernelKind::kAttention) return kernel.flops;
  const auto key = static_cast<double>(kernel.k), value = static_cast<double>(kernel.value_size);
  const double products = kernel.phase == Phase::kForward ? key + value : 3 * key + 2 * value;
  return Flops(2.0 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
               static_cast<double>(kernel.n) * products);
}

bool is_kernel(const Step& step) { return std::holds_alternative<Kernel>(step); }

/// Duration of the kernels in a collective's Overlap; each kernel is used by one collective only.
Ticks kernels_beside(const WorkPart& part, std::size_t at, const std::vector<Ticks>& times,
                     std::vector<bool>& claimed) {
  const int count = std::get<Collective>(part.steps[at]).overlap.kernels;
  const int direction = count > 0 ? 1 : -1;
  Ticks sum;
  auto step = static_cast<std::ptrdiff_t>(at);
  for (int left = std::abs(count); left > 0; --left) {
    step += direction;
    const auto i = static_cast<std::size_t>(step);
    MW_CHECK(step >= 0 && i < part.steps.size());
    MW_CHECK(is_kernel(part.steps[i]));
    MW_CHECK(!claimed[i]);
    claimed[i] = true;
    sum += times[i];
  }
  return sum;
}

/// Exposed time of a collective; see Overlap.
Ticks visible(Ticks collective, Ticks kernels, int pieces) {
  const Ticks hidden = pieces > 0 ? kernels - kernels / pieces : kernels;
  return std::max(Ticks(), collective - hidden);
}

bool blocks(const Collective& collective) {
  return collective.overlap.kernels == 0 && !collective.overlap.other_microbatch;
}

/// Replaces the times of collectives that overlap with another micro-batch by their exposed times.
void hide_beside_other_microbatch(const WorkPart& part, const std::vector<bool>& claimed,
                                  const CostModel& cost_model, std::vector<Ticks>& times) {
  Ticks left;
  for (std::size_t i = 0; i < times.size(); ++i)
    if (is_kernel(part.steps[i]) && !claimed[i]) left += times[i];
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto* collective = std::get_if<Collective>(&part.steps[i]);
    if (collective == nullptr || !collective->overlap.other_microbatch) continue;
    const Ticks taken =
        to_ticks(cost_model.multiprocessor_share_of(*collective) * to_seconds(times[i]));
    const Ticks done = std::min(left, times[i] - taken);
    left -= done;
    times[i] -= done;
  }
}

/// Parts of the backward pass without recomputation hold no forward kernels.
bool is_backward(const WorkPart& part) {
  for (const Step& step : part.steps)
    if (const auto* kernel = std::get_if<Kernel>(&step)) return kernel->phase != Phase::kForward;
  return false;
}

Seconds launch_time(const Step& step, const HostTimes& host, const CostModel& cost_model) {
  if (const auto* kernel = std::get_if<Kernel>(&step))
    return cost_model.launches_of(*kernel) * host.per_kernel;
  return host.per_collective;
}

PartPrice price_of(const WorkPart& part, const CostModel& cost_model) {
  PartPrice price;
  const HostTimes host = cost_model.host_times();
  const Ticks layer =
      to_ticks(is_backward(part) ? host.per_layer_backward : host.per_layer_forward);
  price.launched = {.device = Ticks(), .host = layer, .since_launch = layer};
  const std::vector<Ticks> times = price_steps(part, cost_model);
  const std::vector<Ticks> waits = waits_of_steps(part, times, cost_model);
  for (std::size_t i = 0; i < part.steps.size(); ++i) {
    const Ticks time = times[i] + waits[i];
    if (const auto* kernel = std::get_if<Kernel>(&part.steps[i])) {
      if (host.reads_counts && kernel->needs_counts)
        price.launched = in_sequence(price.launched, kSynchronization);
      if (part.recompute)
        price.recompute += time;
      else
        price.kernels[static_cast<std::size_t>(kernel->kind)] += time;
      price.flops += counted_flops(*kernel);
    } else {
      const Collective& collective = std::get<Collective>(part.steps[i]);
      price.communication[static_cast<std::size_t>(collective.axis)] += time;
    }
    price.total += time;
    const Ticks launch = to_ticks(launch_time(part.steps[i], host, cost_model));
    price.launched = in_sequence(price.launched,
                                 {.device = time, .host = launch, .since_launch = launch + time});
  }
  return price;
}

void add(const PartPrice& part, std::int32_t count, WorkPrice& work) {
  const Launched all = in_sequence({.device = work.duration + work.stalls,
                                    .host = work.host,
                                    .since_launch = work.since_launch,
                                    .host_since_start = work.host_since_start},
                                   repeated(part.launched, count));
  work.host = all.host;
  work.since_launch = all.since_launch;
  work.host_since_start = all.host_since_start;
  work.duration += part.total * std::int64_t{count};
  work.stalls = all.device - work.duration;
  work.recompute += part.recompute * std::int64_t{count};
  work.flops += part.flops * static_cast<double>(count);
  for (std::size_t i = 0; i < part.kernels.size(); ++i)
    work.kernels[i] += part.kernels[i] * std::int64_t{count};
  for (std::size_t i = 0; i < part.communication.size(); ++i)
    work.communication[i] += part.communication[i] * std::int64_t{count};
}

/// The optimizer's launches follow the gradient norm, which the host reads.
void start_launching(TaskKind kind, const HostTimes& host, WorkPrice& price) {
  const bool updates = kind == TaskKind::kOptimizer;
  price.host = to_ticks(updates ? host.per_step : host.per_pass);
  price.since_launch = price.host;
  price.launch_waits = host.messages_block || (updates && host.per_kernel > Seconds(0.0));
}

WorkPrice price_of(const Work& work, const std::vector<PartPrice>& parts,
                   const CostModel& cost_model) {
  WorkPrice price;
  switch (work.kind) {
    case TaskKind::kCollective:
      price.duration = to_ticks(cost_model.time_of(work.collective));
      price.communication[static_cast<std::size_t>(work.collective.axis)] = price.duration;
      break;
    case TaskKind::kSend: {
      const TransferCost cost = cost_model.cost_of(work.transfer);
      price.duration = to_ticks(cost.occupancy);
      price.latency = to_ticks(cost.latency);
      price.communication[static_cast<std::size_t>(work.transfer.axis)] = price.duration;
      break;
    }
    case TaskKind::kReceive:
      break;  // ends when its message arrives
    case TaskKind::kForward:
    case TaskKind::kBackward:
    case TaskKind::kBackwardInput:
    case TaskKind::kBackwardWeight:
    case TaskKind::kOptimizer:
      start_launching(work.kind, cost_model.host_times(), price);
      for (const WorkPartUse& use : work.parts)
        add(parts[static_cast<std::size_t>(use.part)], use.count, price);
      break;
  }
  return price;
}

}  // namespace

std::vector<Ticks> price_steps(const WorkPart& part, const CostModel& cost_model) {
  std::vector<Ticks> times;
  times.reserve(part.steps.size());
  for (const Step& step : part.steps)
    times.push_back(to_ticks(
        std::visit([&](const auto& s) -> Seconds { return cost_model.time_of(s); }, step)));
  std::vector<bool> claimed(part.steps.size(), false);
  for (std::size_t i = 0; i < part.steps.size(); ++i)
    if (const auto* collective = std::get_if<Collective>(&part.steps[i]);
        collective != nullptr && collective->overlap.kernels != 0)
      times[i] =
          visible(times[i], kernels_beside(part, i, times, claimed), collective->overlap.pieces);
  hide_beside_other_microbatch(part, claimed, cost_model, times);
  return times;
}

std::vector<Ticks> waits_of_steps(const WorkPart& part, const std::vector<Ticks>& times,
                                  const CostModel& cost_model) {
  std::vector<Ticks> waits(part.steps.size());
  Ticks since_meeting;
  for (std::size_t i = 0; i < part.steps.size(); ++i) {
    const auto* collective = std::get_if<Collective>(&part.steps[i]);
    if (collective == nullptr) {
      since_meeting += times[i];
      continue;
    }
    if (blocks(*collective))
      waits[i] = to_ticks(cost_model.wait_of(collective->group.ranks, to_seconds(since_meeting)));
    since_meeting = Ticks();
  }
  return waits;
}

std::vector<WorkPrice> price_works(const std::vector<WorkPart>& parts,
                                   const std::vector<Work>& works, const CostModel& cost_model) {
  std::int32_t last_kind = -1;
  for (const Work& work : works) last_kind = std::max(last_kind, work.node_kind);
  std::vector<WorkPrice> prices(works.size());
  std::vector<PartPrice> part_prices;
  for (std::int32_t kind = -1; kind <= last_kind; ++kind) {
    const CostModel& on_kind = cost_model.on_nodes(kind);
    std::vector<bool> used(parts.size(), false);
    for (const Work& work : works)
      if (work.node_kind == kind)
        for (const WorkPartUse& use : work.parts) used[static_cast<std::size_t>(use.part)] = true;
    part_prices.assign(parts.size(), {});
    for (std::size_t p = 0; p < parts.size(); ++p)
      if (used[p]) part_prices[p] = price_of(parts[p], on_kind);
    for (std::size_t w = 0; w < works.size(); ++w)
      if (works[w].node_kind == kind) prices[w] = price_of(works[w], part_prices, on_kind);
  }
  return prices;
}

}  // namespace meshwright
