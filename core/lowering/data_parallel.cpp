// Passes split into units, with the communication of their parameters and gradients.
//
// A device runs its passes in a fixed order, so all uses of units are known in advance:
//
//   parameters  (ZeRO 3) the gather for a use is issued when the use `prefetch + 1` before it has
//               ended: in addition to the running use, at most `prefetch` units are gathered or
//               being gathered, and fewer if they exceed the trainer's most_gathered_parameters. A
//               unit that is used again within that distance is not freed. With
//               reshard_after_forward off, units are held until no micro-batch awaits its backward.
//               (overlap_gather) at the first use in a step, whenever the stream is free.
//               Gathers and reductions of a group share a stream (data_groups.hpp), so each is
//               appended where it is issued, next to the use that it waits for: a gather appended
//               with the use that needs it would wait for reductions that start later than itself.
//   gradients   (ZeRO 2, 3) every micro-batch reduces its gradients and adds them to its shard.
//               Double-buffered: a unit's backward pass starts after the reduction of the unit
//               before the previous one. With hybrid sharding, shards are reduced across the shard
//               groups only in the stage's last backward pass.
//
// Buffers are counted on the compute stream, so the peak does not depend on times: a gathered unit
// from the start of the earliest use that can overlap its gather, a gradient buffer until the end
// of the next unit's backward pass.
#include "core/lowering/data_parallel.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/lowering/unit_uses.hpp"

namespace meshwright {

/// Appends the tasks of uses, in the order of every device.
class UnitTasks::State {
 public:
  explicit State(LoweringContext& context)
      : context_(context),
        strategy_(context.strategy),
        folded_(context.folded),
        uses_(list_unit_uses(context)),
        known_(context.units.size()) {
    for (std::size_t part = 0; part < context.units.size(); ++part)
      known_[part].resize(context.units[part].units.size());
    for (const std::vector<UnitUse>& uses : uses_) {
      ended_.emplace_back(uses.size(), TaskId(-1));
      reduced_.emplace_back(uses.size(), TaskId(-1));
    }
    next_.assign(context.schedule.orders.size(), 0);
    next_gather_.assign(context.schedule.orders.size(), 0);
    gathered_.resize(context.schedule.orders.size());
  }

  bool splits(const Action& action, int device) const {
    const auto d = static_cast<std::size_t>(device);
    return next_[d] < uses_[d].size() && uses_[d][next_[d]].action == action;
  }

  TaskId append(const Action& action, const Task& prototype, std::span<const TaskId> inputs,
                std::vector<std::int32_t>& completes_unit) {
    const auto d = static_cast<std::size_t>(prototype.rank);
    TaskId last;
    awaited_.assign(inputs.begin(), inputs.end());
    if (next_[d] == 0) issue_gathers(d, -1);
    while (splits(action, prototype.rank)) {
      const std::size_t place = next_[d]++;
      const UnitUse& use = uses_[d][place];
      for (; !gathered_[d].empty() && gathered_[d].front().use == place; gathered_[d].pop_front())
        awaited_.push_back(gathered_[d].front().task);
      if (use.after_reduction_of >= 0)
        awaited_.push_back(reduced_[d][static_cast<std::size_t>(use.after_reduction_of)]);
      Task task = prototype;
      task.work = work_of_use(use);
      last = append_task(folded_.graph, task, awaited_);
      awaited_.clear();
      ended_[d][place] = last;
      if (use.reduces) reduced_[d][place] = reduce(use, last, d);
      if (use.completes_gradients)
        note(use, use.reduces ? reduced_[d][place] : last, completes_unit);
      issue_gathers(d, static_cast<int>(place));
    }
    return last;
  }

 private:
  int part_of(const UnitUse& use) const {
    return context_.placement.part_of_stage[use.action.stage.index()];
  }
  const PartUnits& units_of(const UnitUse& use) const {
    return context_.units[static_cast<std::size_t>(part_of(use))];
  }
  const ParameterUnit& unit_of(const UnitUse& use) const {
    return units_of(use).units[static_cast<std::size_t>(use.unit)];
  }

  void note(const UnitUse& use, TaskId task, std::vector<std::int32_t>& completes_unit) const {
    completes_unit.resize(units_of(use).units.size(), -1);
    completes_unit[static_cast<std::size_t>(use.unit)] = task.value;
  }

