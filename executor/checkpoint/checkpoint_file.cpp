// The file format of checkpoints, and the checks of files to resume from.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/base/number_from_text.hpp"
#include "executor/checkpoint/checkpoint_parts.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kFormat = "meshwright checkpoint 3";
/// Read as well. One checksum covers the whole file, in the first format only its values.
constexpr std::string_view kFirstFormat = "meshwright checkpoint 1";
constexpr std::string_view kSecondFormat = "meshwright checkpoint 2";
constexpr std::string_view kChecksum = "checksum";
/// Of the metadata key with the checksum of a tensor.
constexpr std::string_view kChecksumPrefix = "checksum.";
constexpr std::string_view kSettingPrefix = "setting.";
constexpr std::string_view kFilePrefix = "step-", kFileSuffix = ".safetensors";
constexpr std::string_view kModelFile = "model.safetensors";
constexpr std::int64_t kMostSteps = 1'000'000'000;  ///< twice this still fits in an int
constexpr int kMostWorkers = 1 << 16;

std::string name_of_worker(const std::string& tensor, std::size_t worker) {
  return fmt::format("{}.worker_{}", tensor, worker);
}

[[noreturn]] void refuse_checkpoint(std::string_view where, std::string what, std::string hint) {
  throw InputError(Diagnostic{std::string(where), std::move(what), std::move(hint)});
}

std::string format_of(const TensorFile& file) {
  const auto format = file.metadata.find("format");
  return format == file.metadata.end() ? "" : format->second;
}

std::string text_of_checksum(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::uint64_t hash_metadata(const TensorFile& file) {
  std::uint64_t hash = kFnv1aStart;
  for (const auto& [key, value] : file.metadata)
    if (key != kChecksum) hash = fnv1a(fmt::format("{}={}\n", key, value), hash);
  return hash;
}

/// Values are taken one 32-bit word at a time. Blocks that never reached the disk read as zeros and
/// pass all size checks, but change the hash.
std::uint64_t hash_values(const NamedTensor& tensor, std::uint64_t hash) {
  for (const float value : tensor.values)
    hash = fnv1a_next(hash, std::bit_cast<std::uint32_t>(value));
  return hash;
}

std::uint64_t hash_tensor(const NamedTensor& tensor, std::uint64_t hash = kFnv1aStart) {
  const std::string head = fmt::format("{} [{}]\n", tensor.name, fmt::join(tensor.shape, ", "));
  return hash_values(tensor, fnv1a(head, hash));
}

std::string checksum_key(const NamedTensor& tensor) {
  return std::string(kChecksumPrefix) + tensor.name;
}

/// Checksum of every tensor, and of the metadata that contains these.
void add_checksums(TensorFile& file) {
  for (const NamedTensor& tensor : file.tensors)
    file.metadata[checksum_key(tensor)] = text_of_checksum(hash_tensor(tensor));
  file.metadata[std::string(kChecksum)] = text_of_checksum(hash_metadata(file));
}

/// `found` is computed from the content that the metadata key `key` protects.
std::optional<Diagnostic> checksum_problem(const TensorFile& file, const std::string& key,
                                           std::uint64_t found, std::string where) {
  const auto expected = file.metadata.find(key);
  if (expected == file.metadata.end())
    return Diagnostic{std::move(where), fmt::format("missing '{}' in the metadata", key),
                      "use a checkpoint written by --save"};
  const std::string text = text_of_checksum(found);
  if (text == expected->second) return std::nullopt;
  return Diagnostic{std::move(where),
                    fmt::format("checksum mismatch: expected {}, got {}", expected->second, text),
                    "use another checkpoint: this file is damaged or incomplete"};
}

/// The first damage that the checksums show.
std::optional<Diagnostic> damage_of(const TensorFile& file, std::string_view where) {
  const std::string format = format_of(file), key(kChecksum);
  if (format == kFormat) {
    auto problem = checksum_problem(file, key, hash_metadata(file), std::string(where));
    for (const NamedTensor& tensor : file.tensors) {
      if (problem) break;
      problem = checksum_problem(file, checksum_key(tensor), hash_tensor(tensor),
                                 fmt::format("{}#/{}", where, tensor.name));
    }
    return problem;
  }
  const bool only_values = format == kFirstFormat;
  std::uint64_t hash = only_values ? kFnv1aStart : hash_metadata(file);
  for (const NamedTensor& tensor : file.tensors)
    hash = only_values ? hash_values(tensor, hash) : hash_tensor(tensor, hash);
  return checksum_problem(file, key, hash, std::string(where));
}

/// A whole number from the file's metadata.
template <class Number>
Number number_in(const TensorFile& file, const std::string& key, std::string_view where,
                 Number most) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end())
    refuse_checkpoint(where, fmt::format("missing '{}' in the metadata", key),
                      "use a checkpoint written by --save");
  const std::string& text = found->second;
  const auto value = number_from_text<Number>(text);
  if (!value || *value > most || *value < Number{})
    refuse_checkpoint(
        where,
        fmt::format("invalid value '{}' for '{}' in the metadata: expected a whole number up to {}",
                    text, key, most),
        "use a checkpoint written by --save");
  return *value;
}

