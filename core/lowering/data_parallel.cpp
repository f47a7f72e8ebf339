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
#include <span>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

bool makes_gradients(Pass pass) { return pass == Pass::kBackward || pass == Pass::kBackwardWeight; }
bool needs_parameters(Pass pass) { return pass != Pass::kBackwardWeight; }
bool goes_back(Pass pass) { return pass == Pass::kBackward || pass == Pass::kBackwardInput; }

}  // namespace

/// One pass of one unit on a device.
struct UnitUse {
  Action action;
  int unit = 0;
  bool gathers = false, reduces = false;
  bool completes_gradients = false;  ///< within the stage's last backward pass
  bool completes_table = false;      ///< no later use adds to the tied table's gradients
  int gather_after = -1;             ///< use that ends before the gather starts
  int after_reduction_of = -1;       ///< use whose reduction ends before this one starts
  MemoryAmounts acquired, released;  ///< in addition to those of the pass itself
};

namespace {

bool same_unit(const UnitUse& a, const UnitUse& b) {
  return a.action.stage == b.action.stage && a.unit == b.unit;
}

/// Lists the uses of every device and accounts for their buffers.
class UnitUses {
 public:
  explicit UnitUses(const LoweringContext& context)
      : context_(context), strategy_(context.strategy), schedule_(context.schedule) {
    const std::size_t stages = schedule_.placement.device_of_stage.size();
    seen_forward_.assign(stages, false);
    last_backward_.assign(stages, nullptr);
    for (const auto& order : schedule_.orders)
      for (const Action& action : order)
        if (makes_gradients(action.pass)) last_backward_[action.stage.index()] = &action;
  }

  std::vector<UnitUse> of_device(std::size_t device) {
    std::vector<UnitUse> uses;
    for (const Action& action : schedule_.orders[device]) append(action, uses);
    if (strategy_.zero >= 3) count_parameters_held(uses);
    if (strategy_.zero >= 2) count_gradients_held(uses);
    return uses;
  }

 private:
  const PartUnits& units_of(StageId stage) const {
    const int part = context_.placement.part_of_stage[stage.index()];
    return context_.units[static_cast<std::size_t>(part)];
  }

  /// Empty if the action is a single task.
  void append(const Action& action, std::vector<UnitUse>& uses) {
    const std::size_t stage = action.stage.index();
    const bool first = action.pass == Pass::kForward && !seen_forward_[stage];
    if (first) seen_forward_[stage] = true;
    const bool last = last_backward_[stage] == &action;
    if (!is_split(action.pass, first, last)) return;
    const int count = static_cast<int>(units_of(action.stage).units.size());
    for (int i = 0; i < count; ++i) {
      UnitUse use;
      use.action = action;
      use.unit = action.pass == Pass::kForward ? i : count - 1 - i;
      use.gathers = first && strategy_.data_parallelism.overlap_gather;
      use.completes_gradients = last;
      uses.push_back(use);
    }
  }

  bool is_split(Pass pass, bool first, bool last) const {
    if (strategy_.zero >= 3) return true;
    const DataParallelism& data = strategy_.data_parallelism;
    if (pass == Pass::kForward) return first && data.overlap_gather;
    if (pass == Pass::kBackwardInput) return false;
    return strategy_.zero == 2 || (last && data.buckets.rule != BucketRule::kNone);
  }

  template <class Predicate>
  static std::vector<int> places_of(const std::vector<UnitUse>& uses, Predicate holds) {
    std::vector<int> places;
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (holds(uses[i].action.pass)) places.push_back(static_cast<int>(i));
    return places;
  }

  void count_parameters_held(std::vector<UnitUse>& uses) {
    const std::vector<int> places = places_of(uses, needs_parameters);
    const auto use_at = [&](std::size_t i) -> UnitUse& {
      return uses[static_cast<std::size_t>(places[i])];
    };
    const auto ahead = static_cast<std::size_t>(strategy_.data_parallelism.prefetch);
    const std::int64_t most = context_.options.memory.most_gathered_parameters;
    std::vector<std::size_t> held;  // one use per gathered unit
    std::size_t first = 0;          // use; those from it to the current one may be gathered at once
    std::int64_t gathered = 0;      // their elements
    for (std::size_t i = 0; i < places.size(); ++i) {
      UnitUse& use = use_at(i);
      gathered += unit_elements(use);
      for (; first < i && (first + ahead < i || (most > 0 && gathered > most)); ++first)
        gathered -= unit_elements(use_at(first));
      const auto is_it = [&](std::size_t other) { return same_unit(use_at(other), use); };
      const Bytes bytes = unit_bytes(use, stored_element(strategy_.dtype).value);
      if (std::none_of(held.begin(), held.end(), is_it)) {
        use.gathers = true;
        use.gather_after = first > 0 ? places[first - 1] : -1;
        // Weight-gradient passes in between need no parameters, but parameters stay gathered.
        const auto beside = static_cast<std::size_t>(std::int64_t{use.gather_after} + 1);
        uses[beside].acquired[MemoryClass::kCommunication] += bytes;
        held.push_back(i);
      }
      bool is_used_soon = false;
      const std::size_t soon = std::min(places.size(), i + 1 + std::max<std::size_t>(1, ahead));
      for (std::size_t next = i + 1; next < soon; ++next)
        is_used_soon = is_used_soon || same_unit(use_at(next), use);
      const bool is_awaited = waits_for_backward(use);
      if (is_used_soon || is_awaited) continue;
      use.released[MemoryClass::kCommunication] += bytes;
      std::erase_if(held, is_it);
    }
  }

