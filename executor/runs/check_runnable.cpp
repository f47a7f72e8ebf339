#include <fmt/format.h>

#include <algorithm>

#include "core/plan/weight_versions.hpp"
#include "executor/runs/train.hpp"

namespace meshwright {
namespace {

void add_problem(std::vector<Diagnostic>& problems, std::string where, std::string what,
                 std::string hint) {
  problems.push_back({std::move(where), std::move(what), std::move(hint)});
}

/// Muon updates whole matrices.
void add_problems_of_muon(const Strategy& s, std::vector<Diagnostic>& problems) {
  const auto refuse = [&](const std::string& what, const char* hint) {
    add_problem(problems, "--optimizer", fmt::format("muon is not supported with {}", what), hint);
  };
  if (s.zero > 0)
    refuse(fmt::format("ZeRO {}, which shards matrices over data ranks", s.zero), "use --zero 0");
  if (has_servers(s.data_parallelism.kind))
    refuse("parameter servers", "use --data-parallel collective");
  if (s.data_parallelism.offload_optimizer)
    refuse("offloaded optimizer state", "remove --offload-optimizer");
  if (s.degrees.expert_tensor > 1) refuse("experts sharded over tensor ranks", "use --etp 1");
}

}  // namespace

std::vector<Diagnostic> check_runnable(const Plan& plan, const ModelGraph& model) {
  const Strategy& s = plan.strategy;
  std::vector<Diagnostic> problems;
  if (s.dtype != Dtype::kFp32 && s.dtype != Dtype::kBf16)
    add_problem(problems, "--dtype",
                fmt::format("training in {} is not supported", name_of(s.dtype)),
                "use fp32 or bf16");
  // Plans with fp8 or nvfp4 are refused above, and with them every option of these dtypes.
  if (s.precision.gradients != Dtype::kFp32)
    add_problem(problems, "--grad-dtype",
                fmt::format("gradients in {} are not supported", name_of(s.precision.gradients)),
                "use fp32");
  if (s.optimizer == OptimizerKind::kMuon) add_problems_of_muon(s, problems);
  const auto looks_ahead = [](const Operator& op) {
    const auto* attention = std::get_if<Attention>(&op.shape);
    return attention != nullptr && !attention->causal;
  };
  if (std::ranges::any_of(model.operators, looks_ahead))
    add_problem(
        problems, "--model",
        fmt::format("training of '{}' is not supported: it predicts masked tokens", model.family),
        "use a model with causal attention");
  return problems;
}

std::vector<Diagnostic> check_validation(const Strategy& strategy) {
  std::vector<Diagnostic> problems;
  const DataParallelKind kind = strategy.data_parallelism.kind;
  if (updates_without_flush(strategy))
    add_problem(problems, "--validation",
                fmt::format("not supported by schedule '{}', which does not flush the pipeline "
                            "between steps",
                            strategy.schedule),
                "use a schedule with a flush, for example --schedule 1f1b");
  if (has_servers(kind) || kind == DataParallelKind::kOneProcess)
    add_problem(problems, "--validation",
                fmt::format("not supported by '--data-parallel {}'", name_of(kind)),
                "use --data-parallel collective");
  return problems;
}

}  // namespace meshwright
