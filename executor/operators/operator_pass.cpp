#include "executor/operators/operator_pass.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/random.hpp"

namespace meshwright {

Matrix OperatorPass::at(TensorId tensor, Form form) {
  OwnedMatrix* found = state.find(tensor, form);
  MW_CHECK(found != nullptr);
  return found->view();
}
Matrix OperatorPass::value(TensorId tensor) { return at(tensor, Form::kValue); }
Matrix OperatorPass::whole(TensorId tensor) {
  OwnedMatrix* found = state.find(tensor, Form::kGatheredValue);
  return found != nullptr ? found->view() : value(tensor);
}
Matrix OperatorPass::gradient(TensorId tensor) { return at(tensor, Form::kGradient); }
Matrix OperatorPass::whole_gradient(TensorId tensor) {
  OwnedMatrix* found = state.find(tensor, Form::kGatheredGradient);
  return found != nullptr ? found->view() : gradient(tensor);
}

DropoutMask OperatorPass::dropout_mask(double probability) const {
  std::uint64_t key = mixed_bits(options.seed ^ 0x64726f706f7574);  // not that of initial values
  for (const std::int64_t number : {std::int64_t{step}, std::int64_t{id.value}})
    key = mixed_bits(key + static_cast<std::uint64_t>(number));
  return {.probability = drops ? static_cast<float>(probability) : 0, .key = key};
}

std::int64_t OperatorPass::width(TensorId tensor) const {
  const ActivationTensor& whole_tensor = rank.activation(tensor);
  if (whole_tensor.cut != ActivationCut::kFeatures) return whole_tensor.width;
  const ParallelDegrees& degrees = sharding.strategy.degrees;
  if (whole_tensor.routed) return whole_tensor.width / degrees.expert_tensor;
  return local_width(whole_tensor, degrees.tensor);
}

Matrix OperatorPass::make_value(TensorId tensor, std::int64_t value_rows) {
  const Dtype dtype =
      rank.activation(tensor).element == ElementWidth::kFloat32 ? Dtype::kFp32 : rank.dtype;
  return make(tensor, Form::kValue, value_rows, width(tensor), dtype);
}

const HeldBuffer& OperatorPass::acquired(const BufferKey& buffer) const {
  const auto found = std::ranges::find_if(buffers, [&](const BufferEvent& event) {
    return event.action == BufferAction::kAcquire && event.buffer == buffer;
  });
  MW_CHECK(found != buffers.end());
  return found->held;
}

OwnedMatrix OperatorPass::allocate(TensorId tensor, Form form, std::int64_t value_rows,
                                   std::int64_t columns, Dtype dtype) {
  const HeldBuffer& held = acquired({tensor.value, form});
  const bool is_joint = rank.joint_outputs[tensor.index()].count > 0 &&
                        (form == Form::kValue || form == Form::kGradient);
  OwnedMatrix made = is_joint ? allocate_jointly(tensor, form, value_rows, dtype)
                              : rank.matrix(held.what, value_rows, columns, dtype);
  MW_CHECK(made.columns() == columns);
  MW_CHECK(rank.activation(tensor).routed || held.bytes == made.size());
  return made;
}

OwnedMatrix OperatorPass::allocate_jointly(TensorId tensor, Form form, std::int64_t value_rows,
                                           Dtype dtype) {
  const JointOutputs& joint = rank.joint_outputs[tensor.index()];
  const std::span outputs =
      std::span(rank.op(joint.layer).outputs).subspan(joint.first, joint.count);
  std::int64_t first = 0, columns = 0;
  for (const TensorId output : outputs) {
    if (output == tensor) first = columns;
    columns += width(output);
  }
  const Bytes size(value_rows * columns * bytes_per_element(dtype));
  std::weak_ptr<SharedMemory>& known = state.joint[{outputs.front().value, form}];
  std::shared_ptr<SharedMemory> memory = known.lock();
  if (memory == nullptr || memory->size() != size) {
    memory = std::make_shared<SharedMemory>(rank.memory, size);
    known = memory;
  }
  const Matrix all = dense_matrix(memory->data(), value_rows, columns, dtype);
  const Matrix part = columns_of(all, first, width(tensor));
  return {rank.memory, acquired({tensor.value, form}).what, std::move(memory), part};
}

Matrix OperatorPass::make(TensorId tensor, Form form, std::int64_t value_rows, std::int64_t columns,
                          Dtype dtype) {
  OwnedMatrix& made = state.tensors[{tensor.value, form}];
  made = OwnedMatrix();  // free the old one first
  made = allocate(tensor, form, value_rows, columns, dtype);
  return made.view();
}

Matrix OperatorPass::make_softmax_sums(std::int64_t count) {
  const HeldBuffer& held = acquired({id.value, Form::kSoftmaxSums});
  OwnedMatrix& sums = state.statistics[id.value];
  sums = OwnedMatrix();  // free the old ones first
  sums = rank.matrix(held.what, 1, count, Dtype::kFp32);
  MW_CHECK(held.bytes == Bytes(std::ssize(sums.bytes())));
  return sums.view();
}

OwnedMatrix OperatorPass::temporary(MemoryClass what, std::int64_t value_rows, std::int64_t columns,
                                    Dtype dtype, int count) {
  OwnedMatrix made = rank.matrix(what, value_rows, columns, dtype);
  check_temporary({Bytes(count * std::ssize(made.bytes())), what});
  return made;
}

void OperatorPass::check_temporary(const HeldBuffer& held) const {
  MW_CHECK(std::ranges::any_of(buffers, [&](const BufferEvent& event) {
    return event.action == BufferAction::kBeginTemporary && event.held == held;
  }));
}

void OperatorPass::add_gradient(TensorId tensor, const ConstMatrix& more) {
  into_gradient(tensor, Form::kGradient, more, [&](const Matrix& sum, bool adds) {
    if (adds)
      rank.run(rank.kernels.add, {.a = sum, .b = more, .y = sum});
    else
      copy(*this, more, sum);
  });
}

void copy(OperatorPass& pass, const ConstMatrix& from, const Matrix& to) {
  pass.rank.run(pass.rank.kernels.cast, {.x = flat(from), .y = flat(to)});
}

void clear(OperatorPass& pass, const Matrix& m) {
  pass.rank.run(pass.rank.kernels.fill, {.y = flat(m), .value = 0});
}

void compute(OperatorPass& pass, Phase phase) {
  std::visit(
      [&](const auto& shape) {
        if (phase == Phase::kForward) forward(pass, shape);
        if (phase == Phase::kBackwardInput) backward_input(pass, shape);
        if constexpr (requires { backward_weight(pass, shape); })
          if (phase == Phase::kBackwardWeight) backward_weight(pass, shape);
      },
      pass.op().shape);
}

}  // namespace meshwright
