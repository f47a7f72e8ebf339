#include "executor/parameters/parameter_shards.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <thread>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/base/random.hpp"
#include "core/operators/shard_shape.hpp"

namespace meshwright {
namespace {

const ParameterTensor& parameter(const ModelGraph& model, TensorId id) {
  return std::get<ParameterTensor>(model.tensors[id.index()].shape);
}

/// Columns of one projection of a fused matrix. Heads are not split: with fewer heads than ranks,
/// neighboring ranks hold copies.
struct ProjectionColumns {
  std::int64_t width = 0;
  int heads = 0;  ///< 0: not split by heads
};

std::vector<IndexRange> cut(std::span<const ProjectionColumns> projections, int index, int parts) {
  std::vector<IndexRange> held;
  std::int64_t first = 0;
  for (const auto& [width, heads] : projections) {
    const int cuts = heads > 0 ? std::min(heads, parts) : parts;
    const std::int64_t size = width / cuts;
    MW_CHECK(size * cuts == width);
    MW_CHECK(parts % cuts == 0);
    const std::int64_t mine = index / (parts / cuts);
    held.push_back({first + mine * size, first + (mine + 1) * size});
    first += width;
  }
  return held;
}

/// Shard `index` of `parts` of every run.
std::vector<IndexRange> cut(std::span<const std::int64_t> runs, int index, int parts) {
  std::vector<IndexRange> held;
  std::int64_t first = 0;
  for (const std::int64_t run : runs) {
    const std::int64_t size = run / parts;
    MW_CHECK(size * parts == run);
    held.push_back({first + index * size, first + (index + 1) * size});
    first += run;
  }
  return held;
}

/// Determines how each parameter of one operator is sharded.
class OperatorShards {
 public:
  OperatorShards(const ModelGraph& model, const Operator& op, const ShardPosition& place)
      : model_(model), op_(op), place_(place) {}

  ParameterShard shard_of(std::size_t number) const {
    const TensorId id = op_.parameters[number];
    const ParameterTensor& whole = parameter(model_, id);
    ParameterShard shard;
    shard.tensor = id;
    shard.expert = whole.cut == ParameterCut::kExpert;
    for (const std::int64_t extent : whole.shape) shard.held.push_back({{0, extent}});
    if (whole.cut == ParameterCut::kTensor) cut_over_tensor(number, shard);
    if (whole.cut == ParameterCut::kExpert) cut_over_experts(shard);
    shard.is_cut = shard.expert || (whole.cut == ParameterCut::kTensor && place_.tensors > 1);
    return shard;
  }

 private:
  std::vector<ProjectionColumns> projections() const {
    std::vector<ProjectionColumns> list;
    for (const TensorId id : op_.outputs) {
      const auto& output = std::get<ActivationTensor>(model_.tensors[id.index()].shape);
      list.push_back({output.width, output.heads});
    }
    return list;
  }

  /// A block of the vocabulary, padded to equal blocks.
  std::vector<IndexRange> words(std::int64_t rows) const {
    const std::array<std::int64_t, 1> padded{padded_vocabulary(rows, place_.tensors)};
    return cut(padded, place_.tensor, place_.tensors);
  }

  void cut_over_tensor(std::size_t number, ParameterShard& shard) const {
    const auto* linear = std::get_if<Linear>(&op_.shape);
    if (std::holds_alternative<EmbeddingLookup>(op_.shape)) {
      shard.held[0] = words(shard.held[0][0].end);
    } else if (linear != nullptr && linear->cut == LinearCut::kColumn) {
      cut_columns(number, *linear, shard);
    } else {  // rows of a row-parallel matrix; sinks of the heads
      const std::array<std::int64_t, 1> all{shard.held[0][0].end};
      shard.held[0] = cut(all, place_.tensor, place_.tensors);
    }
  }

  /// Shards the last dimension of matrix and bias; the vocabulary of a tied table is its first.
  void cut_columns(std::size_t number, const Linear& linear, ParameterShard& shard) const {
    const bool makes_logits = is_vocabulary(linear.out);
    const bool is_table = makes_logits && number == 0 && shard.held[0][0].end == linear.out &&
                          shard.held[1][0].end == linear.in && is_lookup_table(shard.tensor);
    std::vector<IndexRange>& dimension = is_table ? shard.held.front() : shard.held.back();
    dimension =
        makes_logits ? words(linear.out) : cut(projections(), place_.tensor, place_.tensors);
    for (const IndexRange& range : makes_logits ? std::vector<IndexRange>() : dimension)
      shard.column_copies.push_back(copies_of(range));
    if (std::ranges::count(shard.column_copies, 1) == std::ssize(shard.column_copies))
      shard.column_copies.clear();
  }