/// Finds the parameters of a model among the tensors of a file.
class ParameterFinder {
 public:
  ParameterFinder(TensorFile& file, const ModelGraph& model, std::string_view where)
      : model_(model), where_(where), left_(file.tensors.size()) {
    for (NamedTensor& tensor : file.tensors) {
      names_.push_back(tensor.name);
      by_name_[tensor.name] = &tensor;
    }
  }

  /// Moves the tensors into the checkpoint, which has this number of workers.
  void take(std::size_t workers, Checkpoint& checkpoint) {
    // SGD has no second moments, converted weights have none.
    const auto has_any = [&](std::string_view suffix) {
      return std::ranges::any_of(names_,
                                 [&](const std::string& name) { return name.ends_with(suffix); });
    };
    for_each_parameter(model_, [&](const Tensor& tensor, const ParameterTensor& parameter) {
      for_each_state_kind([&](StateKind kind, std::string_view suffix) {
        if (kind != StateKind::kWeights && !has_any(suffix)) return;
        values_of(checkpoint.parameters[tensor.name], kind) =
            values(tensor.name + std::string(suffix), parameter);
      });
      for (std::size_t w = 0; w < workers && problems_.empty(); ++w)
        checkpoint.of_workers[tensor.name].push_back(
            values(name_of_worker(tensor.name, w), parameter));
    });
    if (left_ > 0 && problems_.empty())
      problems_.push_back({std::string(where_),
                           fmt::format("contains {} tensor{} that the model does not have", left_,
                                       left_ == 1 ? "" : "s"),
                           "resume with the model that was saved"});
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

 private:
  std::vector<float> values(const std::string& name, const ParameterTensor& parameter) {
    constexpr std::size_t kMostProblems = 10;
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      if (problems_.size() < kMostProblems)
        problems_.push_back(
            {std::string(where_), fmt::format("missing tensor '{}'", name), suggest(name, names_)});
      return {};
    }
    --left_;
    if (found->second->shape != parameter.shape && problems_.size() < kMostProblems)
      problems_.push_back(
          {fmt::format("{}#/{}", where_, name),
           fmt::format("shape mismatch: checkpoint has [{}], model has [{}]",
                       fmt::join(found->second->shape, ", "), fmt::join(parameter.shape, ", ")),
           "resume with the model that was saved"});
    return std::move(found->second->values);
  }

  const ModelGraph& model_;
  std::string_view where_;
  std::size_t left_;
  std::vector<std::string> names_;
  std::map<std::string, NamedTensor*> by_name_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

std::uint64_t parameter_hash(const ModelGraph& model) {
  std::uint64_t hash = kFnv1aStart;
  for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor& parameter) {
    hash = fnv1a(fmt::format("{} [{}]\n", tensor.name, fmt::join(parameter.shape, ", ")), hash);
  });
  return hash;
}

std::string to_file(const Checkpoint& checkpoint, const ModelGraph& model) {
  TensorFile file;
  file.metadata = {{"format", std::string(kFormat)},
                   {"model", fmt::format("{:016x}", parameter_hash(model))},
                   {"seed", std::to_string(checkpoint.seed)},
                   {"step", std::to_string(checkpoint.step)},
                   {"text_position", std::to_string(checkpoint.text_position)}};
  for (const auto& [name, value] : checkpoint.settings)
    file.metadata[std::string(kSettingPrefix) + name] = value;
  for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor& parameter) {
    for_each_state_kind([&](StateKind kind, std::string_view suffix) {
      const std::vector<float>& values = values_of(checkpoint.parameters.at(tensor.name), kind);
      if (!values.empty() || kind == StateKind::kWeights)
        file.tensors.push_back({tensor.name + std::string(suffix), parameter.shape, values});
    });
    if (checkpoint.of_workers.empty()) return;
    const std::vector<std::vector<float>>& workers = checkpoint.of_workers.at(tensor.name);
    file.metadata["workers"] = std::to_string(workers.size());
    for (std::size_t w = 0; w < workers.size(); ++w)
      file.tensors.push_back({name_of_worker(tensor.name, w), parameter.shape, workers[w]});
  });
  add_checksums(file);
  return to_safetensors(file);
}

