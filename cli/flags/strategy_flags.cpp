#include "cli/flags/strategy_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>

#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {
namespace {

constexpr CountRange kMicroBatchRange{.smallest = 1, .largest = 1 << 16};
constexpr CountRange kZeroRange{.smallest = 0, .largest = 3};

template <class Integer>
CLI::Option* add_count_flag(CLI::App& app, const std::string& flag, std::optional<Integer>& value,
                            CountRange range, const std::string& description) {
  const auto set_value = [&value, flag, range](const std::string& text) {
    value = static_cast<Integer>(parse_count(flag, text, range));
  };
  return app.add_option_function<std::string>(flag, set_value, description)->type_name("N");
}

void add_number_flag(CLI::App& app, const std::string& flag, int& value, CountRange range,
                     const std::string& description) {
  app.add_option_function<std::string>(
         flag,
         [&value, flag, range](const std::string& text) {
           value = static_cast<int>(parse_count(flag, text, range));
         },
         description)
      ->type_name("N");
}

constexpr const char* kComputeOptions = "Precision and activation memory";

void add_size_flags(CLI::App& app, FixedChoices& choices) {
  const OptionGroup group(app, kSizeOptions);
  for (const ParallelSize& size : kParallelSizes)
    add_count(app, fmt::format("--{}", size.key), choices.*size.fixed,
              {.smallest = 1, .largest = size.largest}, std::string(size.help));
}

void add_data_parallelism_flags(CLI::App& app, FixedChoices& choices) {
  const OptionGroup group(app, "Data parallelism, ZeRO and FSDP");
  add_count_flag(app, "--zero", choices.zero, kZeroRange,
                 "ZeRO stage: shard optimizer state (1), gradients (2), parameters (3, FSDP)")
      ->type_name("{0,1,2,3}");
  DataParallelism& d = choices.data_parallelism;
  add_choice(app, "--data-parallel", d.kind, data_parallel_from_name,
             {"collective", "ring", "parameter-server", "async-parameter-server", "one-process"},
             "how data-parallel replicas synchronize (default: collective)");
  add_choice(app, "--collective-algorithm", d.algorithm, collective_algorithm_from_name,
             {"auto", "ring", "tree", "nvls", "hierarchical"},
             "algorithm of data-parallel collectives; auto: the choice of NCCL's tuner "
             "(default: auto)");
  add_choice(app, "--bucket", choices.buckets, buckets_from_text,
             {"none", "pytorch", "megatron", "25MiB"},
             "overlap gradient reduction with the backward pass in buckets of this size "
             "(default: none)")
      ->type_name("{none,pytorch,megatron,SIZE}");
  add_switch(app, "--overlap-gather", choices.overlap_gather,
             "ZeRO 1 and 2: overlap the parameter all-gather with the next forward pass",
             "gather all parameters at the end of the step");
  add_count_flag(app, "--fsdp-prefetch", choices.prefetch, {.smallest = 0, .largest = 64},
                 "ZeRO 3: layers to all-gather ahead of use (default: 1)");
  app.add_flag_callback(
      "--fsdp-no-reshard", [&choices] { choices.reshard_after_forward = false; },
      "ZeRO 3: do not reshard parameters between forward and backward pass");
  app.add_flag_callback(
      "--fsdp-reshard", [&choices] { choices.reshard_after_forward = true; },
      "ZeRO 3: reshard parameters after the forward pass");
  add_count_flag(app, "--shard-ranks", choices.shard_ranks, {.smallest = 0, .largest = 1 << 20},
                 "size of a ZeRO shard group (hybrid sharding); 0: all data-parallel ranks "
                 "(default: 0)");
  add_switch(app, "--offload-optimizer", choices.offload_optimizer,
             "keep optimizer state in host memory and run the optimizer on the CPU",
             "keep optimizer state in device memory");
  add_number_flag(app, "--servers", d.servers, {.smallest = 1, .largest = 1 << 20},
                  "number of parameter servers (default: 1)");
  app.add_flag("--colocated-servers", d.colocated_servers,
               "place parameter servers on the devices of the last workers");
  add_choice(app, "--ring-order", d.ring_order, ring_order_from_name, {"neighbours", "alternating"},
             "--data-parallel ring: visit ranks in order, or change node at every hop "
             "(default: neighbours)");
}

void add_sequence_parallel_flags(CLI::App& app, FixedChoices& choices) {
  const OptionGroup group(app, kSizeOptions);
  add_switch(app, "--sequence-parallel", choices.sequence_parallel,
             "enable sequence parallelism within the tensor-parallel group",
             "disable sequence parallelism");
}

void add_compute_flags(CLI::App& app, FixedChoices& choices) {
  const OptionGroup group(app, kComputeOptions);
  add_choice(app, "--dtype", choices.dtype, dtype_from_name,
             {"bf16", "fp16", "fp32", "tf32", "fp8", "nvfp4"},
             "data type of matrix multiplications");
  Precision& p = choices.precision;
  add_choice(app, "--fp8-recipe", p.fp8_recipe, fp8_recipe_from_name,
             {"delayed", "tensorwise", "blockwise", "mxfp8"},
             "--dtype fp8: how operands are scaled, as in Transformer Engine (default: delayed)");
  app.add_flag("--fp8-param-gather", p.fp8_parameters,
               "--dtype fp8: keep weights in fp8 and all-gather them in fp8");
  add_number_flag(app, "--bf16-end-layers", p.wide_blocks, {.smallest = 0, .largest = 10'000},
                  "--dtype fp8, nvfp4: layers at each end of the model to keep in bf16 "
                  "(default: 0)");
  add_choice(app, "--grad-dtype", p.gradients, gradient_dtype_from_name, {"fp32", "bf16", "fp16"},
             "data type in which weight gradients are accumulated and reduced (default: fp32)");
  add_choice(app, "--attention", choices.attention, attention_from_name, {"flash", "standard"},
             "attention: fused (flash), or with scores in memory (standard)");
  add_choice(app, "--optimizer", choices.optimizer, optimizer_from_name, {"adamw", "sgd", "muon"},
             "optimizer: state in memory and updates (default: adamw)");
}

/// The number of devices that --stage-devices uses; 1 without it.
int devices_by_hand(const StrategyFlags& flags) {
  int most = 0;
  for (const int device : flags.device_of_stage) most = std::max(most, device);
  return most + 1;
}

[[noreturn]] void throw_missing(const std::string& flag, const std::string& hint) {
  throw UsageError({.where = flag, .what = "missing required option", .hint = hint});
}

/// The data-parallel size: the number of GPUs divided by the product of the other sizes.
int data_degree(const FixedChoices& choices, const ParallelDegrees& degrees,
                std::optional<int> gpus) {
  if (!gpus) return choices.data.value_or(1);
  ParallelDegrees others = degrees;
  others.data = 1;
  const std::int64_t taken = rank_count(others);
  if (*gpus % taken != 0) {
    std::vector<std::string> factors;
    for (const ProcessGroup& group : kDenseGroups)
      if (group.axis != Axis::kData)
        factors.push_back(fmt::format("{} {}", name_of(group.axis), degrees.*group.size));
    throw UsageError(
        {.where = "--gpus",
         .what = fmt::format("{} is not a multiple of {} = {}", *gpus, fmt::join(factors, " x "),
                             taken),
         .hint = fmt::format("use a multiple: {}, {}, {}", taken, 2 * taken, 4 * taken)});
  }
  const int data = static_cast<int>(*gpus / taken);
  if (choices.data && *choices.data != data) {
    throw UsageError({.where = "--dp",
                      .what = fmt::format("'--dp {}' conflicts with '--gpus {}', which leaves a "
                                          "data-parallel size of {}",
                                          *choices.data, *gpus, data),
                      .hint = "remove --dp or --gpus"});
  }
  return data;
}

}  // namespace

void add_switch(CLI::App& app, const std::string& flag, std::optional<bool>& value,
                const std::string& on, const std::string& off) {
  app.add_flag_callback(
      flag, [&value] { value = true; }, on);
  app.add_flag_callback(
      "--no-" + flag.substr(2), [&value] { value = false; }, off);
}

std::int64_t parse_count(const std::string& flag, const std::string& text, CountRange range) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool is_number = stop == end && !text.empty() && error != std::errc::invalid_argument;
  if (!is_number) {
    throw UsageError(
        {.where = flag,
         .what = fmt::format("invalid value '{}': expected a whole number from {} to {}", text,
                             range.smallest, range.largest),
         .hint = ""});
  }
  if (error == std::errc::result_out_of_range || value < range.smallest || value > range.largest) {
    throw UsageError({.where = flag,
                      .what = fmt::format("{} is out of range: expected {} to {}", text,
                                          range.smallest, range.largest),
                      .hint = ""});
  }
  return value;
}

