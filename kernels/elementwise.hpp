/// Sums, casts and losses element by element.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

/// y = a + b: residual connections.
struct Add {
  ConstMatrix a = {}, b = {};
  Matrix y = {};  ///< may be a or b
};

/// y = x + bias in every row: applied after the all-reduce of a row-parallel linear layer.
struct BiasAdd {
  ConstMatrix x = {};
  ConstVector bias = {};  ///< [columns]
  Matrix y = {};          ///< may be x
};

/// dbias += sum of the rows of dy.
struct BiasGradient {
  ConstMatrix dy = {};
  std::span<float> dbias = {};  ///< [columns], added to
};
/// One bias per expert: row e of dbias += sum of rows [offset[e], offset[e+1]) of dy.
struct GroupedBiasGradient {
  ConstMatrix dy = {};
  Matrix dbias = {};                           ///< [E, columns], fp32, added to
  std::span<const std::int64_t> offsets = {};  ///< E + 1 row offsets
};

/// y = sigmoid(gate[row]) x: the gate of shared experts.
struct RowGateForward {
  ConstMatrix x = {};
  ConstMatrix gate = {};  ///< [rows, 1]
  Matrix y = {};          ///< may be x
};
struct RowGateBackward {
  ConstMatrix x = {}, gate = {}, dy = {};
  Matrix dx = {};     ///< may be dy
  Matrix dgate = {};  ///< [rows, 1]
};

enum class Reduction : std::uint8_t { kSum, kMaximum };

/// into = into + from, or the maximum of both: one step of a reduction across ranks. bf16 is added
/// in fp32 and rounded once.
struct Reduce {
  Reduction reduction = Reduction::kSum;
  Vector into = {};
  ConstVector from = {};
};

/// y = scale x, rounded to nearest even if y is bf16. Also used for plain copies.
struct Cast {
  ConstVector x = {};
  Vector y = {};
  float scale = 1;
};

struct Fill {
  Vector y = {};
  float value = 0;
};

/// total = scale * sum of x (in double, by ascending index): the loss from per-token losses.
struct Total {
  std::span<const float> x = {};
  float scale = 1;
  float* total = nullptr;
};

/// loss[row] = mean over columns of (x - target)^2; dx = scale * 2 (x - target) / columns.
struct MeanSquaredErrorForward {
  ConstMatrix x = {}, target = {};
  std::span<float> loss = {};  ///< [rows]
};
struct MeanSquaredErrorGradient {
  ConstMatrix x = {}, target = {};
  float scale = 1;  ///< 1 / rows of the batch for a mean
  Matrix dx = {};   ///< may be x
};

}  // namespace meshwright
