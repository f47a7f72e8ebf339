/// Embedding lookup for tokens, token types, and learned positions (where ids are positions). A
/// rank may hold only rows [first_row, first_row + table.rows); other ids give zeros and get no
/// gradient, so that the sum over ranks is the full result.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_EMBEDDING_KERNELS(X)    \
  X(embedding_forward,  EmbeddingForward)  \
  X(embedding_backward, EmbeddingBackward)
// clang-format on

struct EmbeddingForward {
  ConstMatrix table = {};                  ///< [rows, H]
  std::span<const std::int32_t> ids = {};  ///< [N]
  std::int64_t first_row = 0;
  Matrix y = {};            ///< [N, H]
  bool accumulate = false;  ///< y +=: adds positions to tokens
};
inline void check(const EmbeddingForward& a) {
  check_view(a.table);
  check_shape(a.y, std::ssize(a.ids), a.table.columns);
}

/// dtable[id - first_row] += dy[n], for n in ascending order (deterministic).
struct EmbeddingBackward {
  ConstMatrix dy = {};
  std::span<const std::int32_t> ids = {};
  std::int64_t first_row = 0;
  Matrix dtable = {};  ///< [rows, H], fp32, added to
};
inline void check(const EmbeddingBackward& a) {
  check_shape(a.dy, std::ssize(a.ids), a.dtable.columns);
  check_view(Matrix(a.dtable));
  MW_CHECK(a.dtable.dtype == Dtype::kFp32);
}

}  // namespace meshwright