void add_count(CLI::App& app, const std::string& flag, std::optional<int>& value, CountRange range,
               const std::string& description) {
  add_count_flag(app, flag, value, range, description);
}

void add_count(CLI::App& app, const std::string& flag, std::optional<std::int64_t>& value,
               CountRange range, const std::string& description) {
  add_count_flag(app, flag, value, range, description);
}

void add_choice_flags(CLI::App& app, FixedChoices& choices) {
  add_size_flags(app, choices);
  {
    const OptionGroup group(app, kBatchOptions);
    add_count(app, "--micro-batch", choices.micro_batch, kMicroBatchRange,
              "micro-batch size: sequences per forward pass");
  }
  {
    const OptionGroup group(app, kPipelineOptions);
    add_value(app, "--schedule", choices.schedule, "NAME",
              "schedule (see 'meshwright show schedules'); auto: synthesize one");
  }
  {
    const OptionGroup group(app, kComputeOptions);
    add_choice(app, "--recompute", choices.recompute, recompute_from_text,
               {"none", "selective", "full", "block:N", "block:N,N,...", "modules:NAME,NAME,...",
                "torch-selective"},
               "activation recomputation; block:N: full in N blocks of every stage (a list: one "
               "number per stage); modules: core_attn, layernorm, mla_up_proj, moe_act, mlp, moe, "
               "shared_experts as in Megatron-LM; torch-selective: per operator as in torchtitan");
  }
  add_data_parallelism_flags(app, choices);
  add_sequence_parallel_flags(app, choices);
  add_compute_flags(app, choices);
  add_model_axis_flags(app, choices);
}

