/// Iteration over the parameter elements that a rank owns.
#pragma once

#include <span>
#include <vector>

#include "executor/parameters/parameter_run.hpp"
#include "executor/parameters/parameter_shards.hpp"

namespace meshwright {

/// The elements of `block` in a span that starts with element `first`.
template <class T>
std::span<T> part_of(std::span<T> of, const Block& block, std::int64_t first) {
  return of.subspan(static_cast<std::size_t>(block.begin - first),
                    static_cast<std::size_t>(block.size()));
}

/// Calls visit(piece, block) for the owned elements of every piece within `range`.
template <class Visit>
void for_each_own(const ParameterRun& run, const Block& range, Visit visit) {
  for (std::size_t p = 0; p < run.layout().pieces.size(); ++p) {
    const Block block = intersection(run.layout().pieces[p].own, range);
    if (block.size() > 0) visit(p, block);
  }
}

inline Block block_of(const ParameterShard& shard) {
  return {shard.offset, shard.offset + shard.elements()};
}

/// Elements of the columns replicated on several tensor ranks, row by row.
std::vector<Block> copied_columns(const ParameterShard& shard);

/// False for the score corrections of routers.
bool is_trained_by_gradient(const ModelGraph& model, const ParameterShard& shard);
/// Whether the parameter is a vector, or biases of several experts.
bool is_norm_or_bias(const ModelGraph& model, const ParameterShard& shard);

}  // namespace meshwright
