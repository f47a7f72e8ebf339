#include "core/operators/recompute_operators.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/operators/attention.hpp"

namespace meshwright {
namespace {

/// The name without the layer: "attention.core" of "layer7.attention.core".
std::string_view local_name(const Operator& op) {
  const std::string_view name = op.name;
  return name.substr(std::min(name.size(), name.find('.') + 1));
}

/// True if the outputs of the module are discarded, although operators outside of it save them.
bool discards_outputs(RecomputeModule module) {
  return module == RecomputeModule::kLayerNorm || module == RecomputeModule::kMlaUpProjection ||
         module == RecomputeModule::kMoeActivation;
}

bool is_in_module(const Operator& op, RecomputeModule module) {
  const std::string_view name = local_name(op);
  switch (module) {
    case RecomputeModule::kCoreAttention:
      return std::holds_alternative<Attention>(op.shape);
    case RecomputeModule::kLayerNorm:
      return name == "attention_norm" || name == "feed_forward_norm";
    case RecomputeModule::kMlaUpProjection:
      return name == "attention.query_up" || name == "attention.key_value_up" ||
             name == "attention.rotary";
    case RecomputeModule::kMoeActivation:
      return name == "experts.activation";
    case RecomputeModule::kMlp:
      return name.starts_with("feed_forward.");
    case RecomputeModule::kSharedExperts:
      return name.starts_with("shared_experts.");
    case RecomputeModule::kMoe:
      break;
  }
  return name == "router" || name.starts_with("experts.") || name.starts_with("shared_experts.");
}

/// Latent attention only: otherwise the projection is not an up projection.
bool has_latent_attention(std::span<const Operator> operators) {
  return std::any_of(operators.begin(), operators.end(),
                     [](const Operator& op) { return local_name(op) == "attention.key_value_up"; });
}

std::vector<RecomputeModule> modules_of(std::span<const Operator> operators, const Operator& op,
                                        const Recompute& recompute) {
  std::vector<RecomputeModule> modules;
  for (int i = 0; i < kRecomputeModuleCount; ++i) {
    const auto module = static_cast<RecomputeModule>(i);
    if (!recompute.has(module) || !is_in_module(op, module)) continue;
    if (module == RecomputeModule::kMlaUpProjection && !has_latent_attention(operators)) continue;
    modules.push_back(module);
  }
  return modules;
}

bool contains(const std::vector<TensorId>& list, TensorId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

/// Number of products (torch.mm) of an operator: a gated feed-forward layer has two in one GEMM.
int product_count(std::span<const Operator> operators, const Operator& op) {
  if (!std::holds_alternative<Linear>(op.shape)) return 0;
  if (op.outputs.size() > 1) return static_cast<int>(op.outputs.size());
  const bool is_gated = std::any_of(operators.begin(), operators.end(), [&](const Operator& next) {
    const auto* activation = std::get_if<Activation>(&next.shape);
    return activation != nullptr && meshwright::is_gated(activation->kind) && !op.outputs.empty() &&
           contains(next.inputs, op.outputs.front());
  });
  return is_gated ? 2 : 1;
}

/// By product of an operator: its share of the GEMM's columns.
std::vector<double> product_shares(const ModelGraph& model, const Operator& op, int products) {
  if (op.outputs.size() < 2)
    return std::vector<double>(static_cast<std::size_t>(products), 1.0 / products);
  double sum = 0;
  std::vector<double> shares;
  for (const TensorId id : op.outputs) {
    shares.push_back(static_cast<double>(activation_of(model, id).width));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

/// By operator: the fraction of its outputs that torchtitan saves.
std::vector<double> saved_by_torch(const ModelGraph& model, std::span<const Operator> operators) {
  std::vector<double> saved;
  int products = 0;  // so far
  for (const Operator& op : operators) {
    double fraction = std::holds_alternative<Attention>(op.shape) ? 1 : 0;
    const int here = product_count(operators, op);
    if (here > 0)
      for (const double share : product_shares(model, op, here))
        if (++products % 2 != 0) fraction += share;
    saved.push_back(fraction);
  }
  return saved;
}

Bytes share_of(Bytes bytes, double fraction) {
  return Bytes(std::llround(static_cast<double>(bytes.value) * fraction));
}

/// What fused attention saves besides tensors; zero if scores are materialized.
Bytes statistics_of(const Operator& op, const ShardShape& shard) {
  const auto* attention = std::get_if<Attention>(&op.shape);
  if (attention == nullptr || shard.attention != AttentionAlgorithm::kFlash) return {};
  return softmax_statistics(*attention, shard);
}

Bytes kept_by_torch(const ModelGraph& model, std::span<const Operator> operators,
                    const ShardShape& shard) {
  const std::vector<double> saved = saved_by_torch(model, operators);
  std::vector<TensorId> made, inputs;
  Bytes bytes;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    for (const TensorId id : op.inputs) {
      if (contains(made, id) || contains(inputs, id)) continue;
      inputs.push_back(id);
      bytes += activation_bytes(activation_of(model, id), shard);
    }
    made.insert(made.end(), op.outputs.begin(), op.outputs.end());
    Bytes outputs;
    for (const TensorId id : op.outputs)
      outputs += activation_bytes(activation_of(model, id), shard);
    bytes += share_of(outputs, saved[i]) + statistics_of(op, shard);
  }
  return bytes;
}

/// The saved tensors of a block that are recomputed with its modules.
class DroppedTensors {
 public:
  DroppedTensors(std::span<const Operator> operators, const Recompute& recompute)
      : operators_(operators), recompute_(recompute) {
    for (const Operator& op : operators_) {
      const std::vector<RecomputeModule> modules = modules_of(operators_, op, recompute_);
      for (const RecomputeModule module : modules) {
        for (const TensorId id : op.kept)
          if (is_inside(id, module)) dropped_.push_back(id);
        if (discards_outputs(module))
          dropped_.insert(dropped_.end(), op.outputs.begin(), op.outputs.end());
      }
    }
  }
  bool has(TensorId id) const { return contains(dropped_, id); }

 private:
  /// Neither made nor saved outside of the module.
  bool is_inside(TensorId id, RecomputeModule module) const {
    bool is_made = false;
    for (const Operator& op : operators_) {
      const bool inside = is_in_module(op, module);
      is_made = is_made || contains(op.outputs, id);
      if (!inside && (contains(op.outputs, id) || contains(op.kept, id))) return false;
    }
    if (is_made) return true;
    // Masks and probabilities are made by the operator that saves them; a block's inputs are not.
    return std::none_of(operators_.begin(), operators_.end(),
                        [&](const Operator& op) { return contains(op.inputs, id); });
  }

  std::span<const Operator> operators_;
  const Recompute& recompute_;
  std::vector<TensorId> dropped_;
};

Bytes kept_with_modules(const ModelGraph& model, std::span<const Operator> operators,
                        const ShardShape& shard, const Recompute& recompute,
                        const TrainerMemory& memory) {
  const DroppedTensors dropped(operators, recompute);
  std::vector<TensorId> seen;
  Bytes bytes;
  for (const Operator& op : operators) {
    if (!saves_tensors_of(op, memory)) continue;
    for (const TensorId id : op.kept) {
      const ActivationTensor& tensor = activation_of(model, id);
      const bool is_fused = tensor.per_key && shard.attention == AttentionAlgorithm::kFlash;
      if (is_fused || dropped.has(id) || contains(seen, id)) continue;
      seen.push_back(id);
      bytes += activation_bytes(tensor, shard);
    }
    if (!recompute.has(RecomputeModule::kCoreAttention)) bytes += statistics_of(op, shard);
  }
  return bytes;
}

}  // namespace

std::vector<double> recomputed_fractions(const ModelGraph& model, LayerId layer,
                                         const Recompute& recompute) {
  const std::span<const Operator> operators = operators_of(model, layer);
  std::vector<double> fractions(operators.size(), 0);
  if (model.layers[layer.index()].kind != LayerKind::kBlock) return fractions;
  if (recompute.kind == RecomputeKind::kModules) {
    for (std::size_t i = 0; i < operators.size(); ++i)
      fractions[i] = modules_of(operators, operators[i], recompute).empty() ? 0 : 1;
    return fractions;
  }
  if (recompute.kind != RecomputeKind::kTorchSelective) return fractions;
  // Recomputation stops when the last saved input has been restored.
  const auto last_reader = std::find_if(operators.rbegin(), operators.rend(),
                                        [](const Operator& op) { return !op.kept.empty(); });
  const auto end = static_cast<std::size_t>(operators.rend() - last_reader);
  const std::vector<double> saved = saved_by_torch(model, operators);
  for (std::size_t i = 0; i + 1 < end; ++i) fractions[i] = 1 - saved[i];
  return fractions;
}

Bytes kept_with_recomputed_operators(const ModelGraph& model, LayerId layer,
                                     const ShardShape& shard, const Recompute& recompute,
                                     const TrainerMemory& memory) {
  const std::span<const Operator> operators = operators_of(model, layer);
  return recompute.kind == RecomputeKind::kTorchSelective
             ? kept_by_torch(model, operators, shard)
             : kept_with_modules(model, operators, shard, recompute, memory);
}

bool has_module(const ModelGraph& model, RecomputeModule module) {
  const Recompute only{.kind = RecomputeKind::kModules,
                       .modules = 1U << static_cast<unsigned>(module)};
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const std::vector<double> fractions = recomputed_fractions(model, LayerId(i), only);
    if (std::any_of(fractions.begin(), fractions.end(), [](double f) { return f > 0; }))
      return true;
  }
  return false;
}

}  // namespace meshwright