  /// Number of ranks that hold these columns.
  int copies_of(const IndexRange& range) const {
    std::int64_t first = 0;
    for (const auto& [width, heads] : projections()) {
      first += width;
      if (range.begin < first) return heads > 0 ? std::max(1, place_.tensors / heads) : 1;
    }
    return 1;
  }

  /// Whether the operator computes the logits.
  bool is_vocabulary(std::int64_t width) const {
    return op_.outputs.size() == 1 &&
           std::any_of(model_.operators.begin(), model_.operators.end(), [&](const Operator& o) {
             const auto* loss = std::get_if<CrossEntropy>(&o.shape);
             return loss != nullptr && loss->vocabulary == width &&
                    o.inputs.front() == op_.outputs.front();
           });
  }
  bool is_lookup_table(TensorId id) const {
    return std::any_of(model_.operators.begin(), model_.operators.end(), [&](const Operator& o) {
      return std::holds_alternative<EmbeddingLookup>(o.shape) && o.parameters.front() == id;
    });
  }

  void cut_over_experts(ParameterShard& shard) const {
    const auto& linear = std::get<ExpertLinear>(op_.shape);
    const std::array<std::int64_t, 1> experts{linear.experts};
    shard.held[0] = cut(experts, place_.expert, place_.experts);
    const bool is_matrix = shard.held.size() == 3;
    // Each rank adds its columns of the bias of a row-parallel layer.
    std::vector<IndexRange>& dimension =
        linear.cut == LinearCut::kColumn || !is_matrix ? shard.held.back() : shard.held[1];
    // Gate and up projections are fused in one matrix.
    const bool gated = linear.cut == LinearCut::kColumn && feeds_gated_activation();
    const std::int64_t extent = dimension[0].end;
    const std::vector<std::int64_t> runs =
        gated ? std::vector{extent / 2, extent / 2} : std::vector{extent};
    dimension = cut(runs, place_.expert_tensor, place_.expert_tensors);
  }

  bool feeds_gated_activation() const {
    return std::any_of(model_.operators.begin(), model_.operators.end(), [&](const Operator& o) {
      const auto* activation = std::get_if<Activation>(&o.shape);
      return activation != nullptr && is_gated(activation->kind) &&
             o.inputs.front() == op_.outputs.front();
    });
  }

  const ModelGraph& model_;
  const Operator& op_;
  const ShardPosition& place_;
};

/// Uniform in (0, 1].
double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 1) * 0x1.0p-53; }
/// Box-Muller transform of two numbers derived from the element's index.
double normal(std::uint64_t key, std::int64_t element) {
  const std::uint64_t first = mixed_bits(key ^ mixed_bits(static_cast<std::uint64_t>(element)));
  const double radius = std::sqrt(-2 * std::log(uniform(first)));
  return radius * std::cos(2 * std::numbers::pi * uniform(mixed_bits(first)));
}

}  // namespace

std::int64_t ParameterShard::extent(std::size_t dimension) const {
  std::int64_t sum = 0;
  for (const IndexRange& range : held[dimension]) sum += range.size();
  return sum;
}
std::int64_t ParameterShard::elements() const {
  std::int64_t product = 1;
  for (std::size_t d = 0; d < held.size(); ++d) product *= extent(d);
  return product;
}

ShardPosition shard_position_of(const Strategy& strategy, RankId rank) {
  const ParallelDegrees& d = strategy.degrees;
  const RankStrides strides = strides_of(d, strategy.model_parallelism.order);
  const auto index = [&](std::int64_t stride, int count) {
    return static_cast<int>(rank.value / stride % count);
  };
  return {.tensor = index(strides.tensor, d.tensor),
          .tensors = d.tensor,
          .expert = index(strides.expert, d.expert),
          .experts = d.expert,
          .expert_tensor = index(strides.expert_tensor, d.expert_tensor),
          .expert_tensors = d.expert_tensor};
}

PartShards shards_of_part(const ModelGraph& model, std::span<const LayerId> layers,
                          const Strategy& strategy, RankId rank, TensorId elsewhere) {
  const ShardPosition place_in_plan = shard_position_of(strategy, rank);
  PartShards made;
  std::vector<TensorId> seen{elsewhere};
  for (const LayerId layer : layers) {
    ShardPosition place = place_in_plan;
    if (model.layers[layer.index()].kind == LayerKind::kBlock &&
        shares_tokens(strategy, block_index(model, layer))) {
      place.tensor = 0;
      place.tensors = 1;
    }
    for (const Operator& op : operators_of(model, layer)) {
      for (std::size_t p = 0; p < op.parameters.size(); ++p) {
        if (std::find(seen.begin(), seen.end(), op.parameters[p]) != seen.end()) continue;
        seen.push_back(op.parameters[p]);
        ParameterShard shard = OperatorShards(model, op, place).shard_of(p);
        std::int64_t& total = shard.expert ? made.expert : made.dense;
        shard.offset = total;
        total += shard.elements();
        made.shards.push_back(std::move(shard));
      }
    }
  }
  return made;
}

