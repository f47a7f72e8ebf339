#include <algorithm>

#include "core/base/value_named.hpp"
#include "kernels/reference/activation_formulas.hpp"
#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {
namespace {

struct Formulas {
  double (*value)(double);
  double (*slope)(double);
};
constexpr Formulas kRelu{[](double x) { return x > 0 ? x : 0; },
                         [](double x) { return x > 0 ? 1.0 : 0.0; }};
/// Of the input, or of the gate. In the order of ActivationFunction.
constexpr std::array<Formulas, 9> kFormulas{
    {kRelu,
     {[](double x) { return x > 0 ? x * x : 0; }, [](double x) { return x > 0 ? 2 * x : 0; }},
     {gelu_tanh, gelu_tanh_slope},
     {gelu_erf, gelu_erf_slope},
     {silu, silu_slope},
     {gelu_tanh, gelu_tanh_slope},
     {gelu_erf, gelu_erf_slope},
     kRelu,
     {steep_silu, steep_silu_slope}}};

/// Inputs of a gated activation as its formula reads them, and their slopes.
struct Gate {
  double gate, up, gate_slope = 1, up_slope = 1;
};
Gate gate_of(ActivationFunction function, double gate, double up, double limit) {
  if (function != ActivationFunction::kClampedSwiGlu) return {gate, up};
  return {std::min(gate, limit), std::clamp(up, -limit, limit) + 1, gate <= limit ? 1.0 : 0.0,
          std::abs(up) <= limit ? 1.0 : 0.0};
}

}  // namespace

void run(const Launch&, const ActivationForward& a) {
  const Formulas& formulas = entry_of(kFormulas, a.function);
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i) {
      if (!is_gated(a.function)) {
        put(a.y, r, i, formulas.value(at(a.x, r, i)));
        continue;
      }
      const Gate in = gate_of(a.function, at(a.x, r, i), at(a.up, r, i), double{a.limit});
      put(a.y, r, i, formulas.value(in.gate) * in.up);
    }
}

void run(const Launch&, const ActivationBackward& a) {
  const Formulas& formulas = entry_of(kFormulas, a.function);
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i) {
      const double x = at(a.x, r, i), dy = at(a.dy, r, i);
      if (!is_gated(a.function)) {
        put(a.dx, r, i, dy * formulas.slope(x));
        continue;
      }
      const Gate in = gate_of(a.function, x, at(a.up, r, i), double{a.limit});
      put(a.dup, r, i, dy * formulas.value(in.gate) * in.up_slope);
      put(a.dx, r, i, dy * in.up * formulas.slope(in.gate) * in.gate_slope);
    }
}

}  // namespace meshwright::reference