  /// The embedding and the head, if the trainer keeps them gathered.
  bool stays_gathered(const UnitUse& use) const {
    if (!context_.options.memory.keeps_ends_gathered) return false;
    const int part = context_.placement.part_of_stage[use.action.stage.index()];
    const auto last_unit = static_cast<int>(units_of(use.action.stage).units.size()) - 1;
    return (part == 0 && use.unit == 0) ||
           (part + 1 == part_count(context_.placement) && use.unit == last_unit);
  }

  /// With reshard_after_forward off: a micro-batch is between forward and backward of the unit.
  bool waits_for_backward(const UnitUse& use) {
    if (strategy_.data_parallelism.reshard_after_forward && !stays_gathered(use)) return false;
    const std::size_t stage = use.action.stage.index();
    if (outstanding_.size() <= stage) outstanding_.resize(stage + 1);
    std::vector<int>& counts = outstanding_[stage];
    counts.resize(units_of(use.action.stage).units.size(), 0);
    int& count = counts[static_cast<std::size_t>(use.unit)];
    count += goes_back(use.action.pass) ? -1 : 1;
    return count > 0;
  }

  void count_gradients_held(std::vector<UnitUse>& uses) {
    const std::vector<int> places = places_of(uses, makes_gradients);
    const auto use_at = [&](std::size_t i) -> UnitUse& {
      return uses[static_cast<std::size_t>(places[i])];
    };
    for (std::size_t i = 0; i < places.size(); ++i) {
      use_at(i).reduces = true;
      if (i >= 2) use_at(i).after_reduction_of = places[i - 2];
      const std::int64_t trainers = context_.options.memory.unreduced_gradient_bytes;
      const std::int64_t requested = gradient_bytes(strategy_);
      const std::int64_t each =
          requested < kFloat32Bytes ? std::min(requested, trainers) : trainers;
      const Bytes bytes = unit_bytes(use_at(i), each);
      use_at(i).acquired[MemoryClass::kGradients] += bytes;
      use_at(std::min(i + 1, places.size() - 1)).released[MemoryClass::kGradients] += bytes;
    }
    for (std::size_t i = places.size(); i-- > 0;) {
      if (!adds_to_table(use_at(i))) continue;
      use_at(i).completes_table = true;
      break;
    }
  }

  bool adds_to_table(const UnitUse& use) const {
    const PartUnits& part = units_of(use.action.stage);
    return part.units[static_cast<std::size_t>(use.unit)].reads_table > 0 ||
           std::any_of(part.buckets.begin(), part.buckets.end(),
                       [&](const GradientBucket& b) { return b.is_table && b.unit == use.unit; });
  }

  /// Number of parameters to gather.
  std::int64_t unit_elements(const UnitUse& use) const {
    const ParameterUnit& unit =
        units_of(use.action.stage).units[static_cast<std::size_t>(use.unit)];
    const auto is_sharded = [&](bool expert) {
      return data_groups_of(strategy_, context_.groups, expert).shard.shape.ranks > 1;
    };
    std::int64_t elements = 0;
    if (is_sharded(false)) elements += unit.parameters.dense + unit.reads_table;
    if (is_sharded(true)) elements += unit.parameters.expert;
    return elements;
  }
  Bytes unit_bytes(const UnitUse& use, std::int64_t element) const {
    const std::int64_t elements = unit_elements(use);
    const std::int64_t most = context_.options.memory.most_gathered_parameters;
    return Bytes(element * (most > 0 ? std::min(elements, most) : elements));
  }