Checkpoint checkpoint_from_file(std::string_view content, const ModelGraph& model,
                                std::string_view where) {
  TensorFile file = tensors_from_safetensors(content, where);
  const std::string format = format_of(file);
  if (format != kFormat && format != kSecondFormat && format != kFirstFormat)
    refuse_checkpoint(
        where,
        fmt::format("not a checkpoint: expected \"format\": \"{}\" in the metadata", kFormat),
        "use a checkpoint written by --save");
  const std::optional<Diagnostic> damage = damage_of(file, where);
  Checkpoint checkpoint;
  const int workers =
      file.metadata.contains("workers") ? number_in<int>(file, "workers", where, kMostWorkers) : 0;
  ParameterFinder(file, model, where).take(static_cast<std::size_t>(workers), checkpoint);
  const std::string hash = fmt::format("{:016x}", parameter_hash(model));
  if (file.metadata["model"] != hash)
    refuse_checkpoint(where,
                      fmt::format("saved from another model: parameter hash {}, expected {}",
                                  file.metadata["model"], hash),
                      "resume with the model that was saved");
  checkpoint.step = number_in<std::int64_t>(file, "step", where, kMostSteps);
  checkpoint.text_position = number_in<std::int64_t>(file, "text_position", where, INT64_MAX);
  checkpoint.seed = number_in<std::uint64_t>(file, "seed", where, UINT64_MAX);
  for (const auto& [key, value] : file.metadata)
    if (key.starts_with(kSettingPrefix))
      checkpoint.settings[key.substr(kSettingPrefix.size())] = value;
  if (damage) throw InputError(*damage);  // last, since the checks above say more
  return checkpoint;
}

void check_resumable(const Checkpoint& checkpoint, const Strategy& strategy,
                     std::string_view where) {
  const std::int64_t words = strategy.global_batch * strategy.sequence_length;
  if (checkpoint.step <= INT64_MAX / words && checkpoint.text_position == checkpoint.step * words)
    return;
  refuse_checkpoint(
      where,
      fmt::format("saved after {} tokens in {} steps, but {} sequences of {} tokens are {} tokens "
                  "per step",
                  checkpoint.text_position, checkpoint.step, strategy.global_batch,
                  strategy.sequence_length, words),
      "use the --global-batch and --seq of the saved run");
}

std::string checkpoint_path(const CheckpointOptions& options, std::int64_t step) {
  const std::string& save = options.save;
  std::error_code ignored;
  if (!save.ends_with('/') && !std::filesystem::is_directory(save, ignored)) return save;
  const std::filesystem::path directory(save);
  const std::string name = fmt::format("{}{:06}", kFilePrefix, step);
  if (options.layout != nullptr) return (directory / name / kModelFile).string();
  return (directory / (name + std::string(kFileSuffix))).string();
}

std::map<std::int64_t, std::string> checkpoints_in(const std::string& directory,
                                                   bool for_huggingface) {
  const std::string_view suffix = for_huggingface ? std::string_view() : kFileSuffix;
  std::map<std::int64_t, std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(kFilePrefix) || !name.ends_with(suffix)) continue;
    name = name.substr(0, name.size() - suffix.size()).substr(kFilePrefix.size());
    if (const auto step = number_from_text<std::int64_t>(name)) found[*step] = entry.path();
  }
  return found;
}

void remove_old_checkpoints(const CheckpointOptions& options, std::int64_t step) {
  std::map<std::int64_t, std::string> all = checkpoints_in(options.save, options.layout != nullptr);
  all.erase(all.upper_bound(step), all.end());
  for (; std::ssize(all) > options.keep; all.erase(all.begin())) {
    std::error_code ignored;  // an old checkpoint that stays does not end the training
    std::filesystem::remove_all(all.begin()->second, ignored);
  }
}

}  // namespace meshwright
