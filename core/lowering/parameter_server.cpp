// Parameter servers (Li et al., OSDI 2014; Dean et al., NIPS 2012): N workers hold full replicas
// without optimizer state; each of k servers holds a shard of K / k bytes of gradients and weights.
//
//   synchronous   all workers push after their last backward pass; every server sums N gradients of
//                 its shard and updates it, then all workers pull. The step waits for the slowest
//                 worker, and a server's link carries N K / k bytes in each direction.
//   asynchronous  each push is applied separately, and the worker pulls the current weights.
//                 Messages of a server are serialized on its link (both directions in parallel);
//                 worker i starts with server i mod k, so that all links are busy. Every worker is
//                 a class of its own: the representatives are all ranks.
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/memory.hpp"
#include "core/lowering/passes.hpp"

namespace meshwright {
namespace {

class ParameterServers {
 public:
  explicit ParameterServers(LoweringContext& context)
      : context_(context),
        strategy_(context.strategy),
        data_(context.strategy.data_parallelism),
        reserved_(context.device().reserved_memory),
        parameters_(context.parameters.front().local.dense +
                    context.parameters.front().local.expert),
        share_(divide_up(parameters_, data_.servers)),
        all_(context.options.ranks == RankSet::kAll || is_asynchronous()) {}

  void run() {
    add_ranks();
    repeat_passes();
    if (is_asynchronous())
      exchange_one_by_one();
    else
      exchange_in_step();
  }

 private:
  TaskGraph& graph() { return context_.graph(); }
  bool is_asynchronous() const { return data_.kind == DataParallelKind::kAsyncParameterServer; }

  /// Workers first, then servers. Folded: one worker without and one with a co-located server (if
  /// they exist), and one separate server.
  void add_ranks() {
    graph().ranks.clear();
    const int workers = strategy_.degrees.data, servers = data_.servers;
    const int mixed = data_.colocated_servers ? servers : 0;
    const auto add = [&](int first, int count, bool works, bool serves) {
      const int made = all_ ? count : std::min(count, 1);
      for (int i = 0; i < made; ++i) {
        const auto index = static_cast<std::int32_t>(graph().ranks.size());
        if (works) workers_.push_back(index);
        if (serves) servers_.push_back(index);
        RankInfo info;
        info.rank = RankId(first + i);
        info.coordinate.data = works ? first + i : 0;
        info.device = DeviceId(info.rank.value);
        info.multiplicity = all_ ? 1 : count;
        info.resident = resident(works, serves);
        graph().ranks.push_back(info);
      }
    };
    add(0, workers - mixed, true, false);
    add(workers - mixed, mixed, true, true);
    if (!data_.colocated_servers) add(workers, servers, false, true);
    last_.assign(graph().ranks.size(), TaskId(-1));
  }

  /// Worker: weights and gradients. Server: its shard of weights and optimizer state, the gradient
  /// sum (synchronous) and one buffer per push that may be in flight.
  MemoryAmounts resident(bool works, bool serves) const {
    MemoryAmounts amounts;
    const Bytes element = stored_element(strategy_.dtype);
    if (works) {
      amounts[MemoryClass::kWeights] += element * parameters_;
      amounts[MemoryClass::kGradients] += Bytes(gradient_bytes(strategy_) * parameters_);
    }
    if (serves) {
      amounts[MemoryClass::kWeights] += element * share_;
      amounts[MemoryClass::kOptimizer] += optimizer_state_bytes(strategy_) * share_;
      if (!is_asynchronous())
        amounts[MemoryClass::kGradients] += Bytes(gradient_bytes(strategy_) * share_);
      const std::int64_t pushes = is_asynchronous() ? 1 : strategy_.degrees.data;
      amounts[MemoryClass::kCommunication] += Bytes(gradient_bytes(strategy_) * share_ * pushes);
    }
    amounts[MemoryClass::kReserved] = reserved_;
    return amounts;
  }

  /// Every worker runs the passes of the pipeline, which has one device and no messages.
  void repeat_passes() {
    MW_CHECK(graph().dependencies.empty());
    const std::vector<Task> passes = std::exchange(graph().tasks, {});
    graph().dependency_begin.resize(1);
    for (const std::int32_t worker : workers_)
      for (Task task : passes) {
        task.rank = worker;
        last_[static_cast<std::size_t>(worker)] = append_task(graph(), task, {});
      }
  }

  Collective collective(CollectiveKind kind, int workers, int servers) const {
    const bool pushes = kind == CollectiveKind::kPush;
    const Bytes element =
        pushes ? Bytes(gradient_bytes(strategy_)) : stored_element(strategy_.dtype);
    Collective made;
    made.kind = kind;
    made.bytes = element * (servers * share_);
    made.group = group(workers);
    made.parameters = {.part = 0, .expert = false, .first = 0, .count = parameters_};
    made.servers = servers;
    made.colocated = data_.colocated_servers;
    return made;
  }

  /// The group of `workers` workers and the servers, on the nodes that they fill.
  GroupShape group(int workers) const {
    const int ranks = strategy_.degrees.data + (data_.colocated_servers ? 0 : data_.servers);
    const int per_node = std::min(ranks, context_.groups.devices_per_node);
    const int nodes = static_cast<int>(divide_up(ranks, per_node));
    if (workers == 1) return {.ranks = 1, .nodes = nodes > 1 ? 2 : 1, .groups_per_node = 1};
    const int used = std::min(nodes, workers);
    const int together = static_cast<int>(divide_up(workers, used));
    return {.ranks = workers, .nodes = used, .groups_per_node = std::max(1, per_node / together)};
  }

