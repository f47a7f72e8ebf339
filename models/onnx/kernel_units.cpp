#include "models/onnx/kernel_units.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/indices.hpp"
#include "models/onnx/kernel_fusion.hpp"

namespace meshwright::onnx {
namespace {

/// Sets that are merged.
class Classes {
 public:
  std::size_t add() {
    parent_.push_back(parent_.size());
    return parent_.size() - 1;
  }
  std::size_t find(std::size_t of) {
    while (parent_[of] != of) of = parent_[of] = parent_[parent_[of]];
    return of;
  }
  void merge(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

/// Nodes that are fused, or products that have become one.
std::vector<std::vector<std::size_t>> nodes_of_units(const std::vector<KernelNode>& nodes) {
  Classes classes;
  for (std::size_t n = 0; n < nodes.size(); ++n) classes.add();
  for (std::size_t n = 0; n < nodes.size(); ++n)
    for (const std::int32_t with : {nodes[n].work.fused_into, nodes[n].joined_with})
      if (with >= 0) classes.merge(n, to_index(with));
  std::map<std::size_t, std::size_t> place;
  std::vector<std::vector<std::size_t>> units;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto [known, is_new] = place.emplace(classes.find(n), units.size());
    if (is_new) units.emplace_back();
    units[known->second].push_back(n);
  }
  return units;
}

class UnitReader {
 public:
  UnitReader(const KernelNodes& graph, const std::vector<std::size_t>& nodes, Dtype dtype,
             const std::vector<std::vector<std::size_t>>& readers)
      : graph_(graph), members_(nodes), dtype_(dtype), readers_(readers) {}

  KernelUnit read() {
    KernelUnit unit;
    for (const std::size_t n : members_) unit.nodes.push_back(static_cast<std::int32_t>(n));
    list_tensors();
    unit.results = results_;
    link_dimensions();
    for (const auto& [root, dimensions] : dimensions_of_classes())
      if (auto sharding = sharding_of(dimensions)) unit.shardings.push_back(std::move(*sharding));
    return unit;
  }

 private:
  using DimensionOf = std::map<std::int32_t, TensorDimension>;  ///< by tensor

  const KernelNode& node(std::size_t n) const { return graph_.nodes[n]; }
  const GraphTensor& tensor(std::int32_t t) const { return graph_.tensors[to_index(t)]; }
  bool is_member(std::size_t n) const { return std::ranges::binary_search(members_, n); }
  Bytes bytes(std::int32_t t) const {
    return tensor(t).dims ? bytes_of(tensor(t), dtype_) : Bytes(0);
  }
  bool is_used(std::int32_t output) const {
    return output >= 0 &&
           (graph_.is_graph_output[to_index(output)] || !readers_[to_index(output)].empty());
  }
  bool is_read_elsewhere(std::int32_t output) const {
    return graph_.is_graph_output[to_index(output)] ||
           !std::ranges::all_of(readers_[to_index(output)],
                                [&](std::size_t n) { return is_member(n); });
  }

  void list_tensors() {
    for (const std::size_t n : members_) {
      for (const std::int32_t input : node(n).inputs)
        if (input >= 0 && tensor(input).dims) {
          const std::int32_t producer = graph_.producer[to_index(input)];
          if (producer < 0 || !is_member(to_index(producer))) outside_.insert(input);
        }
      for (const std::int32_t output : node(n).outputs) {
        if (output < 0 || !tensor(output).dims) continue;
        if (is_used(output) && is_read_elsewhere(output)) outside_.insert(output);
        if (graph_.is_graph_output[to_index(output)] && readers_[to_index(output)].empty())
          results_ += bytes(output);
      }
      for (const Kernel& kernel : node(n).work.forward) {
        has_product_ = has_product_ || kernel.kind == KernelKind::kGemm ||
                       kernel.kind == KernelKind::kGroupedGemm;
        has_attention_ = has_attention_ || kernel.kind == KernelKind::kAttention;
      }
    }
  }

  std::size_t class_of(const TensorDimension& dimension) {
    const auto [known, is_new] = index_.emplace(dimension, 0);
    if (!is_new) return known->second;
    known->second = classes_.add();
    open_.push_back(dimension);
    return known->second;
  }
  TensorDimension whole(std::int32_t t, std::size_t dim) const {
    return {.tensor = t, .dim = static_cast<std::int32_t>(dim), .size = (*tensor(t).dims)[dim]};
  }

