// Dispatch and combine are all-to-alls over the expert ranks, forward and backward. Each tensor
// rank sends 1/tensor of the tokens; expert-tensor ranks all-gather the rows before the experts and
// reduce-scatter them after. With dropless, imbalanced routing, the busiest expert rank sets the
// pace.
#include "core/lowering/experts.hpp"

#include <cmath>

#include "core/lowering/layers.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kScaledElements = 128;  ///< share one fp32 scale (arXiv 2412.19437, 3.3.2)
constexpr std::int64_t kScaleBytes = 4;

/// Rows may be dispatched in fp8; they are combined in the stored type.
Bytes row_bytes(const ExpertCall& call, bool outward) {
  const std::int64_t width = call.rows.width;
  if (outward && call.shard.routing.fp8_dispatch)
    return Bytes(width + kScaleBytes * divide_up(width, kScaledElements));
  return stored_element(call.shard.dtype) * width;
}

std::int64_t busiest_rows(const ExpertCall& call) {
  return routed_rows(call.shard, {call.rows.rows_per_token, std::max(1, call.rows.experts)},
                     /*busiest=*/true);
}

/// Expected number of copies of a token that leave its node: of M out of N nodes chosen uniformly,
/// M (N - 1) / N are other nodes.
Bytes sent_across(const ExpertCall& call, Bytes row) {
  const int nodes = call.groups.expert.nodes;
  const int limit = std::min(call.shard.routing.node_limit, nodes);
  if (limit == 0 || nodes == 1) return Bytes(0);
  const double rows_per_choice = static_cast<double>(busiest_rows(call)) / call.rows.rows_per_token;
  const double copies = static_cast<double>(limit) * (nodes - 1) / nodes;
  return Bytes(static_cast<std::int64_t>(
      std::ceil(rows_per_choice * copies * static_cast<double>(row.value))));
}

void append_all_to_all(const ExpertCall& call, Bytes row, std::vector<Step>& steps) {
  Collective exchange;
  exchange.kind = CollectiveKind::kAllToAll;
  exchange.axis = Axis::kExpert;
  exchange.bytes = row * busiest_rows(call);
  exchange.group = call.groups.expert;
  exchange.sent_across_nodes = sent_across(call, row);
  exchange.overlap.other_microbatch = call.shard.routing.overlap;
  append_collective(exchange, call.served, steps);
}

void append_over_expert_tensor(CollectiveKind kind, const ExpertCall& call, Bytes row,
                               std::vector<Step>& steps) {
  const GroupShape& group = call.groups.expert_tensor;
  append_collective({.kind = kind,
                     .axis = Axis::kExpert,
                     .bytes = row * (busiest_rows(call) * group.ranks),
                     .group = group,
                     .overlap = {.other_microbatch = call.shard.routing.overlap}},
                    call.served, steps);
}

}  // namespace

void append_reach_experts(const ExpertCall& call, std::vector<Step>& steps) {
  const Bytes row = row_bytes(call, /*outward=*/true);
  append_all_to_all(call, row, steps);
  append_over_expert_tensor(CollectiveKind::kAllGather, call, row, steps);
}

void append_leave_experts(const ExpertCall& call, std::vector<Step>& steps) {
  const Bytes row = row_bytes(call, /*outward=*/false);
  append_over_expert_tensor(CollectiveKind::kReduceScatter, call, row, steps);
  append_all_to_all(call, row, steps);
}

}  // namespace meshwright
