#include <fmt/format.h>

#include "executor/train.hpp"

namespace meshwright {
namespace {

void refuse(std::vector<Diagnostic>& problems, std::string where, std::string what,
            std::string hint) {
  problems.push_back({std::move(where), std::move(what), std::move(hint)});
}

}  // namespace

std::vector<Diagnostic> check_runnable(const Plan& plan, const ModelGraph& model) {
  const Strategy& s = plan.strategy;
  std::vector<Diagnostic> problems;
  if (s.dtype != Dtype::kFp32 && s.dtype != Dtype::kBf16)
    refuse(problems, "--dtype", fmt::format("{} cannot be carried out here", name_of(s.dtype)),
           "use fp32 or bf16");
  if (s.degrees.expert_tensor > 1)
    refuse(problems, "--etp",
           fmt::format("experts cut over {} tensor ranks cannot be carried out",
                       s.degrees.expert_tensor),
           "use --etp 1");
  const ModelParallelism& parallel = s.model_parallelism;
  if (s.degrees.context > 1 && parallel.context != ContextAlgorithm::kAllGather)
    refuse(problems, "--context-algorithm",
           fmt::format("'{}' cannot be carried out", name_of(parallel.context)), "use all-gather");
  if (parallel.routing.capacity > 0 || parallel.routing.fp8_dispatch ||
      parallel.routing.node_limit > 0)
    refuse(problems, "--expert-capacity", "experts with limits or fp8 cannot be carried out",
           "leave the options of routing out");
  const std::optional<int> heads = traits_of(model).key_value_heads;
  if (heads && s.degrees.tensor > *heads)
    refuse(problems, "--tp",
           fmt::format("copies of {} key/value heads over {} tensor ranks cannot be carried out",
                       *heads, s.degrees.tensor),
           fmt::format("use --tp {} or less", *heads));
  for (const Operator& op : model.operators)
    if (std::holds_alternative<RotaryEmbedding>(op.shape) && op.inputs.size() != 2) {
      refuse(problems, op.name, "latent attention cannot be carried out",
             "use a model with grouped-query attention");
      break;
    }
  return problems;
}

ModelGraph without_dropout(ModelGraph model) {
  for (Operator& op : model.operators) {
    if (auto* attention = std::get_if<Attention>(&op.shape)) {
      if (attention->dropout > 0 && op.kept.size() > 4) op.kept.resize(4);  // Q, K, V, probabilities
      attention->dropout = 0;
    }
    if (auto* add = std::get_if<ResidualAdd>(&op.shape); add != nullptr && add->dropout > 0) {
      add->dropout = 0;
      op.kept.clear();
    }
  }
  return model;
}

}  // namespace meshwright
