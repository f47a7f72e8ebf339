#include "core/checks/check_model_parallelism.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/plan/job_groups.hpp"
#include "core/plan/plan_numbers.hpp"

namespace meshwright {
namespace {

class ModelParallelismChecks {
 public:
  ModelParallelismChecks(const Plan& plan, const ModelGraph& model, const Cluster& cluster)
      : strategy_(plan.strategy),
        degrees_(plan.strategy.degrees),
        options_(plan.strategy.model_parallelism),
        traits_(traits_of(model)),
        model_(model),
        cluster_(cluster) {}

  std::vector<Diagnostic> run() {
    if (options_.tensor_overlap && !strategy_.sequence_parallel)
      report("tp-comm-overlap", "requires '--sequence-parallel'", "add --sequence-parallel");
    check_context();
    check_routing();
    check_order();
    return std::move(found_);
  }

 private:
  void report(std::string_view field, std::string what, std::string hint) {
    found_.push_back({std::string(field), std::move(what), std::move(hint)});
  }

  void check_context() {
    if (degrees_.context == 1) return;
    if (options_.context == ContextAlgorithm::kRing &&
        strategy_.attention == AttentionAlgorithm::kStandard)
      report("context-algorithm", "ring attention requires flash attention, got standard",
             "use --attention flash, or another --context-algorithm");
    if (options_.context != ContextAlgorithm::kAllToAll) return;
    const auto need_divides = [&](std::optional<int> heads, std::string_view what) {
      if (!heads) return;
      const int local = (*heads + degrees_.tensor - 1) / degrees_.tensor;
      if (local % degrees_.context == 0) return;
      report("cp",
             fmt::format("with all-to-all, context-parallel size {} does not divide the {} {} of "
                         "'{}' per tensor rank (tp {})",
                         degrees_.context, local, what, model_.name, degrees_.tensor),
             fmt::format("use a divisor of {}, or --context-algorithm ring or all-gather", local));
    };
    need_divides(traits_.heads, "attention heads");
    need_divides(traits_.key_value_heads, "key/value heads");
  }

  void check_routing() {
    const ExpertRouting& routing = options_.routing;
    if (routing == ExpertRouting{}) return;
    if (!traits_.experts) {
      report(first_changed(routing), fmt::format("'{}' has no experts", model_.name),
             "remove the --expert options");
      return;
    }
    const double most = static_cast<double>(*traits_.experts) / *traits_.experts_per_token;
    if (!std::isfinite(routing.capacity) || routing.capacity < 0 || routing.capacity > most)
      report("expert-capacity",
             fmt::format("must be between 0 and {}, got {}", most, routing.capacity),
             fmt::format("use 0 for dropless routing, or a factor up to {} experts / {} per token",
                         *traits_.experts, *traits_.experts_per_token));
    if (!std::isfinite(routing.imbalance) || routing.imbalance < 1 || routing.imbalance > most)
      report("expert-imbalance",
             fmt::format("must be between 1 and {}, got {}", most, routing.imbalance),
             fmt::format("use 1 for balanced routing, up to {} experts / {} per token for all rows "
                         "on one rank",
                         *traits_.experts, *traits_.experts_per_token));
    if (routing.capacity > 0 && routing.imbalance != 1)
      report("expert-imbalance", "cannot be combined with '--expert-capacity'",
             "remove one of them: with a capacity, all experts take the same number of rows");
    check_node_limit();
    if (routing.overlap) check_overlap();
  }

  /// As Megatron-LM's --overlap-moe-expert-parallel-comm (training/arguments.py).
  void check_overlap() {
    const PairedPasses required =
        degrees_.pipeline == 1 ? PairedPasses::kWithoutPipeline : PairedPasses::kInPipeline;
    const auto names = [](PairedPasses where) {
      return schedule_names_if(
          [&](const ScheduleRule& rule) { return rule.paired_passes == where; }, " or ");
    };
    const ScheduleRule* rule = find_schedule_rule(strategy_.schedule);
    if (rule == nullptr || rule->paired_passes != required)
      report(
          "expert-overlap",
          fmt::format("requires schedule {} with one pipeline rank, or {}, got {} with --pp {}",
                      names(PairedPasses::kWithoutPipeline), names(PairedPasses::kInPipeline),
                      strategy_.schedule, degrees_.pipeline),
          fmt::format("use --schedule {} with --vpp 2 or more", names(PairedPasses::kInPipeline)));
    const auto is_of_whole_blocks = [](const Recompute& recompute) {
      return recompute.kind == RecomputeKind::kFull || recompute.kind == RecomputeKind::kBlocks;
    };
    const auto& of_blocks = strategy_.layer_options.recompute;
    if (is_of_whole_blocks(strategy_.recompute) ||
        std::ranges::any_of(of_blocks, is_of_whole_blocks, &OfBlocks<Recompute>::value))
      report("expert-overlap", "cannot be combined with recomputation of whole blocks",
             "use --recompute none or modules:…");
  }

