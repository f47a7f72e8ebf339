#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/check_data_parallelism.hpp"
#include "core/check_model_parallelism.hpp"
#include "core/lower_passes.hpp"
#include "core/plan.hpp"
#include "core/plan_numbers.hpp"
#include "core/schedule.hpp"
#include "core/weight_versions.hpp"

namespace meshwright {
namespace {

/// Tasks of one pipeline that can be ordered and simulated in reasonable time and memory.
constexpr std::int64_t kMostPassesPerStep = std::int64_t{1} << 25;
constexpr std::int64_t kMostStages = 32'000;  ///< stages are counted in 16 bits

class PlanChecks {
 public:
  PlanChecks(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
             std::string_view where)
      : plan_(plan),
        strategy_(plan.strategy),
        degrees_(plan.strategy.degrees),
        model_(model),
        cluster_(cluster),
        traits_(traits_of(model)),
        where_(where) {}

  /// Later groups rely on earlier ones: products are formed of positive numbers only, a schedule
  /// is asked only about a batch that divides.
  std::vector<Diagnostic> run() {
    check_positive();
    if (!found_.empty()) return std::move(found_);
    check_ranks();
    check_tensor();
    take(expert_degree_problems(plan_, model_));
    check_sequence();
    check_memory_options();
    take(data_parallelism_problems(strategy_, model_, cluster_));
    if (found_.empty()) take(model_parallelism_problems(plan_, model_, cluster_));
    check_dtype();
    check_batch();
    if (found_.empty()) check_schedule_rule();
    return std::move(found_);
  }

 private:
  /// Flags are written with dashes, keys of the plan file with underscores.
  void report(std::string_view field, std::string what, std::string hint) {
    std::string place = where_ + std::string(field);
    if (where_ != "--")
      std::replace(place.begin() + static_cast<std::ptrdiff_t>(where_.size()), place.end(), '-',
                   '_');
    found_.push_back({std::move(place), std::move(what), std::move(hint)});
  }

  void take(std::vector<Diagnostic> problems) {
    for (Diagnostic& problem : problems)
      report(problem.where, std::move(problem.what), std::move(problem.hint));
  }

  void check_positive() {
    const auto need = [this](std::string_view field, std::int64_t value) {
      if (value >= 1) return;
      report(field, fmt::format("must be at least 1, got {}", value), "1 switches it off");
    };
    need("dp", degrees_.data);
    need("pp", degrees_.pipeline);
    need("vpp", degrees_.chunks);
    need("cp", degrees_.context);
    need("tp", degrees_.tensor);
    need("ep", degrees_.expert);
    need("etp", degrees_.expert_tensor);
    need("micro-batch", strategy_.micro_batch);
    need("global-batch", strategy_.global_batch);
    need("seq", strategy_.sequence_length);
    if (strategy_.global_batch > std::numeric_limits<std::int32_t>::max())
      report("global-batch", fmt::format("{} sequences are too many", strategy_.global_batch),
             "the largest batch is 2147483647");
    if (strategy_.sequence_length > std::numeric_limits<std::int32_t>::max())
      report("seq", fmt::format("{} tokens are too many", strategy_.sequence_length),
             "the longest sequence is 2147483647");
  }

  std::int64_t ranks() const {
    return saturating_product(
        {degrees_.data, degrees_.pipeline, degrees_.context, degrees_.tensor});
  }

  std::string degree_product() const {
    return fmt::format("dp {} x pp {} x cp {} x tp {} = {} ranks", degrees_.data, degrees_.pipeline,
                       degrees_.context, degrees_.tensor, ranks());
  }

  void check_ranks() {
    const std::int64_t devices = device_count(cluster_);
    if (ranks() > devices) {
      report("dp",
             fmt::format("{}, but cluster '{}' has {} devices", degree_product(), cluster_.name,
                         devices),
             "lower a degree or take more nodes");
      return;
    }
    const NodeModel& node = node_of(cluster_, DeviceId(0));
    if (is_homogeneous(cluster_) && ranks() > node.device_count && ranks() % node.device_count != 0)
      report("dp",
             fmt::format("{}, which leave a node of {} devices partly used", degree_product(),
                         node.device_count),
             fmt::format("use at most {} ranks, or a multiple of it", node.device_count));
  }

  // ---- tensor and sequence parallelism ----

  void check_tensor() {
    const int tensor = degrees_.tensor;
    if (strategy_.sequence_parallel && tensor == 1)
      report("sequence-parallel", "needs a tensor degree above 1, got 1",
             "raise the tensor degree, or leave sequence parallelism off");
    const auto need_divides = [&](std::optional<int> count, std::string_view what) {
      if (!count || *count % tensor == 0) return;
      report("tp",
             fmt::format("tensor degree {} does not divide the {} {} of '{}'", tensor, *count, what,
                         model_.name),
             fmt::format("degrees that divide them: {}", divisors_up_to(*count, ranks())));
    };
    need_divides(traits_.heads, "attention heads");
    // More ranks than key/value heads hold copies of them.
    if (!traits_.key_value_heads || tensor % *traits_.key_value_heads != 0)
      need_divides(traits_.key_value_heads, "key/value heads");
    check_cut_widths();
  }

