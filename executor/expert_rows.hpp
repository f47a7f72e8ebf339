/// Rows of a mixture of experts on one rank: what routing, dispatch and the exchange between ranks
/// share.
///
/// At home the rows of a rank stand sorted by expert, in the order of their tokens; with the
/// experts they stand sorted by local expert, then by the rank that they came from, and where
/// experts are cut, by the rank of the expert-tensor group that got them.
#pragma once

#include <string_view>

#include "executor/operator_pass.hpp"

namespace meshwright {

inline constexpr std::string_view kRouterBias = "router.bias";
inline constexpr std::string_view kScoreCorrection = "router.score_correction";

inline Routing& routing_of(OperatorPass& pass, TensorId scores) {
  return pass.state.routing[scores.value];
}

inline std::span<float> floats_of(const Matrix& m) {
  return {static_cast<float*>(m.data), static_cast<std::size_t>(m.rows * m.columns)};
}

/// Where each of some groups of rows begins, and the end.
std::vector<std::int64_t> offsets_of(std::span<const std::int32_t> counts);

/// Every expert gets exactly as many rows of this rank as its capacity is (ExpertRouting::capacity;
/// GShard, arXiv 2006.16668, section 2.2): its first ones in the order of tokens and choices; the
/// rest is dropped, rows that are missing are zeros. `experts` are those of the slots of the tokens
/// that this rank dispatches.
void fill_to_capacity(const OperatorPass& pass, std::span<const std::int32_t> experts,
                      std::int64_t experts_per_token, Routing& routing);

/// Rounds rows to fp8 if that is how they travel to experts; also where they need not travel, so
/// that every cut computes the same.
void round_outgoing(OperatorPass& pass, const Matrix& rows);

}  // namespace meshwright
