#include <cmath>

#include "kernels/activation_formulas.hpp"
#include "kernels/check_arguments.hpp"
#include "kernels/element_access.hpp"
#include "kernels/reference.hpp"

namespace meshwright::reference {
namespace {

double activated(GemmActivation activation, double x) {
  switch (activation) {
    case GemmActivation::kNone:
      return x;
    case GemmActivation::kGeluTanh:
      return gelu_tanh(x);
    case GemmActivation::kGeluErf:
      return gelu_erf(x);
    case GemmActivation::kRelu:
      return x > 0 ? x : 0;
  }
  return x;
}

}  // namespace

void run(const Launch&, const Gemm& g) {
  check(g);
  const std::int64_t depth = g.transpose_a ? g.a.rows : g.a.columns;
  for (std::int64_t i = 0; i < g.c.rows; ++i)
    for (std::int64_t j = 0; j < g.c.columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += (g.transpose_a ? at(g.a, k, i) : at(g.a, i, k)) *
               (g.transpose_b ? at(g.b, j, k) : at(g.b, k, j));
      double value = double{g.alpha} * sum;
      if (g.beta != 0) value += double{g.beta} * at(g.c, i, j);
      if (!g.bias.empty()) value += at(g.bias, j);
      if (!g.before_activation.empty()) put(g.before_activation, i, j, value);
      put(g.c, i, j, activated(g.activation, value));
    }
}

void run(const Launch& launch, const BatchedGemm& g) {
  check(g);
  for (std::int64_t i = 0; i < g.count; ++i) run(launch, product_of(g, i));
}

void run(const Launch& launch, const GroupedGemm& g) {
  check(g);
  for (std::int64_t e = 0; e + 1 < std::ssize(g.offsets); ++e) run(launch, product_of(g, e));
}

void run(const Launch& launch, const GroupedGemmWeight& g) {
  check(g);
  for (std::int64_t e = 0; e + 1 < std::ssize(g.offsets); ++e) run(launch, product_of(g, e));
}

}  // namespace meshwright::reference
