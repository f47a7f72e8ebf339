#include "models/onnx/fuse_kernels.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "models/onnx/kernel_fusion.hpp"

namespace meshwright::onnx {
namespace {

/// torch.compile limits fused kernels to 64 nodes, too.
constexpr std::size_t kMostFusedNodes = 64;

/// `kernel` with the columns of `other`, which reads or writes the same `shared` bytes.
void widen(Kernel& kernel, const Kernel& other, Bytes shared) {
  kernel.flops += other.flops;
  kernel.memory_traffic += other.memory_traffic;
  if (kernel.kind != KernelKind::kGemm) return;
  kernel.memory_traffic -= shared;
  (kernel.phase == Phase::kBackwardInput ? kernel.k : kernel.n) +=
      kernel.phase == Phase::kBackwardInput ? other.k : other.n;
}

}  // namespace

KernelFusion::KernelFusion(KernelNodes& graph, const GraphSettings& settings)
    : graph_(graph),
      nodes_(graph.nodes),
      settings_(settings),
      roots_(roots_of(graph.tensors)),
      readers_(graph.tensors.size()),
      cluster_(graph.nodes.size(), kNone),
      is_closed_(graph.nodes.size(), false) {
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    for (const std::int32_t input : nodes_[n].inputs) {
      if (input < 0) continue;
      auto& readers = readers_[static_cast<std::size_t>(input)];
      if (readers.empty() || readers.back() != n) readers.push_back(n);
    }
}

void KernelFusion::run() {
  fuse_biases();
  for (std::size_t t = 0; t < graph_.tensors.size(); ++t)
    join_products(static_cast<std::int32_t>(t));
  form_clusters();
  for (std::size_t n = 0; n < nodes_.size(); ++n) fuse_attention(n);
  for (auto& [last, members] : clusters_) fuse_cluster(last, members);
}

/// `last` does the work of `member` from now on.
void KernelFusion::join(std::size_t member, std::size_t last) {
  MW_CHECK(member < last);
  nodes_[member].work.forward.clear();
  nodes_[member].work.backward.clear();
  nodes_[member].work.fused_into = static_cast<std::int32_t>(last);
  nodes_[member].saved.clear();
  is_closed_[member] = is_closed_[last] = true;
}

bool KernelFusion::is_read_only_by(std::int32_t output, std::size_t reader) const {
  return !graph_.is_graph_output[static_cast<std::size_t>(output)] &&
         readers(output) == std::vector{reader};
}

// ---- biases ---------------------------------------------------------------------------------

/// One element per column of the product, or per channel of a convolution.
bool KernelFusion::is_bias_of(std::int32_t bias, std::int32_t product) {
  if (bias < 0 || product < 0 || !tensor(bias).is_parameter() || producer(product) < 0)
    return false;
  const std::int64_t elements = *element_count(*tensor(bias).dims);
  const Dimensions& dims = *tensor(product).dims;
  return std::ranges::find(dims, elements) != dims.end() && elements < *element_count(dims);
}

/// A product adds the bias to its result before it is written; the gradient of the bias is the sum
/// of the rows of the result's gradient.
void KernelFusion::fuse_biases() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    KernelNode& sum = nodes_[n];
    if (sum.work.operation != "Add" || sum.inputs.size() != 2) continue;
    const bool is_first = is_bias_of(sum.inputs[0], sum.inputs[1]);
    const std::int32_t result = sum.inputs[is_first ? 1 : 0];
    if (!is_first && !is_bias_of(sum.inputs[1], sum.inputs[0])) continue;
    const auto product = static_cast<std::size_t>(producer(result));
    if (!is_product(nodes_[product]) || is_closed_[product] || !is_read_only_by(result, n) ||
        tensor(sum.outputs[0]).dims != tensor(result).dims)
      continue;
    Kernel gradient;
    gradient.kind = KernelKind::kMemoryBound;
    gradient.phase = Phase::kBackwardWeight;
    gradient.routine = Routine::kBias;
    gradient.dtype = settings_.dtype;
    gradient.memory_traffic = bytes(result);
    const bool is_trained = !sum.work.backward.empty();
    sum.work.forward = std::move(nodes_[product].work.forward);
    sum.work.backward = std::move(nodes_[product].work.backward);
    if (is_trained) sum.work.backward.push_back(gradient);
    sum.saved = std::move(nodes_[product].saved);
    join(product, n);
  }
}

