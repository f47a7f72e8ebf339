/// Where the parameters of a model are in the tensors of another program's files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace meshwright {

/// Some columns (of the last dimension) of a parameter, and the tensor that holds them. Column j of
/// the part is column first_in_file + j / block * stride + j % block of the tensor.
struct WeightPart {
  std::string tensor;
  bool transposed = false;  ///< the columns are the rows of the tensor
  std::int64_t first = 0, columns = 0;
  std::int64_t expert = -1;  ///< the part is in this slice of the first dimension; -1: in all
  std::int64_t first_in_file = 0;
  std::int64_t block = 0, stride = 0;  ///< block 0: column first_in_file + j

  std::int64_t column_in_file(std::int64_t j) const {
    return first_in_file + (block == 0 ? j : j / block * stride + j % block);
  }
  friend bool operator==(const WeightPart&, const WeightPart&) = default;
};

/// By name of the parameter.
using WeightLayout = std::map<std::string, std::vector<WeightPart>>;

}  // namespace meshwright