  /// The first cut operator whose width does not divide; the vocabulary is padded instead.
  void check_cut_widths() {
    std::int32_t next_class = 0;
    for (const Layer& layer : model_.layers) {
      if (layer.layer_class != next_class) continue;
      ++next_class;
      for (std::int32_t i = 0; i < layer.operator_count; ++i)
        if (!cut_divides(model_.operators[static_cast<std::size_t>(layer.first_operator + i)]))
          return;
    }
  }

  bool cut_divides(const Operator& op) {
    const auto divides = [&](std::string_view field, LinearCut cut, std::int64_t in,
                             std::int64_t out, int parts) {
      const std::int64_t width = cut == LinearCut::kColumn ? out : in;
      if (cut == LinearCut::kReplicated || width % parts == 0 || width == traits_.vocabulary)
        return true;
      report(field,
             fmt::format("degree {} does not divide the width {} of '{}'", parts, width, op.name),
             fmt::format("degrees that divide it: {}", divisors_up_to(width, ranks())));
      return false;
    };
    if (const auto* linear = std::get_if<Linear>(&op.shape))
      return divides("tp", linear->cut, linear->in, linear->out, degrees_.tensor);
    if (const auto* expert = std::get_if<ExpertLinear>(&op.shape))
      return divides("etp", expert->cut, expert->in, expert->out, degrees_.expert_tensor);
    return true;
  }

  void check_sequence() {
    const std::int64_t length = strategy_.sequence_length;
    const std::int64_t context = degrees_.context;
    // Each context rank takes an early and a late piece, which balances causal attention; where
    // heads are exchanged it sees whole sequences.
    const bool whole = strategy_.model_parallelism.context == ContextAlgorithm::kAllToAll;
    const std::int64_t pieces = whole ? context : 2 * context;
    if (context > 1 && length % pieces != 0)
      report("cp",
             fmt::format("sequence length {} is not a multiple of {}{} context ranks", length,
                         whole ? "" : "2 x ", context),
             fmt::format("use a length that is a multiple of {}", pieces));
    else if (strategy_.sequence_parallel && length / context % degrees_.tensor != 0)
      report("seq",
             fmt::format("{} tokens per context rank cannot be cut over {} tensor ranks",
                         length / context, degrees_.tensor),
             fmt::format("use a length that is a multiple of {}",
                         saturating_product({context, degrees_.tensor})));
    if (has_learned_positions() && length > model_.longest_sequence)
      report("seq",
             fmt::format("{} tokens, but '{}' has learned positions for {}", length, model_.name,
                         model_.longest_sequence),
             fmt::format("use at most {} tokens", model_.longest_sequence));
  }

  /// A table of positions is read in the embedding, and cut by no one.
  bool has_learned_positions() const {
    if (model_.longest_sequence <= 0 || model_.layers.empty()) return false;
    const Layer& embedding = model_.layers.front();
    const auto begin = model_.operators.begin() + embedding.first_operator;
    return std::any_of(begin, begin + embedding.operator_count, [&](const Operator& op) {
      const auto* table = std::get_if<EmbeddingLookup>(&op.shape);
      return table != nullptr && table->rows == model_.longest_sequence &&
             table->rows != traits_.vocabulary;
    });
  }

  // ---- memory, dtype, batch ----

  void check_memory_options() {
    if (strategy_.zero < 0 || strategy_.zero > 3)
      report(
          "zero", fmt::format("there is no level {}", strategy_.zero),
          "use 0 (nothing is cut), 1 (optimizer state), 2 (gradients too) or 3 (parameters too)");
    const Recompute& recompute = strategy_.recompute;
    if (recompute.kind == RecomputeKind::kBlocks &&
        (recompute.blocks < 0 || recompute.blocks > traits_.blocks))
      report("recompute",
             fmt::format("block:{} of a model with {} blocks", recompute.blocks, traits_.blocks),
             "use block:N with N blocks of one stage, or full");
  }

  void check_dtype() {
    std::int64_t first = 0;
    for (const NodeGroup& group : cluster_.groups) {
      if (first >= ranks()) return;
      const NodeModel& node = cluster_.nodes.at(group.node);
      first += std::int64_t{node.device_count} * group.count;
      if (!check_dtype_on(cluster_.devices.at(node.device))) return;
    }
  }

  bool check_dtype_on(const DeviceModel& device) {
    if (device.peak[static_cast<std::size_t>(strategy_.dtype)]) return true;
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < device.peak.size(); ++i)
      if (device.peak[i]) known.push_back(name_of(static_cast<Dtype>(i)));
    report("dtype",
           fmt::format("device '{}' has no {} rate", device.name, name_of(strategy_.dtype)),
           fmt::format("it has: {}", fmt::join(known, ", ")));
    return false;
  }

