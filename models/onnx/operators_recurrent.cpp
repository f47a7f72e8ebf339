#include <algorithm>

#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

/// Gates per unit: LSTM 4, GRU 3, RNN 1.
std::int64_t gate_count(const NodeContext& node) {
  if (node.node().operation == "LSTM") return 4;
  return node.node().operation == "GRU" ? 3 : 1;
}

/// Hidden states times R, step by step; its weight gradient is one product over all steps.
void add_state_products(NodeContext& node, const ProductSize& step, std::int64_t steps) {
  const auto add = [&](const ProductSize& size, Phase phase, std::int64_t pieces,
                       std::int64_t bytes) {
    Kernel made = node.kernel(KernelKind::kGemm, phase);
    made.routine = Routine::kProduct;
    made.batch = size.batch;
    made.m = size.m;
    made.n = size.n;
    made.k = size.k;
    made.pieces = static_cast<int>(pieces);
    made.flops = node.product_flops(size);
    made.memory_traffic = Bytes(bytes);
    phase == Phase::kForward ? node.add_forward(made) : node.add_backward(made);
  };
  const std::int64_t rows = step.m * steps, weights = node.bytes_of_input(2);
  const std::int64_t states = step.batch * rows * (step.k + step.n) * node.element_bytes();
  add({step.batch, rows, step.n, step.k}, Phase::kForward, steps, states + steps * weights);
  if (!node.settings().is_training || !node.any_needs_gradient()) return;
  node.save_output(0);
  add({step.batch, rows, step.k, step.n}, Phase::kBackwardInput, steps, states + steps * weights);
  const std::int64_t sums = 2 * weights / node.element_bytes() * kFloat32Bytes;
  if (node.needs_gradient(2))
    add({step.batch, step.k, step.n, rows}, Phase::kBackwardWeight, 1, states + sums);
}

/// Gates and states, step by step.
void add_gates(NodeContext& node, std::int64_t steps, std::int64_t bytes) {
  Kernel made = node.kernel(KernelKind::kMemoryBound, Phase::kForward);
  made.launches = static_cast<int>(steps);
  made.memory_traffic = Bytes(2 * bytes);
  node.add_forward(made);
  if (!node.settings().is_training || !node.any_needs_gradient()) return;
  made.phase = Phase::kBackwardInput;
  made.memory_traffic = Bytes(3 * bytes);
  node.add_backward(made);
  node.save(bytes);
}

}  // namespace

/// X [T, B, I], W [D, G H, I], R [D, G H, H] for D directions and G gates. The products with W are
/// one over all T steps, those with R follow one another: a product of B rows, T times. Gates and
/// states are computed between them, and the gates are saved.
void apply_recurrent(NodeContext& node) {
  constexpr std::size_t kInitialStates[] = {5, 6};  // zero unless the caller passes them on
  for (const std::size_t i : kInitialStates) node.exclude_parameter(i);
  node.require(node.rank(0) == 3 && node.rank(1) == 3 && node.rank(2) == 3,
               "X, W and R without three dimensions");
  const bool batch_first = node.integer("layout", 0) != 0;
  const std::int64_t steps = node.dims(0)[batch_first ? 1 : 0];
  const std::int64_t batch = node.dims(0)[batch_first ? 0 : 1];
  const std::int64_t directions = node.dims(1)[0], units = node.dims(2)[2];
  const std::int64_t rows = gate_count(node) * units;
  node.require(directions == 1 || directions == 2, "the number of directions is not 1 or 2");
  node.require(node.dims(1) == Dimensions{directions, rows, node.dims(0)[2]} &&
                   node.dims(2) == Dimensions{directions, rows, units},
               "the shapes of X, W and R do not fit together");
  const Dimensions state =
      batch_first ? Dimensions{batch, directions, units} : Dimensions{directions, batch, units};
  node.set_output(0,
                  batch_first ? Dimensions{batch, steps, directions, units}
                              : Dimensions{steps, directions, batch, units},
                  node.input(0).type);
  node.set_output(1, state, node.input(0).type);
  node.set_output(2, state, node.input(0).type);
  if (steps == 0 || batch == 0) return;

  constexpr std::int64_t kMostSteps = 1 << 24;
  const ProductSize inputs{.m = steps * batch, .n = directions * rows, .k = node.dims(0)[2]};
  const std::int64_t gates = steps * batch * directions * rows;
  node.require(steps <= kMostSteps && gates <= kMostElements, "too many steps, or rows of gates");
  const std::int64_t gate_bytes = gates * node.element_bytes();
  node.product(inputs, {node.bytes_of_input(0), node.bytes_of_input(1), gate_bytes}, 0, 1);
  add_state_products(node, {.batch = directions, .m = batch, .n = rows, .k = units}, steps);
  add_gates(node, steps, gate_bytes);
}

}  // namespace meshwright::onnx
