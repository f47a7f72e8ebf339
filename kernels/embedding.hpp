/// Rows of a table by id: words, token types, and learned positions (ids are positions there).
/// A rank may hold rows [first_row, first_row + table.rows) only; other ids give zeros and get no
/// gradient, so that ranks' results sum to the whole.
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
  bool accumulate = false;  ///< y +=: positions on top of words
};

/// dtable[id - first_row] += dy[n], for n in ascending order (deterministic).
struct EmbeddingBackward {
  ConstMatrix dy = {};
  std::span<const std::int32_t> ids = {};
  std::int64_t first_row = 0;
  Matrix dtable = {};  ///< [rows, H], fp32, added to
};

}  // namespace meshwright
