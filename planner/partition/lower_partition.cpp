#include "planner/partition/lower_partition.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/lowering/folded_graph.hpp"
#include "planner/partition/indices.hpp"

namespace meshwright {
namespace {

/// Bytes per parameter that AdamW holds and moves.
struct UpdateBytes {
  std::int64_t weight, state, traffic;
};
/// The update reads an fp32 gradient, and reads and writes both moments and fp32 weights; with
/// 16-bit weights it also writes these. Before it, gradients are read for their norm, and read and
/// written to clip them; after it, they are cleared.
UpdateBytes update_bytes_of(Dtype dtype) {
  const std::int64_t weight = bytes_per_element(dtype);
  const bool has_master = weight < kFloat32Bytes;
  return {.weight = weight,
          .state = 2 * kFloat32Bytes + (has_master ? kFloat32Bytes : 0),
          .traffic = (7 + 3 + 1) * kFloat32Bytes + (has_master ? weight : 0)};
}

/// What is sent per micro-batch between two stages.
struct StageMessage {
  std::int32_t source = 0, target = 0;  ///< stages
  Bytes bytes;
};

class PartitionLowering {
 public:
  explicit PartitionLowering(const LoweredPartition& partition)
      : partition_(partition),
        stages_(partition.training.partition.stages),
        microbatches_(partition.training.problem.microbatches) {
    number_ranks();
    find_messages();
    folded_.graph.dependency_begin = {0};
  }

  TaskGraph run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) append_works(s);
    append_passes();
    for (std::size_t s = 0; s < stages_.size(); ++s) append_step_end(s);
    return std::move(folded_.graph);
  }

 private:
  struct StageTasks {
    WorkId forward, backward, update;
    std::int32_t first_rank = 0;
    std::int64_t parameters = 0;
    std::vector<std::size_t> receives_from, sends_to;  ///< indices of messages_
  };
  struct Pass {
    bool is_forward;
    std::int32_t microbatch;
  };

