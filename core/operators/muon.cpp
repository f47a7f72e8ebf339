#include "core/operators/muon.hpp"

#include <algorithm>
#include <variant>

namespace meshwright {
namespace {

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, Dtype dtype) {
  Kernel made;
  made.kind = KernelKind::kGemm;
  made.dtype = dtype;
  made.m = m, made.n = n, made.k = k;
  made.flops =
      Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  made.memory_traffic = Bytes((m * k + k * n + m * n) * bytes_per_element(dtype));
  return made;
}

}  // namespace

std::optional<TensorId> orthogonalized_parameter(const Operator& op, LayerKind kind) {
  const bool has_matrices =
      std::holds_alternative<Linear>(op.shape) || std::holds_alternative<ExpertLinear>(op.shape);
  if (kind != LayerKind::kBlock || !has_matrices || op.parameters.empty()) return std::nullopt;
  return op.parameters.front();
}

std::vector<std::int64_t> orthogonalized_columns(const ModelGraph& model, const Operator& op) {
  if (const auto* expert = std::get_if<ExpertLinear>(&op.shape)) {
    const bool is_gated = op.name.ends_with("gate_up");
    return is_gated ? std::vector{expert->out / 2, expert->out / 2} : std::vector{expert->out};
  }
  std::vector<std::int64_t> columns;
  for (const TensorId output : op.outputs) columns.push_back(activation_of(model, output).width);
  return columns;
}

std::vector<Kernel> newton_schulz_kernels(std::int64_t rows, std::int64_t columns, Dtype dtype) {
  const auto [n, l] = std::minmax({rows, columns});
  Kernel sums;
  sums.kind = KernelKind::kMemoryBound;
  sums.routine = Routine::kResidual;
  sums.dtype = dtype;
  sums.launches = 2;
  sums.memory_traffic = Bytes(3 * (n * n + n * l) * bytes_per_element(dtype));
  return {product(n, n, l, dtype), product(n, n, n, dtype), product(n, l, n, dtype), sums};
}

}  // namespace meshwright