  /// The first option that differs from its default, and so is in the plan file.
  static std::string_view first_changed(const ExpertRouting& routing) {
    if (routing.capacity != ExpertRouting{}.capacity) return "expert-capacity";
    if (routing.imbalance != ExpertRouting{}.imbalance) return "expert-imbalance";
    if (routing.fp8_dispatch) return "expert-fp8-dispatch";
    return routing.node_limit != 0 ? "expert-node-limit" : "expert-overlap";
  }

  void check_node_limit() {
    constexpr int kMostNodes = 1'000'000;  // as in plan files
    const int limit = options_.routing.node_limit;
    if (limit == 0) return;
    if (limit < 0 || limit > kMostNodes)
      return report("expert-node-limit",
                    fmt::format("{} is out of range: expected 0 to {}", limit, kMostNodes),
                    "use 0 for no limit");
    const JobGroups groups = job_groups_of(strategy_, cluster_);
    const int nodes = groups.expert.nodes;
    if (*traits_.experts % nodes != 0 || !have_blocks_in_nodes(groups))
      return report("expert-node-limit",
                    fmt::format("the {} experts cannot be spread evenly over {} nodes",
                                *traits_.experts, nodes),
                    "remove it, or choose sizes that put the same number of experts on every node");
    const int experts_per_node = *traits_.experts / nodes;
    const std::int64_t reachable = std::int64_t{limit} * experts_per_node;
    if (reachable < *traits_.experts_per_token)
      report("expert-node-limit",
             fmt::format("{} nodes with {} experts each have fewer experts than the {} per token",
                         limit, experts_per_node, *traits_.experts_per_token),
             fmt::format("use at least {}",
                         (*traits_.experts_per_token + experts_per_node - 1) / experts_per_node));
  }

  /// The gate selects among equal blocks of experts (kernels/moe_gate.hpp). With a block on two
  /// nodes, a token could reach more nodes than the limit.
  bool have_blocks_in_nodes(const JobGroups& groups) const {
    const RankStrides strides = strides_of(degrees_, options_.order);
    if (degrees_.expert % groups.expert.nodes != 0) return false;
    const int block = degrees_.expert / groups.expert.nodes;
    const std::int64_t ranks = groups.stage_ranks * degrees_.pipeline;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t place = rank / strides.expert % degrees_.expert;
      const std::int64_t first = rank - place % block * strides.expert;
      if (node_of_rank(groups, rank) != node_of_rank(groups, first)) return false;
    }
    return true;
  }

  void check_order() {
    const RankStrides strides = strides_of(degrees_, options_.order);
    if (traits_.experts && strides.pipeline != strides.expert_pipeline)
      report("rank-order",
             fmt::format("'{}' puts neighboring stages {} ranks apart for dense layers but {} for "
                         "expert layers",
                         to_text(options_.order), strides.pipeline, strides.expert_pipeline),
             "put pp first or last");
    if (!dense_data_extent(degrees_, options_.order))
      report("rank-order",
             fmt::format("'{}' puts tp between cp and dp, which share parameters",
                         to_text(options_.order)),
             "put cp and dp on the same side of tp");
  }