// ---- products of one tensor -----------------------------------------------------------------

/// A product of `input` and a parameter.
bool KernelFusion::is_projection(std::size_t n, std::int32_t input) {
  const KernelNode& node = nodes_[n];
  const bool is_matrix_product =
      node.rule->name == "MatMul" || node.rule->name == "Gemm" || node.rule->name == "Linear";
  return is_matrix_product && node.inputs[0] == input && tensor(node.inputs[1]).is_parameter();
}

/// Projections of one tensor, such as queries, keys and values, or gate and value, are one product
/// with their weights side by side. Its kernels belong to the first one.
void KernelFusion::join_products(std::int32_t input) {
  KernelNode* first = nullptr;
  std::size_t first_reader = 0;
  const auto same = [](const Kernel& a, const Kernel& b) { return a.phase == b.phase; };
  for (const std::size_t reader : readers(input)) {
    if (!is_projection(reader, input)) continue;
    // A bias that was added in the product has its kernels.
    const std::int32_t sum = nodes_[reader].work.fused_into;
    KernelNode& node = nodes_[sum < 0 ? reader : static_cast<std::size_t>(sum)];
    if (node.work.forward.size() != 1 || node.work.forward[0].batch != 1) continue;
    if (first == nullptr) {
      first = &node;
      first_reader = reader;
      continue;
    }
    KernelGraphNode& into = first->work;
    if (node.work.forward[0].m != into.forward[0].m ||
        !std::ranges::equal(node.work.backward, into.backward, same))
      continue;
    widen(into.forward[0], node.work.forward[0], bytes(input));
    for (std::size_t i = 0; i < into.backward.size(); ++i)
      widen(into.backward[i], node.work.backward[i], bytes(input));
    node.work.forward.clear();
    node.work.backward.clear();
    is_closed_[reader] = true;
    nodes_[reader].joined_with = static_cast<std::int32_t>(first_reader);
    first->saved.insert(first->saved.end(), node.saved.begin(), node.saved.end());
    node.saved.clear();
  }
}

// ---- elements and rows ----------------------------------------------------------------------

/// Reductions need whole rows if they are over the last axis; others are kernels of their own.
Fusion KernelFusion::fusion_of(const KernelNode& node) {
  if (node.rule->fusion != Fusion::kRows) return node.rule->fusion;
  const Dimensions& in = *tensor(node.inputs[0]).dims;
  if (!tensor(node.outputs[0]).dims || in.empty()) return Fusion::kNone;
  const std::int64_t kept = *element_count(*tensor(node.outputs[0]).dims);
  const std::int64_t all = *element_count(in);
  const bool is_row_wise = kept == all || kept * in.back() == all;
  const Dimensions& out = *tensor(node.outputs[0]).dims;
  const bool is_last_axis =
      std::equal(in.begin(), in.end() - 1, out.begin(),
                 out.begin() + static_cast<std::ptrdiff_t>(std::min(out.size(), in.size() - 1)));
  return is_row_wise && is_last_axis ? Fusion::kRows : Fusion::kNone;
}

/// The cluster of all nodes that read an output of node `n`; kNone if they are of several, or if
/// the output is one of the graph.
std::int32_t KernelFusion::cluster_of_readers(std::size_t n) const {
  std::int32_t cluster = kNone;
  for (const std::int32_t output : nodes_[n].outputs) {
    if (output < 0) continue;
    if (graph_.is_graph_output[static_cast<std::size_t>(output)]) return kNone;
    for (const std::size_t reader : readers(output)) {
      if (cluster_[reader] == kNone || (cluster != kNone && cluster_[reader] != cluster))
        return kNone;
      cluster = cluster_[reader];
    }
  }
  return cluster;
}

