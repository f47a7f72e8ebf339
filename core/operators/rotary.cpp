// Rotary position embedding (arXiv 2104.09864) of queries and keys. Latent attention (DeepSeek-V2,
// arXiv 2405.04434, section 2.1.3) has three inputs: queries, the parts of keys without position,
// and a rotated part shared by all heads, which is copied into every key. A temperature has queries
// only (QueryTemperature).
#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

bool is_latent(const ShardedOperator& program) { return program.op().inputs.size() == 3; }

void acquire_latent_outputs(OperatorProgram& program, LiveBuffers& live) {
  const TensorId shared = program.input(2);
  live.acquire(LiveBuffers::key(program.output(0)), live.value_of(program.output(0)));
  const BufferKey all = LiveBuffers::key(shared, Form::kGatheredValue);
  const Bytes bytes = live.has(all) ? live.at(all).bytes : live.local(shared);
  live.meanwhile({bytes, MemoryClass::kWorking}, [&] {
    live.acquire(LiveBuffers::key(program.output(1)), live.value_of(program.output(1)));
  });
}

/// Each tensor rank has the gradient of the shared part from its own heads only.
void acquire_latent_gradients(OperatorProgram& program, LiveBuffers& live) {
  const TensorId shared = program.input(2);
  live.acquire_gradient(program.input(0));
  live.acquire_gradient(program.input(1));
  const HeldBuffer sum{live.gathered(shared), MemoryClass::kWorking};
  live.meanwhile(sum, [&] {
    if (program.is_cut())
      live.acquire(LiveBuffers::key(shared, Form::kPartialGradient), sum);
    else
      live.acquire_gradient(shared);
  });
}

void rotate(const RotaryEmbedding& rotary, OperatorProgram& program) {
  program.memory_bound(Routine::kRotary, 2 * program.tokens().gathered *
                                             divide_up(rotary.width, program.tensor_ranks()) *
                                             program.element());
}

}  // namespace

void forward(const RotaryEmbedding& rotary, OperatorProgram& program) {
  program.gather_entering();
  if (is_latent(program) && program.buffers() != nullptr)
    acquire_latent_outputs(program, *program.buffers());
  else
    program.acquire_outputs();
  rotate(rotary, program);
}

void backward_input(const RotaryEmbedding& rotary, OperatorProgram& program) {
  if (is_latent(program) && program.buffers() != nullptr)
    acquire_latent_gradients(program, *program.buffers());
  else
    program.acquire_input_gradients();
  rotate(rotary, program);
  program.reduce_entering_gradients();
}

}  // namespace meshwright