namespace {

/// Visits the elements with leading index `number` in the dimensions before `dimension`.
void visit_elements(const ParameterShard& shard, const ParameterTensor& whole,
                    std::size_t dimension, std::int64_t number,
                    const std::function<void(std::int64_t)>& visit) {
  if (dimension == shard.held.size()) return visit(number);
  const std::int64_t extent = whole.shape[dimension];
  for (const IndexRange& range : shard.held[dimension])
    for (std::int64_t i = range.begin; i < range.end; ++i)
      visit_elements(shard, whole, dimension + 1,
                     number < 0 || i >= extent ? -1 : number * extent + i, visit);
}

}  // namespace

void for_each_element(const ParameterShard& shard, const ParameterTensor& whole,
                      const std::function<void(std::int64_t number)>& visit) {
  visit_elements(shard, whole, 0, 0, visit);
}

bool is_bias(const Tensor& tensor) {
  return tensor.name.ends_with("bias") || tensor.name.ends_with("sinks") ||
         tensor.name.ends_with("score_correction");
}

namespace {

/// Width of a table of embeddings and the row of padding, which starts from zero.
struct PaddingRow {
  std::int64_t width = 0, row = 0;
};
std::optional<PaddingRow> padding_row_of(const ModelGraph& model, TensorId table) {
  for (const Operator& op : model.operators)
    if (const auto* lookup = std::get_if<EmbeddingLookup>(&op.shape);
        lookup != nullptr && lookup->padding && op.parameters.front() == table)
      return PaddingRow{lookup->width, *lookup->padding};
  return std::nullopt;
}

/// What the shard holds of the rows [rows.begin, rows.end) of its first dimension, counted in
/// storage order.
ParameterShard rows_of(const ParameterShard& shard, const Block& rows) {
  ParameterShard part = shard;
  part.held.front().clear();
  std::int64_t before = 0;
  for (const IndexRange& range : shard.held.front()) {
    const std::int64_t first = std::max(rows.begin - before, std::int64_t{0});
    const std::int64_t last = std::min(rows.end - before, range.size());
    if (first < last) part.held.front().push_back({range.begin + first, range.begin + last});
    before += range.size();
  }
  return part;
}

/// Calls work(rows) for parts of [0, rows), concurrently if there are many elements.
void in_threads(std::int64_t rows, std::int64_t elements,
                const std::function<void(const Block&)>& work) {
  constexpr std::int64_t kLeastPerThread = std::int64_t{1} << 20;
  const std::int64_t processors = std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t count =
      std::clamp(elements / kLeastPerThread, std::int64_t{1}, std::min(processors, rows));
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < count; ++i)
    others.emplace_back(work, Block{rows * i / count, rows * (i + 1) / count});
  work({0, rows / count});
}

}  // namespace

void fill_initial(const ModelGraph& model, const ParameterShard& shard, std::uint64_t seed,
                  std::span<float> values, Beats& beats) {
  const Tensor& tensor = model.tensors[shard.tensor.index()];
  const auto& whole = std::get<ParameterTensor>(tensor.shape);
  MW_CHECK(shard.elements() == static_cast<std::int64_t>(values.size()));
  const bool starts_at_zero = is_bias(tensor);
  const bool is_matrix = whole.shape.size() > 1 && !starts_at_zero;
  const std::uint64_t key = mixed_bits(seed ^ fnv1a(tensor.name));
  const std::optional<PaddingRow> padding = padding_row_of(model, shard.tensor);
  if (values.empty()) return;
  const std::int64_t rows = shard.extent(0), width = shard.elements() / rows;
  in_threads(rows, shard.elements(), [&](const Block& part) {
    auto place = static_cast<std::size_t>(part.begin * width);
    for_each_element(rows_of(shard, part), whole, [&](std::int64_t number) {
      double value = starts_at_zero ? 0 : whole.initial_value;
      if (is_matrix) value = whole.initial_deviation * normal(key, number);
      if (padding && number / padding->width == padding->row) value = 0;
      values[place++] = number < 0 ? 0.0F : static_cast<float>(value);
      beat_occasionally(beats, place);
    });
  });
}

}  // namespace meshwright