  void check_batch() {
    const std::int64_t together = saturating_product({strategy_.micro_batch, degrees_.data});
    if (strategy_.global_batch % together != 0) {
      const std::int64_t below = strategy_.global_batch / together * together;
      report("global-batch",
             fmt::format("{} sequences are not a multiple of micro-batch {} x dp {} = {}",
                         strategy_.global_batch, strategy_.micro_batch, degrees_.data, together),
             below > 0 ? fmt::format("{} or {} would be", below, below + together)
                       : fmt::format("{} would be", together));
      return;
    }
    const std::int64_t passes =
        saturating_product({strategy_.global_batch / together, degrees_.pipeline, degrees_.chunks});
    if (passes > kMostPassesPerStep ||
        saturating_product({degrees_.pipeline, degrees_.chunks}) > kMostStages)
      report("micro-batch",
             fmt::format("{} micro-batches over {} stages are more than can be ordered",
                         strategy_.global_batch / together,
                         saturating_product({degrees_.pipeline, degrees_.chunks})),
             "use larger micro-batches or fewer stages");
  }

  // ---- schedule and stage cut ----

  void check_schedule_rule() {
    const ScheduleRule* rule = find_schedule_rule(strategy_.schedule);
    if (rule == nullptr) {
      const std::vector<std::string> names = schedule_names();
      report("schedule", fmt::format("unknown schedule '{}'", strategy_.schedule),
             suggest(strategy_.schedule, names));
      return;
    }
    ScheduleRequest request;
    request.devices = degrees_.pipeline;
    request.chunks = degrees_.chunks;
    request.microbatches = static_cast<int>(microbatch_count(strategy_));
    if (const auto problem = rule->problem(request)) {
      report("schedule", fmt::format("{}: {}", strategy_.schedule, *problem),
             fmt::format("known schedules: {}", fmt::join(schedule_names(), ", ")));
      return;
    }
    if (updates_without_flush(strategy_)) {
      take(without_flush_problems(plan_, model_));
      if (!found_.empty()) return;
    }
    if (splits_output_layer(*rule, request)) {
      report(
          "schedule",
          fmt::format("{} splits the output layer over the devices, which cannot be lowered yet",
                      strategy_.schedule),
          "meshwright schedule times it from given stage times; 1f1b is the nearest that can be");
      return;
    }
    if (!plan_.device_of_stage.empty()) {
      take(hand_placement_problems(plan_));
      if (found_.empty()) check_cut(hand_placement(plan_));
      return;
    }
    const Placement placement = rule->placement(request);
    take(mixed_nodes_problems(plan_, cluster_, placement));
    take(data_parallelism_problems(strategy_, placement));
    check_cut(placement);
    for (std::string& fault : order_faults(placement))
      report("orders", std::move(fault), "leave the orders out, and plan again");
  }

  /// Seen on a single micro-batch. Planners try no such schedule: their checks stay cheap.
  static bool splits_output_layer(const ScheduleRule& rule, ScheduleRequest request) {
    request.microbatches = 1;
    return !rule.worth_searching && !rule.problem(request) &&
           rule.generate(request).output_barriers > 0;
  }

  /// Orders of the plan's own: at most so many as are worth judging.
  std::vector<std::string> order_faults(const Placement& placement) const {
    if (plan_.orders.empty()) return {};
    if (plan_.orders.size() != static_cast<std::size_t>(placement.devices))
      return {fmt::format("{} orders for {} pipeline positions", plan_.orders.size(),
                          placement.devices)};
    return check_schedule(schedule_of(plan_));
  }

  void check_cut(const Placement& placement) {
    const int parts =
        1 + *std::max_element(placement.part_of_stage.begin(), placement.part_of_stage.end());
    const std::vector<int>& cut = plan_.blocks_per_stage;
    if (cut.size() != static_cast<std::size_t>(parts)) {
      report("blocks-per-stage", fmt::format("{} entries for {} stages", cut.size(), parts),
             "give one number of blocks for every stage");
      return;
    }
    std::int64_t sum = 0;
    for (const int blocks : cut) sum += blocks;
    if (sum != traits_.blocks)
      report("blocks-per-stage",
             fmt::format("{} add up to {}, but '{}' has {} blocks", fmt::join(cut, " + "), sum,
                         model_.name, traits_.blocks),
             "cut all blocks, each once");
    for (std::size_t i = 0; i < cut.size(); ++i) {
      const bool has_end_layer = (i == 0 && has_layer(LayerKind::kEmbedding)) ||
                                 (i + 1 == cut.size() && has_layer(LayerKind::kHead));
      if (cut[i] > 0 || (cut[i] == 0 && has_end_layer)) continue;
      report("blocks-per-stage", fmt::format("stage {} has {} blocks", i, cut[i]),
             fmt::format("give it at least one, or use fewer than {} stages", cut.size()));
    }
  }

  bool has_layer(LayerKind kind) const {
    return std::any_of(model_.layers.begin(), model_.layers.end(),
                       [kind](const Layer& layer) { return layer.kind == kind; });
  }

  const Plan& plan_;
  const Strategy& strategy_;
  const ParallelDegrees& degrees_;
  const ModelGraph& model_;
  const Cluster& cluster_;
  ModelTraits traits_;
  std::string where_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> check_plan(const Plan& plan, const ModelGraph& model,
                                   const Cluster& cluster, std::string_view where) {
  return PlanChecks(plan, model, cluster, where).run();
}

}  // namespace meshwright
