#include "kernels/reference/activation_formulas.hpp"
#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {
namespace {

double value(ActivationFunction function, double x) {
  switch (function) {
    case ActivationFunction::kRelu:
      return x > 0 ? x : 0;
    case ActivationFunction::kSquaredRelu:
      return x > 0 ? x * x : 0;
    case ActivationFunction::kGeluTanh:
      return gelu_tanh(x);
    case ActivationFunction::kGeluErf:
      return gelu_erf(x);
    case ActivationFunction::kSwiGlu:
      return silu(x);
  }
  return 0;
}

double slope(ActivationFunction function, double x) {
  switch (function) {
    case ActivationFunction::kRelu:
      return x > 0 ? 1 : 0;
    case ActivationFunction::kSquaredRelu:
      return x > 0 ? 2 * x : 0;
    case ActivationFunction::kGeluTanh:
      return gelu_tanh_slope(x);
    case ActivationFunction::kGeluErf:
      return gelu_erf_slope(x);
    case ActivationFunction::kSwiGlu:
      return silu_slope(x);
  }
  return 0;
}

}  // namespace

void run(const Launch&, const ActivationForward& a) {
  const bool gated = a.function == ActivationFunction::kSwiGlu;
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i)
      put(a.y, r, i, value(a.function, at(a.x, r, i)) * (gated ? at(a.up, r, i) : 1.0));
}

void run(const Launch&, const ActivationBackward& a) {
  const bool gated = a.function == ActivationFunction::kSwiGlu;
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i) {
      const double x = at(a.x, r, i), dy = at(a.dy, r, i);
      const double up = gated ? at(a.up, r, i) : 1.0;
      if (gated) put(a.dup, r, i, dy * value(a.function, x));
      put(a.dx, r, i, dy * up * slope(a.function, x));
    }
}

}  // namespace meshwright::reference
