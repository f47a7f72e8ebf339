// Residual additions, factors and gates at the end of layer branches, with the preceding dropout.
#include "core/base/check.hpp"
#include "executor/operators/operator_pass.hpp"

namespace meshwright {
namespace {

bool is_in_embedding(const OperatorPass& pass) {
  const Layer& first = pass.rank.model.layers.front();
  return first.kind == LayerKind::kEmbedding &&
         pass.id.value < first.first_operator + first.operator_count;
}

std::span<std::uint8_t> bytes_of(Buffer& mask) {
  return {reinterpret_cast<std::uint8_t*>(mask.data()),  // NOLINT: bytes
          static_cast<std::size_t>(mask.size().value)};
}

void drop(OperatorPass& pass, const ResidualAdd& add, const ConstMatrix& x, const Matrix& y) {
  Buffer& mask = pass.state.dropout_masks[pass.id.value];
  mask = Buffer();  // free the old one first
  const HeldBuffer& held = pass.acquired({pass.id.value, Form::kDropoutMask});
  MW_CHECK(held.bytes == Bytes(x.rows * x.columns));
  mask = Buffer(pass.rank.memory, held.what, held.bytes);
  pass.rank.run(pass.rank.kernels.dropout_forward,
                {.mask = pass.dropout_mask(add.dropout),
                 .rows = pass.of_rows(std::span(pass.rows.numbers), x.rows),
                 .x = x,
                 .y = y,
                 .kept = bytes_of(mask)});
}

}  // namespace

/// a + drop(b) in transformer blocks, drop(a + b) in the embedding layer.
void forward(OperatorPass& pass, const ResidualAdd& add) {
  const Matrix a = pass.value(pass.input(0)), b = pass.value(pass.input(1));
  const Matrix y = pass.make_value(pass.output(), a.rows);
  const bool drops_sum = add.dropout > 0 && is_in_embedding(pass);
  const bool drops_branch = add.dropout > 0 && !drops_sum;
  if (drops_branch) drop(pass, add, b, y);
  pass.rank.run(pass.rank.kernels.add, {.a = a, .b = drops_branch ? y : b, .y = y});
  if (drops_sum) drop(pass, add, y, y);
}

void backward_input(OperatorPass& pass, const ResidualAdd& add) {
  const Matrix dy = pass.gradient(pass.output());
  if (add.dropout == 0) {
    for (const TensorId input : pass.op().inputs) pass.add_gradient(input, dy);
    return;
  }
  OwnedMatrix kept = pass.temporary(MemoryClass::kWorking, dy.rows, dy.columns, pass.rank.dtype);
  pass.rank.run(pass.rank.kernels.dropout_backward,
                {.probability = static_cast<float>(add.dropout),
                 .kept = bytes_of(pass.state.dropout_masks.at(pass.id.value)),
                 .dy = dy,
                 .dx = kept.view()});
  pass.add_gradient(pass.input(0), is_in_embedding(pass) ? kept.view() : dy);
  pass.add_gradient(pass.input(1), kept.view());
}

void forward(OperatorPass& pass, const Scale& scale) {
  const Matrix x = pass.value(pass.input());
  pass.rank.run(pass.rank.kernels.cast, {.x = flat(x),
                                         .y = flat(pass.make_value(pass.output(), x.rows)),
                                         .scale = static_cast<float>(scale.factor)});
}

void backward_input(OperatorPass& pass, const Scale& scale) {
  const Matrix dy = pass.gradient(pass.output());
  MW_CHECK(pass.state.find(pass.input(), Form::kGradient) == nullptr);  // no other consumer
  const Matrix dx = pass.make(pass.input(), Form::kGradient, dy.rows, dy.columns, pass.rank.dtype);
  pass.rank.run(pass.rank.kernels.cast,
                {.x = flat(dy), .y = flat(dx), .scale = static_cast<float>(scale.factor)});
}

void forward(OperatorPass& pass, const RowGate&) {
  const Matrix x = pass.value(pass.input(0));
  pass.rank.run(
      pass.rank.kernels.row_gate_forward,
      {.x = x, .gate = pass.value(pass.input(1)), .y = pass.make_value(pass.output(), x.rows)});
}

void backward_input(OperatorPass& pass, const RowGate&) {
  const Matrix x = pass.value(pass.input(0)), gate = pass.value(pass.input(1));
  const auto make = [&](std::size_t i, const Matrix& like) {
    return pass.make(pass.input(i), Form::kGradient, like.rows, like.columns, pass.rank.dtype);
  };
  pass.rank.run(pass.rank.kernels.row_gate_backward, {.x = x,
                                                      .gate = gate,
                                                      .dy = pass.gradient(pass.output()),
                                                      .dx = make(0, x),
                                                      .dgate = make(1, gate)});
}

}  // namespace meshwright
