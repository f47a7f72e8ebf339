#include "executor/training/muon.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.hpp"
#include "core/operators/muon.hpp"
#include "executor/training/owned_blocks.hpp"

namespace meshwright {
namespace {

/// The operator that has the parameter, and its layer.
struct Owner {
  const Operator* op = nullptr;
  LayerId layer;
};
Owner owner_of(const ModelGraph& model, TensorId parameter) {
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer)
    for (const Operator& op : operators_of(model, LayerId(static_cast<std::int32_t>(layer))))
      if (std::ranges::find(op.parameters, parameter) != op.parameters.end())
        return {&op, LayerId(static_cast<std::int32_t>(layer))};
  MW_CHECK(false);
}

const std::vector<std::int64_t>& shape_of(const ModelGraph& model, TensorId parameter) {
  return std::get<ParameterTensor>(model.tensors[parameter.index()].shape).shape;
}

/// Columns [first, first + width) of a matrix, contiguous, and back.
std::vector<float> columns_of(std::span<const float> matrix, std::int64_t columns,
                              std::int64_t first, std::int64_t width) {
  std::vector<float> part;
  part.reserve(matrix.size() / static_cast<std::size_t>(columns) * static_cast<std::size_t>(width));
  for (std::size_t row = 0; row * static_cast<std::size_t>(columns) < matrix.size(); ++row) {
    const auto begin = matrix.begin() + static_cast<std::ptrdiff_t>(row) * columns + first;
    part.insert(part.end(), begin, begin + width);
  }
  return part;
}
void set_columns(std::span<float> matrix, std::int64_t columns, std::int64_t first,
                 std::span<const float> part, std::int64_t width) {
  for (std::ptrdiff_t row = 0; row * width < std::ssize(part); ++row)
    std::copy_n(part.begin() + row * width, width, matrix.begin() + row * columns + first);
}

}  // namespace

bool is_orthogonalized(const ModelGraph& model, const ParameterShard& shard) {
  const Owner owner = owner_of(model, shard.tensor);
  const LayerKind kind = model.layers[owner.layer.index()].kind;
  return orthogonalized_parameter(*owner.op, kind) == shard.tensor;
}

void Muon::update(ParameterRun& run, const ParameterShard& shard, const Step& step) {
  const auto& parameter =
      std::get<ParameterTensor>(rank_.model.tensors[shard.tensor.index()].shape);
  std::vector<float> whole = gathered(shard, next_momentum(run, shard, step.gradient_scale));
  orthogonalize(shard, whole);
  std::vector<float> own;
  own.reserve(static_cast<std::size_t>(shard.elements()));
  for_each_element(shard, parameter, [&](std::int64_t number) {
    own.push_back(whole[static_cast<std::size_t>(number)]);
  });
  for_each_own(run, block_of(shard), [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    const Vector weights =
        meshwright::part_of(run.own_weights(piece), block.begin - first, block.size());
    const std::span<float> exact =
        run.has_master() ? part_of(run.master(piece), block, first) : floats_of(weights);
    for (std::size_t i = 0; i < exact.size(); ++i)
      exact[i] -=
          step.learning_rate * (step.weight_decay * exact[i] +
                                own[static_cast<std::size_t>(block.begin - shard.offset) + i]);
    if (run.has_master())
      rank_.run(rank_.kernels.cast,
                {.x = {exact.data(), block.size(), Dtype::kFp32}, .y = weights});
  });
}

/// m = mu m + (1 - mu) g. Returns Nesterov's mu m + (1 - mu) g.
std::vector<float> Muon::next_momentum(ParameterRun& run, const ParameterShard& shard,
                                       float scale) {
  const float mu = options_.momentum;
  std::vector<float> next(static_cast<std::size_t>(shard.elements()));
  for_each_own(run, block_of(shard), [&](std::size_t piece, const Block& block) {
    const std::int64_t first = run.layout().pieces[piece].own.begin;
    const std::span<float> gradient = part_of(run.gradients_for_update(piece), block, first);
    const std::span<float> momentum = part_of(run.first_moment(piece), block, first);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const float g = scale * gradient[i];
      momentum[i] = mu * momentum[i] + (1 - mu) * g;
      next[static_cast<std::size_t>(block.begin - shard.offset) + i] =
          mu * momentum[i] + (1 - mu) * g;
    }
  });
  return next;
}

const std::vector<ParameterShard>& Muon::shards_of_group(const ParameterShard& shard,
                                                         std::span<const RankId> group) {
  std::vector<ParameterShard>& known = shards_[shard.tensor.value];
  if (!known.empty()) return known;
  const LayerId layer = owner_of(rank_.model, shard.tensor).layer;
  for (const RankId member : group) {
    PartShards part = shards_of_part(rank_.model, std::span(&layer, 1), rank_.strategy, member);
    const auto found = std::ranges::find(part.shards, shard.tensor, &ParameterShard::tensor);
    MW_CHECK(found != part.shards.end());
    known.push_back(std::move(*found));
  }
  return known;
}

