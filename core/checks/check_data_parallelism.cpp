#include "core/checks/check_data_parallelism.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/plan/plan_numbers.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kBatchSharesField = "batch-shares";
constexpr int kMostPrefetched = 64;
constexpr int kMostServers = 1'000'000;

/// Kinds that support only the data axis and unsharded models.
bool is_plain(DataParallelKind kind) {
  return has_servers(kind) || kind == DataParallelKind::kOneProcess;
}

class DataParallelismChecks {
 public:
  DataParallelismChecks(const Plan& plan, const ModelGraph& model, const Cluster& cluster)
      : plan_(plan),
        strategy_(plan.strategy),
        degrees_(strategy_.degrees),
        data_(strategy_.data_parallelism),
        has_experts_(traits_of(model).experts.has_value()),
        cluster_(cluster) {}

  std::vector<Diagnostic> run() {
    check_units();
    check_shards();
    check_algorithm();
    check_offload();
    if (!strategy_.batch_shares.empty()) check_batch_shares();
    if (is_plain(data_.kind)) check_plain();
    if (has_servers(data_.kind))
      check_servers();
    else
      check_unused_servers();
    return std::move(found_);
  }

 private:
  void report(std::string field, std::string what, std::string hint) {
    found_.push_back({std::move(field), std::move(what), std::move(hint)});
  }

  void check_units() {
    const bool sized = data_.buckets.rule != BucketRule::kNone;
    if (strategy_.zero >= 3 && sized)
      report("bucket", fmt::format("{} cannot be combined with ZeRO 3", to_text(data_.buckets)),
             "use --bucket none: ZeRO 3 reduces gradients layer by layer");
    if (data_.overlap_gather && (strategy_.zero == 0 || strategy_.zero >= 3))
      report("overlap-gather",
             fmt::format("ZeRO {} does not gather parameters after the update", strategy_.zero),
             strategy_.zero == 0 ? "use it with --zero 1 or 2" : "use --fsdp-prefetch instead");
    else if (data_.overlap_gather && strategy_.zero == 1 && !sized)
      report("overlap-gather", "requires gradient buckets",
             "set --bucket to a size, pytorch or megatron");
    if (data_.prefetch < 0 || data_.prefetch > kMostPrefetched)
      report("fsdp-prefetch",
             fmt::format("{} is out of range: expected 0 to {}", data_.prefetch, kMostPrefetched),
             "give the number of layers to gather ahead");
  }

  void check_shards() {
    if (data_.shard_ranks == 0) return;
    const std::int64_t data_ranks = replica_count(degrees_);
    const auto divides = [&](std::int64_t ranks, std::string_view which) {
      if (data_.shard_ranks >= 2 && ranks % data_.shard_ranks == 0) return;
      report("shard-ranks",
             fmt::format("shard group size {} does not divide the {} ranks that share {}",
                         data_.shard_ranks, ranks, which),
             "use a divisor above 1, or 0 to shard over all of them");
    };
    if (strategy_.zero == 0)
      report("shard-ranks", fmt::format("{} has no effect with ZeRO 0", data_.shard_ranks),
             "use --zero 1, 2 or 3");
    divides(data_ranks, "parameters");
    const std::int64_t expert_ranks = std::int64_t{degrees_.expert} * degrees_.expert_tensor;
    const std::int64_t stage_ranks = stage_rank_count(degrees_);
    if (has_experts_ && expert_ranks > 0 && stage_ranks % expert_ranks == 0)
      divides(stage_ranks / expert_ranks, "experts");
  }

