/// Token rows of a mixture-of-experts layer on one rank: shared by routing, dispatch and the
/// exchange between ranks.
///
/// Before dispatch a rank's rows are sorted by expert, then by token. On the expert ranks they are
/// sorted by local expert, then by source rank and, with expert-tensor parallelism, by the rank of
/// the expert-tensor group that received them.
#pragma once

#include <string_view>

#include "executor/operators/operator_pass.hpp"

namespace meshwright {

inline constexpr std::string_view kRouterBias = "router.bias";
inline constexpr std::string_view kScoreCorrection = "router.score_correction";

inline Routing& routing_of(OperatorPass& pass, TensorId scores) {
  return pass.state.routing[scores.value];
}

/// Prefix sum: the first row of each group, and the total.
std::vector<std::int64_t> offsets_of(std::span<const std::int32_t> counts);

/// Pads or truncates to the expert capacity (ExpertRouting::capacity; GShard, arXiv 2006.16668,
/// section 2.2): every expert gets exactly that many rows of this rank, the first ones by token and
/// choice. Excess rows are dropped, missing ones are zero. `experts` holds the expert of each slot
/// of the tokens that this rank dispatches.
void fill_to_capacity(const OperatorPass& pass, std::span<const std::int32_t> experts,
                      std::int64_t experts_per_token, Routing& routing);

/// Rounds rows to fp8 if they are dispatched in fp8, also those that stay on this rank, so that
/// every parallel split computes the same result.
void round_outgoing(OperatorPass& pass, const Matrix& rows);

}  // namespace meshwright
