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
/// In the order of ActivationFunction.
constexpr std::array<Formulas, 5> kFormulas{
    {{[](double x) { return x > 0 ? x : 0; }, [](double x) { return x > 0 ? 1.0 : 0.0; }},
     {[](double x) { return x > 0 ? x * x : 0; }, [](double x) { return x > 0 ? 2 * x : 0; }},
     {gelu_tanh, gelu_tanh_slope},
     {gelu_erf, gelu_erf_slope},
     {silu, silu_slope}}};

}  // namespace

void run(const Launch&, const ActivationForward& a) {
  const bool gated = a.function == ActivationFunction::kSwiGlu;
  const Formulas& formulas = entry_of(kFormulas, a.function);
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i)
      put(a.y, r, i, formulas.value(at(a.x, r, i)) * (gated ? at(a.up, r, i) : 1.0));
}

void run(const Launch&, const ActivationBackward& a) {
  const bool gated = a.function == ActivationFunction::kSwiGlu;
  const Formulas& formulas = entry_of(kFormulas, a.function);
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i) {
      const double x = at(a.x, r, i), dy = at(a.dy, r, i);
      const double up = gated ? at(a.up, r, i) : 1.0;
      if (gated) put(a.dup, r, i, dy * formulas.value(x));
      put(a.dx, r, i, dy * up * formulas.slope(x));
    }
}

}  // namespace meshwright::reference