  void check_algorithm() {
    const CollectiveAlgorithm algorithm = data_.algorithm;
    if (data_.kind == DataParallelKind::kRing && algorithm != CollectiveAlgorithm::kAutomatic &&
        algorithm != CollectiveAlgorithm::kRing)
      report("collective-algorithm",
             fmt::format("'{}' cannot be combined with '--data-parallel ring'", name_of(algorithm)),
             "use auto, or --data-parallel collective");
    const NodeModel& node = node_of(cluster_, DeviceId(0));
    if (algorithm == CollectiveAlgorithm::kNvls && !node.local.in_network_reduction)
      report("collective-algorithm",
             fmt::format("node '{}' does not support NVLS (no in-network reduction)", node.name),
             "use auto, ring, tree or hierarchical");
  }

  void check_offload() {
    const NodeModel& node = node_of(cluster_, DeviceId(0));
    if (!data_.offload_optimizer) return;
    if (!node.host)
      report("offload-optimizer",
             fmt::format("node '{}' has no host section in the cluster file", node.name),
             "add [nodes.X.host] with device_link and memory_bandwidth to the cluster file");
    if (is_plain(data_.kind))
      report("offload-optimizer",
             fmt::format("cannot be combined with '--data-parallel {}'", name_of(data_.kind)),
             "use --data-parallel collective or ring");
  }

  /// Ranks with fewer micro-batches take part in collectives once per step only.
  void check_batch_shares() {
    const auto refuse = [this](std::string what, std::string hint) {
      report(std::string(kBatchSharesField), std::move(what), std::move(hint));
    };
    int next = 0;  // the first rank that no earlier share covers
    for (const BatchShare& share : strategy_.batch_shares) {
      if (share.first != next || share.last < share.first || share.last >= degrees_.data)
        return refuse(fmt::format("ranks {}-{} follow rank {} of {} data-parallel ranks",
                                  share.first, share.last, next - 1, degrees_.data),
                      fmt::format("give every rank from 0 to {} once", degrees_.data - 1));
      if (share.microbatches < 1)
        return refuse(fmt::format("ranks {}-{} have {} micro-batches", share.first, share.last,
                                  share.microbatches),
                      "use 1 or more");
      next = share.last + 1;
    }
    if (next != degrees_.data)
      return refuse(
          fmt::format("rank {} of {} data-parallel ranks has no share", next, degrees_.data),
          fmt::format("give every rank from 0 to {} once", degrees_.data - 1));
    const std::int64_t sequences =
        saturating_product({total_microbatches(strategy_.batch_shares), strategy_.micro_batch});
    if (sequences != strategy_.global_batch)
      refuse(fmt::format("{} micro-batches of {} are {} sequences, but the global batch has {}",
                         total_microbatches(strategy_.batch_shares), strategy_.micro_batch,
                         sequences, strategy_.global_batch),
             "change the shares or --global-batch");
    if (data_.kind != DataParallelKind::kCollective)
      refuse(fmt::format("cannot be combined with '--data-parallel {}'", name_of(data_.kind)),
             "use --data-parallel collective");
    if (strategy_.zero >= 2)
      refuse(fmt::format("cannot be combined with ZeRO {}, which communicates in every micro-batch",
                         strategy_.zero),
             "use --zero 0 or 1");
    if (data_.overlap_gather)
      refuse("cannot be combined with '--overlap-gather'", "remove --overlap-gather");
    if (data_.shard_ranks > 0)
      refuse("cannot be combined with '--shard-ranks'", "remove --shard-ranks");
    if (degrees_.expert > 1 || degrees_.expert_tensor > degrees_.tensor)
      refuse("cannot be combined with expert parallelism: ranks exchange rows in every micro-batch",
             "use --ep 1");
  }