/// Whether readers take only some of its elements, such as the halves that a rotary embedding
/// swaps.
bool KernelFusion::is_read_in_parts(std::size_t n) const {
  std::vector<std::int32_t> open = nodes_[n].outputs;
  while (!open.empty()) {
    const std::int32_t whole = open.back();
    open.pop_back();
    if (whole < 0 || !graph_.tensors[static_cast<std::size_t>(whole)].dims) continue;
    for (const std::size_t reader : readers(whole)) {
      if (has_kernels(nodes_[reader])) continue;
      for (const std::int32_t view : nodes_[reader].outputs) {
        if (view < 0) continue;
        const GraphTensor& shown = graph_.tensors[static_cast<std::size_t>(view)];
        if (shown.view_of != whole || !shown.dims) continue;
        if (*element_count(*shown.dims) <
            *element_count(*graph_.tensors[static_cast<std::size_t>(whole)].dims))
          return true;
        open.push_back(view);
      }
    }
  }
  return false;
}

/// Whether it is computed from elements and a reduction of their row, such as the last product of a
/// norm.
bool KernelFusion::follows_rows(std::size_t n) {
  constexpr std::size_t kMostSteps = 16;
  std::vector<std::size_t> open{n};
  for (std::size_t i = 0; i < open.size() && i < kMostSteps; ++i) {
    const Fusion fusion = is_closed_[open[i]] ? Fusion::kNone : fusion_of(nodes_[open[i]]);
    if (fusion == Fusion::kRows) return true;
    if (fusion == Fusion::kNone) continue;
    for (const std::int32_t input : nodes_[open[i]].inputs)
      if (input >= 0 && producer(input) >= 0)
        open.push_back(static_cast<std::size_t>(producer(input)));
  }
  return false;
}

/// A norm whose result is read in parts is a kernel of its own: the threads of a row would need the
/// elements of others.
///
/// From the last node to the first: a node joins its readers. Views only join, as they take no
/// time.
void KernelFusion::form_clusters() {
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    if (is_closed_[n] || fusion_of(nodes_[n]) == Fusion::kNone) continue;
    const bool ends = has_kernels(nodes_[n]) && is_read_in_parts(n) && follows_rows(n);
    const std::int32_t joined = ends ? kNone : cluster_of_readers(n);
    if (joined != kNone && clusters_[static_cast<std::size_t>(joined)].size() < kMostFusedNodes) {
      cluster_[n] = joined;
      clusters_[static_cast<std::size_t>(joined)].push_back(n);
    } else if (has_kernels(nodes_[n])) {
      cluster_[n] = static_cast<std::int32_t>(n);
      clusters_[n].push_back(n);
    }
  }
  for (auto& [last, members] : clusters_) std::ranges::reverse(members);
}

/// The only node of its cluster that takes time.
bool KernelFusion::is_alone(std::size_t n) const {
  if (cluster_[n] != static_cast<std::int32_t>(n)) return false;
  return std::ranges::count_if(
             clusters_.at(n), [&](std::size_t member) { return has_kernels(nodes_[member]); }) == 1;
}

/// Bytes that a kernel reads of `root` through views of it: a view of another one that is read,
/// too, needs no more.
Bytes KernelFusion::bytes_of_views(std::int32_t root, const std::set<std::int32_t>& views) {
  constexpr int kLongestChain = 8;
  Bytes sum;
  for (const std::int32_t view : views) {
    bool is_counted = false;
    std::int32_t shown = tensor(view).view_of;
    for (int i = 0; shown >= 0 && i < kLongestChain; ++i, shown = tensor(shown).view_of)
      is_counted = is_counted || views.contains(shown);
    if (!is_counted) sum += bytes_read(view);
  }
  return std::min(sum, bytes(root));
}

/// Memory that the gradient of a cluster reads: what its nodes save, but instead of results within
/// the cluster what they are computed from, again.
std::vector<std::int32_t> KernelFusion::needed_roots(const Cluster& members, std::size_t last) {
  std::vector<std::int32_t> needed, open;
  for (const std::size_t member : members)
    for (const std::int32_t saved : nodes_[member].saved) open.push_back(root(saved));
  std::set<std::int32_t> seen;
  while (!open.empty()) {
    const std::int32_t next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    const std::int32_t source = producer(next);
    if (source == static_cast<std::int32_t>(last) || !is_in(last, source)) {
      needed.push_back(next);
      continue;
    }
    for (const std::int32_t input : nodes_[static_cast<std::size_t>(source)].inputs)
      if (input >= 0) open.push_back(root(input));
  }
  return needed;
}

