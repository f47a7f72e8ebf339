/// Embedding lookup for tokens, token types, and learned positions (where ids are positions). A
/// rank may hold only rows [first_row, first_row + table.rows); other ids give zeros and get no
/// gradient, so that the sum over ranks is the full result.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

struct EmbeddingForward {
  ConstMatrix table = {};                  ///< [rows, H]
  std::span<const std::int32_t> ids = {};  ///< [N]
  std::int64_t first_row = 0;
  Matrix y = {};            ///< [N, H]
  bool accumulate = false;  ///< y +=: adds positions to tokens
};

/// dtable[id - first_row] += dy[n], for n in ascending order (deterministic).
struct EmbeddingBackward {
  ConstMatrix dy = {};
  std::span<const std::int32_t> ids = {};
  std::int64_t first_row = 0;
  Matrix dtable = {};  ///< [rows, H], fp32, added to
};

}  // namespace meshwright