  /// What part of `to` is the part `part` of the dimension `from`, which is the same.
  static std::optional<TensorDimension> same_part(const TensorDimension& part,
                                                  const TensorDimension& from,
                                                  const TensorDimension& to) {
    if (part == from) return to;
    const std::int64_t stride = part.stride / from.stride;
    const bool is_inside = part.stride % from.stride == 0 &&
                           part.stride * part.size <= from.stride * from.size &&
                           from.size % (stride * part.size) == 0;
    if (!is_inside || to.size % (stride * part.size) != 0) return std::nullopt;
    return TensorDimension{
        .tensor = to.tensor, .dim = to.dim, .stride = stride * to.stride, .size = part.size};
  }

  /// Columns of products that have become one are divided together.
  std::vector<DimensionLinks::Pair> joined_columns() const {
    std::vector<DimensionLinks::Pair> pairs;
    std::optional<TensorDimension> columns;
    for (const std::size_t n : members_) {
      const bool is_joined = node(n).joined_with >= 0 || is_joined_with(n);
      if (!is_joined || node(n).outputs.empty() || node(n).outputs[0] < 0) continue;
      const std::int32_t output = node(n).outputs[0];
      const TensorDimension own = whole(output, tensor(output).dims->size() - 1);
      if (columns) pairs.push_back({own, *columns});
      columns = own;
    }
    return pairs;
  }
  bool is_joined_with(std::size_t n) const {
    return std::ranges::any_of(members_, [&](std::size_t other) {
      return node(other).joined_with >= 0 && to_index(node(other).joined_with) == n;
    });
  }

  /// All dimensions, and all parts of them that are dimensions elsewhere in the unit.
  void link_dimensions() {
    constexpr std::size_t kMostDimensionsOfUnit = 4096;
    std::vector<DimensionLinks::Pair> pairs = joined_columns();
    for (const std::size_t n : members_) {
      pairs.insert(pairs.end(), node(n).links.pairs.begin(), node(n).links.pairs.end());
      for (const TensorDimension& summed : node(n).links.summed) class_of(summed);
    }
    std::multimap<std::pair<std::int32_t, std::int32_t>, DimensionLinks::Pair> pairs_of;
    for (const auto& [a, b] : pairs) {
      pairs_of.insert({{a.tensor, a.dim}, {a, b}});
      pairs_of.insert({{b.tensor, b.dim}, {b, a}});
      class_of(a);
      class_of(b);
    }
    for (std::size_t i = 0; i < open_.size() && open_.size() < kMostDimensionsOfUnit; ++i) {
      const TensorDimension part = open_[i];
      const auto [begin, end] = pairs_of.equal_range({part.tensor, part.dim});
      for (auto pair = begin; pair != end; ++pair)
        if (const auto other = same_part(part, pair->second.a, pair->second.b))
          classes_.merge(class_of(part), class_of(*other));
    }
  }

  std::map<std::size_t, std::vector<TensorDimension>> dimensions_of_classes() {
    std::map<std::size_t, std::vector<TensorDimension>> dimensions;
    for (const auto& [dimension, index] : index_)
      dimensions[classes_.find(index)].push_back(dimension);
    return dimensions;
  }

  static bool has(const DimensionOf& divided, std::int32_t t) { return divided.contains(t); }
  static bool is_divided(const DimensionOf& divided, const TensorDimension& dimension) {
    const auto found = divided.find(dimension.tensor);
    return found != divided.end() && found->second.dim == dimension.dim;
  }

  std::optional<KernelSharding> sharding_of(const std::vector<TensorDimension>& dimensions) const {
    DimensionOf divided;
    KernelSharding sharding{.parts = 0};
    for (const TensorDimension& each : dimensions) {
      if (!divided.emplace(each.tensor, each).second) return std::nullopt;
      sharding.parts = std::gcd(sharding.parts, each.size);
    }
    for (const std::size_t n : members_) {
      for (const DimensionLinks::Limit& limit : node(n).links.limits)
        if (is_divided(divided, limit.dimension))
          sharding.parts = std::gcd(sharding.parts, limit.parts);
      for (const DimensionLinks::Statistics& sums : node(n).links.statistics)
        if (is_divided(divided, sums.dimension)) sharding.statistics += sums.bytes;
    }
    if (sharding.parts < 2 || !covers_nodes(divided, sharding)) return std::nullopt;
    if (!has_side(divided, sharding) || !has_matrices(divided)) return std::nullopt;
    for (const std::int32_t t : outside_)
      if (const auto found = divided.find(t); found != divided.end()) {
        const TensorDimension& dimension = found->second;
        const bool is_whole = dimension == whole(t, to_index(dimension.dim));
        sharding.tensors.push_back({t, dimension.dim, is_whole ? 0 : dimension.stride});
      }
    weigh(divided, sharding);
    return sharding;
  }

