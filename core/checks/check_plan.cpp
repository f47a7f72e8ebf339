#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/checks/check_data_parallelism.hpp"
#include "core/checks/check_model_parallelism.hpp"
#include "core/operators/recompute_operators.hpp"
#include "core/plan/manual_placement.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/plan_fields.hpp"
#include "core/plan/plan_numbers.hpp"
#include "core/plan/weight_versions.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kLayerOptionsField = "layer-options";

/// Limit on the passes of one pipeline, for reasonable time and memory.
constexpr std::int64_t kMostPassesPerStep = std::int64_t{1} << 25;
constexpr std::int64_t kMostStages = 32'000;  ///< stage indices have 16 bits

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

  /// Later checks rely on earlier ones: products need positive factors, and the schedule's rule
  /// needs a divisible batch.
  std::vector<Diagnostic> run() {
    check_positive();
    if (!found_.empty()) return std::move(found_);
    check_ranks();
    check_tensor();
    take(expert_degree_problems(plan_, model_));
    check_sequence();
    check_memory_options();
    take(data_parallelism_problems(plan_, model_, cluster_));
    if (found_.empty()) take(model_parallelism_problems(plan_, model_, cluster_));
    check_dtype();
    check_quantization();
    check_gradients();
    check_batch();
    if (found_.empty()) check_schedule_rule();
    return std::move(found_);
  }

 private:
  /// `field` is a flag without leading dashes, or "orders".
  void report(std::string_view field, std::string what, std::string hint) {
    found_.push_back({place_of_field(where_, field), std::move(what), std::move(hint)});
  }

  void take(std::vector<Diagnostic> problems) {
    for (Diagnostic& problem : problems)
      report(problem.where, std::move(problem.what), std::move(problem.hint));
  }

  void check_positive() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const auto need = [this](std::string_view field, std::int64_t value, const char* hint) {
      if (value >= 1) return;
      report(field, fmt::format("must be at least 1, got {}", value), hint);
    };
    const auto need_count = [&](std::string_view field, std::int64_t value) {
      need(field, value, "use 1 or more");
      if (value > kMost)
        report(field, fmt::format("{} is out of range: expected 1 to {}", value, kMost),
               "use a smaller number");
    };
    for (const ParallelSize& size : kCheckedSizes)
      need(size.key, degrees_.*size.size, "use 1 to disable this axis");
    need_count("micro-batch", strategy_.micro_batch);
    need_count("global-batch", strategy_.global_batch);
    need_count("seq", strategy_.sequence_length);
  }

  std::int64_t ranks() const {
    std::int64_t product = 1;
    for (const ProcessGroup& group : kDenseGroups)
      product = saturating_product({product, degrees_.*group.size});
    return product;
  }

  std::string degree_product() const {
    std::vector<std::string> factors;
    for (const ParallelSize& size : kCheckedSizes)
      if (spans_ranks(size)) factors.push_back(fmt::format("{} {}", size.key, degrees_.*size.size));
    return fmt::format("{} = {} ranks", fmt::join(factors, " x "), ranks());
  }

  void check_ranks() {
    const std::int64_t devices = device_count(cluster_);
    if (ranks() > devices) {
      report("dp",
             fmt::format("{}, but cluster '{}' has {} devices", degree_product(), cluster_.name,
                         devices),
             "lower a parallel size or use more nodes");
      return;
    }
    const int per_node = node_of(cluster_, DeviceId(0)).device_count;
    if (!used_devices_per_node(cluster_, ranks()))
      report("dp",
             fmt::format("{}, which cannot be spread evenly over {} nodes of {} devices",
                         degree_product(), devices / per_node, per_node),
             fmt::format("use at most {0} ranks, a multiple of {0}, or the same even number of "
                         "ranks on every node",
                         per_node));
  }

  // ---- tensor and sequence parallelism ----

  void check_tensor() {
    const int tensor = degrees_.tensor;
    if (strategy_.sequence_parallel && tensor == 1)
      report("sequence-parallel", "requires a tensor-parallel size above 1, got 1",
             "increase the tensor-parallel size, or disable sequence parallelism");
    const auto need_divides = [&](std::optional<int> count, std::string_view what) {
      if (!count || *count % tensor == 0) return;
      report("tp",
             fmt::format("{} {} does not divide the {} {} of '{}'", kTensorSize.name, tensor,
                         *count, what, model_.name),
             fmt::format("use one of: {}", divisors_up_to(*count, ranks())));
    };
    need_divides(traits_.heads, "attention heads");
    // With more tensor ranks than key/value heads, these heads are replicated.
    if (!traits_.key_value_heads || tensor % *traits_.key_value_heads != 0)
      need_divides(traits_.key_value_heads, "key/value heads");
    check_cut_widths();
  }

  /// Reports the first sharded operator with an indivisible width; the vocabulary is padded
  /// instead.
  void check_cut_widths() {
    std::int32_t next_class = 0;
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      if (model_.layers[i].layer_class != next_class) continue;
      ++next_class;
      for (const Operator& op : operators_of(model_, LayerId(i)))
        if (!cut_divides(op) || is_cut_norm(op, LayerId(i))) return;
    }
  }

  bool cut_divides(const Operator& op) {
    const auto divides = [&](const ParallelSize& size, LinearCut cut, std::int64_t in,
                             std::int64_t out) {
      const std::int64_t width = cut == LinearCut::kColumn ? out : in;
      const int parts = degrees_.*size.size;
      if (cut == LinearCut::kReplicated || width % parts == 0 || width == traits_.vocabulary)
        return true;
      report(size.key,
             fmt::format("{} {} does not divide the width {} of '{}'", size.name, parts, width,
                         op.name),
             fmt::format("use one of: {}", divisors_up_to(width, ranks())));
      return false;
    };
    if (const auto* linear = std::get_if<Linear>(&op.shape))
      return divides(kTensorSize, linear->cut, linear->in, linear->out);
    if (const auto* expert = std::get_if<ExpertLinear>(&op.shape))
      return divides(kExpertTensorSize, expert->cut, expert->in, expert->out);
    return true;
  }

  /// A norm over features that tensor ranks share (OLMo 2: of all queries or keys). One head is
  /// never cut.
  bool is_cut_norm(const Operator& op, LayerId layer) {
    const auto* norm = std::get_if<Norm>(&op.shape);
    if (norm == nullptr || op.parameters.empty() || degrees_.tensor == 1) return false;
    const auto& output = std::get<ActivationTensor>(model_.tensors[op.outputs[0].index()].shape);
    const auto& weight = std::get<ParameterTensor>(model_.tensors[op.parameters[0].index()].shape);
    if (output.cut != ActivationCut::kFeatures || weight.shape != std::vector{norm->width})
      return false;
    for (const Operator& other : operators_of(model_, layer))
      if (const auto* attention = std::get_if<Attention>(&other.shape))
        if (attention->key_size == norm->width) return false;
    report("tp",
           fmt::format("tensor parallelism would split the norm '{}' over all heads", op.name),
           "use tensor-parallel size 1; --zero 3 shards parameters, too");
    return true;
  }

  void check_sequence() {
    const std::int64_t length = strategy_.sequence_length;
    const std::int64_t context = degrees_.context;
    // Each context rank holds an early and a late chunk (zigzag), which balances causal attention;
    // with all-to-all it attends to full sequences.
    const bool whole = strategy_.model_parallelism.context == ContextAlgorithm::kAllToAll;
    const std::int64_t pieces = whole ? context : 2 * context;
    if (context > 1 && length % pieces != 0)
      report("cp",
             fmt::format("sequence length {} is not a multiple of {}context-parallel size {}",
                         length, whole ? "" : "2 x ", context),
             fmt::format("use a sequence length that is a multiple of {}", pieces));
    else if (strategy_.sequence_parallel && length / context % degrees_.tensor != 0)
      report("seq",
             fmt::format("{} tokens per context rank cannot be sharded over {} tensor ranks",
                         length / context, degrees_.tensor),
             fmt::format("use a sequence length that is a multiple of {}",
                         saturating_product({context, degrees_.tensor})));
    if (has_learned_positions() && length > model_.longest_sequence)
      report("seq",
             fmt::format("sequence length {} exceeds the {} learned positions of '{}'", length,
                         model_.longest_sequence, model_.name),
             fmt::format("use a sequence length of at most {}", model_.longest_sequence));
  }

  /// True if the embedding reads a table of learned positions.
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
      report("zero", fmt::format("invalid ZeRO stage {}", strategy_.zero),
             "use 0 (no sharding), 1 (optimizer state), 2 (also gradients) or 3 (also parameters)");
    const Recompute& recompute = strategy_.recompute;
    if (recompute.kind == RecomputeKind::kBlocks &&
        (recompute.blocks < 0 || recompute.blocks > traits_.blocks))
      report("recompute",
             fmt::format("'block:{}' is out of range: '{}' has {} blocks", recompute.blocks,
                         model_.name, traits_.blocks),
             "use block:N with the number of blocks per stage to recompute, or full");
    check_recomputed_modules(recompute, "recompute");
    check_layer_options();
  }

  void check_recomputed_modules(const Recompute& recompute, std::string_view field) {
    const bool names_operators = recompute.kind == RecomputeKind::kModules ||
                                 recompute.kind == RecomputeKind::kTorchSelective;
    if (names_operators && device_of(cluster_, DeviceId(0)).kernels == KernelLibrary::kOwn)
      report(field, fmt::format("Meshwright's executor does not support '{}'", to_text(recompute)),
             "use none, selective, full or block:N");
    for (int i = 0; i < kRecomputeModuleCount; ++i)
      if (const auto module = static_cast<RecomputeModule>(i);
          recompute.has(module) && !has_module(model_, module))
        report(field, fmt::format("'{}' has no module '{}'", model_.name, name_of(module)),
               "remove it from the list");
  }

  // ---- per-layer options ----

  void check_layer_options() {
    const LayerOptions& options = strategy_.layer_options;
    check_blocks_of(options.recompute);
    check_blocks_of(options.reshard_after_forward);
    for (const OfBlocks<Recompute>& of : options.recompute)
      check_recomputed_modules(of.value, kLayerOptionsField);
    if (!options.reshard_after_forward.empty() && strategy_.zero < 3)
      report(kLayerOptionsField,
             fmt::format("fsdp-reshard requires ZeRO 3, got {}", strategy_.zero),
             "use --zero 3, or remove fsdp-reshard");
    check_blocks_of(options.tensor);
    if (found_.empty() && !options.tensor.empty()) check_tensor_options();
  }

  /// Tensor ranks share the tokens of a block in the layout of sequence parallelism, and then each
  /// computes attention for its heads.
  void check_tensor_options() {
    const auto refuse = [&](std::string what, std::string hint) {
      report(kLayerOptionsField, "tp=1 " + std::move(what), std::move(hint));
    };
    for (const OfBlocks<int>& of : strategy_.layer_options.tensor) {
      if (of.value != 1 && of.value != degrees_.tensor)
        return report(kLayerOptionsField,
                      fmt::format("tp={} is neither 1 nor the tensor-parallel size {}", of.value,
                                  degrees_.tensor),
                      fmt::format("use tp=1 or tp={}", degrees_.tensor));
      for (int block = of.first; block <= of.last; ++block)
        if (shares_tokens(strategy_, block) && has_experts(block))
          return refuse(fmt::format("is not supported by block {}, which has experts", block),
                        "use it for dense blocks");
    }
    if (degrees_.tensor == 1) return;
    if (!strategy_.sequence_parallel)
      refuse("requires sequence parallelism", "add --sequence-parallel");
    if (strategy_.optimizer == OptimizerKind::kMuon)
      refuse("is not supported with --optimizer muon", "use adamw or sgd");
    if (degrees_.context > 1)
      refuse(fmt::format("cannot be combined with context-parallel size {}", degrees_.context),
             "use --cp 1");
    for (const std::optional<int>& heads : {traits_.heads, traits_.key_value_heads})
      if (heads && *heads % degrees_.tensor != 0)
        return refuse(
            fmt::format("requires heads that {} divides, got {}", degrees_.tensor, *heads),
            "use a smaller --tp");
  }
  bool has_experts(int block) const {
    int left = block;
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      if (model_.layers[i].kind != LayerKind::kBlock || left-- > 0) continue;
      return std::ranges::any_of(operators_of(model_, LayerId(i)), [](const Operator& op) {
        return std::holds_alternative<ExpertLinear>(op.shape);
      });
    }
    return false;
  }

  template <class Value>
  void check_blocks_of(const std::vector<OfBlocks<Value>>& values) {
    int next = 0;  // the first block that no earlier range covers
    for (const OfBlocks<Value>& of : values) {
      if (of.first < 0 || of.last < of.first || of.last >= traits_.blocks)
        return report(kLayerOptionsField,
                      fmt::format("blocks {}-{} are out of range: '{}' has {} blocks", of.first,
                                  of.last, model_.name, traits_.blocks),
                      fmt::format("use blocks from 0 to {}", traits_.blocks - 1));
      if (of.first < next)
        return report(kLayerOptionsField, fmt::format("block {} has two values", of.first),
                      "give every option once per block, in the order of the blocks");
      next = of.last + 1;
    }
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

  /// MXFP8 needs the block scaling of tensor cores of compute capability 10.0.
  bool check_recipe_on(const DeviceModel& device) {
    constexpr int kBlockScaling = 100;
    if (strategy_.dtype != Dtype::kFp8 || strategy_.precision.fp8_recipe != Fp8Recipe::kMxfp8 ||
        device.compute_capability.value_or(kBlockScaling) >= kBlockScaling)
      return true;
    report("fp8-recipe", fmt::format("device '{}' does not support mxfp8", device.name),
           "use one of: delayed, tensorwise, blockwise");
    return false;
  }

  void check_quantization() {
    const Precision& p = strategy_.precision;
    const auto needs = [&](std::string_view field, bool is_set, bool has_it,
                           std::string_view dtypes) {
      if (is_set && !has_it)
        report(std::string(field),
               fmt::format("has no effect with dtype {}", name_of(strategy_.dtype)),
               fmt::format("use it with --dtype {}", dtypes));
    };
    const bool fp8 = strategy_.dtype == Dtype::kFp8;
    needs("fp8-recipe", p.fp8_recipe != Fp8Recipe::kDelayed, fp8, "fp8");
    needs("fp8-param-gather", p.fp8_parameters, fp8, "fp8");
    needs("bf16-end-layers", p.wide_blocks > 0, is_quantized(strategy_.dtype), "fp8 or nvfp4");
    if (p.wide_blocks < 0 || p.wide_blocks > traits_.blocks / 2)
      report("bf16-end-layers",
             fmt::format("{} is out of range: '{}' has {} blocks", p.wide_blocks, model_.name,
                         traits_.blocks),
             fmt::format("use 0 to {}", traits_.blocks / 2));
  }

  /// 16-bit gradients have the format of the 16-bit activations and weights.
  void check_gradients() {
    const Dtype gradients = strategy_.precision.gradients;
    if (gradients == Dtype::kFp32) return;
    const Dtype stored = storage_dtype(strategy_.dtype);
    if (gradients != stored || bytes_per_element(stored) != 2) {
      report("grad-dtype",
             fmt::format("{} gradients cannot be combined with training in {}", name_of(gradients),
                         name_of(strategy_.dtype)),
             bytes_per_element(stored) == 2 ? fmt::format("use fp32 or {}", name_of(stored))
                                            : std::string("use fp32"));
      return;
    }
    const DataParallelKind kind = strategy_.data_parallelism.kind;
    if (kind != DataParallelKind::kCollective && kind != DataParallelKind::kRing)
      report("grad-dtype",
             fmt::format("{} gradients cannot be combined with data parallelism '{}'",
                         name_of(gradients), name_of(kind)),
             "use fp32, or --data-parallel collective or ring");
  }

  bool check_dtype_on(const DeviceModel& device) {
    if (device.peak[static_cast<std::size_t>(strategy_.dtype)]) {
      const Dtype stored = storage_dtype(strategy_.dtype);
      if (device.peak[static_cast<std::size_t>(stored)]) return check_recipe_on(device);
      report("dtype",
             fmt::format("training in {} also needs {}, for which device '{}' has no peak rate",
                         name_of(strategy_.dtype), name_of(stored), device.name),
             fmt::format("add the rate of {} to the cluster file", name_of(stored)));
      return false;
    }
    std::vector<std::string_view> known;
    for (std::size_t i = 0; i < device.peak.size(); ++i)
      if (device.peak[i]) known.push_back(name_of(static_cast<Dtype>(i)));
    report("dtype",
           fmt::format("device '{}' does not support {}", device.name, name_of(strategy_.dtype)),
           fmt::format("use one of: {}", fmt::join(known, ", ")));
    return false;
  }

  void check_batch() {
    const std::int64_t together = saturating_product({strategy_.micro_batch, degrees_.data});
    if (strategy_.batch_shares.empty() && strategy_.global_batch % together != 0) {
      const std::int64_t below = strategy_.global_batch / together * together;
      report("global-batch",
             fmt::format("global batch {} is not a multiple of micro-batch {} x dp {} = {}",
                         strategy_.global_batch, strategy_.micro_batch, degrees_.data, together),
             below > 0 ? fmt::format("use {} or {}", below, below + together)
                       : fmt::format("use {}", together));
      return;
    }
    const std::int64_t microbatches = microbatch_count(strategy_);
    const std::int64_t passes =
        saturating_product({microbatches, degrees_.pipeline, degrees_.chunks});
    if (passes > kMostPassesPerStep ||
        saturating_product({degrees_.pipeline, degrees_.chunks}) > kMostStages)
      report("micro-batch",
             fmt::format("{} micro-batches over {} stages exceed the maximum schedule size",
                         microbatches, saturating_product({degrees_.pipeline, degrees_.chunks})),
             "use larger micro-batches or fewer stages");
  }

  // ---- schedule and stages ----

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
             fmt::format("or use another schedule: {}", fmt::join(schedule_names(), ", ")));
      return;
    }
    if (updates_without_flush(strategy_)) {
      take(without_flush_problems(plan_, model_));
      if (!found_.empty()) return;
    }
    if (rule->output_barriers > 0 && !check_sharded_output_layer()) return;
    if (!plan_.device_of_stage.empty()) {
      take(manual_placement_problems(plan_));
      if (found_.empty()) check_cut(manual_placement(plan_));
      return;
    }
    const Placement placement = rule->placement(request);
    take(mixed_nodes_problems(plan_, cluster_, placement));
    take(data_parallelism_problems(strategy_, placement));
    if (!strategy_.batch_shares.empty()) check_schedule_of_shares(placement);
    check_cut(placement);
    for (std::string& fault : order_faults(placement))
      report("orders", std::move(fault), "remove the orders, and plan again");
  }

  /// False if the schedule cannot shard the output layer of this plan.
  bool check_sharded_output_layer() {
    const DataParallelism& data = strategy_.data_parallelism;
    const auto refuse = [&](std::string what, std::string hint) {
      report("schedule", fmt::format("'{}' {}", strategy_.schedule, what), std::move(hint));
      return false;
    };
    if (!has_vocabulary_layers(model_))
      return refuse(fmt::format("shards the token table and the logits over the devices, but '{}' "
                                "has none",
                                model_.name),
                    "use 1f1b");
    if (device_of(cluster_, DeviceId(0)).kernels == KernelLibrary::kOwn)
      return refuse(
          "shards the output layer over the devices, which Meshwright's executor does not support",
          "use 1f1b, or simulate a cluster of another device");
    if (data.kind != DataParallelKind::kCollective && data.kind != DataParallelKind::kRing)
      return refuse(fmt::format("cannot be combined with '--data-parallel {}'", name_of(data.kind)),
                    "use --data-parallel collective, or 1f1b");
    if (cuts_passes(strategy_))
      return refuse(
          "cannot be combined with ZeRO 2 or 3, gradient buckets or overlapped parameter gathers",
          "use --zero 0 or 1 with --bucket none, or 1f1b");
    return true;
  }

  /// Ranks with fewer micro-batches leave out the first ones. A pair of passes would lose one of
  /// them, whose buffers it holds.
  void check_schedule_of_shares(const Placement& placement) {
    const auto has_pairs = [](const std::vector<Action>& order) {
      return std::ranges::any_of(order, &Action::overlaps_next);
    };
    if (placement.routes.size() == 1 && !updates_without_flush(strategy_) &&
        !strategy_.model_parallelism.routing.overlap &&
        std::ranges::none_of(schedule_of(plan_).orders, has_pairs))
      return;
    report("batch-shares", fmt::format("cannot be combined with schedule '{}'", strategy_.schedule),
           "use a schedule with one copy of the model and no pairs of passes, such as 1f1b");
  }

  /// Problems of the plan's synthesized orders.
  std::vector<std::string> order_faults(const Placement& placement) const {
    if (plan_.orders.empty()) return {};
    if (plan_.orders.size() != static_cast<std::size_t>(placement.devices))
      return {fmt::format("expected {} orders (one per pipeline rank), got {}", placement.devices,
                          plan_.orders.size())};
    return check_schedule(schedule_of(plan_));
  }

  void check_cut(const Placement& placement) {
    const int parts =
        1 + *std::max_element(placement.part_of_stage.begin(), placement.part_of_stage.end());
    const std::vector<int>& cut = plan_.blocks_per_stage;
    if (cut.size() != static_cast<std::size_t>(parts)) {
      report("blocks-per-stage",
             fmt::format("expected {} entries (one per stage), got {}", parts, cut.size()),
             "give the number of blocks of every stage");
      return;
    }
    check_recomputed_blocks(cut);
    std::int64_t sum = 0;
    for (const int blocks : cut) sum += blocks;
    if (sum != traits_.blocks)
      report("blocks-per-stage",
             fmt::format("{} blocks in total, but '{}' has {}", sum, model_.name, traits_.blocks),
             "assign every block to exactly one stage");
    for (std::size_t i = 0; i < cut.size(); ++i) {
      const bool has_end_layer = (i == 0 && has_layer(LayerKind::kEmbedding)) ||
                                 (i + 1 == cut.size() && has_layer(LayerKind::kHead));
      if (cut[i] > 0 || (cut[i] == 0 && has_end_layer)) continue;
      report("blocks-per-stage", fmt::format("stage {} has {} blocks", i, cut[i]),
             "assign at least one block to it, or use fewer stages");
    }
  }

  void check_recomputed_blocks(const std::vector<int>& cut) {
    const std::vector<int>& counts = strategy_.recompute.blocks_per_stage;
    if (counts.empty()) return;
    if (counts.size() != cut.size())
      return report("recompute",
                    fmt::format("'{}' has {} entries, but there are {} stages",
                                to_text(strategy_.recompute), counts.size(), cut.size()),
                    "give the number of blocks to recompute in every stage");
    for (const int blocks : counts)
      if (blocks < 0 || blocks > traits_.blocks)
        return report("recompute",
                      fmt::format("'{}' is out of range: '{}' has {} blocks",
                                  to_text(strategy_.recompute), model_.name, traits_.blocks),
                      "give at most the number of blocks of each stage");
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
