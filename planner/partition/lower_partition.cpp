#include "planner/partition/lower_partition.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/indices.hpp"
#include "core/lowering/folded_graph.hpp"
#include "core/lowering/lower.hpp"
#include "planner/partition/partition_messages.hpp"
#include "planner/partition/partition_works.hpp"

namespace meshwright {
namespace {

class PartitionLowering {
 public:
  explicit PartitionLowering(const LoweredPartition& partition)
      : partition_(partition),
        stages_(partition.training.partition.stages),
        microbatches_(partition.training.problem.microbatches),
        strategy_{trained_in(partition.graph.dtype)},
        state_(model_state_bytes(strategy_, {})) {
    folded_.graph.dependency_begin = {0};
    number_ranks();
    std::vector<std::int32_t> first_rank;
    for (const StageTasks& tasks : tasks_) first_rank.push_back(tasks.first_rank);
    messages_.emplace(partition, std::move(first_rank), folded_);
  }

  TaskGraph run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) append_works(s);
    is_sharded() ? append_passes_of_units() : append_passes();
    for (std::size_t s = 0; s < stages_.size(); ++s) append_step_end(s);
    return std::move(folded_.graph);
  }

 private:
  /// ZeRO 3: the works of one unit, and of its collectives.
  struct UnitTasks {
    WorkId forward, backward, gather, reduce;
  };
  struct StageTasks {
    WorkId forward, backward, update;
    std::vector<UnitTasks> units;  ///< ZeRO 3, instead of forward and backward
    PartitionStageWorks works;
    std::int32_t first_rank = 0;
  };
  using Pass = PartitionPass;

  void number_ranks() {
    tasks_.resize(stages_.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      MW_CHECK(stages_[s].tensor == 1);
      tasks_[s].first_rank = static_cast<std::int32_t>(folded_.graph.ranks.size());
      tasks_[s].works = partition_stage_works(partition_, s, folded_.graph);
      for (int replica = 0; replica < stages_[s].data; ++replica) add_rank(s, replica);
    }
  }

  bool is_sharded() const { return partition_.zero == 3; }
  /// Of the parameters of a stage, what one replica updates.
  std::int64_t share_of(std::size_t s, std::int64_t parameters) const {
    return partition_.zero == 0 ? parameters : divide_up(parameters, std::int64_t{stages_[s].data});
  }

  void add_rank(std::size_t stage, int replica) {
    const auto rank = static_cast<std::int32_t>(folded_.graph.ranks.size());
    RankInfo info;
    info.rank = RankId(rank * partition_.tensor);
    info.device = DeviceId(rank * partition_.tensor);
    info.multiplicity = partition_.tensor;
    info.coordinate = {.pipeline = static_cast<int>(stage), .data = replica};
    const std::int64_t parameters = tasks_[stage].works.parameters;
    const std::int64_t share = share_of(stage, parameters);
    const std::int64_t held = is_sharded() ? share : parameters;
    info.resident[MemoryClass::kWeights] = Bytes(state_.weights * held);
    info.resident[MemoryClass::kGradients] = Bytes(state_.gradients * held);
    info.resident[MemoryClass::kOptimizer] = Bytes(state_.optimizer * share);
    info.resident[MemoryClass::kReserved] = partition_.reserved;
    folded_.graph.ranks.push_back(info);
  }

  // ---- passes ----

  void append_works(std::size_t s) {
    StageTasks& tasks = tasks_[s];
    const std::int64_t parameters = tasks.works.parameters;
    if (is_sharded()) {
      append_unit_works(s);
    } else {
      tasks.forward = append_work(folded_.graph, whole_pass(tasks.works.units, true));
      tasks.backward = append_work(folded_.graph, whole_pass(tasks.works.units, false));
    }
    const std::int64_t share = share_of(s, parameters);
    tasks.update = append_work(
        folded_.graph,
        partition_update_work(strategy_, share, is_sharded() ? share : parameters,
                              sum_of_gradients(tasks.works.summed_parameters), folded_.graph));
  }

  std::optional<Collective> sum_of_gradients(std::int64_t parameters) const {
    if (parameters == 0) return std::nullopt;
    Collective sum;
    sum.axis = Axis::kTensor;
    sum.bytes = Bytes(state_.gradients * parameters);
    sum.group = {.ranks = partition_.tensor};
    return sum;
  }

  WorkId collective_work(std::size_t s, CollectiveKind kind, Bytes bytes) {
    Work work;
    work.kind = TaskKind::kCollective;
    work.collective.kind = kind;
    work.collective.bytes = bytes;
    work.collective.group = shape_of(s);
    return append_work(folded_.graph, std::move(work));
  }

