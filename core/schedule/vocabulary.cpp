/// 1F1B with the output layer split over the devices (Yeung et al., "Balancing Pipeline Parallelism
/// with Vocabulary Parallelism", arXiv:2411.05288). After the last stage has finished the forward
/// of a micro-batch, every device computes its shard of the logits (S), and after a barrier its
/// shard of the gradients (T). The first backward waits for
///
///   Vocab-2: one barrier, because S also computes the input gradient; T may come later
///   Vocab-1: two barriers, after S and after T
///
/// Every device repeats a block of length I = F + B + 2 g, with gaps g = (S + T) / 2 after F and
/// after B that hold S and T in either order:
///
///   | F |gap| B |gap| F |gap| B |gap|          stage d starts F at d (F + g),
///                                              B at (p-1) (F + g) + F + g + b I + (p-1-d) (B + g)
///
/// The offsets F + g and B + g between neighbors add up to I, so the gaps are at the same positions
/// in the blocks of all devices. S takes the first gap after the end of the last stage's forward; T
/// the first gap of the other kind one block later. A barrier therefore costs one block: b blocks
/// pass before the first backward, and min(m, p - d + b) micro-batches are held. Only the order is
/// taken from this timetable; if stages differ, it uses the slowest pass of each kind.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/schedule/generators.hpp"

namespace meshwright {
namespace {

/// The timetable in half Ticks, so that (S + T) / 2 is an integer.
struct Block {
  std::int64_t forward, backward, gap;
  std::int64_t length() const { return forward + backward + 2 * gap; }
  std::int64_t forward_hop() const { return forward + gap; }
  std::int64_t backward_hop() const { return backward + gap; }
};

/// At least one, so that two passes never start at the same time.
std::int64_t longest(const std::vector<Ticks>& times) {
  std::int64_t most = 1;
  for (const Ticks time : times) most = std::max(most, time.value);
  return most;
}

Block block_of(const ScheduleRequest& request) {
  if (!request.times) return {.forward = 2, .backward = 4, .gap = 2};  // all passes equal
  const StageTimes& times = *request.times;
  std::vector<Ticks> backward = times.backward_input;
  for (std::size_t s = 0; s < backward.size(); ++s) backward[s] += times.backward_weight[s];
  return {.forward = 2 * longest(times.forward),
          .backward = 2 * longest(backward),
          .gap = longest(times.output_scores) + longest(times.output_gradients)};
}

/// The smallest base + k * period (k may be negative) that is at least `time`.
std::int64_t first_from(std::int64_t time, std::int64_t base, std::int64_t period) {
  std::int64_t offset = (base - time) % period;
  if (offset < 0) offset += period;
  return time + offset;
}

/// Starts of the passes of micro-batch 0; those of micro-batch j are j blocks later.
struct FirstStarts {
  std::int64_t forward, backward, scores, gradient;
};

FirstStarts first_starts(const Block& block, int device, int devices, int barriers) {
  const std::int64_t length = block.length();
  const std::int64_t last_forward_end = (devices - 1) * block.forward_hop() + block.forward;
  FirstStarts starts{};
  starts.forward = device * block.forward_hop();
  starts.backward = last_forward_end + block.gap + barriers * length +
                    (devices - 1 - device) * block.backward_hop();
  const std::int64_t after_forward = starts.forward + block.forward;
  const std::int64_t after_backward = starts.backward + block.backward;
  const std::int64_t one = first_from(last_forward_end, after_forward, length);
  const std::int64_t other = first_from(last_forward_end, after_backward, length);
  starts.scores = std::min(one, other);
  starts.gradient =
      first_from(last_forward_end + length, one <= other ? after_backward : after_forward, length);
  return starts;
}

std::vector<Action> order_of(const FirstStarts& starts, std::int64_t block_length, int device,
                             int microbatches) {
  struct Start {
    std::int64_t time;
    Action action;
  };
  std::vector<Start> passes;
  passes.reserve(4 * static_cast<std::size_t>(microbatches));
  for (int j = 0; j < microbatches; ++j) {
    const auto add = [&](std::int64_t start, Pass pass) {
      passes.push_back({start + j * block_length, {StageId(device), pass, MicrobatchId(j)}});
    };
    add(starts.forward, Pass::kForward);
    add(starts.scores, Pass::kOutputScores);
    add(starts.gradient, Pass::kOutputGradient);
    add(starts.backward, Pass::kBackward);
  }
  std::sort(passes.begin(), passes.end(),
            [](const Start& a, const Start& b) { return a.time < b.time; });
  std::vector<Action> order;
  order.reserve(passes.size());
  for (const Start& pass : passes) order.push_back(pass.action);
  return order;
}

Schedule vocabulary_schedule(const ScheduleRequest& request, std::string name, int barriers) {
  Schedule schedule =
      empty_schedule(std::move(name), looped_placement(request.devices, 1), request.microbatches);
  schedule.output_barriers = barriers;
  const Block block = block_of(request);
  for (int d = 0; d < request.devices; ++d)
    schedule.orders[static_cast<std::size_t>(d)] = order_of(
        first_starts(block, d, request.devices, barriers), block.length(), d, request.microbatches);
  return schedule;
}

}  // namespace

Schedule generate_vocab_1f1b(const ScheduleRequest& request) {
  return vocabulary_schedule(request, "vocab-1f1b", 1);
}

Schedule generate_vocab_1_1f1b(const ScheduleRequest& request) {
  return vocabulary_schedule(request, "vocab-1-1f1b", 2);
}

}  // namespace meshwright
