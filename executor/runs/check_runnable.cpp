#include <fmt/format.h>

#include <algorithm>

#include "executor/runs/train.hpp"

namespace meshwright {
namespace {

void add_problem(std::vector<Diagnostic>& problems, std::string where, std::string what,
                 std::string hint) {
  problems.push_back({std::move(where), std::move(what), std::move(hint)});
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

}  // namespace meshwright