/// The unsharded update; of experts, only those of this rank.
std::vector<float> Muon::gathered(const ParameterShard& shard, std::vector<float> own) {
  const auto& parameter =
      std::get<ParameterTensor>(rank_.model.tensors[shard.tensor.index()].shape);
  std::int64_t count = 1;
  for (const std::int64_t extent : parameter.shape) count *= extent;
  std::vector<float> whole(static_cast<std::size_t>(count));
  const auto place = [&](const ParameterShard& from, const float* values) {
    for_each_element(from, parameter, [&](std::int64_t number) {
      whole[static_cast<std::size_t>(number)] = *values++;
    });
  };
  if (shard.expert || !shard.is_cut) {
    place(shard, own.data());
    return whole;
  }
  constexpr std::int32_t kTag = 1 << 24;  // beyond those of activations
  const std::vector<RankId>& members = rank_.groups.tensor;
  RankGroup group(rank_.communicator, members, {Channel::kTensor, kTag});
  const std::vector<ParameterShard>& shards = shards_of_group(shard, members);
  std::vector<float> all(own.size() * members.size());
  std::ranges::copy(own, all.begin() + group.index() * std::ssize(own));
  {
    const FlagGuard waiting(rank_.progress.is_waiting);
    if (rank_.on_wait) rank_.on_wait(true);  // lets other ranks compute meanwhile
    group.all_gather(std::as_writable_bytes(std::span(all)), sizeof(float), Ticks());
    if (rank_.on_wait) rank_.on_wait(false);
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    MW_CHECK(shards[m].elements() == std::ssize(own));
    place(shards[m], all.data() + m * own.size());
  }
  return whole;
}

void Muon::orthogonalize(const ParameterShard& shard, std::span<float> whole) {
  constexpr float kAdamScale = 0.2F;
  const std::vector<std::int64_t>& shape = shape_of(rank_.model, shard.tensor);
  const std::int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  const auto slice = static_cast<std::size_t>(rows * columns);
  const Operator& op = *owner_of(rank_.model, shard.tensor).op;
  for (std::size_t begin = 0; begin < whole.size(); begin += slice) {
    const std::span<float> matrix = whole.subspan(begin, slice);
    // Experts of other ranks are zero.
    if (std::ranges::all_of(matrix, [](float value) { return value == 0; })) continue;
    std::int64_t first = 0;
    for (const std::int64_t width : orthogonalized_columns(rank_.model, op)) {
      std::vector<float> part = columns_of(matrix, columns, first, width);
      newton_schulz(rank_, part, rows, width);
      const float scale = kAdamScale * std::sqrt(static_cast<float>(std::max(rows, width)));
      for (float& value : part) value *= scale;
      set_columns(matrix, columns, first, part, width);
      first += width;
    }
    MW_CHECK(first == columns);
  }
}

/// X = a X + (b A + c A A) X with A = X X^T, five times, for no more rows than columns.
void newton_schulz(RankContext& rank, std::span<float> matrix, std::int64_t rows,
                   std::int64_t columns) {
  constexpr float kA = 3.4445F, kB = -4.7750F, kC = 2.0315F;  // of the reference implementation
  constexpr double kEpsilon = 1e-7;
  double squares = 0;
  for (const float value : matrix)
    squares += static_cast<double>(value) * static_cast<double>(value);
  const auto shrink = static_cast<float>(1 / (std::sqrt(squares) + kEpsilon));
  for (float& value : matrix) value *= shrink;
  const bool is_tall = rows > columns;  // then X^T X instead, from the right
  const std::int64_t n = std::min(rows, columns);
  std::vector<float> product(static_cast<std::size_t>(n * n)), square(product.size()),
      next(matrix.size());
  const Matrix x = dense_matrix(matrix.data(), rows, columns, Dtype::kFp32);
  const Matrix y = dense_matrix(next.data(), rows, columns, Dtype::kFp32);
  const Matrix a = dense_matrix(product.data(), n, n, Dtype::kFp32);
  const Matrix b = dense_matrix(square.data(), n, n, Dtype::kFp32);
  for (int step = 0; step < kNewtonSchulzSteps; ++step) {
    rank.run(rank.kernels.gemm,
             {.a = x, .transpose_a = is_tall, .b = x, .transpose_b = !is_tall, .c = a});
    rank.run(rank.kernels.gemm, {.a = a, .b = a, .c = b});
    for (std::size_t i = 0; i < square.size(); ++i) square[i] = kB * product[i] + kC * square[i];
    rank.run(rank.kernels.gemm, {.a = is_tall ? x : b, .b = is_tall ? b : x, .c = y});
    for (std::size_t i = 0; i < next.size(); ++i) matrix[i] = kA * matrix[i] + next[i];
  }
}

}  // namespace meshwright
