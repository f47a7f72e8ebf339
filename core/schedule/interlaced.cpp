/// 1F1B with a tensor-parallel output layer over all devices that is interlaced with the passes of
/// the transformer layers (nnScaler, Lin et al., OSDI 2024; "interlaced pipeline" in Yeung et al.,
/// arXiv:2411.05288). In every block all devices run S and T of one micro-batch at the same time,
/// with blocking all-reduces, and then one F and one B:
///
///   e = p - 1 - d even   | S T | B | F |        F of micro-batch j in block j - 1 - e / 2
///   e odd                | S T | F | B |        B of micro-batch j in block j + e
///
/// S and T of micro-batch j are in block j. As all devices have the output layer at the same
/// position, neighbors run F and B in opposite orders, and two hops of a micro-batch forward and
/// backward take three blocks: device d holds 1 + ceil(3 e / 2) micro-batches, 1.5 times those of
/// 1F1B.
#include "core/schedule/generators.hpp"

namespace meshwright {
namespace {

std::vector<Action> interlaced_order(int device, int devices, int microbatches) {
  const int remaining = devices - 1 - device;  // e
  const int lead = 1 + remaining / 2;          // blocks from F to the output layer
  std::vector<Action> order;
  order.reserve(4 * static_cast<std::size_t>(microbatches));
  const auto add = [&](Pass pass, int microbatch) {
    if (microbatch >= 0 && microbatch < microbatches)
      order.push_back({StageId(device), pass, MicrobatchId(microbatch)});
  };
  for (int block = -lead; block < microbatches + remaining; ++block) {
    add(Pass::kOutputScores, block);
    add(Pass::kOutputGradient, block);
    if (remaining % 2 == 0) add(Pass::kBackward, block - remaining);
    add(Pass::kForward, block + lead);
    if (remaining % 2 != 0) add(Pass::kBackward, block - remaining);
  }
  return order;
}

}  // namespace

Schedule generate_interlaced_1f1b(const ScheduleRequest& request) {
  Schedule schedule =
      empty_schedule("interlaced-1f1b", looped_placement(request.devices, 1), request.microbatches);
  schedule.output_barriers = 2;
  schedule.output_layer_blocks = true;
  for (int d = 0; d < request.devices; ++d)
    schedule.orders[static_cast<std::size_t>(d)] =
        interlaced_order(d, request.devices, request.microbatches);
  return schedule;
}

}  // namespace meshwright
