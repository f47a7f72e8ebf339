#include "executor/parameters/owned_parameters.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "executor/ranks/copies_in_pieces.hpp"

namespace meshwright {
namespace {

std::span<float> kept(ParameterRun& run, StateKind kind, std::size_t piece) {
  switch (kind) {
    case StateKind::kFirstMoment:
      return run.first_moment(piece);
    case StateKind::kSecondMoment:
      return run.second_moment(piece);
    case StateKind::kWeights:
      break;
  }
  if (run.has_master()) return run.master(piece);
  const Vector weights = run.own_weights(piece);
  if (weights.size == 0) return {};  // a rank without owned elements has no master weights
  MW_CHECK(weights.dtype == Dtype::kFp32);
  return {static_cast<float*>(weights.data), static_cast<std::size_t>(weights.size)};
}

}  // namespace

std::vector<float> own_values(ParameterRun& run, StateKind kind, Beats& beats) {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(run.layout().own_elements()));
  for (std::size_t piece = 0; piece < run.layout().pieces.size(); ++piece) {
    const std::span<float> own = kept(run, kind, piece);
    const std::size_t place = values.size();
    values.resize(place + own.size());
    for_each_piece(std::ssize(own), PieceLimits().elements,
                   [&](std::int64_t first, std::int64_t count) {
                     run.rank().copy(values.data() + place + first, own.data() + first,
                                     static_cast<std::size_t>(count) * sizeof(float));
                     beats.fetch_add(1, std::memory_order_relaxed);
                   });
  }
  return values;
}

void set_own_values(RankContext& rank, ParameterRun& run, StateKind kind,
                    std::span<const float> values) {
  for (std::size_t piece = 0; piece < run.layout().pieces.size(); ++piece) {
    const std::span<float> own = kept(run, kind, piece);
    if (!own.empty()) rank.copy(own.data(), values.data(), own.size_bytes());
    values = values.subspan(own.size());
    if (kind == StateKind::kWeights && run.has_master())
      rank.run(rank.kernels.cast,
               {.x = {own.data(), static_cast<std::int64_t>(own.size()), Dtype::kFp32},
                .y = run.own_weights(piece)});
  }
  MW_CHECK(values.empty());
}

void for_each_own_element(
    const ModelGraph& model, StageParameters& parameters, bool expert,
    const std::function<void(TensorId tensor, std::int64_t number, std::size_t place)>& visit) {
  const std::vector<ParameterPiece>& pieces = parameters.run(expert).layout().pieces;
  std::size_t piece = 0;
  for (const ParameterShard& shard : parameters.shards().shards) {
    if (shard.expert != expert) continue;
    const auto& whole = std::get<ParameterTensor>(model.tensors[shard.tensor.index()].shape);
    std::int64_t element = shard.offset;  // shards are sorted by offset
    for_each_element(shard, whole, [&](std::int64_t number) {
      while (element >= pieces[piece].all.end) ++piece;
      const Block& own = pieces[piece].own;
      if (number >= 0 && element >= own.begin && element < own.end)
        visit(shard.tensor, number,
              static_cast<std::size_t>(pieces[piece].place + element - own.begin));
      ++element;
    });
  }
}

}  // namespace meshwright
