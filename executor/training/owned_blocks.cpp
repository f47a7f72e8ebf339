#include "executor/training/owned_blocks.hpp"

namespace meshwright {

std::vector<Block> copied_columns(const ParameterShard& shard) {
  std::vector<Block> blocks;
  const std::int64_t columns = shard.extent(shard.held.size() - 1);
  std::int64_t first = 0;
  for (std::size_t r = 0; r < shard.column_copies.size(); ++r) {
    const std::int64_t size = shard.held.back()[r].size();
    for (std::int64_t row = 0; shard.column_copies[r] > 1 && row < shard.elements(); row += columns)
      blocks.push_back({shard.offset + row + first, shard.offset + row + first + size});
    first += size;
  }
  return blocks;
}

bool is_trained_by_gradient(const ModelGraph& model, const ParameterShard& shard) {
  const Tensor& tensor = model.tensors[shard.tensor.index()];
  return std::get<ParameterTensor>(tensor.shape).trained_by_gradient;
}

bool is_norm_or_bias(const ModelGraph& model, const ParameterShard& shard) {
  const Tensor& tensor = model.tensors[shard.tensor.index()];
  return std::get<ParameterTensor>(tensor.shape).shape.size() < 2 || is_bias(tensor);
}

}  // namespace meshwright
