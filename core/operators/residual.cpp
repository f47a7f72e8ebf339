// Residual additions, factors and gates at the end of layer branches.
#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

std::int64_t mask_bytes(const ResidualAdd& add, const ShardedOperator& program) {
  return add.dropout > 0 ? program.tokens().cut * add.width * kMaskBytes : 0;
}

}  // namespace

/// With the dropout of its branch (in the embedding layer: of the sum), which stores a mask of one
/// byte per element.
void forward(const ResidualAdd& add, OperatorProgram& program) {
  program.acquire_outputs();
  if (LiveBuffers* live = program.buffers(); live != nullptr && add.dropout > 0)
    live->acquire({program.id().value, Form::kDropoutMask},
                  {Bytes(live->local(program.output()).value / program.element()),
                   MemoryClass::kActivations});
  program.elementwise(Routine::kResidual, mask_bytes(add, program));
}

/// The gradient of a sum is passed through; only the sum of the two branches remains.
void backward_input(const ResidualAdd& add, OperatorProgram& program) {
  if (LiveBuffers* live = program.buffers(); live != nullptr && add.dropout > 0)
    live->meanwhile({live->local(program.output()), MemoryClass::kWorking},
                    [&] { program.acquire_input_gradients(); });
  else
    program.acquire_input_gradients();
  program.elementwise(Routine::kResidual, mask_bytes(add, program), /*rereads_inputs=*/false);
}

void forward(const Scale& /*scale*/, OperatorProgram& program) {
  program.acquire_outputs();
  program.elementwise(Routine::kResidual);
}

void backward_input(const Scale& /*scale*/, OperatorProgram& program) {
  program.acquire_input_gradients();
  program.elementwise(Routine::kResidual, 0, /*rereads_inputs=*/false);
}

void forward(const RowGate& /*gate*/, OperatorProgram& program) {
  program.acquire_outputs();
  program.elementwise(Routine::kSwiGlu);
}

void backward_input(const RowGate& /*gate*/, OperatorProgram& program) {
  program.acquire_input_gradients();
  program.elementwise(Routine::kSwiGlu);
}

}  // namespace meshwright