  const Strategy& strategy_;
  const ParallelDegrees& degrees_;
  const ModelParallelism& options_;
  ModelTraits traits_;
  const ModelGraph& model_;
  const Cluster& cluster_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> expert_degree_problems(const Plan& plan, const ModelGraph& model) {
  const ParallelDegrees& d = plan.strategy.degrees;
  const std::optional<int> experts = traits_of(model).experts;
  const std::int64_t expert_ranks = saturating_product({d.expert, d.expert_tensor});
  const std::int64_t stage_ranks = saturating_product({d.tensor, d.context, d.data});
  const std::int64_t ranks = saturating_product({stage_ranks, d.pipeline});
  if (!experts && expert_ranks > 1)
    return {{d.expert > 1 ? "ep" : "etp",
             fmt::format("'{}' has no experts to shard over {} ranks", model.name, expert_ranks),
             "set --ep and --etp to 1"}};
  if (!experts) return {};
  std::vector<Diagnostic> found;
  if (d.expert > *experts)
    found.push_back({"ep",
                     fmt::format("expert-parallel size {} exceeds the {} experts of '{}'", d.expert,
                                 *experts, model.name),
                     fmt::format("use one of: {}; to use more ranks, shard each expert with --etp",
                                 divisors_up_to(*experts, ranks))});
  else if (*experts % d.expert != 0)
    found.push_back({"ep",
                     fmt::format("expert-parallel size {} does not divide the {} experts of '{}'",
                                 d.expert, *experts, model.name),
                     fmt::format("use one of: {}", divisors_up_to(*experts, ranks))});
  if (stage_ranks % expert_ranks != 0)
    found.push_back(
        {"ep",
         fmt::format("ep {} x etp {} = {} does not divide the {} ranks per stage (tp {} x cp {} x "
                     "dp {})",
                     d.expert, d.expert_tensor, expert_ranks, stage_ranks, d.tensor, d.context,
                     d.data),
         fmt::format("use a product that is one of: {}",
                     divisors_up_to(stage_ranks, stage_ranks))});
  return found;
}

std::vector<Diagnostic> model_parallelism_problems(const Plan& plan, const ModelGraph& model,
                                                   const Cluster& cluster) {
  return ModelParallelismChecks(plan, model, cluster).run();
}

std::vector<Diagnostic> manual_placement_problems(const Plan& plan) {
  const int devices = plan.strategy.degrees.pipeline;
  std::vector<Diagnostic> found;
  const auto report = [&found](std::string what, std::string hint) {
    found.push_back({"stage-devices", std::move(what), std::move(hint)});
  };
  const auto is_supported = [](const ScheduleRule& rule) {
    return rule.manual_order != ManualOrder::kUnsupported;
  };
  const ScheduleRule* rule = find_schedule_rule(plan.strategy.schedule);
  if (rule == nullptr || !is_supported(*rule))
    report(fmt::format("manual stage placement does not support schedule '{}'",
                       plan.strategy.schedule),
           fmt::format("use --schedule {}", schedule_names_if(is_supported, " or ")));
  if (plan.strategy.degrees.chunks != 1)
    report(fmt::format("cannot be combined with '--vpp {}'", plan.strategy.degrees.chunks),
           "remove --vpp: --stage-devices may list a device several times");
  if (plan.device_of_stage.size() != plan.blocks_per_stage.size())
    report(fmt::format("expected {} entries (one per stage), got {}", plan.blocks_per_stage.size(),
                       plan.device_of_stage.size()),
           "give one device for every entry of --blocks-per-stage");
  std::vector<bool> used(static_cast<std::size_t>(devices), false);
  for (const int device : plan.device_of_stage) {
    if (device >= 0 && device < devices) {
      used[static_cast<std::size_t>(device)] = true;
      continue;
    }
    report(fmt::format("device {} is out of range: expected 0 to {}", device, devices - 1),
           fmt::format("use the {} devices of the pipeline, or increase --pp", devices));
    return found;
  }
  const auto idle = std::find(used.begin(), used.end(), false);
  if (idle != used.end())
    report(fmt::format("device {} of {} has no stage", idle - used.begin(), devices),
           "assign a stage to it, or lower --pp");
  return found;
}

std::vector<Diagnostic> mixed_nodes_problems(const Plan& plan, const Cluster& cluster,
                                             const Placement& placement) {
  if (placement.routes.size() == 1 || is_homogeneous(cluster)) return {};
  const std::vector<std::int32_t> kinds = job_groups_of(plan.strategy, cluster).kind_of_position;
  if (std::equal(kinds.begin() + 1, kinds.end(), kinds.begin())) return {};
  return {{"schedule",
           fmt::format("'{}' replicates every model part on two devices, which have different node "
                       "types in this cluster",
                       plan.strategy.schedule),
           "use a schedule with one copy of the model, such as 1f1b"}};
}

}  // namespace meshwright
