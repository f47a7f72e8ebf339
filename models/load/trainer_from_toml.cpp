#include <fmt/format.h>

#include <array>

#include "models/load/trainer_toml.hpp"
#include "models/text/toml_reader.hpp"
#include "models/text/toml_text.hpp"

namespace meshwright {
namespace {

constexpr int kTrainerSchema = 1;
constexpr int kDeepestExtension = 8;
constexpr double kLargestFactor = 1000;

constexpr std::array kElementwise = {Routine::kLayerNorm, Routine::kRmsNorm,     Routine::kGelu,
                                     Routine::kRelu,      Routine::kSquaredRelu, Routine::kSwiGlu,
                                     Routine::kResidual,  Routine::kRotary,      Routine::kBias};

void read_routine(TomlReader& reader, RoutineCost& cost) {
  cost.forward = reader.number("forward", kLargestFactor, cost.forward);
  cost.backward = reader.number("backward", kLargestFactor, cost.backward);
  cost.launches = reader.number("launches", kLargestFactor, cost.launches);
}

void read_elementwise(TomlReader& reader, Trainer& trainer) {
  RoutineCost cost = trainer.cost_of(kElementwise.front());
  read_routine(reader, cost);
  for (const Routine routine : kElementwise)
    trainer.routines[static_cast<std::size_t>(routine)] = cost;
}

struct HostTime {
  std::string_view key;
  Seconds HostCosts::*time;
};
constexpr HostTime kHostTimes[] = {{"per_kernel", &HostCosts::per_kernel},
                                   {"per_collective", &HostCosts::per_collective},
                                   {"per_layer_forward", &HostCosts::per_layer_forward},
                                   {"per_layer_backward", &HostCosts::per_layer_backward},
                                   {"per_step", &HostCosts::per_step}};

void read_host(TomlReader& reader, HostCosts& host) {
  for (const auto& [key, time] : kHostTimes) host.*time = reader.seconds(key, host.*time);
  host.cuda_graphs = reader.flag("cuda_graphs", host.cuda_graphs);
  host.messages_block = reader.flag("messages_block", host.messages_block);
  host.reads_expert_counts = reader.flag("reads_expert_counts", host.reads_expert_counts);
}

void read_overlap(TomlReader& reader, OverlapCosts& overlap) {
  constexpr int kMostMessages = 1000;
  overlap.messages_per_layer =
      reader.whole_number("messages_per_layer", 1, kMostMessages, overlap.messages_per_layer);
  overlap.copies_by_rank = reader.flag("copies_by_rank", overlap.copies_by_rank);
  constexpr int kMostMultiprocessors = 1024;
  overlap.expert_multiprocessors = reader.whole_number(
      "expert_multiprocessors", 0, kMostMultiprocessors, overlap.expert_multiprocessors);
}

void read_accumulation(TomlReader& reader, GradientAccumulation& accumulation) {
  constexpr int kMostBytesPerParameter = 64;
  accumulation.is_fused = reader.flag("fused", accumulation.is_fused);
  accumulation.fp16_bytes =
      reader.whole_number("fp16_bytes", 0, kMostBytesPerParameter, accumulation.fp16_bytes);
  accumulation.bf16_bytes =
      reader.whole_number("bf16_bytes", 0, kMostBytesPerParameter, accumulation.bf16_bytes);
}

void read_copies(TomlReader& reader, std::string_view key, LossCopies& copies) {
  constexpr int kMostCopies = 16;
  reader.table(key, false, [&](TomlReader& r) {
    copies.fp32 = r.whole_number("fp32", 0, kMostCopies, copies.fp32);
    copies.stored = r.whole_number("stored", 0, kMostCopies, copies.stored);
  });
}

void read_loss(TomlReader& reader, std::string_view key, LossMemory& loss) {
  reader.table(key, false, [&](TomlReader& r) {
    read_copies(r, "forward", loss.forward);
    read_copies(r, "kept", loss.kept);
    read_copies(r, "backward", loss.backward);
  });
}

const std::vector<std::string> kAttentionLibraries{"newest", "flash-attention-2", "triton",
                                                   "flash-attention-1"};
const std::vector<std::string> kWeightGradients{"none", "temporary", "cached-by-shape"};

void read_memory(TomlReader& reader, TrainerMemory& memory) {
  constexpr int kMostBytesPerParameter = 16, kMostGathered = 1 << 30;
  constexpr double kMostSlack = 1;
  const auto flag = [&](std::string_view key, bool& value) { value = reader.flag(key, value); };
  const auto per_parameter = [&](std::string_view key, int& value) {
    value = reader.whole_number(key, 1, kMostBytesPerParameter, value);
  };
  read_loss(reader, "loss", memory.loss);
  read_loss(reader, "sharded_loss", memory.sharded_loss);
  memory.weight_gradients = static_cast<WeightGradientMemory>(reader.choice(
      "weight_gradients", kWeightGradients, static_cast<std::size_t>(memory.weight_gradients)));
  flag("frees_logits_before_blocks", memory.frees_logits_before_blocks);
  flag("holds_sent_activations", memory.holds_sent_activations);
  flag("sends_slices", memory.sends_slices);
  flag("overlaps_gradient_reduction", memory.overlaps_gradient_reduction);
  flag("weighs_expert_activations", memory.weighs_expert_activations);
  per_parameter("fp16_gradient_bytes", memory.fp16_gradient_bytes);
  per_parameter("bf16_gradient_bytes", memory.bf16_gradient_bytes);
  flag("has_fp32_shards", memory.has_fp32_shards);
  per_parameter("unreduced_gradient_bytes", memory.unreduced_gradient_bytes);
  memory.most_gathered_parameters =
      reader.whole_number("most_gathered_parameters", 0, kMostGathered,
                          static_cast<int>(memory.most_gathered_parameters));
  flag("keeps_ends_gathered", memory.keeps_ends_gathered);
  memory.workspace = reader.bytes("workspace", memory.workspace);
  if (reader.has("allocator_slack"))
    memory.allocator_slack = reader.number("allocator_slack", kMostSlack, 0);
  if (reader.has("context")) memory.context = reader.bytes("context");
  memory.communicator = reader.bytes("communicator", memory.communicator);
}

/// "with_pipeline": restrictions in plans that use the axis.
std::string with_key(Axis axis) { return fmt::format("with_{}", parallelism_of(axis)); }

void read_words(TomlReader& reader, AbilityWords& words) {
  for (int i = 0; i < kAbilityCount; ++i) {
    const auto ability = static_cast<Ability>(i);
    if (auto accepted = reader.words(key_of(ability), words_of(ability)))
      words[static_cast<std::size_t>(i)] = std::move(accepted);
  }
}

void read_abilities(TomlReader& reader, TrainerAbilities& abilities) {
  read_words(reader, abilities.any);
  for (std::size_t axis = 0; axis < abilities.with.size(); ++axis)
    reader.table(with_key(static_cast<Axis>(axis)), false,
                 [&](TomlReader& r) { read_words(r, abilities.with[axis]); });
}

/// "none" takes an inherited target back.
void read_launch(TomlReader& reader, std::optional<LaunchTarget>& launch) {
  std::vector<std::string> words = launch_words();
  words.emplace_back("none");
  const std::size_t none = words.size() - 1;
  const std::size_t target =
      reader.choice("launch", words, launch ? static_cast<std::size_t>(*launch) : none);
  launch = target == none ? std::nullopt : std::optional(static_cast<LaunchTarget>(target));
}

void read_routines(TomlReader& reader, Trainer& trainer) {
  for (int i = 0; i < kRoutineCount; ++i)
    reader.table(name_of(static_cast<Routine>(i)), false, [&](TomlReader& r) {
      read_routine(r, trainer.routines[static_cast<std::size_t>(i)]);
    });
}

Trainer read_trainer(const NamedText& source, int depth) {
  Trainer trainer;
  const auto read = [&](TomlReader& reader) {
    reader.whole_number("schema", kTrainerSchema, kTrainerSchema);
    if (reader.has("extends")) {
      const std::string base = reader.text("extends");
      if (depth == kDeepestExtension)
        reader.complain("extends", fmt::format("more than {} profiles extend one another", depth),
                        "remove a cycle");
      else
        trainer = read_trainer(find_trainer(base), depth + 1);
    }
    trainer.name = reader.text("name", source.name);
    trainer.version = reader.text("version", trainer.version);
    trainer.generation = reader.text("generation", trainer.generation);
    trainer.attention = static_cast<AttentionLibrary>(reader.choice(
        "attention", kAttentionLibraries, static_cast<std::size_t>(trainer.attention)));
    reader.table("host", false, [&](TomlReader& r) { read_host(r, trainer.host); });
    reader.table("overlap", false, [&](TomlReader& r) { read_overlap(r, trainer.overlap); });
    reader.table("gradient_accumulation", false,
                 [&](TomlReader& r) { read_accumulation(r, trainer.gradient_accumulation); });
    reader.table("memory", false, [&](TomlReader& r) { read_memory(r, trainer.memory); });
    reader.table("elementwise", false, [&](TomlReader& r) { read_elementwise(r, trainer); });
    reader.table("routines", false, [&](TomlReader& r) { read_routines(r, trainer); });
    read_launch(reader, trainer.launch);
    reader.table("abilities", false, [&](TomlReader& r) { read_abilities(r, trainer.abilities); });
  };
  for (auto& [key, text] : read_toml(parse_toml(source, "trainer"), source.where, read))
    trainer.sources[key] = std::move(text);
  return trainer;
}

std::string routine_toml(const RoutineCost& cost) {
  return fmt::format("forward = {}\nbackward = {}\nlaunches = {}\n", cost.forward, cost.backward,
                     cost.launches);
}

std::string copies_toml(std::string_view table, const LossMemory& loss) {
  const auto of = [](const LossCopies& copies) {
    return fmt::format("{{fp32 = {}, stored = {}}}", copies.fp32, copies.stored);
  };
  return fmt::format("\n[memory.{}]\nforward = {}\nkept = {}\nbackward = {}\n", table,
                     of(loss.forward), of(loss.kept), of(loss.backward));
}

std::string memory_toml(const TrainerMemory& memory) {
  std::string text = fmt::format(
      "\n[memory]\nweight_gradients = \"{}\"\nfrees_logits_before_blocks = {}\n"
      "holds_sent_activations = {}\nsends_slices = {}\noverlaps_gradient_reduction = {}\n"
      "weighs_expert_activations = {}\n"
      "fp16_gradient_bytes = {}\nbf16_gradient_bytes = {}\nhas_fp32_shards = {}\n"
      "unreduced_gradient_bytes = {}\nmost_gathered_parameters = {}\nkeeps_ends_gathered = {}\n",
      kWeightGradients[static_cast<std::size_t>(memory.weight_gradients)],
      memory.frees_logits_before_blocks, memory.holds_sent_activations, memory.sends_slices,
      memory.overlaps_gradient_reduction, memory.weighs_expert_activations,
      memory.fp16_gradient_bytes, memory.bf16_gradient_bytes, memory.has_fp32_shards,
      memory.unreduced_gradient_bytes, memory.most_gathered_parameters, memory.keeps_ends_gathered);
  for (const auto& [key, bytes] :
       {std::pair("workspace", memory.workspace), std::pair("communicator", memory.communicator)})
    if (bytes > Bytes(0)) text += fmt::format("{} = \"{} B\"\n", key, bytes.value);
  if (memory.allocator_slack > 0)
    text += fmt::format("allocator_slack = {}\n", memory.allocator_slack);
  if (memory.context) text += fmt::format("context = \"{} B\"\n", memory.context->value);
  return text + copies_toml("loss", memory.loss) + copies_toml("sharded_loss", memory.sharded_loss);
}

std::string words_toml(const AbilityWords& words) {
  std::string text;
  for (int i = 0; i < kAbilityCount; ++i) {
    const auto& accepted = words[static_cast<std::size_t>(i)];
    if (!accepted) continue;
    text += fmt::format("{} = [", key_of(static_cast<Ability>(i)));
    for (std::size_t w = 0; w < accepted->size(); ++w)
      text += fmt::format("{}\"{}\"", w == 0 ? "" : ", ", (*accepted)[w]);
    text += "]\n";
  }
  return text;
}

std::string abilities_toml(const TrainerAbilities& abilities) {
  std::string text;
  if (const std::string any = words_toml(abilities.any); !any.empty())
    text += "\n[abilities]\n" + any;
  for (std::size_t axis = 0; axis < abilities.with.size(); ++axis)
    if (const std::string with = words_toml(abilities.with[axis]); !with.empty())
      text += fmt::format("\n[abilities.{}]\n{}", with_key(static_cast<Axis>(axis)), with);
  return text;
}

}  // namespace

std::string_view default_trainer(const Cluster& cluster) {
  for (const auto& [name, device] : cluster.devices)
    if (device.kernels == KernelLibrary::kOwn) return "meshwright";
  return "megatron-core";
}

Trainer trainer_from_toml(const NamedText& toml) { return read_trainer(toml, 0); }

std::string to_toml(const Trainer& trainer) {
  const HostCosts& host = trainer.host;
  std::string text = fmt::format(
      "schema = {}\nname = {}\nversion = {}\ngeneration = {}\nattention = \"{}\"\n", kTrainerSchema,
      toml_quoted(trainer.name), toml_quoted(trainer.version), toml_quoted(trainer.generation),
      kAttentionLibraries[static_cast<std::size_t>(trainer.attention)]);
  if (trainer.launch) text += fmt::format("launch = \"{}\"\n", word_of(*trainer.launch));
  text += fmt::format("\n[host]\ncuda_graphs = {}\nmessages_block = {}\nreads_expert_counts = {}\n",
                      host.cuda_graphs, host.messages_block, host.reads_expert_counts);
  for (const auto& [key, time] : kHostTimes)
    if (host.*time > Seconds(0.0)) text += fmt::format("{} = {}\n", key, text_of(host.*time));
  text += fmt::format(
      "\n[overlap]\nmessages_per_layer = {}\ncopies_by_rank = {}\nexpert_multiprocessors = {}\n",
      trainer.overlap.messages_per_layer, trainer.overlap.copies_by_rank,
      trainer.overlap.expert_multiprocessors);
  const GradientAccumulation& accumulation = trainer.gradient_accumulation;
  text += fmt::format("\n[gradient_accumulation]\nfused = {}\nfp16_bytes = {}\nbf16_bytes = {}\n",
                      accumulation.is_fused, accumulation.fp16_bytes, accumulation.bf16_bytes);
  text += memory_toml(trainer.memory);
  for (int i = 0; i < kRoutineCount; ++i) {
    const auto routine = static_cast<Routine>(i);
    if (trainer.cost_of(routine) != RoutineCost{})
      text += fmt::format("\n[routines.{}]\n{}", name_of(routine),
                          routine_toml(trainer.cost_of(routine)));
  }
  return text + abilities_toml(trainer.abilities);
}

}  // namespace meshwright
