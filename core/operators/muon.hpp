/// What Muon orthogonalizes (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon), and
/// the kernels that it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/kernel.hpp"
#include "core/model/model_graph.hpp"

namespace meshwright {

/// The weight that Muon orthogonalizes: of linear layers and experts in blocks. Norms, biases,
/// embeddings and the output layer are updated by AdamW.
std::optional<TensorId> orthogonalized_parameter(const Operator& op, LayerKind kind);

/// Columns of the matrices side by side in the weight of a linear layer or of an expert, which are
/// orthogonalized one by one: queries, keys and values; gate and up.
std::vector<std::int64_t> orthogonalized_columns(const ModelGraph& model, const Operator& op);

/// Newton-Schulz iterations of one update.
inline constexpr int kNewtonSchulzSteps = 5;
/// One iteration on X [rows, columns], n = min(rows, columns), l = max(rows, columns):
///   A = X X^T           2 n^2 l operations
///   B = b A + c A A     2 n^3
///   X = a X + B X       2 n^2 l
/// The sums read two matrices and write one. The products have the phase of a forward pass, as
/// whose products they are measured.
std::vector<Kernel> newton_schulz_kernels(std::int64_t rows, std::int64_t columns, Dtype dtype);

}  // namespace meshwright
