/// Rules that cut the blocks of a model into pipeline stages, as alternatives to a list of counts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace meshwright {

enum class StageCutRule : std::uint8_t {
  kBalanced,  ///< the fastest slowest stage, by cost; not a rule of Megatron-LM
  kUniform    ///< every pipeline rank has as many blocks, every chunk of a rank too
};

/// Megatron-LM's options for uneven stages (core/transformer/transformer_block.py,
/// get_num_layers_to_build). `first`, `last` and the other two exclude each other.
struct StageCut {
  StageCutRule rule = StageCutRule::kUniform;
  /// Blocks of the first and last pipeline rank (--decoder-first-pipeline-num-layers,
  /// --decoder-last-pipeline-num-layers); the others share the rest evenly.
  std::optional<int> first = {}, last = {};
  /// The embedding (the loss) counts as a block: its stage has one block fewer
  /// (--account-for-embedding-in-pipeline-split, --account-for-loss-in-pipeline-split).
  bool embedding = false, loss = false;
  friend bool operator==(const StageCut&, const StageCut&) = default;
};

/// "balanced", "uniform", "uniform:first=3,last=2", "uniform:embedding,loss". Empty if invalid.
std::optional<StageCut> stage_cut_from_text(std::string_view text);
std::string to_text(const StageCut& cut);

/// Blocks per model part under a uniform cut, as in Plan::blocks_per_stage. Throws InputError with
/// `where` if the blocks cannot be divided.
std::vector<int> cut_uniformly(const StageCut& cut, int blocks, const Placement& placement,
                               std::string_view where = "--blocks-per-stage");

}  // namespace meshwright
