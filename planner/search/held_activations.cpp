#include "planner/search/held_activations.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace meshwright {
namespace {

using OfStage = HeldActivations::OfStage;

void apply(Pass pass, OfStage& held) {
  if (pass == Pass::kForward) ++held.whole;
  if (pass == Pass::kBackward || pass == Pass::kBackwardInput) --held.whole;
  if (pass == Pass::kBackwardInput) ++held.to_weight;
  if (pass == Pass::kBackwardWeight) --held.to_weight;
}

/// What ranks hold when `value_of` the sum over their stages is largest.
template <class ValueOf>
HeldActivations held_when_largest(const Schedule& schedule, const ValueOf& value_of) {
  const auto& device_of_stage = schedule.placement.device_of_stage;
  HeldActivations held{.of_stage = std::vector<OfStage>(device_of_stage.size()),
                       .of_any = std::vector<double>(schedule.orders.size())};
  std::vector<OfStage> now(device_of_stage.size());
  for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
    std::vector<std::size_t> stages;
    for (std::size_t s = 0; s < device_of_stage.size(); ++s)
      if (device_of_stage[s].index() == rank) stages.push_back(s);
    OfStage all;
    auto most = value_of(all);
    for (const Action& action : schedule.orders[rank]) {
      for (OfStage* changed : {&now[action.stage.index()], &all}) apply(action.pass, *changed);
      if (value_of(all) <= most) continue;
      most = value_of(all);
      for (const std::size_t s : stages) held.of_stage[s] = now[s];
    }
  }
  return held;
}

}  // namespace

std::vector<HeldActivations> held_at_peaks(const Schedule& schedule) {
  const auto splits = [](const std::vector<Action>& order) {
    return std::ranges::find(order, Pass::kBackwardInput, &Action::pass) != order.end();
  };
  std::vector<HeldActivations> held;
  const auto add = [&](auto value_of) { held.push_back(held_when_largest(schedule, value_of)); };
  add([](const OfStage& all) { return all.whole + all.to_weight; });
  if (!std::ranges::any_of(schedule.orders, splits)) return held;
  add([](const OfStage& all) { return std::pair(all.whole + all.to_weight, all.to_weight); });
  add([](const OfStage& all) { return all.whole; });
  add([](const OfStage& all) { return all.to_weight; });
  return held;
}

std::vector<Bytes> bytes_of(const HeldActivations& held, const Placement& placement,
                            std::span<const SavedBytes> saved) {
  struct OfRank {
    Bytes sum, least = Bytes::max(), most;
  };
  std::vector<OfRank> ranks(held.of_any.size());
  for (std::size_t s = 0; s < saved.size(); ++s) {
    const std::size_t place = placement.device_of_stage[s].index();
    OfRank& rank = ranks[place];
    if (held.of_stage[s].whole > 0 && held.of_any[place] >= 0) rank.sum += saved[s].shared;
    rank.sum += saved[s].whole * std::int64_t{held.of_stage[s].whole} +
                saved[s].to_weight * std::int64_t{held.of_stage[s].to_weight};
    rank.least = std::min({rank.least, saved[s].whole, saved[s].to_weight});
    rank.most = std::max({rank.most, saved[s].whole, saved[s].to_weight});
  }
  std::vector<Bytes> bytes;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const double further = held.of_any[r];
    const Bytes of_each = further < 0 ? ranks[r].most : ranks[r].least;
    const double all = std::floor(further * static_cast<double>(of_each.value));
    bytes.push_back(further == 0 ? ranks[r].sum
                                 : ranks[r].sum + Bytes(static_cast<std::int64_t>(all)));
  }
  return bytes;
}

std::vector<Bytes> most_bytes_of(std::span<const HeldActivations> moments,
                                 const Placement& placement, std::span<const SavedBytes> saved) {
  std::vector<Bytes> most;
  for (const HeldActivations& held : moments) {
    const std::vector<Bytes> bytes = bytes_of(held, placement, saved);
    most.resize(bytes.size());
    for (std::size_t rank = 0; rank < bytes.size(); ++rank)
      most[rank] = std::max(most[rank], bytes[rank]);
  }
  return most;
}

}  // namespace meshwright
