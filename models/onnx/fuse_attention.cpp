#include <algorithm>

#include "models/onnx/attention_kernels.hpp"
#include "models/onnx/kernel_fusion.hpp"

namespace meshwright::onnx {
namespace {

/// Views and factors before attention.
constexpr std::size_t kMostAttentionNodes = 256;

}  // namespace

/// The cluster with a softmax between two products, if nothing else reads what is in it.
std::optional<KernelFusion::Scores> KernelFusion::find_scores(std::size_t weighted_sum) {
  const KernelNode& sum = nodes_[weighted_sum];
  if (!is_product(sum) || is_closed_[weighted_sum] || sum.inputs.size() != 2) return std::nullopt;
  std::int32_t probabilities = sum.inputs[0];
  if (probabilities < 0 || tensor(sum.inputs[1]).is_parameter()) return std::nullopt;
  Scores found;
  std::size_t reader = weighted_sum;
  while (producer(probabilities) >= 0 &&
         is_view(nodes_[static_cast<std::size_t>(producer(probabilities))], graph_.tensors)) {
    if (!is_read_only_by(probabilities, reader)) return std::nullopt;
    reader = static_cast<std::size_t>(producer(probabilities));
    found.members.push_back(reader);
    probabilities = nodes_[reader].inputs[0];
  }
  const std::int32_t last = producer(probabilities);
  if (last < 0 || cluster_[static_cast<std::size_t>(last)] != last ||
      is_closed_[static_cast<std::size_t>(last)] || !is_read_only_by(probabilities, reader))
    return std::nullopt;
  const Cluster& cluster = clusters_.at(static_cast<std::size_t>(last));
  found.members.insert(found.members.end(), cluster.begin(), cluster.end());
  const Bytes size = bytes(probabilities);
  int softmaxes = 0;
  std::int32_t scores = kNone;
  for (const std::size_t member : cluster) {
    const KernelNode& node = nodes_[member];
    softmaxes += node.rule->name == "Softmax" ? 1 : 0;
    found.dropout = found.dropout || (node.rule->name == "Dropout" && has_kernels(node));
    for (const std::int32_t input : node.inputs) {
      if (input < 0) continue;
      found.causal = found.causal || tensor(input).is_triangular;
      if (is_in(static_cast<std::size_t>(last), producer(input))) continue;
      const std::int32_t source = producer(root(input));
      if (bytes(input) != size || source < 0 ||
          !is_product(nodes_[static_cast<std::size_t>(source)]))
        continue;
      if (scores != kNone && scores != input) return std::nullopt;  // a sum of two products
      scores = input;
    }
  }
  if (softmaxes != 1 || scores == kNone) return std::nullopt;
  // From the product to the cluster: views.
  for (std::int32_t view = scores; tensor(view).view_of >= 0; view = tensor(view).view_of) {
    const auto source = static_cast<std::size_t>(producer(view));
    if (cluster_[source] != last) found.members.push_back(source);
  }
  found.product = static_cast<std::size_t>(producer(root(scores)));
  const KernelNode& product = nodes_[found.product];
  if (is_closed_[found.product] || product.inputs.size() != 2 ||
      tensor(product.inputs[0]).is_parameter() || tensor(product.inputs[1]).is_parameter())
    return std::nullopt;
  std::ranges::sort(found.members);
  const auto stays = [&](std::int32_t output) {
    return !graph_.is_graph_output[static_cast<std::size_t>(output)] &&
           std::ranges::all_of(readers(output), [&](std::size_t n) {
             return std::ranges::binary_search(found.members, n);
           });
  };
  for (std::int32_t view = scores;; view = tensor(view).view_of) {
    if (!stays(view)) return std::nullopt;
    if (tensor(view).view_of < 0) break;
  }
  return found;
}

/// The last node of a cluster, which becomes part of another kernel: the node before it, which
/// computes `input`, is then the last one. False if the cluster would have several last nodes.
bool KernelFusion::leaves_cluster(std::size_t n, std::int32_t input) {
  if (cluster_[n] == kNone) return true;
  if (cluster_[n] != static_cast<std::int32_t>(n)) return false;
  Cluster rest = clusters_.at(n);
  rest.pop_back();
  if (!rest.empty() && producer(input) != static_cast<std::int32_t>(rest.back())) return false;
  clusters_.erase(n);
  cluster_[n] = kNone;
  if (rest.empty()) return true;
  const std::size_t last = rest.back();
  for (const std::size_t member : rest) cluster_[member] = static_cast<std::int32_t>(last);
  clusters_.emplace(last, std::move(rest));
  return true;
}

/// The memory behind an operand. Views of it, copies in another layout and factors that are the
/// same for all elements are part of attention, if only it reads them: they become members.
std::int32_t KernelFusion::operand(std::int32_t input, std::size_t last, Cluster& members) {
  const auto is_member = [&](std::size_t n) {
    return n == last || std::ranges::find(members, n) != members.end();
  };
  for (;;) {
    const std::int32_t source = producer(input);
    if (source < 0 || members.size() > kMostAttentionNodes ||
        !std::ranges::all_of(readers(input), is_member) ||
        graph_.is_graph_output[static_cast<std::size_t>(input)])
      return input;
    const auto n = static_cast<std::size_t>(source);
    const KernelNode& node = nodes_[n];
    const bool is_reshaped = is_view(node, graph_.tensors) || node.work.operation == "Reshape";
    std::size_t scaled = 0;
    if (!is_reshaped) {
      const bool is_scale =
          (node.rule->name == "Mul" || node.rule->name == "Div") && node.inputs.size() == 2;
      if (!is_scale) return input;
      scaled = *element_count(*tensor(node.inputs[0]).dims) == 1 ? 1 : 0;
      if (*element_count(*tensor(node.inputs[1 - scaled]).dims) != 1) return input;
    }
    if (is_closed_[n] || node.outputs.size() != 1 || !leaves_cluster(n, node.inputs[scaled]))
      return input;
    members.push_back(n);
    input = node.inputs[scaled];
  }
}

/// Fused attention writes its result in the layout that the next product reads.
void KernelFusion::skip_copy_of(std::size_t last) {
  std::int32_t output = nodes_[last].outputs[0];
  while (readers(output).size() == 1) {
    const std::size_t reader = readers(output).front();
    KernelNode& node = nodes_[reader];
    if (is_view(node, graph_.tensors)) {
      output = node.outputs[0];
      continue;
    }
    if (node.work.operation != "Reshape" || !tensor(output).is_transposed || !is_alone(reader))
      return;
    node.work.forward.clear();
    node.work.backward.clear();
    tensor(node.outputs[0]).view_of = output;
    return;
  }
}

void KernelFusion::fuse_attention(std::size_t weighted_sum) {
  const std::optional<Scores> scores = find_scores(weighted_sum);
  if (!scores) return;
  const Kernel& first = nodes_[scores->product].work.forward[0];
  const Kernel& second = nodes_[weighted_sum].work.forward[0];
  if (first.batch * first.m != second.batch * second.m || first.n != second.k) return;
  Cluster members = scores->members;
  members.push_back(scores->product);
  const std::int32_t query = operand(nodes_[scores->product].inputs[0], weighted_sum, members);
  const std::int32_t key = operand(nodes_[scores->product].inputs[1], weighted_sum, members);
  const std::int32_t value = operand(nodes_[weighted_sum].inputs[1], weighted_sum, members);
  const std::int32_t result = nodes_[weighted_sum].outputs[0];
  AttentionSize size{
      .batch = first.batch,
      .queries = first.m,
      .keys = first.n,
      .key_size = first.k,
      .value_size = second.n,
      .causal = scores->causal && first.m > 1,
      .dropout = scores->dropout,
      .operands = bytes_read(query) + bytes_read(key) + bytes_read(value) + bytes(result)};
  const bool is_trained = !nodes_[weighted_sum].work.backward.empty();
  for (const std::size_t member : members) {
    if (nodes_[member].rule->name == "Dropout") nodes_[member].work.saved = {};
    join(member, weighted_sum);
  }
  KernelNode& fused = nodes_[weighted_sum];
  fused.work.forward = {attention_kernel(size, Phase::kForward, settings_.dtype)};
  fused.work.backward.clear();
  fused.saved.clear();
  if (is_trained) {
    fused.work.backward = {attention_kernel(size, Phase::kBackwardInput, settings_.dtype)};
    fused.work.saved += softmax_statistics(size);
    fused.saved = {query, key, value, result};
  }
  skip_copy_of(weighted_sum);
}

}  // namespace meshwright::onnx
