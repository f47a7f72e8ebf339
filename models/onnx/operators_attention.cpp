// Fused attention: the operator, and its kernels.
#include <algorithm>

#include "models/onnx/attention_kernels.hpp"
#include "models/onnx/operators.hpp"

namespace meshwright::onnx {

double scores_of(const AttentionSize& size) {
  return static_cast<double>(size.batch) * static_cast<double>(size.queries) *
         static_cast<double>(size.keys) * (size.causal ? 0.5 : 1);
}

Bytes softmax_statistics(const AttentionSize& size) {
  return Bytes(size.batch * size.queries * kFloat32Bytes);
}

Kernel attention_kernel(const AttentionSize& size, Phase phase, Dtype dtype) {
  Kernel made;
  made.kind = KernelKind::kAttention;
  made.phase = phase;
  made.routine = Routine::kAttention;
  made.dtype = dtype;
  made.causal = size.causal;
  made.dropout = size.dropout;
  made.batch = size.batch;
  made.m = size.queries;
  made.n = size.keys;
  made.k = size.key_size;
  made.value_size = size.value_size;
  const bool is_forward = phase == Phase::kForward;
  const std::int64_t products =
      is_forward ? size.key_size + size.value_size : 3 * size.key_size + 2 * size.value_size;
  made.flops = Flops(2 * scores_of(size) * static_cast<double>(products));
  made.memory_traffic = size.operands * std::int64_t{is_forward ? 1 : 2};
  return made;
}

namespace {

/// Of opset 23: queries [B, H, T, D] or [B, T, H D], keys and values likewise.
struct HeadSizes {
  std::int64_t heads = 1, key_value_heads = 1, key_size = 1, value_size = 1;
};
HeadSizes head_sizes(const NodeContext& node, bool is_flat) {
  node.require(node.rank(1) == node.rank(0) && node.rank(2) == node.rank(0),
               "queries, keys and values of different ranks");
  const std::int64_t heads = is_flat ? node.integer("q_num_heads", 0) : node.dims(0)[1];
  const std::int64_t key_value_heads = is_flat ? node.integer("kv_num_heads", 0) : node.dims(1)[1];
  node.require(heads >= 1 && key_value_heads >= 1 && heads <= 1 << 20, "missing number of heads");
  const auto width = [&](std::size_t i, std::int64_t count) {
    return std::max<std::int64_t>(1, is_flat ? node.dims(i)[2] / count : node.dims(i)[3]);
  };
  return {.heads = heads,
          .key_value_heads = key_value_heads,
          .key_size = width(0, heads),
          .value_size = width(2, key_value_heads)};
}

/// A mask that compares positions, for every query.
bool is_causal(const GraphTensor& mask) {
  const Dimensions& dims = *mask.dims;
  return mask.is_triangular && dims.size() >= 2 && dims[dims.size() - 2] > 1;
}

}  // namespace

void apply_attention(NodeContext& node) {
  node.require(node.rank(0) == 3 || node.rank(0) == 4, "queries without 3 or 4 dimensions");
  const bool is_flat = node.rank(0) == 3;
  const HeadSizes heads = head_sizes(node, is_flat);
  Dimensions dims = node.dims(0);
  dims.back() = is_flat ? heads.heads * heads.value_size : heads.value_size;
  node.set_output(std::move(dims));
  const std::size_t head_axis = is_flat ? 2 : 1;
  for (std::size_t i = 0; i < 3; ++i) {
    node.link(i, 0, 0);
    node.link(i, head_axis, head_axis);
    if (is_flat) node.limit_parts(i, 2, i == 0 ? heads.heads : heads.key_value_heads);
  }
  // A bias [B, H, T, S] of the scores, of which leading dimensions may be missing.
  const std::size_t bias_rank = node.has_input(3) ? node.rank(3) : 0;
  for (std::size_t axis = 0; !is_flat && axis < 2; ++axis)
    if (bias_rank + axis >= 4) node.link(3, bias_rank + axis - 4, axis);
  const AttentionSize size{.batch = node.dims(0)[0] * heads.heads,
                           .queries = node.dims(0)[is_flat ? 1 : 2],
                           .keys = std::max<std::int64_t>(1, node.dims(1)[is_flat ? 1 : 2]),
                           .key_size = heads.key_size,
                           .value_size = heads.value_size,
                           .causal = node.integer("is_causal", 0) != 0 ||
                                     (node.has_input(3) && is_causal(node.input(3))),
                           .operands = Bytes(node.bytes_of_input(0) + node.bytes_of_input(1) +
                                             node.bytes_of_input(2) + node.bytes_of_output(0))};
  node.require(scores_of(size) < 0x1p60, "attention over too many elements");
  if (size.batch == 0 || size.queries == 0) return;
  node.add_forward(attention_kernel(size, Phase::kForward, node.settings().dtype));
  if (!node.settings().is_training || !node.any_needs_gradient()) return;
  for (std::size_t i = 0; i < 3; ++i) node.save_input(i);
  node.save_output(0);
  node.save(softmax_statistics(size).value);
  node.add_backward(attention_kernel(size, Phase::kBackwardInput, node.settings().dtype));
}

}  // namespace meshwright::onnx