  /// Every node that reads a part writes a part. Sums over the dimension are left to the readers of
  /// the unit: biases may be added to them.
  bool covers_nodes(const DimensionOf& divided, KernelSharding& sharding) const {
    std::set<std::int32_t> sums;
    for (const std::size_t n : members_) {
      bool reads_part = false, reads_sum = false;
      for (const std::int32_t input : node(n).inputs) {
        reads_part = reads_part || has(divided, input);
        reads_sum = reads_sum || sums.contains(input);
      }
      const bool is_summed = std::ranges::any_of(
          node(n).links.summed,
          [&](const TensorDimension& each) { return is_divided(divided, each); });
      if (reads_sum && (node(n).work.operation != "Add" || reads_part)) return false;
      for (const std::int32_t output : node(n).outputs) {
        if (!is_used(output)) continue;
        if (has(divided, output)) {
          if (!reads_part) return false;
          continue;
        }
        if (reads_part && !is_summed) return false;
        if (reads_part || reads_sum) sums.insert(output);
      }
    }
    for (const std::int32_t t : outside_) {
      const std::int32_t producer = graph_.producer[to_index(t)];
      if (producer < 0 || !is_member(to_index(producer))) continue;
      if (!sums.contains(t) && !has(divided, t)) return false;
      sharding.gives_sums = sharding.gives_sums || sums.contains(t);
    }
    return !sharding.gives_sums || !has_attention_;
  }

  /// Of products: the size of the kernel that is divided, which is the same for all of them.
  bool has_side(const DimensionOf& divided, KernelSharding& sharding) const {
    if (!has_product_ && !has_attention_) return true;
    std::optional<ProductSide> side;
    for (const std::size_t n : members_) {
      if (node(n).links.summed.empty() || node(n).inputs.size() < 2) continue;
      const bool in_a = has(divided, node(n).inputs[0]), in_b = has(divided, node(n).inputs[1]);
      const bool in_result = has(divided, node(n).outputs[0]);
      if (!in_a && !in_b) return false;
      const ProductSide own = !in_result     ? ProductSide::kDepth
                              : in_a && in_b ? ProductSide::kBatch
                              : in_a         ? ProductSide::kRows
                                             : ProductSide::kColumns;
      if (side && *side != own) return false;
      side = own;
    }
    if (has_attention_ && side.value_or(ProductSide::kBatch) != ProductSide::kBatch) return false;
    sharding.side = side.value_or(ProductSide::kBatch);
    return true;
  }

  static bool is_matrix(const GraphTensor& tensor) {
    return tensor.is_parameter() &&
           std::ranges::count_if(*tensor.dims, [](std::int64_t size) { return size > 1; }) > 1;
  }
  bool has_matrices(const DimensionOf& divided) const {
    return std::ranges::all_of(
        outside_, [&](std::int32_t t) { return !is_matrix(tensor(t)) || divided.contains(t); });
  }

  void weigh(const DimensionOf& divided, KernelSharding& sharding) const {
    double parameters = 0, divided_parameters = 0, traffic = 0, divided_traffic = 0;
    for (const std::int32_t t : outside_) {
      const double size = static_cast<double>(bytes(t).value);
      const bool is_divided = divided.contains(t);
      traffic += size;
      divided_traffic += is_divided ? size : 0;
      if (!tensor(t).is_parameter()) continue;
      parameters += size;
      divided_parameters += is_divided ? size : 0;
    }
    sharding.parameters = parameters > 0 ? divided_parameters / parameters : 0;
    sharding.traffic = traffic > 0 ? divided_traffic / traffic : 0;
  }

  const KernelNodes& graph_;
  const std::vector<std::size_t>& members_;
  Dtype dtype_;
  const std::vector<std::vector<std::size_t>>& readers_;
  std::set<std::int32_t> outside_;  ///< tensors that it reads, and those that others read
  Bytes results_;
  bool has_product_ = false, has_attention_ = false;
  std::map<TensorDimension, std::size_t> index_;
  std::vector<TensorDimension> open_;
  Classes classes_;
};

}  // namespace

std::vector<KernelUnit> kernel_units(const KernelNodes& graph, Dtype dtype) {
  std::vector<std::vector<std::size_t>> readers(graph.tensors.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const std::int32_t input : graph.nodes[n].inputs)
      if (input >= 0) readers[to_index(input)].push_back(n);
  std::vector<KernelUnit> units;
  for (const std::vector<std::size_t>& nodes : nodes_of_units(graph.nodes))
    units.push_back(UnitReader(graph, nodes, dtype, readers).read());
  return units;
}

}  // namespace meshwright::onnx
