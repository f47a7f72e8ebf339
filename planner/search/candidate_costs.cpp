#include "planner/search/candidate_costs.hpp"

#include <algorithm>
#include <boost/container_hash/hash.hpp>

#include "core/base/check.hpp"
#include "core/lowering/data_groups.hpp"
#include "core/lowering/lower.hpp"
#include "core/lowering/units.hpp"
#include "core/schedule/pass_order.hpp"
#include "core/schedule/timing.hpp"
#include "planner/search/mixed_stages.hpp"
#include "planner/search/stage_partition.hpp"
#include "planner/search/trainer_choices.hpp"

namespace meshwright {
namespace {

bool recomputes_all(const Recompute& recompute) { return recompute.kind == RecomputeKind::kFull; }

bool shards_output_layer(const PipelineChoice& pipeline) {
  return pipeline.rule->output_barriers > 0;
}

/// Some blocks, whose number is not chosen yet, are at least one.
Recompute at_least_one(Recompute recompute) {
  if (recompute.kind == RecomputeKind::kBlocks && recompute.blocks_per_stage.empty())
    recompute.blocks = std::max(1, recompute.blocks);
  return recompute;
}

/// True if the tasks after the last gradient run one after another, as step_end_times() assumes.
bool ends_in_a_row(const DataParallelism& data) {
  const bool together =
      data.kind == DataParallelKind::kCollective || data.kind == DataParallelKind::kRing;
  return together && !data.offload_optimizer;
}

/// Empty on homogeneous clusters.
std::vector<std::int32_t> kinds_of(const LayerCosts& layers, const PipelineChoice& pipeline) {
  if (layers.mixed.kinds.empty()) return {};
  return kinds_of_parts(layers.mixed, *pipeline.placement);
}

StepEndTimes no_end(int pipeline) {
  StepEndTimes none;
  none.reduction.assign(static_cast<std::size_t>(pipeline), Ticks());
  return none;
}

}  // namespace

std::size_t hash_value(const LayerShape& shape) {
  std::size_t hash = hash_value(shape.degrees);
  for (const std::size_t choice :
       {std::size_t{shape.sequence_parallel}, std::size_t{shape.tensor_overlap},
        static_cast<std::size_t>(shape.context), static_cast<std::size_t>(shape.micro_batch),
        std::size_t{shape.recompute}})
    boost::hash_combine(hash, choice);
  boost::hash_range(hash, shape.groups.begin(), shape.groups.end());
  return hash;
}

CandidateCosts::CandidateCosts(const SearchJob& job) : job_(job), fixed_(strategy_of(job.fixed)) {
  if (is_homogeneous(job.cluster)) bounds_.emplace(job);
}

PerGroup<GroupShape> CandidateCosts::groups_of(const Layout& layout) const {
  if (is_homogeneous(job_.cluster))
    return layer_groups_of(layout.degrees, fixed_.model_parallelism.order, job_.cluster);
  Strategy strategy = fixed_;
  strategy.degrees = layout.degrees;
  return job_groups_of(strategy, job_.cluster);
}

LayerShape CandidateCosts::shape_of(const Layout& layout, const Recompute& recompute) const {
  LayerShape key{.degrees = layout.degrees,
                 .sequence_parallel = layout.sequence_parallel,
                 .tensor_overlap = layout.tensor_overlap,
                 .context = layout.context,
                 .micro_batch = layout.micro_batch,
                 .groups = {},
                 .recompute = 0};
  if (recomputes_operators(recompute.kind))
    key.recompute = (recompute.modules << 8U) | static_cast<std::uint32_t>(recompute.kind);
  const PerGroup<GroupShape> groups = groups_of(layout);
  auto number = key.groups.begin();
  for (const ProcessGroup& group : kLayerGroups) {
    const GroupShape& shape = groups.*group.shape;
    for (const int of_shape : {shape.ranks, shape.nodes, shape.groups_per_node})
      *number++ = of_shape;
  }
  key.degrees.data = key.degrees.pipeline = 1;
  return key;
}

LayerCosts CandidateCosts::price_on_nodes(const LayerShape& shape, const Strategy& strategy,
                                          std::size_t kind,
                                          const LayerCosts* without_recomputation) const {
  const auto price = [&] {
    return layer_costs(strategy, job_.model, job_.cluster,
                       job_.cost_model.on_nodes(static_cast<std::int32_t>(kind)),
                       without_recomputation);
  };
  if (job_.layer_prices == nullptr) return price();
  return *job_.layer_prices->by_node.get({shape, strategy.dtype, job_.cluster.groups[kind].node},
                                         price);
}

LayerCosts CandidateCosts::price_layers(const LayerShape& shape, const Layout& layout,
                                        const Recompute& recompute) {
  const Strategy strategy = strategy_of_layers(job_, layout, recompute);
  if (is_homogeneous(job_.cluster)) {
    const SharedLayers plain = shape.recompute == 0 ? nullptr : layers(layout, {});
    return price_on_nodes(shape, strategy, 0, plain.get());
  }
  std::vector<LayerCosts> by_kind;
  for (std::size_t kind = 0; kind < job_.cluster.groups.size(); ++kind)
    by_kind.push_back(price_on_nodes(shape, strategy, kind, nullptr));
  return on_all_kinds(by_kind);
}

SharedLayers CandidateCosts::layers(const Layout& layout, const Recompute& recompute) {
  const LayerShape shape = shape_of(layout, recompute);
  SharedLayers priced = layers_.get(shape, [&] { return price_layers(shape, layout, recompute); });
  if (is_homogeneous(job_.cluster)) return priced;
  return mixed_layers_.get({priced, layout.degrees}, [&] {
    return mixed_layer_costs(*priced, strategy_of_layers(job_, layout, recompute), job_.cluster);
  });
}

std::shared_ptr<const StageCuts> CandidateCosts::stage_cuts(const SharedLayers& layers,
                                                            const PipelineChoice& pipeline,
                                                            const Recompute& recompute) {
  const bool all = recomputes_all(recompute), no_ends = shards_output_layer(pipeline);
  const Placement* mixed = layers->mixed.kinds.empty() ? nullptr : pipeline.placement.get();
  return cuts_.get({layers, pipeline.parts, all, no_ends, mixed}, [&]() -> StageCuts {
    if (job_.fixed.trainer && !cuts_freely(*job_.fixed.trainer))
      return {even_cut(block_count(job_.model), pipeline.parts)};
    if (mixed != nullptr)
      return mixed_cuts(layers->mixed, kinds_of_parts(layers->mixed, *mixed), all, no_ends);
    const LayerPasses& passes = layers->passes;
    return {cut_blocks(layer_times(no_ends ? without_ends(passes) : passes, all), pipeline.parts)};
  });
}

std::shared_ptr<const std::vector<int>> CandidateCosts::stage_cut(const SharedLayers& layers,
                                                                  const PipelineChoice& pipeline,
                                                                  const Recompute& recompute) {
  const auto cuts = stage_cuts(layers, pipeline, recompute);
  return {cuts, &(*cuts)[std::min(cuts->size() - 1, static_cast<std::size_t>(pipeline.relief))]};
}

bool CandidateCosts::repeats_cut(const SharedLayers& layers, const PipelineChoice& pipeline,
                                 const Recompute& recompute) {
  if (pipeline.relief == 0) return false;
  const auto cuts = stage_cuts(layers, pipeline, recompute);
  const auto relief = static_cast<std::size_t>(pipeline.relief);
  return relief >= cuts->size() || (*cuts)[relief] == (*cuts)[relief - 1];
}

Ticks CandidateCosts::rough_layout_bound(const Layout& layout, bool shares_ends) {
  if (!bounds_) return layout_bound(layout, *layers(layout, {}), {}, shares_ends);
  const ModelTimes times = bounds_->times_of(layout);
  return (shares_ends ? times.blocks : times.all) * microbatches_of(layout, job_.goal) /
         layout.degrees.pipeline;
}

Ticks CandidateCosts::layout_bound(const Layout& layout, const LayerCosts& layers,
                                   const Recompute& recompute, bool shares_ends) const {
  const std::int64_t microbatches = microbatches_of(layout, job_.goal);
  const bool all = recomputes_all(recompute);
  if (!layers.mixed.kinds.empty())
    return busiest_rank_bound(layers.mixed, all, shares_ends) * microbatches;
  const Ticks work = total_time(shares_ends ? without_ends(layers.passes) : layers.passes, all);
  return work * microbatches / layout.degrees.pipeline;
}

std::vector<PassTimes> CandidateCosts::parts_of(const SharedLayers& layers,
                                                const PipelineChoice& pipeline,
                                                const Recompute& recompute) {
  const auto cut = stage_cut(layers, pipeline, recompute);
  const bool no_ends = shards_output_layer(pipeline);
  const Recompute chosen = at_least_one(recompute);
  if (const std::vector<std::int32_t> kinds = kinds_of(*layers, pipeline); !kinds.empty())
    return mixed_stage_passes(layers->mixed, kinds, *cut, chosen, no_ends);
  const LayerPasses& passes = layers->passes;
  return stage_passes(no_ends ? without_ends(passes) : passes, *cut, chosen);
}

std::shared_ptr<const Schedule> CandidateCosts::schedule_of(const ScheduleRule& rule,
                                                            const ScheduleRequest& request) {
  return schedules_.get(schedule_key(rule, request), [&] { return rule.generate(request); });
}

std::shared_ptr<const Schedule> CandidateCosts::schedule_of(const Candidate& candidate) {
  ParallelDegrees degrees = candidate.layout.degrees;
  degrees.chunks = candidate.pipeline.chunks;
  return schedule_of(*candidate.pipeline.rule,
                     request_of(degrees, microbatches_of(candidate.layout, job_.goal)));
}

Ticks CandidateCosts::schedule_time(const Candidate& candidate) {
  if (shards_output_layer(candidate.pipeline)) return {};  // its times are not those of parts
  const std::vector<PassTimes> parts = parts_of(layers(candidate.layout, candidate.recompute),
                                                candidate.pipeline, candidate.recompute);
  StageTimes times;
  for (const int part : candidate.pipeline.placement->part_of_stage) {
    const PassTimes& passes = parts[static_cast<std::size_t>(part)];
    times.forward.push_back(passes.forward);
    times.backward_input.push_back(passes.backward_input);
    times.backward_weight.push_back(passes.backward - passes.backward_input);
  }
  add_messages(candidate, times);
  const std::shared_ptr<const Schedule> schedule = schedule_of(candidate);
  const auto order = pass_orders_.get(schedule, [&] { return pass_order_of(*schedule); });
  if (!*order) return time_schedule(*schedule, times).makespan;
  thread_local std::vector<Ticks> ends;  // reuses its memory
  return makespan_of(**order, times, ends);
}

/// On heterogeneous clusters messages count as free: neighbors may have different links.
void CandidateCosts::add_messages(const Candidate& candidate, StageTimes& times) {
  const Layout& layout = candidate.layout;
  const int ranks = layout.degrees.pipeline;
  if (ranks == 1 || !is_homogeneous(job_.cluster)) return;
  const auto between_ranks =
      messages_.get({layout.degrees, layout.sequence_parallel, layout.micro_batch},
                    [&] { return price_messages(layout); });
  const auto delay = [&](StageId from, StageId to) {
    const std::vector<PipelineRankId>& devices = candidate.pipeline.placement->device_of_stage;
    const int sender = devices[from.index()].value, receiver = devices[to.index()].value;
    const MessageTimes& messages = (*between_ranks)[static_cast<std::size_t>(sender)];
    if (receiver == (sender + 1) % ranks) return messages.to_next;
    return sender == (receiver + 1) % ranks ? messages.to_previous : Ticks();
  };
  const std::vector<std::vector<StageId>>& routes = candidate.pipeline.placement->routes;
  Ticks least = Ticks::max();
  for (const std::vector<StageId>& route : routes)
    for (std::size_t i = 0; i + 1 < route.size(); ++i) {
      const Ticks forward = delay(route[i], route[i + 1]);
      const Ticks either = std::min(forward, delay(route[i + 1], route[i]));
      if (either > Ticks()) least = std::min(least, either);
      if (routes.size() == 1) times.boundary_latency.push_back(either);
    }
  if (routes.size() > 1 && least < Ticks::max()) times.latency = least;
}

std::vector<CandidateCosts::MessageTimes> CandidateCosts::price_messages(
    const Layout& layout) const {
  const Strategy strategy = strategy_of_layers(job_, layout);
  const JobGroups groups = job_groups_of(strategy, job_.cluster);
  Transfer transfer{.bytes = Bytes::max()};
  for (std::size_t layer = 0; layer + 1 < job_.model.layers.size(); ++layer)
    transfer.bytes = std::min(transfer.bytes, message_bytes(strategy, job_.model, LayerId(layer),
                                                            job_.cost_model.memory()));
  const auto time_of = [&](int from, int to) {
    const Crossing crossing = crossing_of(groups, from, to);
    transfer.crosses_nodes = crossing.crosses_nodes;
    transfer.flows_per_node = crossing.flows_per_node;
    const TransferCost cost = job_.cost_model.cost_of(transfer);
    return to_ticks(cost.latency) + to_ticks(cost.occupancy);
  };
  const int ranks = layout.degrees.pipeline;
  std::vector<MessageTimes> times;
  times.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    times.push_back({time_of(rank, (rank + 1) % ranks), time_of(rank, (rank + ranks - 1) % ranks)});
  return times;
}

Ticks CandidateCosts::pipeline_bound(const Layout& layout, const SharedLayers& layers,
                                     const PipelineChoice& pipeline, const Recompute& recompute) {
  return step_bound(*pipeline.placement, parts_of(layers, pipeline, recompute),
                    microbatches_of(layout, job_.goal), pipeline.splits_backward,
                    no_end(layout.degrees.pipeline));
}

std::vector<CandidateCosts::ReductionTimes> CandidateCosts::price_reductions(
    const Candidate& candidate, const LayerCosts& layers) const {
  const Strategy strategy = strategy_of(candidate, job_.goal, job_.fixed);
  const JobGroups groups = job_groups_of(strategy, job_.cluster);
  std::vector<ReductionTimes> classes;
  for (const LayerMemory& held : layers.memory) {
    ReductionTimes& times = classes.emplace_back();
    for (const bool expert : {false, true}) {
      const ParameterRange range{.part = 0,
                                 .expert = expert,
                                 .first = 0,
                                 .count = expert ? held.parameters.expert : held.parameters.dense};
      for (const DataExchange& exchange :
           reduce_exchanges(range, strategy, groups, {.copies = 1, .sums_groups = false}))
        times[static_cast<std::size_t>(exchange.stream)] +=
            to_ticks(job_.cost_model.time_of(exchange.collective));
    }
  }
  return classes;
}

Ticks CandidateCosts::reduction_bound(const Candidate& candidate) {
  const Replication& replication = candidate.replication;
  const DataParallelism& data = replication.data;
  const bool by_layer =
      replication.zero >= 3 || (replication.zero == 2 && data.buckets.rule == BucketRule::kNone);
  if (!by_layer || data.kind != DataParallelKind::kCollective || !is_homogeneous(job_.cluster))
    return {};
  const SharedLayers costs = layers(candidate.layout, candidate.recompute);
  const auto classes = reductions_.get({candidate.layout.degrees, data.shard_ranks},
                                       [&] { return price_reductions(candidate, *costs); });
  const auto cut = stage_cut(costs, candidate.pipeline, candidate.recompute);
  const Placement& placement = *candidate.pipeline.placement;
  std::vector<ReductionTimes> of_part(cut->size()),
      of_rank(static_cast<std::size_t>(placement.devices));
  const auto add = [](ReductionTimes& sum, const ReductionTimes& more) {
    for (std::size_t stream = 0; stream < sum.size(); ++stream) sum[stream] += more[stream];
  };
  std::size_t layer = 1;  // the embedding and the head may be reduced together
  for (std::size_t part = 0; part < cut->size(); ++part)
    for (int block = 0; block < (*cut)[part]; ++block, ++layer)
      add(of_part[part],
          (*classes)[static_cast<std::size_t>(job_.model.layers[layer].layer_class)]);
  for (std::size_t s = 0; s < placement.device_of_stage.size(); ++s)
    add(of_rank[placement.device_of_stage[s].index()],
        of_part[static_cast<std::size_t>(placement.part_of_stage[s])]);
  Ticks most;
  for (const ReductionTimes& streams : of_rank)
    for (const Ticks time : streams) most = std::max(most, time);
  return most * microbatches_of(candidate.layout, job_.goal);
}

bool CandidateCosts::fills_buckets(const Candidate& candidate) {
  const Replication& replication = candidate.replication;
  if (replication.zero != 2 || replication.data.buckets.rule == BucketRule::kNone) return false;
  const std::int64_t full =
      full_bucket_size(strategy_of(candidate, job_.goal, job_.fixed),
                       static_cast<int>(replica_count(candidate.layout.degrees)));
  return std::ranges::all_of(
      layers(candidate.layout, candidate.recompute)->memory, [&](const LayerMemory& layer) {
        const LocalParameters& parameters = layer.parameters;
        return parameters.dense >= full && (parameters.expert == 0 || parameters.expert >= full);
      });
}

Ticks CandidateCosts::candidate_bound(const Candidate& candidate, Ticks scheduled) {
  const SharedLayers costs = layers(candidate.layout, candidate.recompute);
  const KnownStepEnd known =
      step_end(candidate, *stage_cut(costs, candidate.pipeline, candidate.recompute));
  StepEndTimes end = known.end;
  const std::int64_t microbatches = microbatches_of(candidate.layout, job_.goal);
  const std::int64_t more_rounds = microbatches / known.microbatches - 1;
  end.communication += known.more_communication * more_rounds;
  for (std::size_t rank = 0; rank < end.beside_gathers.size(); ++rank)
    end.beside_gathers[rank] += known.more_beside_gathers[rank] * more_rounds;
  for (std::size_t rank = 0; rank < known.more_reductions.size(); ++rank)
    end.reductions[rank] += known.more_reductions[rank] * more_rounds;
  if (!end.gathers.empty())
    end.communication =
        std::max(end.communication, time_with_gathers(end, *schedule_of(candidate)));
  const Ticks least_reduction = *std::min_element(end.reduction.begin(), end.reduction.end());
  return std::max(scheduled + least_reduction + end.rest,
                  step_bound(*candidate.pipeline.placement,
                             parts_of(costs, candidate.pipeline, candidate.recompute), microbatches,
                             candidate.pipeline.splits_backward, end));
}

Plan CandidateCosts::plan_of(const Candidate& candidate) {
  const auto cut = stage_cut(layers(candidate.layout, candidate.recompute), candidate.pipeline,
                             candidate.recompute);
  return {strategy_of(candidate, job_.goal, job_.fixed), *cut};
}

/// The end of a step depends on the parameters of every rank and their groups. It is read from a
/// step with the smallest number of micro-batches that the schedule supports; if every micro-batch
/// communicates, with twice as many.
CandidateCosts::KnownStepEnd CandidateCosts::step_end(const Candidate& candidate,
                                                      const std::vector<int>& cut) {
  const Layout& layout = candidate.layout;
  const PipelineChoice& pipeline = candidate.pipeline;
  const DataParallelism& data = candidate.replication.data;
  const StepEndKey key{
      layout.degrees,
      layout.sequence_parallel,
      pipeline.placement,
      pipeline.splits_backward,
      shards_output_layer(pipeline),
      candidate.replication.zero,
      static_cast<std::int64_t>(data.buckets.rule) * (std::int64_t{1} << 32) + data.shard_ranks,
      data.overlap_gather,
      data.reshard_after_forward,
      cut};
  const auto known = step_ends_.get(key, [&] { return price_step_end(candidate, cut); });
  return *known;
}

/// The rule that needs the fewest micro-batches, of those whose last passes are alike.
const ScheduleRule& CandidateCosts::rule_with_shortest_step(const PipelineChoice& pipeline,
                                                            const ParallelDegrees& degrees,
                                                            std::int64_t& microbatches) const {
  microbatches = 1;
  if (!pipeline.splits_backward && !shards_output_layer(pipeline))
    for (const ScheduleRule& rule : schedule_rules()) {
      const ScheduleRequest request = request_of(degrees, 1);
      if (rule.updates == UpdateTime::kAfterFlush && rule.output_barriers == 0 &&
          rule.worth_searching && !rule.problem(request) &&
          rule.placement(request) == *pipeline.placement)
        return rule;
    }
  while (pipeline.rule->problem(request_of(degrees, microbatches))) ++microbatches;
  return *pipeline.rule;
}

CandidateCosts::KnownStepEnd CandidateCosts::price_step_end(const Candidate& candidate,
                                                            const std::vector<int>& cut) const {
  const Layout& layout = candidate.layout;
  Plan probe{strategy_of(candidate, job_.goal, job_.fixed), cut};
  const DataParallelism& data = probe.strategy.data_parallelism;
  const bool rounds_of_gathers =
      probe.strategy.zero >= 3 && data.kind == DataParallelKind::kRing;  // among the reductions
  if (!ends_in_a_row(data) || rounds_of_gathers)  // weaker, but still a bound
    return {.end = no_end(layout.degrees.pipeline)};
  ParallelDegrees degrees = layout.degrees;
  degrees.chunks = candidate.pipeline.chunks;
  KnownStepEnd known;
  probe.strategy.schedule =
      rule_with_shortest_step(candidate.pipeline, degrees, known.microbatches).name;
  probe.strategy.micro_batch = 1;
  probe.strategy.recompute = {};
  probe.strategy.model_parallelism.routing.overlap = false;  // not every schedule has it
  CountedGathers gathers = CountedGathers::kNone;
  if (probe.strategy.zero >= 3 && data.reshard_after_forward && data.prefetch <= 1)
    gathers = job_.cost_model.memory().keeps_ends_gathered ? CountedGathers::kWithoutEnds
                                                           : CountedGathers::kAll;
  const bool reduces_every_time = candidate.replication.zero >= 2;
  const std::int64_t rounds = reduces_every_time ? 2 : 1;
  probe.strategy.global_batch = rounds * known.microbatches * std::int64_t{layout.degrees.data};
  const TaskGraph graph = lower(probe, job_.model, job_.cluster);
  const std::vector<WorkPrice> prices = price_works(graph.parts, graph.works, job_.cost_model);
  known.end = step_end_times(graph, prices, gathers, (rounds - 1) * known.microbatches);
  known.end.reduces_in_last_pass = !reduces_every_time;
  if (!reduces_every_time) return known;
  const StepEndTimes twice = step_end_times(graph, prices, gathers);
  known.more_communication = twice.communication - known.end.communication;
  for (std::size_t rank = 0; rank < twice.reductions.size(); ++rank)
    known.more_reductions.push_back(twice.reductions[rank] - known.end.reductions[rank]);
  known.more_beside_gathers = twice.beside_gathers;
  for (std::size_t rank = 0; rank < twice.beside_gathers.size(); ++rank)
    known.more_beside_gathers[rank] -= known.end.beside_gathers[rank];
  return known;
}

}  // namespace meshwright
