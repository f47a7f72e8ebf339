/// The steps of fuse_kernels(): elements and rows in fuse_kernels.cpp, attention in
/// fuse_attention.cpp.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "models/onnx/fuse_kernels.hpp"

namespace meshwright::onnx {

inline constexpr std::int32_t kNone = -1;

inline bool is_product(const KernelNode& node) {
  return node.work.forward.size() == 1 && node.work.forward[0].kind == KernelKind::kGemm;
}

inline bool has_kernels(const KernelNode& node) {
  return !node.work.forward.empty() || !node.work.backward.empty();
}

/// A node that takes no time, with one output: another view of its first input.
inline bool is_view(const KernelNode& node, const std::vector<GraphTensor>& tensors) {
  return !has_kernels(node) && node.outputs.size() == 1 && node.outputs[0] >= 0 &&
         tensors[static_cast<std::size_t>(node.outputs[0])].view_of >= 0;
}

class KernelFusion {
 public:
  KernelFusion(KernelNodes& graph, const GraphSettings& settings);
  void run();

 private:
  using Cluster = std::vector<std::size_t>;  ///< ascending; the last one is the last node

  GraphTensor& tensor(std::int32_t index) {
    return graph_.tensors[static_cast<std::size_t>(index)];
  }
  const std::vector<std::size_t>& readers(std::int32_t index) const {
    return readers_[static_cast<std::size_t>(index)];
  }
  std::int32_t producer(std::int32_t index) const {
    return graph_.producer[static_cast<std::size_t>(index)];
  }
  std::int32_t root(std::int32_t index) const { return roots_[static_cast<std::size_t>(index)]; }
  bool is_in(std::size_t last, std::int32_t node) const {
    return node >= 0 && cluster_[static_cast<std::size_t>(node)] == static_cast<std::int32_t>(last);
  }
  Bytes bytes(std::int32_t index) { return bytes_of(tensor(index), settings_.dtype); }
  /// Of what a kernel reads through a view: at most the memory that it shows.
  Bytes bytes_read(std::int32_t index) { return std::min(bytes(index), bytes(root(index))); }
  bool is_read_only_by(std::int32_t output, std::size_t reader) const;

  void fuse_biases();
  bool is_bias_of(std::int32_t bias, std::int32_t product);

  void join_products(std::int32_t input);
  bool is_projection(std::size_t n, std::int32_t input);

  void form_clusters();
  Fusion fusion_of(const KernelNode& node);
  std::int32_t cluster_of_readers(std::size_t n) const;
  bool is_read_in_parts(std::size_t n) const;
  bool follows_rows(std::size_t n);
  bool is_alone(std::size_t n) const;
  void fuse_cluster(std::size_t last, const Cluster& members);
  Bytes bytes_of_views(std::int32_t root, const std::set<std::int32_t>& views);
  std::vector<std::int32_t> needed_roots(const Cluster& members, std::size_t last);
  Routine routine_of(const Cluster& members, std::size_t full_inputs) const;

  /// Scores, probabilities and what is between them.
  struct Scores {
    std::size_t product = 0;  ///< Q K^T
    Cluster members;          ///< from the scores to the probabilities
    bool causal = false, dropout = false;
  };
  std::optional<Scores> find_scores(std::size_t weighted_sum);
  void fuse_attention(std::size_t weighted_sum);
  std::int32_t operand(std::int32_t input, std::size_t last, Cluster& members);
  bool leaves_cluster(std::size_t n, std::int32_t input);
  void skip_copy_of(std::size_t last);

  void join(std::size_t member, std::size_t last);

  KernelNodes& graph_;
  std::vector<KernelNode>& nodes_;
  const GraphSettings& settings_;
  std::vector<std::int32_t> roots_;                ///< by tensor
  std::vector<std::vector<std::size_t>> readers_;  ///< by tensor, ascending
  std::vector<std::int32_t> cluster_;              ///< by node: its last node; kNone: in none
  std::vector<bool> is_closed_;                    ///< by node: nothing more can be fused with it
  std::map<std::size_t, Cluster> clusters_;        ///< by their last node
};

}  // namespace meshwright::onnx