  /// A unit holds its weights and those that are gathered meanwhile; its backward pass also its
  /// gradients and those that are reduced meanwhile.
  void append_unit_works(std::size_t s) {
    std::vector<StageUnit>& units = tasks_[s].works.units;
    for (std::size_t u = 0; u < units.size(); ++u) {
      const std::int64_t before = u > 0 ? units[u - 1].parameters : 0;
      const std::int64_t after = u + 1 < units.size() ? units[u + 1].parameters : 0;
      const std::int64_t own = units[u].parameters;
      units[u].forward.transient[MemoryClass::kWeights] = Bytes(state_.weights * (own + after));
      units[u].backward.transient[MemoryClass::kWeights] = Bytes(state_.weights * (own + before));
      units[u].backward.transient[MemoryClass::kGradients] =
          Bytes(state_.gradients * (own + after));
      tasks_[s].units.push_back(
          {.forward = append_work(folded_.graph, units[u].forward),
           .backward = append_work(folded_.graph, units[u].backward),
           .gather = collective_work(s, CollectiveKind::kAllGather, Bytes(state_.weights * own)),
           .reduce =
               collective_work(s, CollectiveKind::kReduceScatter, Bytes(state_.gradients * own))});
    }
  }

  /// 1F1B of one replica.
  std::vector<Pass> order_of(std::size_t stage, int replica) const {
    const ReplicatedStage& s = stages_[stage];
    const std::int32_t count = (microbatches_ - replica + s.data - 1) / s.data;
    const std::int32_t first = std::min<std::int32_t>(s.inflight, count);
    std::vector<Pass> order;
    order.reserve(2 * static_cast<std::size_t>(count));
    for (std::int32_t i = 0; i < first; ++i) order.push_back({true, replica + i * s.data});
    for (std::int32_t i = 0; i < count; ++i) {
      order.push_back({false, replica + i * s.data});
      if (first + i < count) order.push_back({true, replica + (first + i) * s.data});
    }
    return order;
  }

  TaskId append_compute(std::size_t stage, const Pass& pass, WorkId work,
                        const std::vector<TaskId>& inputs) {
    Task task;
    task.work = work;
    task.rank = messages_->rank_of(stage, pass.microbatch);
    task.microbatch = pass.microbatch;
    task.stage = static_cast<std::int16_t>(stage);
    task.kind = pass.is_forward ? TaskKind::kForward : TaskKind::kBackward;
    const TaskId id = append_task(folded_.graph, task, inputs);
    last_of_rank_[to_index(task.rank)] = id;
    return id;
  }

  void append_pass(std::size_t stage, const Pass& pass) {
    const std::vector<TaskId> inputs = messages_->receive_inputs(stage, pass);
    const WorkId work = pass.is_forward ? tasks_[stage].forward : tasks_[stage].backward;
    messages_->send_outputs(stage, pass, append_compute(stage, pass, work, inputs));
  }

  /// Every rank in turn runs its next pass, if its inputs were sent.
  void append_passes() {
    struct Replica {
      std::size_t stage;
      std::vector<Pass> order;
      std::size_t next = 0;
    };
    std::vector<Replica> replicas;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      for (int r = 0; r < stages_[s].data; ++r) replicas.push_back({s, order_of(s, r)});
    last_of_rank_.assign(replicas.size(), TaskId(-1));
    for (bool has_advanced = true; has_advanced;) {
      has_advanced = false;
      for (Replica& replica : replicas) {
        if (replica.next == replica.order.size()) continue;
        const Pass& pass = replica.order[replica.next];
        if (!messages_->is_ready(replica.stage, pass)) continue;
        append_pass(replica.stage, pass);
        ++replica.next;
        has_advanced = true;
      }
    }
    MW_CHECK(std::ranges::all_of(
        replicas, [](const Replica& each) { return each.next == each.order.size(); }));
  }

  // ---- ZeRO 3 ----

  /// One use of a unit's weights by all replicas of a stage, each for a micro-batch of its own.
  struct UnitUse {
    std::size_t pass = 0, unit = 0;
    bool is_first = false, is_last = false;  ///< of its pass
  };
  struct ShardedStage {
    std::vector<std::vector<Pass>> orders;  ///< by replica
    std::vector<UnitUse> uses;
    std::size_t next_pass = 0, next_use = 0;
    /// By use: tasks of all replicas; empty: none.
    std::vector<std::vector<TaskId>> ended, gathered;
    std::vector<std::vector<TaskId>> reduced;  ///< in the order of backward passes
  };

  /// While one unit computes, the next one is gathered (as in PyTorch FSDP, one unit ahead).
  static constexpr std::size_t kPrefetch = 1;

