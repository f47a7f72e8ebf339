#include "executor/training/gradient_sums.hpp"

#include "executor/training/owned_blocks.hpp"

namespace meshwright {
namespace {

struct PartialRange {
  bool expert = false;
  Block block;
};

std::vector<PartialRange> partial_gradients(const RankContext& rank, const RankStage& stage,
                                            bool over_copies) {
  std::vector<PartialRange> found;
  for (const LayerId layer : stage.layers) {
    const bool shares_tokens = rank.sharding_of(layer).shares_tokens;
    for (const Operator& op : operators_of(rank.model, layer)) {
      const bool on_features = !op.outputs.empty() &&
                               rank.activation(op.outputs.front()).cut == ActivationCut::kFeatures;
      for (const TensorId id : op.parameters) {
        const ParameterShard& shard = stage.parameters->shard(id);
        const auto& whole = std::get<ParameterTensor>(rank.model.tensors[id.index()].shape);
        if (over_copies) {
          for (const Block& block : copied_columns(shard)) found.push_back({shard.expert, block});
        } else if (shares_tokens || (whole.cut == ParameterCut::kReplicated &&
                                     (on_features || rank.strategy.sequence_parallel))) {
          found.push_back({shard.expert, block_of(shard)});
        }
      }
    }
  }
  return found;
}

}  // namespace

Ticks sum_table_gradients(StageParameters& parameters, TensorId table, RankGroup& group,
                          Ticks ready) {
  ParameterRun& run = parameters.run(false);
  const Block block = block_of(parameters.shard(table));
  return group.all_reduce(run.layout().shards_gradients
                              ? run.own_gradients(run.piece_at(block.begin))
                              : floats_of(run.gradients(block)),
                          ready);
}

/// All tensor ranks shard gradients over the data-parallel ranks in the same way; with sharded
/// gradients each sums its shard.
Ticks sum_partial_gradients(RankContext& rank, RankStage& stage, RankGroup& group, Ticks ready) {
  std::vector<PartialRange> ranges;
  if (!stage.summed_over_tensor) ranges = partial_gradients(rank, stage, /*over_copies=*/false);
  stage.summed_over_tensor = true;  // from now on, over the copies
  if (ranges.empty()) ranges = partial_gradients(rank, stage, /*over_copies=*/true);
  std::vector<std::span<float>> runs;
  for (const auto& [expert, block] : ranges) {
    ParameterRun& run = stage.parameters->run(expert);
    if (!run.layout().shards_gradients)
      runs.push_back(floats_of(run.gradients(block)));
    else
      for_each_own(run, block, [&](std::size_t piece, const Block& own) {
        runs.push_back(
            part_of(run.own_gradients(piece), own, run.layout().pieces[piece].own.begin));
      });
  }
  std::int64_t count = 0;
  for (const std::span<float> run : runs) count += std::ssize(run);
  OwnedMatrix packed = rank.numbers(count);
  const auto copy = [&](bool packs) {
    std::int64_t next = 0;
    for (const std::span<float> run : runs) {
      const Vector part = meshwright::part_of(flat(packed.view()), next, std::ssize(run));
      const Vector in_place{run.data(), std::ssize(run), Dtype::kFp32};
      rank.run(rank.kernels.cast, {.x = packs ? in_place : part, .y = packs ? part : in_place});
      next += std::ssize(run);
    }
  };
  copy(/*packs=*/true);
  ready = group.all_reduce(packed.floats(), ready);
  copy(/*packs=*/false);
  return ready;
}

}  // namespace meshwright