  const LoweringContext& context_;
  const Strategy& strategy_;
  const Schedule& schedule_;
  std::vector<bool> seen_forward_;             ///< by stage
  std::vector<const Action*> last_backward_;   ///< by stage: the one that completes its gradients
  std::vector<std::vector<int>> outstanding_;  ///< by stage, then unit
};

}  // namespace

/// Appends the tasks of uses, in the order of every device.
class UnitTasks::State {
 public:
  explicit State(LoweringContext& context)
      : context_(context),
        strategy_(context.strategy),
        folded_(context.folded),
        known_(context.units.size()) {
    for (std::size_t part = 0; part < context.units.size(); ++part)
      known_[part].resize(context.units[part].units.size());
    UnitUses lister(context);
    for (std::size_t d = 0; d < context.schedule.orders.size(); ++d) {
      uses_.push_back(lister.of_device(d));
      ended_.emplace_back(uses_.back().size(), TaskId(-1));
      reduced_.emplace_back(uses_.back().size(), TaskId(-1));
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

  struct BucketOfPart {
    const GradientBucket& bucket;
    int part;
    bool is_own;
    ParameterRange range() const { return {part, bucket.expert, bucket.first, bucket.count}; }
  };
  /// The buckets that the unit completes and the table read by its head: values are gathered with
  /// the same sharding as gradients. In layer order, every parameter is gathered before its first
  /// use, because a bucket belongs to its first layer.
  std::vector<BucketOfPart> buckets_of(const UnitUse& use) const {
    std::vector<BucketOfPart> buckets;
    for (const GradientBucket& bucket : units_of(use).buckets)
      if (bucket.unit == use.unit) buckets.push_back({bucket, part_of(use), true});
    if (unit_of(use).reads_table > 0)
      for (const GradientBucket& bucket : context_.units.front().buckets)
        if (bucket.is_table) buckets.push_back({bucket, 0, false});
    return buckets;
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
    for (const BucketOfPart& bucket : buckets_of(use)) {
      if (strategy_.zero < 3 && !bucket.is_own) continue;  // gathered with its embedding
      const TaskId gathered = exchange(gather_exchanges(bucket.range(), strategy_, context_, 1),
                                       use, after, TaskId(-1), device);
      if (gathered.value >= 0) gathered_[device].push_back({place, gathered});
    }
  }

  /// Returns the task after which the unit's gradient buffer is free.
  TaskId reduce(const UnitUse& use, TaskId after, std::size_t device) {
    TaskId last(-1);
    for (const BucketOfPart& bucket : buckets_of(use)) {
      const bool completes = bucket.bucket.is_table ? use.completes_table : use.completes_gradients;
      const std::vector<DataExchange> exchanges = reduce_exchanges(
          bucket.range(), strategy_, context_.groups, {.copies = 1, .sums_groups = completes});
      last = exchange(exchanges, use, after, last, device);
    }
    return last.value < 0 ? after : last;
  }

  /// Appends the exchanges in sequence, after a pass and the exchange `last` (-1: none). Returns
  /// the last one.
  TaskId exchange(const std::vector<DataExchange>& exchanges, const UnitUse& use, TaskId after,
                  TaskId last, std::size_t device) {
    for (const DataExchange& made : exchanges) {
      inputs_.clear();
      if (after.value >= 0) inputs_.push_back(after);
      if (last.value >= 0 && folded_.graph.tasks[last.index()].stream != made.stream)
        inputs_.push_back(last);
      Task task;
      task.work = work_of_collective(made.collective, use);
      task.rank = static_cast<std::int32_t>(device);
      task.microbatch = use.action.microbatch.value;
      task.stage = static_cast<std::int16_t>(use.action.stage.value);
      task.stream = made.stream;
      open_collective(folded_, made.spread);
      last = append_member(folded_, task, inputs_);
    }
    return last;
  }

  /// All uses of a unit share the works of its collectives.
  WorkId work_of_collective(const Collective& collective, const UnitUse& use) {
    auto& known =
        known_[static_cast<std::size_t>(part_of(use))][static_cast<std::size_t>(use.unit)];
    for (const auto& [made, id] : known)
      if (made == collective) return id;
    Work work;
    work.kind = TaskKind::kCollective;
    work.collective = collective;
    const WorkId id = append_work(folded_.graph, std::move(work));
    known.emplace_back(collective, id);
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
  std::vector<std::deque<Gathered>> gathered_;  ///< by device: of uses to come
  std::vector<std::vector<Variant>> variants_;  ///< by work
  std::vector<std::vector<std::vector<std::pair<Collective, WorkId>>>> known_;  ///< by part, unit
  std::vector<TaskId> awaited_, inputs_;  ///< buffers of append() and exchange()
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