  TaskId append_member_task(WorkId work, std::int32_t rank, Stream stream, TaskId after) {
    Task task;
    task.work = work;
    task.rank = rank;
    task.microbatch = -1;
    task.stage = -1;
    task.stream = stream;
    return append_member(context_.folded, task, {&after, after.value < 0 ? std::size_t{0} : 1});
  }

  TaskId append_update(WorkId work, std::int32_t rank, TaskId after) {
    Task task;
    task.work = work;
    task.rank = rank;
    task.microbatch = -1;
    task.stage = -1;
    task.kind = TaskKind::kOptimizer;
    return append_task(graph(), task, {&after, 1});
  }

  // ---- synchronous ----

  void exchange_in_step() {
    const int workers = strategy_.degrees.data;
    const std::vector<TaskId> pushed = append_all(
        append_collective_work(graph(), collective(CollectiveKind::kPush, workers, data_.servers)),
        last_);
    // The sum reads every worker's gradient and writes one; the update is clipped by its norm.
    std::vector<TaskId> updated = pushed;
    if (data_.servers == 1) {
      const std::int64_t summing = kFloat32Bytes * (workers + 1);
      on_servers(server_update_work(strategy_, share_, summing + kNormAndClipBytes, graph().parts),
                 updated);
    } else {
      on_servers(server_sum_work(share_, workers, graph().parts), updated);
      reduce_norm(updated);
      on_servers(server_update_work(strategy_, share_, kNormAndClipBytes, graph().parts), updated);
    }
    append_all(
        append_collective_work(graph(), collective(CollectiveKind::kPull, workers, data_.servers)),
        updated);
  }

  /// Each member depends on its rank's entry in `after`, which is then replaced by the member.
  void on_servers(Work made, std::vector<TaskId>& after) {
    const WorkId work = append_work(graph(), std::move(made));
    for (const std::int32_t rank : servers_) {
      TaskId& last = after[static_cast<std::size_t>(rank)];
      last = append_update(work, rank, last);
    }
  }

  /// Clipping needs the global gradient norm, and every server has one shard of the gradients.
  void reduce_norm(std::vector<TaskId>& after) {
    Collective norm;
    norm.kind = CollectiveKind::kAllReduce;
    norm.bytes = Bytes(kFloat32Bytes);
    const int ranks = strategy_.degrees.data + (data_.colocated_servers ? 0 : data_.servers);
    const int per_node = std::min(ranks, context_.groups.devices_per_node);
    const int nodes = (ranks - 1) / per_node - (ranks - data_.servers) / per_node + 1;
    norm.group = {.ranks = data_.servers, .nodes = nodes, .groups_per_node = 1};
    const WorkId work = append_collective_work(graph(), norm);
    open_collective(context_.folded, {});
    for (const std::int32_t rank : servers_) {
      TaskId& last = after[static_cast<std::size_t>(rank)];
      last = append_member_task(work, rank, Stream::kData, last);
    }
  }

  std::vector<TaskId> append_all(WorkId work, const std::vector<TaskId>& after) {
    open_collective(context_.folded, {});
    std::vector<TaskId> made;
    for (std::size_t r = 0; r < graph().ranks.size(); ++r)
      made.push_back(
          append_member_task(work, static_cast<std::int32_t>(r), Stream::kData, after[r]));
    return made;
  }

  // ---- asynchronous ----

  void exchange_one_by_one() {
    const WorkId push = append_collective_work(graph(), collective(CollectiveKind::kPush, 1, 1));
    const WorkId pull = append_collective_work(graph(), collective(CollectiveKind::kPull, 1, 1));
    const WorkId update =
        append_work(graph(), server_update_work(strategy_, share_, 0, graph().parts));
    for (std::size_t turn = 0; turn < servers_.size(); ++turn)
      for (std::size_t w = 0; w < workers_.size(); ++w) {
        const std::int32_t worker = workers_[w];
        const std::int32_t server = servers_[(w + turn) % servers_.size()];
        const TaskId ready = last_[static_cast<std::size_t>(worker)];
        if (worker == server) {  // its own shard is not communicated
          append_update(update, server, ready);
          continue;
        }
        const TaskId arrived =
            exchange_between(push, {worker, server}, Stream::kData, {ready, TaskId(-1)});
        const TaskId updated = append_update(update, server, arrived);
        exchange_between(pull, {worker, server}, Stream::kParameters, {arrived, updated});
      }
  }

  /// An exchange between worker and server, each after its own previous task. Returns the server's.
  TaskId exchange_between(WorkId work, std::array<std::int32_t, 2> ranks, Stream stream,
                          std::array<TaskId, 2> after) {
    open_collective(context_.folded, {});
    append_member_task(work, ranks[0], stream, after[0]);
    return append_member_task(work, ranks[1], stream, after[1]);
  }

  LoweringContext& context_;
  const Strategy& strategy_;
  const DataParallelism& data_;
  Bytes reserved_;
  std::int64_t parameters_, share_;
  bool all_;
  std::vector<std::int32_t> workers_, servers_;  ///< in the graph
  std::vector<TaskId> last_;                     ///< by rank: its last pass
};

}  // namespace

void add_parameter_servers(LoweringContext& context) {
  if (has_servers(context.strategy.data_parallelism.kind)) ParameterServers(context).run();
}

}  // namespace meshwright
