#include "kernels/reference/activation_formulas.hpp"
#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {
void run(const Launch&, const Gemm& g) {
  const std::int64_t depth = g.transpose_a ? g.a.rows : g.a.columns;
  for (std::int64_t i = 0; i < g.c.rows; ++i)
    for (std::int64_t j = 0; j < g.c.columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += (g.transpose_a ? at(g.a, k, i) : at(g.a, i, k)) *
               (g.transpose_b ? at(g.b, j, k) : at(g.b, k, j));
      double value = sum;
      if (g.beta != 0) value += double{g.beta} * at(g.c, i, j);
      if (!g.bias.empty()) value += at(g.bias, j);
      if (!g.slope_at.empty()) value *= gelu_tanh_slope(at(g.slope_at, i, j));
      put(g.c, i, j, value);
      if (!g.gelu.empty()) put(g.gelu, i, j, gelu_tanh(value));
    }
}

void run(const Launch& launch, const GroupedGemm& g) {
  run_each_product(g, [&](const Gemm& product) { run(launch, product); });
}

void run(const Launch& launch, const GroupedGemmWeight& g) {
  run_each_product(g, [&](const Gemm& product) { run(launch, product); });
}

}  // namespace meshwright::reference