namespace {

BatchShares read_batch_shares(const std::string& flag, const std::string& text) {
  std::optional<BatchShares> shares = batch_shares_from_text(text);
  if (!shares || shares->empty())
    throw UsageError({.where = flag,
                      .what = fmt::format("invalid value '{}'", text),
                      .hint = "use for example 0-7:12+8-15:4: data-parallel ranks 0 to 7 run 12 "
                              "micro-batches per step, and 8 to 15 run 4"});
  return std::move(*shares);
}

}  // namespace

void add_batch_flags(CLI::App& app, StrategyFlags& flags) {
  const OptionGroup group(app, kBatchOptions);
  add_count(app, "--global-batch", flags.global_batch, kGlobalBatchRange,
            "global batch size: sequences per training step");
  add_count(app, "--seq", flags.sequence_length, kSequenceRange, "sequence length, in tokens");
  const std::string shares = "--batch-shares";
  app.add_option_function<std::string>(
         shares,
         [&flags, shares](const std::string& text) {
           flags.batch_shares = read_batch_shares(shares, text);
         },
         "micro-batches per step of data-parallel ranks, from 0, where their devices differ in "
         "speed (default: equal shares)")
      ->type_name("FIRST-LAST:COUNT+...");
}

bool is_any_given(const StrategyFlags& flags) {
  const FixedChoices& c = flags.choices;
  for (const ParallelSize& size : kParallelSizes)
    if (c.*size.fixed) return true;
  const std::array given{c.micro_batch.has_value(),
                         c.zero.has_value(),
                         c.sequence_parallel.has_value(),
                         c.schedule.has_value(),
                         c.recompute.has_value(),
                         c.dtype.has_value(),
                         c.attention.has_value(),
                         c.buckets.has_value(),
                         c.overlap_gather.has_value(),
                         c.reshard_after_forward.has_value(),
                         c.offload_optimizer.has_value(),
                         c.tensor_overlap.has_value(),
                         c.prefetch.has_value(),
                         c.shard_ranks.has_value(),
                         c.context_algorithm.has_value(),
                         c.rank_order.has_value(),
                         c.data_parallelism != DataParallelism{},
                         c.model_parallelism != ModelParallelism{},
                         c.precision != Precision{},
                         flags.global_batch.has_value(),
                         flags.sequence_length.has_value()};
  for (const bool flag : given)
    if (flag) return true;
  return !flags.layer_options.empty() || !flags.batch_shares.empty() ||
         !flags.blocks_per_stage.empty() || !flags.device_of_stage.empty() ||
         flags.stage_cut.has_value();
}

Strategy to_strategy(const StrategyFlags& flags, std::optional<int> gpus) {
  if (!flags.global_batch) throw_missing("--global-batch", "for example --global-batch 512");
  if (!flags.sequence_length) throw_missing("--seq", "for example --seq 2048");
  const FixedChoices& c = flags.choices;
  Strategy s = strategy_of(c);
  s.degrees.pipeline = c.pipeline.value_or(devices_by_hand(flags));
  s.degrees.data = data_degree(c, s.degrees, gpus);
  s.global_batch = *flags.global_batch;
  s.sequence_length = *flags.sequence_length;
  s.layer_options = flags.layer_options;
  s.batch_shares = flags.batch_shares;
  return s;
}

}  // namespace meshwright
