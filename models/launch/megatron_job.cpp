#include <fmt/format.h>

#include "core/base/error.hpp"
#include "models/launch/megatron.hpp"

namespace meshwright {
namespace {

/// With tensor or context parallelism, kernels must be launched in the order of the host up to
/// Hopper; FSDP and the overlap of experts need several queues (arguments.py: validate_args()).
std::vector<std::pair<std::string, std::string>> environment_of(const LaunchJob& job,
                                                                bool uses_fsdp) {
  constexpr int kBlackwell = 100;
  const Strategy& s = job.plan.strategy;
  std::vector<std::pair<std::string, std::string>> environment;
  if (uses_fsdp || s.model_parallelism.routing.overlap)
    environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS", "32");
  else if ((s.degrees.tensor > 1 || s.degrees.context > 1) && job.compute_capability < kBlackwell)
    environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  if (s.dtype == Dtype::kTf32) environment.emplace_back("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1");
  return environment;
}

/// Random tokens; without attention masks, whose size is quadratic in the sequence length. The
/// vocabulary is that of the model, without Megatron-LM's padding where it can be sharded.
std::vector<LaunchFlag> data_flags(const LaunchJob& job) {
  const std::int64_t vocabulary = job.model.shape.vocabulary;
  std::vector<LaunchFlag> flags{{"mock-data", ""},
                                {"tokenizer-type", "NullTokenizer"},
                                {"vocab-size", std::to_string(vocabulary)}};
  if (vocabulary % job.plan.strategy.degrees.tensor == 0)
    flags.push_back({"padded-vocab-size", std::to_string(vocabulary)});
  flags.push_back({"no-create-attention-mask-in-dataloader", ""});
  return flags;
}

std::vector<LaunchFlag> training_flags() {
  return {{"train-iters", std::to_string(kExportedSteps)},
          {"lr", "1e-4"},
          {"min-lr", "1e-5"},
          {"lr-decay-style", "cosine"},
          {"lr-warmup-iters", "2"},
          {"weight-decay", "0.1"},
          {"adam-beta1", "0.9"},
          {"adam-beta2", "0.95"},
          {"clip-grad", "1.0"},
          {"eval-iters", "0"},
          {"log-interval", "1"},
          {"log-throughput", ""}};
}

}  // namespace

MegatronJob megatron_job(const LaunchJob& job) {
  if (std::string refusal = megatron_refusal(job); !refusal.empty())
    throw InputError({job.model.name, std::move(refusal),
                      "change the plan or the model, or export to another program"});
  MegatronModel model = megatron_model(job);
  MegatronSettings settings = megatron_settings(job.plan);
  MegatronJob result{.groups = {{"MODEL_ARGS", std::move(model.flags)},
                                {"PARALLEL_ARGS", std::move(settings.parallelism)},
                                {"MEMORY_ARGS", std::move(settings.memory)},
                                {"BATCH_ARGS", std::move(settings.batch)},
                                {"DATA_ARGS", data_flags(job)},
                                {"TRAINING_ARGS", training_flags()}},
                     .environment = environment_of(job, settings.uses_fsdp),
                     .unsupported = std::move(settings.unsupported)};
  result.unsupported.insert(result.unsupported.end(), model.unsupported.begin(),
                            model.unsupported.end());
  std::erase_if(result.groups, [](const MegatronJob::Group& g) { return g.flags.empty(); });
  return result;
}

}  // namespace meshwright
