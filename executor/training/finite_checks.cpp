#include "executor/training/finite_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace meshwright {
namespace {

/// A value is infinite or NaN if all exponent bits are set.
template <class Bits>
bool all_finite(const std::byte* data, std::int64_t count, Bits exponent) {
  Bits largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Bits bits{};
    std::memcpy(&bits, data + static_cast<std::size_t>(i) * sizeof(Bits), sizeof(Bits));
    largest = std::max(largest, static_cast<Bits>(bits & exponent));
  }
  return largest < exponent;
}

bool is_finite(RankContext& rank, OwnedMatrix& matrix) {
  constexpr std::uint32_t kFp32Exponent = 0x7f80'0000;
  constexpr std::uint16_t kBf16Exponent = 0x7f80;
  const Matrix all = matrix.view();
  const bool is_dense = all.stride == all.columns;
  const std::int64_t rows = is_dense ? 1 : all.rows;
  const std::int64_t count = is_dense ? all.rows * all.columns : all.columns;
  const std::int64_t element = bytes_per_element(all.dtype);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto* first = static_cast<const std::byte*>(all.data) + row * all.stride * element;
    const HostView view(rank, std::span(first, static_cast<std::size_t>(count * element)));
    const std::byte* data = view.values().data();
    const bool finite = all.dtype == Dtype::kFp32 ? all_finite(data, count, kFp32Exponent)
                                                  : all_finite(data, count, kBf16Exponent);
    if (!finite) return false;
  }
  return true;
}

}  // namespace

void FiniteChecks::check_layer(MicrobatchState& state, LayerId layer, std::int64_t step) {
  const std::span<const Operator> operators = operators_of(rank_.model, layer);
  const auto finite = [&](const Operator& op) {
    return std::all_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) {
      OwnedMatrix* value = state.find(id, Form::kValue);
      return value == nullptr || is_finite(rank_, *value);
    });
  };
  if (rank_.queue != nullptr ? is_finite_on_device(state, layer, step) : finite(operators.back()))
    return;
  std::size_t first = 0;
  while (first + 1 < operators.size() && finite(operators[first])) ++first;
  throw std::runtime_error(fmt::format("output of '{}' is not finite in step {}, layer {}",
                                       operators[first].name, step, layer.value));
}

/// Squares overflow in fp32 for values beyond about 1e19, which then count as infinite.
bool FiniteChecks::is_finite_on_device(MicrobatchState& state, LayerId layer, std::int64_t step) {
  const Operator& last = operators_of(rank_.model, layer).back();
  OwnedMatrix squared = rank_.numbers(1);
  rank_.run(rank_.kernels.fill, {.y = flat(squared.view()), .value = 0});
  for (const TensorId id : last.outputs)
    if (OwnedMatrix* value = state.find(id, Form::kValue); value != nullptr)
      rank_.run(rank_.kernels.squared_norm,
                {.x = flat(value->view()), .sum = squared.floats().data()});
  if (rank_.queue->timing() == QueueTiming::kEachKernel)
    return std::isfinite(rank_.on_host(squared.floats().data()));
  unchecked_.push_back({layer, step, std::move(squared)});
  return true;
}

/// In a single copy, since each copy to the host is a wait.
void FiniteChecks::settle() {
  if (unchecked_.empty()) return;
  OwnedMatrix all = rank_.numbers(std::ssize(unchecked_));
  float* next = all.floats().data();
  for (LayerNorm& norm : unchecked_)
    rank_.copy(next++, norm.squared.floats().data(), sizeof(float));
  const std::vector<float> norms = rank_.on_host(all.floats());
  for (std::size_t i = 0; i < norms.size(); ++i)
    if (!std::isfinite(norms[i]))
      throw std::runtime_error(fmt::format("output of layer {} is not finite in step {}",
                                           unchecked_[i].layer.value, unchecked_[i].step));
  unchecked_.clear();
}

void FiniteChecks::check_gradients(float squared_norm, std::int64_t step) {
  if (std::isfinite(squared_norm)) return;
  settle();
  throw std::runtime_error(fmt::format("gradients are not finite in step {}", step));
}

}  // namespace meshwright
