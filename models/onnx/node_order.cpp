#include "models/onnx/node_order.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace meshwright::onnx {

std::vector<std::size_t> topological_order(const std::vector<std::vector<std::int32_t>>& inputs,
                                           const std::vector<GraphTensor>& tensors) {
  std::vector<std::vector<std::size_t>> readers(inputs.size());
  std::vector<std::size_t> missing(inputs.size(), 0), order;
  for (std::size_t v = 0; v < inputs.size(); ++v)
    for (const std::int32_t input : inputs[v]) {
      if (input < 0) continue;
      const std::int32_t producer = tensors[static_cast<std::size_t>(input)].producer;
      if (producer < 0) continue;
      readers[static_cast<std::size_t>(producer)].push_back(v);
      ++missing[v];
    }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t v = 0; v < missing.size(); ++v)
    if (missing[v] == 0) ready.push(v);
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::size_t reader : readers[order.back()])
      if (--missing[reader] == 0) ready.push(reader);
  }
  return order;
}

std::size_t first_missing(const std::vector<std::size_t>& indices, std::size_t count) {
  std::vector<bool> is_there(count, false);
  for (const std::size_t index : indices) is_there[index] = true;
  return static_cast<std::size_t>(std::ranges::find(is_there, false) - is_there.begin());
}

}  // namespace meshwright::onnx
