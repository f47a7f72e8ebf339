/// Which masks of attention are causal, so that half of the scores need not be computed. Weights
/// are not read, but stored masks are, and comparisons of positions are operators.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/onnx/onnx_graph.hpp"

namespace meshwright::onnx {

/// Whether all booleans above the diagonals of the last two axes differ from those on it, or
/// numbers above them are so low that nothing is left of their scores, and those on it are not.
/// Empty if the axes are not square, or the bytes are not those of the elements.
std::optional<bool> is_causal_mask(std::string_view bytes, ElementType type,
                                   const Dimensions& dims);

/// Whether an initializer may be a mask: square booleans, or numbers with square last axes and more
/// before them, which are no kernels of convolutions.
bool may_be_mask(ElementType type, const Dimensions& dims);

/// The masks among the initializers of a model.
class StoredMasks {
 public:
  /// `directory`: of files with data of tensors; empty: there are none.
  explicit StoredMasks(std::string directory) : directory_(std::move(directory)) {}
  /// Square booleans whose data are missing count as causal: other masks are seldom stored.
  bool is_causal(const TensorLiteral& literal);

 private:
  std::string directory_;
  std::int64_t bytes_left_ = 256 << 20;  ///< of masks that are read from other files
};

/// Marks the outputs of a node with one of these operators that are causal masks: comparisons of
/// positions, and what is computed from masks by elements (`passes_on`), copies and selections.
void mark_triangular(std::vector<GraphTensor>& tensors, const std::vector<std::int32_t>& inputs,
                     const std::vector<std::int32_t>& outputs, std::string_view operation,
                     bool passes_on);

}  // namespace meshwright::onnx