  void check_plain() {
    const std::string kind(name_of(data_.kind));
    if (degrees_ != ParallelDegrees{.data = degrees_.data}) {
      std::vector<std::string> others;
      for (const ParallelSize& size : kParallelSizes)
        if (size.axis != Axis::kData) others.emplace_back(size.key);
      report("data-parallel", fmt::format("'{}' supports data parallelism only", kind),
             fmt::format("set {} to 1, or use collective", enumeration(others)));
    }
    if (!plan_.device_of_stage.empty())
      report("stage-devices", fmt::format("cannot be combined with '--data-parallel {}'", kind),
             "use --data-parallel collective or ring");
    if (degrees_.data < 2)
      report("dp", fmt::format("'{}' requires at least 2 replicas, got {}", kind, degrees_.data),
             "increase the data-parallel size");
    if (strategy_.zero != 0)
      report(
          "zero",
          fmt::format("ZeRO {} cannot be combined with '--data-parallel {}'", strategy_.zero, kind),
          "use --zero 0, or --data-parallel collective or ring");
    if (data_.buckets.rule != BucketRule::kNone)
      report("bucket",
             fmt::format("{} cannot be combined with '--data-parallel {}'", to_text(data_.buckets),
                         kind),
             "use --bucket none, or --data-parallel collective or ring");
    const NodeModel& node = node_of(cluster_, DeviceId(0));
    if (data_.kind == DataParallelKind::kOneProcess && degrees_.data > node.device_count)
      report("dp",
             fmt::format("a single process cannot use {} devices: node '{}' has {}", degrees_.data,
                         node.name, node.device_count),
             "use --data-parallel collective for several nodes");
  }

  /// Devices of the cluster, without those that the workers leave unused in each node.
  std::int64_t usable_devices() const {
    const std::int64_t all = device_count(cluster_);
    if (!is_homogeneous(cluster_)) return all;
    const int per_node = node_of(cluster_, DeviceId(0)).device_count;
    return all / per_node * used_devices_per_node(cluster_, degrees_.data).value_or(per_node);
  }

  void check_servers() {
    if (data_.servers < 1 || data_.servers > degrees_.data) {
      report("servers",
             fmt::format("{} is out of range: expected 1 to {} (one per worker)", data_.servers,
                         degrees_.data),
             "use at most one server per worker");
      return;
    }
    const std::int64_t devices = usable_devices();
    if (!data_.colocated_servers && std::int64_t{degrees_.data} + data_.servers > devices)
      report(data_.servers == DataParallelism{}.servers ? "dp" : "servers",
             fmt::format("{} workers and {} servers, but cluster '{}' has {} devices",
                         degrees_.data, data_.servers, cluster_.name, devices),
             "use more nodes, fewer workers, or --colocated-servers");
  }

  /// Has no effect, but must be a number that plan files can have.
  void check_unused_servers() {
    if (data_.servers >= 1 && data_.servers <= kMostServers) return;
    report("servers",
           fmt::format("{} is out of range: expected 1 to {}", data_.servers, kMostServers),
           fmt::format("remove it: '--data-parallel {}' has no servers", name_of(data_.kind)));
  }

  const Plan& plan_;
  const Strategy& strategy_;
  const ParallelDegrees& degrees_;
  const DataParallelism& data_;
  bool has_experts_;
  const Cluster& cluster_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> data_parallelism_problems(const Plan& plan, const ModelGraph& model,
                                                  const Cluster& cluster) {
  return DataParallelismChecks(plan, model, cluster).run();
}

std::vector<Diagnostic> data_parallelism_problems(const Strategy& strategy,
                                                  const Placement& placement) {
  std::vector<Diagnostic> found;
  if (placement.routes.size() < 2) return found;
  const std::string what =
      fmt::format("cannot be combined with '{}', which replicates the model", strategy.schedule);
  constexpr const char* kHint = "use a schedule with one copy of the model, such as 1f1b";
  if (strategy.zero >= 2)
    found.push_back({"zero", fmt::format("ZeRO {} {}", strategy.zero, what),
                     "use ZeRO 0 or 1, or a schedule with one copy of the model, such as 1f1b"});
  if (strategy.data_parallelism.shard_ranks > 0) found.push_back({"shard-ranks", what, kHint});
  if (strategy.data_parallelism.overlap_gather) found.push_back({"overlap-gather", what, kHint});
  return found;
}

}  // namespace meshwright