/// The family of kernels that a fused one is priced as.
Routine KernelFusion::routine_of(const Cluster& members, std::size_t full_inputs) const {
  bool has_rows = false, has_softmax = false, has_differences = false, has_functions = false;
  for (const std::size_t member : members) {
    const OperatorRule& rule = *nodes_[member].rule;
    has_softmax = has_softmax || rule.routine == Routine::kSoftmax;
    has_rows = has_rows || rule.fusion == Fusion::kRows;
    has_differences = has_differences || rule.name == "Sub";
    has_functions = has_functions || rule.routine == Routine::kGelu;
  }
  if (has_softmax) return Routine::kSoftmax;
  if (has_rows) return has_differences ? Routine::kLayerNorm : Routine::kRmsNorm;
  if (has_functions) return full_inputs > 1 ? Routine::kSwiGlu : Routine::kGelu;
  return nodes_[members.back()].rule->routine;
}

void KernelFusion::fuse_cluster(std::size_t last, const Cluster& members) {
  if (is_closed_[last]) return;  // part of attention
  const auto takes_time = [&](std::size_t n) { return has_kernels(nodes_[n]); };
  if (std::ranges::count_if(members, takes_time) < 2) return;
  std::map<std::int32_t, std::set<std::int32_t>> inputs;  // views that are read, by root
  Bytes masks;
  bool is_trained = false;
  for (const std::size_t member : members) {
    masks += nodes_[member].work.saved;
    is_trained = is_trained || !nodes_[member].work.backward.empty();
    for (const std::int32_t input : nodes_[member].inputs)
      if (input >= 0 && !is_in(last, producer(input))) inputs[root(input)].insert(input);
  }
  Bytes read, written, gradients, saved;
  for (const std::int32_t output : nodes_[last].outputs)
    if (output >= 0 && tensor(output).dims) written += bytes(output);
  std::size_t full_inputs = 0;
  for (const auto& [root, views] : inputs) {
    const Bytes size = bytes_of_views(root, views);
    read += size;
    if (tensor(root).needs_gradient) gradients += size;
    full_inputs += size >= written ? 1 : 0;
  }
  const std::vector<std::int32_t> needed = needed_roots(members, last);
  for (const std::int32_t root : needed) {
    const auto views = inputs.find(root);
    saved += views == inputs.end() ? bytes(root) : bytes_of_views(root, views->second);
  }
  Kernel kernel;
  kernel.kind = KernelKind::kMemoryBound;
  kernel.phase = Phase::kForward;
  kernel.routine = routine_of(members, full_inputs);
  kernel.dtype = settings_.dtype;
  kernel.memory_traffic = read + written + masks;
  for (const std::size_t member : members)
    if (member != last) join(member, last);
  KernelNode& fused = nodes_[last];
  is_closed_[last] = true;
  fused.work.forward = {kernel};
  fused.work.backward.clear();
  if (is_trained) {
    kernel.phase = Phase::kBackwardInput;
    kernel.memory_traffic = written + saved + gradients + masks;
    fused.work.backward = {kernel};
  }
  fused.saved = needed;
}

std::vector<std::int32_t> roots_of(const std::vector<GraphTensor>& tensors) {
  std::vector<std::int32_t> roots(tensors.size(), kNone);
  std::vector<std::size_t> chain;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::size_t at = t;
    for (; roots[at] == kNone && tensors[at].view_of >= 0;
         at = static_cast<std::size_t>(tensors[at].view_of))
      chain.push_back(at);
    if (roots[at] == kNone) roots[at] = static_cast<std::int32_t>(at);
    for (const std::size_t view : chain) roots[view] = roots[at];
    chain.clear();
  }
  return roots;
}

void fuse_kernels(KernelNodes& graph, const GraphSettings& settings) {
  KernelFusion(graph, settings).run();
}

}  // namespace meshwright::onnx