  /// The work of the unit's pass with the buffers of this use; identical uses share a work.
  WorkId work_of_use(const UnitUse& use) {
    const WorkId plain = work_of(unit_of(use).works, use.action.pass);
    if (use.acquired == MemoryAmounts{} && use.released == MemoryAmounts{}) return plain;
    if (variants_.size() <= plain.index()) variants_.resize(plain.index() + 1);
    for (const Variant& known : variants_[plain.index()])
      if (known.acquired == use.acquired && known.released == use.released) return known.work;
    Work work = folded_.graph.works[plain.index()];
    work.acquired += use.acquired;
    work.released += use.released;
    const WorkId made = append_work(folded_.graph, std::move(work));
    variants_[plain.index()].push_back({use.acquired, use.released, made});
    return made;
  }

  /// A data-parallel collective whose work is in the graph.
  struct Exchange {
    CollectiveSpread spread;
    Stream stream = Stream::kData;
    WorkId work;
  };
  /// Of a bucket, as far as they were needed yet.
  struct BucketExchanges {
    ParameterRange range;
    bool is_table = false, is_own = true;
    std::optional<std::vector<Exchange>> gather, reduce, reduce_across_groups;
  };
  struct UnitExchanges {
    std::vector<BucketExchanges> buckets;  ///< empty: not listed yet
    std::vector<std::pair<Collective, WorkId>> works;
    std::int32_t node_kind = -1;  ///< see Work::node_kind
  };
  /// All uses of a unit share the works of its collectives. The buckets are those that the unit
  /// completes and the table read by its head: values are gathered with the same sharding as
  /// gradients. In layer order, every parameter is gathered before its first use, because a bucket
  /// belongs to its first layer.
  UnitExchanges& exchanges_of(const UnitUse& use) {
    UnitExchanges& known =
        known_[static_cast<std::size_t>(part_of(use))][static_cast<std::size_t>(use.unit)];
    if (!known.buckets.empty()) return known;
    known.node_kind = node_kind_of_part(part_of(use));
    const auto add = [&known](const GradientBucket& bucket, int part, bool is_own) {
      BucketExchanges& made = known.buckets.emplace_back();
      made.range = {part, bucket.expert, bucket.first, bucket.count};
      made.is_table = bucket.is_table;
      made.is_own = is_own;
    };
    for (const GradientBucket& bucket : units_of(use).buckets)
      if (bucket.unit == use.unit) add(bucket, part_of(use), true);
    if (unit_of(use).reads_table > 0)
      for (const GradientBucket& bucket : context_.units.front().buckets)
        if (bucket.is_table) add(bucket, 0, false);
    return known;
  }

  /// Over all devices that hold the part.
  std::int32_t node_kind_of_part(int part) const {
    const Placement& placement = context_.placement;
    std::vector<int> devices;
    for (std::size_t stage = 0; stage < placement.part_of_stage.size(); ++stage)
      if (placement.part_of_stage[stage] == part)
        devices.push_back(placement.device_of_stage[stage].value);
    return shared_kind_of(context_.groups, devices);
  }

  std::vector<Exchange> with_works(const std::vector<DataExchange>& exchanges,
                                   UnitExchanges& unit) {
    std::vector<Exchange> made;
    made.reserve(exchanges.size());
    for (const DataExchange& one : exchanges)
      made.push_back({one.spread, one.stream, work_of_collective(one.collective, unit)});
    return made;
  }

  const std::vector<Exchange>& gather_of(BucketExchanges& bucket, UnitExchanges& unit) {
    if (!bucket.gather)
      bucket.gather = with_works(gather_exchanges(bucket.range, strategy_, context_, 1), unit);
    return *bucket.gather;
  }

  /// `completes`: the gradients of the step.
  const std::vector<Exchange>& reduction_of(BucketExchanges& bucket, bool completes,
                                            UnitExchanges& unit) {
    auto& reduction = completes ? bucket.reduce_across_groups : bucket.reduce;
    if (!reduction)
      reduction = with_works(reduce_exchanges(bucket.range, strategy_, context_.groups,
                                              {.copies = 1, .sums_groups = completes}),
                             unit);
    return *reduction;
  }

