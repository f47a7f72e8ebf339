/// V-Half and V-Min (Qi et al., "Pipeline Parallelism with Controllable Memory", arXiv:2405.15362):
/// two chunks in a V; one block of six unit slots per micro-batch and device is repeated every six
/// slots. Activation lifetimes, and thereby memory, follow from the steps of the block between
/// neighboring devices: four sweeps of one slot per device need a third of the memory of 1F1B
/// (V-Min), steps that add up to six need half of it (V-Half).
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.hpp"
#include "core/schedule/automatic_v.hpp"
#include "core/schedule/generators.hpp"

namespace meshwright {

namespace {

constexpr int kBlock = 6;  ///< F, I and W of two chunks, one slot each

/// Slots between neighboring devices in the four sweeps of a micro-batch through the V, and delay
/// of each sweep in slots.
struct BlockSteps {
  std::array<int, 4> step;
  std::array<int, 4> delay{};
};

/// Slots of the six passes of micro-batch 0 on one device.
struct BlockSlots {
  std::array<int, 2> forward{};
  std::array<int, 2> input{};
  std::array<int, 2> weight{};
  std::array<bool, kBlock> taken{};  ///< by slot modulo the block
};

/// The first slot from `earliest` on that is free in the device's block.
int take_slot(BlockSlots& block, int earliest) {
  int slot = earliest;
  while (block.taken[static_cast<std::size_t>(slot % kBlock)]) ++slot;
  block.taken[static_cast<std::size_t>(slot % kBlock)] = true;
  return slot;
}

/// The four sweeps: forward of chunk 0 down the devices and of chunk 1 up, then the input gradient
/// of chunk 1 down and of chunk 0 up. A pass is delayed if its slot is taken.
std::vector<BlockSlots> place_block(int p, const BlockSteps& steps) {
  std::vector<BlockSlots> blocks(static_cast<std::size_t>(p));
  int ready = 0;
  for (std::size_t sweep = 0; sweep < 4; ++sweep) {
    ready += steps.delay[sweep];
    for (int i = 0; i < p; ++i) {
      BlockSlots& block = blocks[static_cast<std::size_t>(sweep % 2 == 0 ? i : p - 1 - i)];
      const int slot = take_slot(block, ready);
      const std::size_t chunk = sweep == 0 || sweep == 3 ? 0 : 1;
      (sweep < 2 ? block.forward : block.input)[chunk] = slot;
      ready = slot + (i + 1 < p ? steps.step[sweep] : 1);
    }
  }
  for (BlockSlots& block : blocks)
    for (const std::size_t chunk : {1u, 0u})
      block.weight[chunk] = take_slot(block, block.input[chunk] + 1);
  return blocks;
}

/// Peak number of chunk activations of a device in the repeated block. A chunk with a lifetime of l
/// slots is held by l / kBlock micro-batches, rounded up in the slots where two of them overlap.
int most_held(const BlockSlots& block) {
  int most = 0;
  for (int phase = 0; phase < kBlock; ++phase) {
    int held = 0;
    for (std::size_t c = 0; c < 2; ++c) {
      const int life = block.weight[c] + 1 - block.forward[c];
      const int since_forward = ((phase - block.forward[c]) % kBlock + kBlock) % kBlock;
      held += (life - since_forward + kBlock - 1) / kBlock;
    }
    most = std::max(most, held);
  }
  return most;
}

/// Less is better: peak chunk activations over the devices, then the time of one micro-batch.
std::pair<int, int> cost_of(const std::vector<BlockSlots>& blocks) {
  int held = 0;
  for (const BlockSlots& block : blocks) held = std::max(held, most_held(block));
  return {held, blocks.front().weight[0]};
}

/// The best steps and delays depend on p, so all are tried.
std::vector<BlockSlots> best_block(int p, std::span<const std::array<int, 4>> choices) {
  std::vector<BlockSlots> best;
  for (const auto& step : choices)
    for (int delays = 0; delays < kBlock * kBlock * kBlock; ++delays) {
      const std::array<int, 4> delay{0, delays / kBlock / kBlock, delays / kBlock % kBlock,
                                     delays % kBlock};
      auto block = place_block(p, {.step = step, .delay = delay});
      if (best.empty() || cost_of(block) < cost_of(best)) best = std::move(block);
    }
  return best;
}

Schedule repeat_block(std::string name, const ScheduleRequest& request,
                      std::span<const std::array<int, 4>> choices) {
  const int p = request.devices;
  const int m = request.microbatches;
  Schedule schedule = empty_schedule(std::move(name), wave_placement(p, 2), m);
  const std::vector<BlockSlots> blocks = best_block(p, choices);
  struct Timed {
    int slot;
    Action action;
  };
  for (int d = 0; d < p; ++d) {
    const BlockSlots& block = blocks[static_cast<std::size_t>(d)];
    const std::array stages{StageId(d), StageId(2 * p - 1 - d)};
    std::vector<Timed> timed;
    timed.reserve(static_cast<std::size_t>(kBlock) * static_cast<std::size_t>(m));
    for (int mb = 0; mb < m; ++mb)
      for (std::size_t c = 0; c < 2; ++c) {
        const auto add = [&](int slot, Pass pass) {
          timed.push_back({slot + kBlock * mb, {stages[c], pass, MicrobatchId(mb)}});
        };
        add(block.forward[c], Pass::kForward);
        add(block.input[c], Pass::kBackwardInput);
        add(block.weight[c], Pass::kBackwardWeight);
      }
    std::sort(timed.begin(), timed.end(),
              [](const Timed& a, const Timed& b) { return a.slot < b.slot; });
    for (const Timed& t : timed) schedule.orders[static_cast<std::size_t>(d)].push_back(t.action);
  }
  return schedule;
}

}  // namespace

Schedule generate_v_half(const ScheduleRequest& request) {
  constexpr std::array<std::array<int, 4>, 6> kSteps{
      {{2, 1, 1, 2}, {2, 1, 2, 1}, {2, 2, 1, 1}, {1, 2, 1, 2}, {1, 2, 2, 1}, {1, 1, 2, 2}}};
  const int limit = (request.devices + 2) / 2;
  return shortest_v(repeat_block("v-half", request, kSteps), request, limit);
}

Schedule generate_v_min(const ScheduleRequest& request) {
  constexpr std::array<std::array<int, 4>, 1> kSteps{{{1, 1, 1, 1}}};
  const int limit = (request.devices + 4) / 3;
  return shortest_v(repeat_block("v-min", request, kSteps), request, limit);
}

}  // namespace meshwright
