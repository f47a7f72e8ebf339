#include "planner/synthesis/schedule_justification.hpp"

#include <utility>

namespace meshwright {
namespace {
constexpr std::uint32_t kOneIn = 20;  ///< fraction of operations moved
constexpr std::int64_t kReach = 2;    ///< maximum shift, in mean durations
}  // namespace

JustificationWalk::JustificationWalk(const OperationNetwork& network,
                                     const OperationNetwork& reversed_network)
    : network_(network),
      reversed_(reversed_network),
      builder_(network),
      reversed_builder_(reversed_network),
      keys_(static_cast<std::size_t>(network.size())) {
  for (const Ticks duration : network.duration) mean_duration_ += duration.value;
  mean_duration_ /= network.size();
}

void JustificationWalk::disturb(const Starts& starts) {
  constexpr std::int64_t kParts = 1024;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    keys_[i] = starts[i].value;
    if (random() % kOneIn == 0)
      keys_[i] += kReach * mean_duration_ / kParts *
                  (static_cast<std::int64_t>(random() % (2 * kParts)) - kParts);
  }
}

Starts JustificationWalk::improve(Starts best, const WalkLimits& limits) {
  const std::int64_t last_step = steps_ + limits.most_steps;
  Ticks best_value = objective_of(network_, best), value = best_value;
  Starts current = best;
  while (best_value > limits.goal && steps_ < last_step) {
    ++steps_;
    const bool backwards = random() % 2 == 0;
    const OperationNetwork& here = backwards ? reversed_ : network_;
    const OperationNetwork& there = backwards ? network_ : reversed_;
    disturb(backwards ? mirrored(network_, current) : current);
    const Starts packed =
        mirrored(here, (backwards ? reversed_builder_ : builder_).insert_by(keys_));
    for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = packed[i].value;
    Starts next = (backwards ? builder_ : reversed_builder_).insert_by(keys_);
    const Ticks next_value = objective_of(there, next);
    if (next_value > value) continue;
    value = next_value;
    current = backwards ? std::move(next) : mirrored(reversed_, next);
    if (value < best_value) {
      best_value = value;
      best = current;
    }
  }
  return best;
}

}  // namespace meshwright