  ShardedStage sharded_stage(std::size_t s) const {
    ShardedStage made;
    for (int r = 0; r < stages_[s].data; ++r) made.orders.push_back(order_of(s, r));
    const std::size_t units = tasks_[s].units.size();
    for (std::size_t pass = 0; pass < made.orders.front().size(); ++pass)
      for (std::size_t i = 0; i < units; ++i)
        made.uses.push_back({.pass = pass,
                             .unit = made.orders.front()[pass].is_forward ? i : units - 1 - i,
                             .is_first = i == 0,
                             .is_last = i + 1 == units});
    made.ended.resize(made.uses.size());
    made.gathered.resize(made.uses.size());
    return made;
  }

  /// All replicas of a stage run the same pass: its collectives need all of them.
  void append_passes_of_units() {
    std::vector<ShardedStage> stages;
    for (std::size_t s = 0; s < stages_.size(); ++s) stages.push_back(sharded_stage(s));
    last_of_rank_.assign(folded_.graph.ranks.size(), TaskId(-1));
    for (std::size_t s = 0; s < stages_.size(); ++s)
      for (std::size_t use = 0; use <= kPrefetch; ++use) gather(s, stages[s], use);
    for (bool has_advanced = true; has_advanced;) {
      has_advanced = false;
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        ShardedStage& stage = stages[s];
        const auto is_ready_for_next = [&](const std::vector<Pass>& order) {
          return messages_->is_ready(s, order[stage.next_pass]);
        };
        if (stage.next_pass == stage.orders.front().size() ||
            !std::ranges::all_of(stage.orders, is_ready_for_next))
          continue;
        append_pass_of_units(s, stage);
        has_advanced = true;
      }
    }
    for (const ShardedStage& each : stages) {
      MW_CHECK(each.next_pass == each.orders.front().size());
      last_reduced_.push_back(each.reduced.back());
    }
  }

  void append_pass_of_units(std::size_t s, ShardedStage& stage) {
    for (; stage.next_use < stage.uses.size() && stage.uses[stage.next_use].pass == stage.next_pass;
         ++stage.next_use)
      append_use(s, stage, stage.next_use);
    ++stage.next_pass;
  }

  void append_use(std::size_t s, ShardedStage& stage, std::size_t place) {
    const UnitUse& use = stage.uses[place];
    const UnitTasks& unit = tasks_[s].units[use.unit];
    for (std::size_t r = 0; r < stage.orders.size(); ++r) {
      const Pass& pass = stage.orders[r][use.pass];
      std::vector<TaskId> inputs;
      if (use.is_first) inputs = messages_->receive_inputs(s, pass);
      if (!stage.gathered[place].empty()) inputs.push_back(stage.gathered[place][r]);
      // Two buffers of gradients.
      if (!pass.is_forward && stage.reduced.size() >= 2)
        inputs.push_back(stage.reduced[stage.reduced.size() - 2][r]);
      const TaskId ended =
          append_compute(s, pass, pass.is_forward ? unit.forward : unit.backward, inputs);
      stage.ended[place].push_back(ended);
      if (use.is_last) messages_->send_outputs(s, pass, ended);
    }
    if (!stage.orders.front()[use.pass].is_forward)
      stage.reduced.push_back(append_collective(s, unit.reduce, stage.ended[place]));
    gather(s, stage, place + kPrefetch + 1);
  }

  /// The weights for the use `place`, after the use that needs their memory. A unit that was used a
  /// moment ago is still there.
  void gather(std::size_t s, ShardedStage& stage, std::size_t place) {
    if (place >= stage.uses.size()) return;
    const std::size_t unit = stage.uses[place].unit;
    for (std::size_t back = 1; back <= std::min(kPrefetch + 1, place); ++back)
      if (stage.uses[place - back].unit == unit) return;
    const std::vector<TaskId> none;
    stage.gathered[place] =
        append_collective(s, tasks_[s].units[unit].gather,
                          place > kPrefetch ? stage.ended[place - kPrefetch - 1] : none);
  }

  // ---- collectives ----

  /// Of all replicas of a stage, each after a task of its own. Returns the tasks.
  std::vector<TaskId> append_collective(std::size_t s, WorkId work,
                                        const std::vector<TaskId>& after) {
    Task task;
    task.work = work;
    task.stage = static_cast<std::int16_t>(s);
    task.microbatch = -1;
    task.stream = Stream::kData;
    open_collective(folded_, {});
    std::vector<TaskId> members;
    for (int r = 0; r < stages_[s].data; ++r) {
      task.rank = tasks_[s].first_rank + r;
      const auto i = static_cast<std::size_t>(r);
      members.push_back(append_member(
          folded_, task, std::span(after).subspan(after.empty() ? 0 : i, after.empty() ? 0 : 1)));
    }
    return members;
  }

  GroupShape shape_of(std::size_t s) const {
    std::set<std::int32_t> nodes;
    for (int r = 0; r < stages_[s].data; ++r)
      nodes.insert(node_index_of(partition_.cluster,
                                 DeviceId((tasks_[s].first_rank + r) * partition_.tensor))
                       .value);
    return {.ranks = stages_[s].data,
            .nodes = static_cast<int>(nodes.size()),
            .groups_per_node = partition_.tensor};
  }

  void append_step_end(std::size_t s) {
    const std::int64_t parameters = tasks_[s].works.parameters;
    if (parameters == 0) return;
    const auto begin = last_of_rank_.begin() + tasks_[s].first_rank;
    std::vector<TaskId> ready(begin, begin + stages_[s].data);
    const bool has_replicas = stages_[s].data > 1;
    if (has_replicas && !is_sharded())
      ready = append_collective(
          s,
          collective_work(
              s, partition_.zero == 0 ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
              Bytes(state_.gradients * parameters)),
          ready);
    if (is_sharded()) ready = last_reduced_[s];
    Task task;
    task.microbatch = -1;
    task.stage = static_cast<std::int16_t>(s);
    task.work = tasks_[s].update;
    task.kind = TaskKind::kOptimizer;
    for (std::size_t r = 0; r < ready.size(); ++r) {
      task.rank = tasks_[s].first_rank + static_cast<std::int32_t>(r);
      ready[r] = append_task(folded_.graph, task, {&ready[r], 1});
    }
    if (has_replicas && partition_.zero == 1)
      append_collective(
          s, collective_work(s, CollectiveKind::kAllGather, Bytes(state_.weights * parameters)),
          ready);
  }

  const LoweredPartition& partition_;
  const std::vector<ReplicatedStage>& stages_;
  std::int32_t microbatches_;
  Strategy strategy_;
  ModelStateBytes state_;  ///< per parameter
  FoldedGraph folded_;
  std::vector<StageTasks> tasks_;
  std::optional<PartitionMessages> messages_;
  std::vector<TaskId> last_of_rank_;               ///< computation
  std::vector<std::vector<TaskId>> last_reduced_;  ///< ZeRO 3, by stage: of all replicas
};