  /// Issues the gathers that wait for no use after `ended` (-1: for none). PyTorch FSDP issues them
  /// in this order, too: the reduce-scatter after a unit's backward pass, then the all-gather
  /// before that of the next unit (torch/distributed/fsdp, BackwardPrefetch.BACKWARD_PRE).
  void issue_gathers(std::size_t device, int ended) {
    for (std::size_t& next = next_gather_[device]; next < uses_[device].size(); ++next) {
      const UnitUse& use = uses_[device][next];
      if (use.gathers && use.gather_after > ended) return;
      if (use.gathers) gather(next, device);
    }
  }

  void gather(std::size_t place, std::size_t device) {
    const UnitUse& use = uses_[device][place];
    const TaskId after = use.gather_after < 0
                             ? TaskId(-1)
                             : ended_[device][static_cast<std::size_t>(use.gather_after)];
    UnitExchanges& unit = exchanges_of(use);
    for (BucketExchanges& bucket : unit.buckets) {
      if (strategy_.zero < 3 && !bucket.is_own) continue;  // gathered with its embedding
      const TaskId gathered = append(gather_of(bucket, unit), use, after, TaskId(-1), device);
      if (gathered.value >= 0) gathered_[device].push_back({place, gathered});
    }
  }

  /// Returns the task after which the unit's gradient buffer is free.
  TaskId reduce(const UnitUse& use, TaskId after, std::size_t device) {
    TaskId last(-1);
    UnitExchanges& unit = exchanges_of(use);
    for (BucketExchanges& bucket : unit.buckets) {
      const bool completes = bucket.is_table ? use.completes_table : use.completes_gradients;
      last = append(reduction_of(bucket, completes, unit), use, after, last, device);
    }
    return last.value < 0 ? after : last;
  }

  /// Appends the exchanges in sequence, after a pass and the exchange `last` (-1: none). Returns
  /// the last one.
  TaskId append(const std::vector<Exchange>& exchanges, const UnitUse& use, TaskId after,
                TaskId last, std::size_t device) {
    for (const Exchange& made : exchanges) {
      inputs_.clear();
      if (after.value >= 0) inputs_.push_back(after);
      if (last.value >= 0 && folded_.graph.tasks[last.index()].stream != made.stream)
        inputs_.push_back(last);
      Task task;
      task.work = made.work;
      task.rank = static_cast<std::int32_t>(device);
      task.microbatch = use.action.microbatch.value;
      task.stage = static_cast<std::int16_t>(use.action.stage.value);
      task.stream = made.stream;
      open_collective(folded_, made.spread);
      last = append_member(folded_, task, inputs_);
    }
    return last;
  }

  WorkId work_of_collective(const Collective& collective, UnitExchanges& unit) {
    for (const auto& [made, id] : unit.works)
      if (made == collective) return id;
    Work work;
    work.kind = TaskKind::kCollective;
    work.collective = collective;
    work.node_kind = unit.node_kind;
    const WorkId id = append_work(folded_.graph, std::move(work));
    unit.works.emplace_back(collective, id);
    return id;
  }

  struct Variant {
    MemoryAmounts acquired, released;
    WorkId work;
  };

  const LoweringContext& context_;
  const Strategy& strategy_;
  FoldedGraph& folded_;
  std::vector<std::vector<UnitUse>> uses_;            ///< by device
  std::vector<std::vector<TaskId>> ended_, reduced_;  ///< by device, then use
  std::vector<std::size_t> next_;                     ///< by device
  std::vector<std::size_t> next_gather_;              ///< by device: first use not considered yet
  struct Gathered {
    std::size_t use;
    TaskId task;
  };
  std::vector<std::deque<Gathered>> gathered_;     ///< by device: of uses to come
  std::vector<std::vector<Variant>> variants_;     ///< by work
  std::vector<std::vector<UnitExchanges>> known_;  ///< by part, unit
  std::vector<TaskId> awaited_, inputs_;           ///< buffers of append()
};

UnitTasks::UnitTasks(LoweringContext& context) : state_(std::make_unique<State>(context)) {}
UnitTasks::~UnitTasks() = default;

bool UnitTasks::splits(const Action& action, int device) const {
  return state_->splits(action, device);
}

TaskId UnitTasks::append(const Action& action, const Task& prototype,
                         std::span<const TaskId> inputs,
                         std::vector<std::int32_t>& completes_unit) {
  return state_->append(action, prototype, inputs, completes_unit);
}

}  // namespace meshwright
