#include "core/lowering/data_groups.hpp"

#include "core/base/check.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/plan/job_groups.hpp"

namespace meshwright {
namespace {

/// The 2 (n - 1) rounds of a ring all-reduce over n ranks (Patarasuk and Yuan, 2009), or the half
/// of them that forms a reduce-scatter or all-gather. In round r, rank i sends chunk (i - r) mod n
/// of ceil(size / n) elements; the first n - 1 rounds add the received chunk, the others overwrite
/// with it.
std::vector<DataExchange> ring_rounds(const DataExchange& whole, const DataGroup& group,
                                      RingOrder order, std::int64_t element) {
  const int ranks = group.shape.ranks;
  const bool scatters = whole.collective.kind != CollectiveKind::kAllGather;
  const bool gathers = whole.collective.kind != CollectiveKind::kReduceScatter;
  DataExchange one = whole;
  one.collective.kind = CollectiveKind::kRingExchange;
  one.collective.bytes = Bytes(element * divide_up(whole.collective.parameters.count, ranks));
  const int per_node = ranks / group.shape.nodes;
  if (order == RingOrder::kAlternating && group.shape.nodes > 1 && per_node > 1) {
    one.collective.node_exits = per_node;
    one.spread.alternates_over = per_node;
  }
  std::vector<DataExchange> rounds;
  for (int round = scatters ? 0 : ranks - 1; round < (gathers ? 2 : 1) * (ranks - 1); ++round) {
    one.collective.first_round = round;
    rounds.push_back(one);
  }
  return rounds;
}

/// Of the collectives inside a shard group; those across shard groups are on Stream::kData. Shard
/// groups on several nodes share the ports of nodes with them.
Stream stream_of_shards(const DataGroups& data) {
  const bool uses_own_links = data.across.shape.ranks > 1 && data.shard.shape.nodes == 1;
  return uses_own_links ? Stream::kParameters : Stream::kData;
}

std::vector<DataExchange> exchanges_of(CollectiveKind kind, std::int64_t element,
                                       const ParameterRange& range, const DataGroup& group,
                                       const Strategy& strategy, Stream stream = Stream::kData) {
  if (range.count == 0 || group.shape.ranks == 1) return {};
  const DataParallelism& data = strategy.data_parallelism;
  DataExchange whole;
  whole.collective.kind = kind;
  whole.collective.axis = Axis::kData;
  whole.collective.bytes = Bytes(element * range.count);
  whole.collective.group = group.shape;
  whole.collective.parameters = range;
  whole.collective.algorithm = data.algorithm;
  whole.spread = group.spread;
  whole.stream = stream;
  if (data.kind != DataParallelKind::kRing) return {whole};
  return ring_rounds(whole, group, data.ring_order, element);
}

/// Copies along rows and columns of MXFP8 weights differ, so they are made after the gather.
bool gathers_fp8(const Strategy& strategy) {
  return strategy.dtype == Dtype::kFp8 && strategy.precision.fp8_parameters &&
         strategy.precision.fp8_recipe != Fp8Recipe::kMxfp8;
}

DataGroup joined(const JobGroups& groups, DataGroup group, int copies) {
  group.shape = joined(groups, group.shape, copies);
  return group;
}

}  // namespace

DataGroups data_groups_of(const Strategy& strategy, const JobGroups& groups, bool expert) {
  const GroupShape& shape = expert ? groups.expert_data : groups.dense_data;
  const std::int64_t stride = expert ? groups.expert_stride : groups.dense_stride;
  DataGroups made;
  made.all = {shape, {.stride = stride, .count = shape.ranks}};
  made.shard = made.all;
  const std::int64_t ranks = strategy.data_parallelism.shard_ranks;
  if (strategy.zero == 0 || ranks == 0 || ranks >= made.all.spread.count) return made;
  MW_CHECK(made.all.spread.count % ranks == 0);
  const auto group = [&](std::int64_t count, std::int64_t apart) {
    return DataGroup{group_shape_of({.count = count,
                                     .stride = rank_stride(groups, apart),
                                     .job_ranks = groups.all.ranks,
                                     .devices_per_node = groups.devices_per_node}),
                     {.stride = apart, .count = count}};
  };
  made.shard = group(ranks, stride);
  made.across = group(made.all.spread.count / ranks, stride * ranks);
  return made;
}

std::vector<DataExchange> reduce_exchanges(const ParameterRange& range, const Strategy& strategy,
                                           const JobGroups& groups,
                                           const ReductionOptions& options) {
  const DataGroups data = data_groups_of(strategy, groups, range.expert);
  if (strategy.zero == 0)
    return exchanges_of(CollectiveKind::kAllReduce, gradient_bytes(strategy), range,
                        joined(groups, data.all, options.copies), strategy);
  const DataGroup shard = joined(groups, data.shard, options.copies);
  std::vector<DataExchange> exchanges =
      exchanges_of(CollectiveKind::kReduceScatter, gradient_bytes(strategy), range, shard, strategy,
                   stream_of_shards(data));
  if (!options.sums_groups || data.across.shape.ranks == 1) return exchanges;
  ParameterRange share = range;  // of one rank; which one depends on its index in the shard group
  share.count = divide_up(range.count, shard.shape.ranks);
  const auto sums = exchanges_of(CollectiveKind::kAllReduce, gradient_bytes(strategy), share,
                                 data.across, strategy);
  exchanges.insert(exchanges.end(), sums.begin(), sums.end());
  return exchanges;
}

std::vector<DataExchange> gather_exchanges(const ParameterRange& range, const Strategy& strategy,
                                           const LoweringContext& context, int copies) {
  const DataGroups data = data_groups_of(strategy, context.groups, range.expert);
  const DataGroup shard = joined(context.groups, data.shard, copies);
  std::vector<DataExchange> exchanges =
      exchanges_of(CollectiveKind::kAllGather, stored_element(strategy.dtype).value, range, shard,
                   strategy, stream_of_shards(data));
  if (range.part < 0 || !gathers_fp8(strategy)) return exchanges;
  const std::int64_t quantized =
      quantized_count(context.parameters[static_cast<std::size_t>(range.part)], range);
  const Quantization format = quantization_of(strategy.dtype, strategy.precision.fp8_recipe);
  const Bytes saved =
      stored_element(strategy.dtype) * quantized - quantized_bytes(format, quantized);
  for (DataExchange& exchange : exchanges) {  // one chunk per round of a ring
    const bool whole = exchange.collective.kind == CollectiveKind::kAllGather;
    exchange.collective.bytes -= Bytes(whole ? saved.value : saved.value / shard.shape.ranks);
  }
  return exchanges;
}

}  // namespace meshwright