/// As model_flops_per_step() counts them: all scores of attention, causal or not, and its gradient
/// as twice the forward pass.
Flops product_flops(const KernelGraph& graph) {
  Flops sum;
  for (const KernelGraphNode& node : graph.nodes) {
    for (const Kernel& kernel : node.forward) {
      if (kernel.kind == KernelKind::kMemoryBound) continue;
      const bool is_attention = kernel.kind == KernelKind::kAttention;
      sum += (is_attention && !node.backward.empty() ? 3.0 : 1.0) *
             (is_attention && kernel.causal ? 2.0 : 1.0) * kernel.flops;
    }
    for (const Kernel& kernel : node.backward)
      if (kernel.kind == KernelKind::kGemm) sum += kernel.flops;
  }
  return sum;
}

}  // namespace

bool can_shard_weights(const TrainingPartition& training) {
  const std::vector<ReplicatedStage>& stages = training.partition.stages;
  const int replicas = stages.front().data;
  return replicas > 1 && training.problem.microbatches % replicas == 0 &&
         std::ranges::all_of(stages, [&](const auto& stage) { return stage.data == replicas; });
}

TaskGraph lower_partition(const LoweredPartition& partition) {
  MW_CHECK(partition.zero < 3 || can_shard_weights(partition.training));
  return PartitionLowering(partition).run();
}

Prediction predict_partition(const LoweredPartition& partition, const CostModel& cost) {
  Prediction prediction;
  prediction.graph = lower_partition(partition);
  prediction.prices = price_works(prediction.graph.parts, prediction.graph.works, cost);
  prediction.times = simulate(prediction.graph, prediction.prices);
  const ReplicationProblem& problem = partition.training.problem;
  const KernelGraph& whole = partition.whole != nullptr ? *partition.whole : partition.graph;
  const auto ranks = static_cast<std::int64_t>(prediction.graph.ranks.size());
  JobFacts facts{.model_flops_per_step = problem.microbatches * product_flops(whole),
                 .tokens_per_step = problem.microbatches,
                 .job_ranks = ranks * partition.tensor,
                 .device_peak = {},
                 .memory_capacity = problem.device_memory + partition.reserved};
  for (const RankInfo& rank : prediction.graph.ranks)
    facts.device_peak += *peak_of(device_of(partition.cluster, rank.device),
                                  product_format_of(partition.graph.dtype)) /
                         static_cast<double>(ranks);
  prediction.evaluation = evaluate(prediction.graph, prediction.prices, prediction.times, facts);
  return prediction;
}

}  // namespace meshwright