  void number_ranks() {
    tasks_.resize(stages_.size());
    stage_of_node_.resize(partition_.graph.nodes.size());
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      MW_CHECK(stages_[s].tensor == 1);
      tasks_[s].first_rank = static_cast<std::int32_t>(folded_.graph.ranks.size());
      for (const std::int32_t node : stages_[s].nodes)
        stage_of_node_[to_index(node)] = static_cast<std::int32_t>(s);
      tasks_[s].parameters = parameters_of(s);
      for (int replica = 0; replica < stages_[s].data; ++replica) add_rank(s, replica);
    }
  }

  /// With one copy of the weights of every node of another stage that they are tied to.
  std::int64_t parameters_of(std::size_t s) const {
    const std::set<std::int32_t> own(stages_[s].nodes.begin(), stages_[s].nodes.end());
    std::set<std::pair<std::int32_t, std::int64_t>> copies;
    std::int64_t parameters = 0;
    for (const std::int32_t node : stages_[s].nodes) {
      const KernelGraphNode& each = partition_.graph.nodes[to_index(node)];
      parameters += each.parameters;
      for (const TiedParameters& tied : each.tied)
        if (!own.contains(tied.owner) && copies.emplace(tied.owner, tied.count).second)
          parameters += tied.count;
    }
    return parameters;
  }

  void add_rank(std::size_t stage, int replica) {
    const auto rank = static_cast<std::int32_t>(folded_.graph.ranks.size());
    RankInfo info;
    info.rank = RankId(rank);
    info.device = DeviceId(rank);
    info.coordinate = {.pipeline = static_cast<int>(stage), .data = replica};
    const UpdateBytes bytes = update_bytes_of(partition_.graph.dtype);
    info.resident[MemoryClass::kWeights] = Bytes(bytes.weight * tasks_[stage].parameters);
    info.resident[MemoryClass::kGradients] = Bytes(kFloat32Bytes * tasks_[stage].parameters);
    info.resident[MemoryClass::kOptimizer] = Bytes(bytes.state * tasks_[stage].parameters);
    info.resident[MemoryClass::kReserved] = partition_.reserved;
    folded_.graph.ranks.push_back(info);
  }

  std::int32_t rank_of(std::size_t stage, std::int32_t microbatch) const {
    return tasks_[stage].first_rank + microbatch % stages_[stage].data;
  }

  // ---- messages ----

  void find_messages() {
    std::map<std::int32_t, std::pair<Bytes, std::set<std::int32_t>>> stages_of_tensor;
    for (const KernelGraphEdge& edge : partition_.graph.edges) {
      auto& [bytes, stages] = stages_of_tensor[edge.tensor];
      bytes = std::max(bytes, edge.bytes);
      stages.insert(stage_of_node_[to_index(edge.source)]);
      stages.insert(stage_of_node_[to_index(edge.target)]);
    }
    std::map<std::pair<std::int32_t, std::int32_t>, Bytes> between;
    for (const auto& [tensor, use] : stages_of_tensor)
      for (auto stage = use.second.begin(); std::next(stage) != use.second.end(); ++stage)
        between[{*stage, *std::next(stage)}] += use.first;
    for (const auto& [ends, bytes] : between) {
      tasks_[to_index(ends.first)].sends_to.push_back(messages_.size());
      tasks_[to_index(ends.second)].receives_from.push_back(messages_.size());
      messages_.push_back({ends.first, ends.second, bytes});
    }
    sent_.assign(2 * messages_.size() * static_cast<std::size_t>(microbatches_), TaskId(-1));
  }

  TaskId& sent(std::size_t message, bool is_forward, std::int32_t microbatch) {
    return sent_[(2 * message + (is_forward ? 0 : 1)) * static_cast<std::size_t>(microbatches_) +
                 to_index(microbatch)];
  }

  WorkId message_work(const Task& task, Bytes bytes, bool crosses_nodes) {
    const auto [known, is_new] =
        message_works_.try_emplace({task.kind, bytes, crosses_nodes}, WorkId(-1));
    if (is_new) {
      Work work;
      work.kind = task.kind;
      work.transfer = {.bytes = bytes, .crosses_nodes = crosses_nodes};
      known->second = append_work(folded_.graph, std::move(work));
    }
    return known->second;
  }

  /// One end of a message; a gradient goes from its target to its source.
  Task message_task(TaskKind kind, std::size_t message, bool is_forward, std::int32_t microbatch) {
    const StageMessage& m = messages_[message];
    const bool is_at_source = is_forward == (kind == TaskKind::kSend);
    const std::array<std::int32_t, 2> ranks{rank_of(to_index(m.source), microbatch),
                                            rank_of(to_index(m.target), microbatch)};
    Task task;
    task.kind = kind;
    task.rank = ranks[is_at_source ? 0 : 1];
    task.microbatch = microbatch;
    task.stage = static_cast<std::int16_t>(is_at_source ? m.source : m.target);
    task.work = message_work(task, m.bytes,
                             node_index_of(partition_.cluster, DeviceId(ranks[0])) !=
                                 node_index_of(partition_.cluster, DeviceId(ranks[1])));
    return task;
  }

  void send(std::size_t message, bool is_forward, std::int32_t microbatch, TaskId after) {
    Task task = message_task(TaskKind::kSend, message, is_forward, microbatch);
    task.stream = is_forward ? Stream::kSendNext : Stream::kSendPrevious;
    sent(message, is_forward, microbatch) = append_task(folded_.graph, task, {&after, 1});
  }

  /// Receives stand in the order in which passes need them.
  TaskId receive(std::size_t message, bool is_forward, std::int32_t microbatch) {
    Task task = message_task(TaskKind::kReceive, message, is_forward, microbatch);
    task.stream = is_forward ? Stream::kReceivePrevious : Stream::kReceiveNext;
    task.partner = sent(message, is_forward, microbatch).value;
    return append_task(folded_.graph, task, {});
  }

  // ---- passes ----

  std::int32_t append_part(const std::string& name, const std::vector<Kernel>& kernels,
                           bool recompute) {
    folded_.graph.parts.push_back(
        {.name = name, .steps = {kernels.begin(), kernels.end()}, .recompute = recompute});
    return static_cast<std::int32_t>(folded_.graph.parts.size() - 1);
  }

  /// Nodes are put together to parts of about a layer, as training programs have costs per layer.
  void use_part(Work& work, const std::string& name, const std::vector<Kernel>& kernels,
                bool recompute = false) {
    if (kernels.empty()) return;
    if (!work.parts.empty()) {
      WorkPart& last = folded_.graph.parts[to_index(work.parts.back().part)];
      if (last.recompute == recompute && !is_a_layer(last)) {
        last.steps.insert(last.steps.end(), kernels.begin(), kernels.end());
        return;
      }
    }
    work.parts.push_back({append_part(name, kernels, recompute), 1});
  }

  /// A block of GPT-2 has four products and attention, one of Llama seven; twice as many in the
  /// backward pass.
  static bool is_a_layer(const WorkPart& part) {
    constexpr int kProducts = 6;
    int products = 0;
    for (const Step& step : part.steps) {
      const Kernel& kernel = std::get<Kernel>(step);
      if (kernel.kind == KernelKind::kMemoryBound) continue;
      products += kernel.phase == Phase::kForward || kernel.kind == KernelKind::kAttention ? 2 : 1;
    }
    return products >= 2 * kProducts;
  }

  const std::vector<NodeVariant>& variants_of(std::int32_t node) const {
    return partition_.training.problem.nodes[to_index(node)].degrees.front().variants;
  }

  /// The nodes of a stage by group, as they are stored or recomputed together.
  void append_works(std::size_t s) {
    std::map<std::int32_t, std::vector<std::int32_t>> members;
    std::map<std::int32_t, std::size_t> variant;
    Work forward, backward;
    forward.kind = TaskKind::kForward;
    backward.kind = TaskKind::kBackward;
    for (std::size_t i = 0; i < stages_[s].nodes.size(); ++i) {
      const std::int32_t node = stages_[s].nodes[i];
      const KernelGraphNode& each = partition_.graph.nodes[to_index(node)];
      use_part(forward, each.name, each.forward);
      const std::int32_t group = partition_.priced.group[to_index(node)];
      members[group].push_back(node);
      variant[group] = to_index(stages_[s].variant[i]);
    }
    for (const auto& [group, nodes] : members) {
      const std::vector<NodeVariant>& variants = variants_of(nodes.front());
      forward.acquired[MemoryClass::kActivations] += variants[variant[group]].memory_per_inflight;
      if (variant[group] == 0) continue;
      Bytes& working = backward.transient[MemoryClass::kWorking];
      working = std::max(working, variants[variant[group]].memory - variants[0].memory);
    }
    backward.released = forward.acquired;
    for (auto node = stages_[s].nodes.rbegin(); node != stages_[s].nodes.rend(); ++node) {
      const std::int32_t group = partition_.priced.group[to_index(*node)];
      if (*node == members[group].back() && variant[group] > 0)
        for (const std::int32_t again : members[group])
          use_part(backward, partition_.graph.nodes[to_index(again)].name,
                   partition_.graph.nodes[to_index(again)].forward, true);
      use_part(backward, partition_.graph.nodes[to_index(*node)].name,
               partition_.graph.nodes[to_index(*node)].backward);
    }
    tasks_[s].forward = append_work(folded_.graph, std::move(forward));
    tasks_[s].backward = append_work(folded_.graph, std::move(backward));
    tasks_[s].update = append_work(folded_.graph, update_work(s));
  }

  Work update_work(std::size_t s) {
    const std::int64_t parameters = tasks_[s].parameters;
    Kernel kernel;
    kernel.kind = KernelKind::kOptimizer;
    kernel.phase = Phase::kUpdate;
    kernel.routine = Routine::kUpdate;
    kernel.dtype = storage_dtype(partition_.graph.dtype);
    kernel.m = parameters;
    kernel.memory_traffic = Bytes(parameters * update_bytes_of(partition_.graph.dtype).traffic);
    Work work;
    work.kind = TaskKind::kOptimizer;
    use_part(work, "optimizer", {kernel});
    return work;
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

  bool is_ready(std::size_t stage, const Pass& pass) {
    const StageTasks& tasks = tasks_[stage];
    return std::ranges::all_of(pass.is_forward ? tasks.receives_from : tasks.sends_to,
                               [&](std::size_t message) {
                                 return sent(message, pass.is_forward, pass.microbatch).value >= 0;
                               });
  }

  void append_pass(std::size_t stage, const Pass& pass, std::int32_t rank) {
    const StageTasks& tasks = tasks_[stage];
    std::vector<TaskId> inputs;
    for (const std::size_t message : pass.is_forward ? tasks.receives_from : tasks.sends_to)
      inputs.push_back(receive(message, pass.is_forward, pass.microbatch));
    Task task;
    task.work = pass.is_forward ? tasks.forward : tasks.backward;
    task.rank = rank;
    task.microbatch = pass.microbatch;
    task.stage = static_cast<std::int16_t>(stage);
    task.kind = pass.is_forward ? TaskKind::kForward : TaskKind::kBackward;
    const TaskId id = append_task(folded_.graph, task, inputs);
    last_of_rank_[to_index(rank)] = id;
    for (const std::size_t message : pass.is_forward ? tasks.sends_to : tasks.receives_from)
      send(message, pass.is_forward, pass.microbatch, id);
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
      for (std::size_t rank = 0; rank < replicas.size(); ++rank) {
        Replica& replica = replicas[rank];
        if (replica.next == replica.order.size()) continue;
        const Pass& pass = replica.order[replica.next];
        if (!is_ready(replica.stage, pass)) continue;
        append_pass(replica.stage, pass, static_cast<std::int32_t>(rank));
        ++replica.next;
        has_advanced = true;
      }
    }
    MW_CHECK(std::ranges::all_of(
        replicas, [](const Replica& each) { return each.next == each.order.size(); }));
  }

  // ---- end of the step ----

  GroupShape shape_of(std::size_t s) const {
    std::set<std::int32_t> nodes;
    for (int r = 0; r < stages_[s].data; ++r)
      nodes.insert(node_index_of(partition_.cluster, DeviceId(tasks_[s].first_rank + r)).value);
    return {.ranks = stages_[s].data, .nodes = static_cast<int>(nodes.size())};
  }

  void append_step_end(std::size_t s) {
    std::vector<TaskId> ready;
    ready.reserve(static_cast<std::size_t>(stages_[s].data));
    for (int r = 0; r < stages_[s].data; ++r)
      ready.push_back(last_of_rank_[to_index(tasks_[s].first_rank + r)]);
    Task task;
    task.microbatch = -1;
    task.stage = static_cast<std::int16_t>(s);
    if (tasks_[s].parameters == 0) return;
    if (stages_[s].data > 1) {
      Work work;
      work.kind = TaskKind::kCollective;
      work.collective.bytes = Bytes(kFloat32Bytes * tasks_[s].parameters);
      work.collective.group = shape_of(s);
      task.work = append_work(folded_.graph, std::move(work));
      task.stream = Stream::kData;
      open_collective(folded_, {});
      for (std::size_t r = 0; r < ready.size(); ++r) {
        task.rank = tasks_[s].first_rank + static_cast<std::int32_t>(r);
        ready[r] = append_member(folded_, task, {&ready[r], 1});
      }
    }
    task.work = tasks_[s].update;
    task.kind = TaskKind::kOptimizer;
    task.stream = Stream::kCompute;
    task.partner = -1;
    for (std::size_t r = 0; r < ready.size(); ++r) {
      task.rank = tasks_[s].first_rank + static_cast<std::int32_t>(r);
      append_task(folded_.graph, task, {&ready[r], 1});
    }
  }

  const LoweredPartition& partition_;
  const std::vector<ReplicatedStage>& stages_;
  std::int32_t microbatches_;
  FoldedGraph folded_;
  std::vector<StageTasks> tasks_;
  std::vector<std::int32_t> stage_of_node_;
  std::vector<StageMessage> messages_;
  std::vector<TaskId> sent_;  ///< -1: not yet
  std::map<std::tuple<TaskKind, Bytes, bool>, WorkId> message_works_;
  std::vector<TaskId> last_of_rank_;
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

TaskGraph lower_partition(const LoweredPartition& partition) {
  return PartitionLowering(partition).run();
}

Prediction predict_partition(const LoweredPartition& partition, const CostModel& cost) {
  Prediction prediction;
  prediction.graph = lower_partition(partition);
  prediction.prices = price_works(prediction.graph.parts, prediction.graph.works, cost);
  prediction.times = simulate(prediction.graph, prediction.prices);
  const ReplicationProblem& problem = partition.training.problem;
  const auto ranks = static_cast<std::int64_t>(prediction.graph.ranks.size());
  JobFacts facts{.model_flops_per_step = problem.microbatches * product_flops(partition.graph),
                 .tokens_per_step = problem.microbatches,
                 .job_ranks = ranks,
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
