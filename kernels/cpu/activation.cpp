#include "kernels/cpu/activation.hpp"

#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// y = value(x), element by element.
template <class Value>
MESHWRIGHT_INLINE void map(const ActivationForward& a, const Value& value) {
  Chunk x_buffer, y_buffer;
  for (std::int64_t row = 0; row < a.x.rows; ++row)
    for_each_chunk(a.x.columns, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, row, first, count, x_buffer);
      float* y = target(a.y, row, first, y_buffer);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) y[i] = value(x[i]);
      store(a.y, row, first, count, y);
    });
}

/// From (gate, up, dy): dgate = dy slope(gate) up and dup = dy value(gate).
template <class Value, class Slope>
MESHWRIGHT_INLINE void gated_back(const ActivationBackward& a, const Value& value,
                                  const Slope& slope) {
  const float limit = a.function == ActivationFunction::kClampedSwiGlu ? a.limit : __builtin_inff();
  const float added = a.function == ActivationFunction::kClampedSwiGlu ? 1.0F : 0.0F;
  Chunk x_buffer, up_buffer, dy_buffer, dx_buffer, dup_buffer;
  for (std::int64_t row = 0; row < a.x.rows; ++row)
    for_each_chunk(a.x.columns, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, row, first, count, x_buffer);
      const float* up = load(a.up, row, first, count, up_buffer);
      const float* dy = load(a.dy, row, first, count, dy_buffer);
      float* dx = target(a.dx, row, first, dx_buffer);
      float* dup = target(a.dup, row, first, dup_buffer);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) {
        const float d = dy[i], g = smaller_of(x[i], limit);
        const float u = clamped_of(up[i], limit) + added;
        const bool passes_gate = x[i] <= limit, passes_up = up[i] <= limit && -up[i] <= limit;
        dup[i] = passes_up ? d * value(g) : 0.0F;
        dx[i] = passes_gate ? d * u * slope(g) : 0.0F;
      }
      store(a.dx, row, first, count, dx);
      store(a.dup, row, first, count, dup);
    });
}

}  // namespace

void run(const Launch&, const ActivationForward& a) {
  const float limit = a.limit;
  switch (a.function) {
    case ActivationFunction::kRelu:
      return map(a, [](float x) { return relu_of(x); });
    case ActivationFunction::kSquaredRelu:
      return map(a, [](float x) { return relu_of(x) * relu_of(x); });
    case ActivationFunction::kGeluTanh:
      return map(a, [](float x) { return gelu_tanh_of(x); });
    case ActivationFunction::kGeluErf:
      return map(a, [](float x) { return gelu_erf_of(x); });
    case ActivationFunction::kSwiGlu:
      return combine(a.x, a.up, a.y, [](float x, float up) { return silu_of(x) * up; });
    case ActivationFunction::kGegluTanh:
      return combine(a.x, a.up, a.y, [](float x, float up) { return gelu_tanh_of(x) * up; });
    case ActivationFunction::kGegluErf:
      return combine(a.x, a.up, a.y, [](float x, float up) { return gelu_erf_of(x) * up; });
    case ActivationFunction::kReglu:
      return combine(a.x, a.up, a.y, [](float x, float up) { return relu_of(x) * up; });
    case ActivationFunction::kClampedSwiGlu:
      return combine(a.x, a.up, a.y, [limit](float x, float up) {
        return steep_silu_of(smaller_of(x, limit)) * (clamped_of(up, limit) + 1);
      });
  }
}

void run(const Launch&, const ActivationBackward& a) {
  switch (a.function) {
    case ActivationFunction::kRelu:
      return combine(a.x, a.dy, a.dx, [](float x, float dy) { return dy * relu_slope_of(x); });
    case ActivationFunction::kSquaredRelu:
      return combine(a.x, a.dy, a.dx, [](float x, float dy) { return dy * (2 * relu_of(x)); });
    case ActivationFunction::kGeluTanh:
      return combine(a.x, a.dy, a.dx, [](float x, float dy) { return dy * gelu_tanh_slope_of(x); });
    case ActivationFunction::kGeluErf:
      return combine(a.x, a.dy, a.dx, [](float x, float dy) { return dy * gelu_erf_slope_of(x); });
    case ActivationFunction::kSwiGlu:
      return gated_back(
          a, [](float x) { return silu_of(x); }, [](float x) { return silu_slope_of(x); });
    case ActivationFunction::kGegluTanh:
      return gated_back(
          a, [](float x) { return gelu_tanh_of(x); },
          [](float x) { return gelu_tanh_slope_of(x); });
    case ActivationFunction::kGegluErf:
      return gated_back(
          a, [](float x) { return gelu_erf_of(x); }, [](float x) { return gelu_erf_slope_of(x); });
    case ActivationFunction::kReglu:
      return gated_back(
          a, [](float x) { return relu_of(x); }, [](float x) { return relu_slope_of(x); });
    case ActivationFunction::kClampedSwiGlu:
      return gated_back(
          a, [](float x) { return steep_silu_of(x); },
          [](float x) { return steep_silu_slope_of(x); });
  }
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
