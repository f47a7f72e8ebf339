// What a checkpoint looks like in a file, and which files are refused.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <filesystem>

#include "core/error.hpp"
#include "executor/checkpoint_parts.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kFormat = "meshwright checkpoint 1";
constexpr std::int64_t kMostSteps = 1'000'000'000;  ///< with those of one run more, still an int
constexpr int kMostWorkers = 1 << 16;

std::string name_of_worker(const std::string& tensor, std::size_t worker) {
  return fmt::format("{}.worker_{}", tensor, worker);
}

[[noreturn]] void refuse(std::string_view where, std::string what, std::string hint) {
  throw InputError(Diagnostic{std::string(where), std::move(what), std::move(hint)});
}

constexpr std::uint64_t kHashStart = 0xcbf29ce484222325U, kHashFactor = 0x100000001b3U;  // FNV-1a

/// Of all values in the order of the file, a word at a time. Blocks that never reached the disk are
/// zeros, which no check of sizes notices.
std::string checksum(const TensorFile& file) {
  std::uint64_t hash = kHashStart;
  for (const NamedTensor& tensor : file.tensors)
    for (const float value : tensor.values)
      hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * kHashFactor;
  return fmt::format("{:016x}", hash);
}

/// Files that say nothing of it are taken as they are.
void check_values(const TensorFile& file, std::string_view where) {
  const auto said = file.metadata.find("checksum");
  if (said == file.metadata.end()) return;
  const std::string found = checksum(file);
  if (found != said->second)
    refuse(where,
           fmt::format("has values of checksum {}, but was saved with {}", found, said->second),
           "it was damaged, or written in part: take another checkpoint");
}

/// A whole number from the file's metadata.
template <class Number>
Number number_in(const TensorFile& file, const std::string& key, std::string_view where,
                 Number most) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end())
    refuse(where, fmt::format("has no '{}' in its metadata", key),
           "expected a checkpoint, as --save writes it");
  const std::string& text = found->second;
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size() || value > most || value < Number{})
    refuse(where, fmt::format("has '{}' as '{}' in its metadata", text, key),
           fmt::format("expected a whole number up to {}", most));
  return value;
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

  /// Into the checkpoint, whose workers are so many.
  void take(std::size_t workers, Checkpoint& checkpoint) {
    for_each_parameter(model_, [&](const Tensor& tensor, const ParameterTensor& parameter) {
      for_each_state_kind([&](StateKind kind, std::string_view suffix) {
        values_of(checkpoint.parameters[tensor.name], kind) =
            values(tensor.name + std::string(suffix), parameter);
      });
      for (std::size_t w = 0; w < workers && problems_.empty(); ++w)
        checkpoint.of_workers[tensor.name].push_back(
            values(name_of_worker(tensor.name, w), parameter));
    });
    if (left_ > 0 && problems_.empty())
      problems_.push_back({std::string(where_),
                           fmt::format("has {} tensors more than the model", left_),
                           "is it a checkpoint of another model?"});
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

 private:
  std::vector<float> values(const std::string& name, const ParameterTensor& parameter) {
    constexpr std::size_t kMostProblems = 10;
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      if (problems_.size() < kMostProblems)
        problems_.push_back(
            {std::string(where_), fmt::format("has no tensor '{}'", name), suggest(name, names_)});
      return {};
    }
    --left_;
    if (found->second->shape != parameter.shape && problems_.size() < kMostProblems)
      problems_.push_back(
          {fmt::format("{}#/{}", where_, name),
           fmt::format("has shape [{}], but the model's is [{}]",
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
  std::uint64_t hash = kHashStart;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kHashFactor;
  };
  for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor& parameter) {
    add(fmt::format("{} [{}]\n", tensor.name, fmt::join(parameter.shape, ", ")));
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
  for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor& parameter) {
    for_each_state_kind([&](StateKind kind, std::string_view suffix) {
      file.tensors.push_back({tensor.name + std::string(suffix), parameter.shape,
                              values_of(checkpoint.parameters.at(tensor.name), kind)});
    });
    if (checkpoint.of_workers.empty()) return;
    const std::vector<std::vector<float>>& workers = checkpoint.of_workers.at(tensor.name);
    file.metadata["workers"] = std::to_string(workers.size());
    for (std::size_t w = 0; w < workers.size(); ++w)
      file.tensors.push_back({name_of_worker(tensor.name, w), parameter.shape, workers[w]});
  });
  file.metadata["checksum"] = checksum(file);
  return to_safetensors(file);
}

Checkpoint checkpoint_from_file(std::string_view content, const ModelGraph& model,
                                std::string_view where) {
  TensorFile file = tensors_from_safetensors(content, where);
  if (const auto format = file.metadata.find("format");
      format == file.metadata.end() || format->second != kFormat)
    refuse(where, "holds tensors, but is no checkpoint",
           fmt::format("its metadata need \"format\": \"{}\", as --save writes it", kFormat));
  check_values(file, where);
  Checkpoint checkpoint;
  const int workers =
      file.metadata.contains("workers") ? number_in<int>(file, "workers", where, kMostWorkers) : 0;
  ParameterFinder(file, model, where).take(static_cast<std::size_t>(workers), checkpoint);
  const std::string hash = fmt::format("{:016x}", parameter_hash(model));
  if (file.metadata["model"] != hash)
    refuse(where, fmt::format("is of model {}, but this is model {}", file.metadata["model"], hash),
           "resume with the model that was saved");
  checkpoint.step = number_in<std::int64_t>(file, "step", where, kMostSteps);
  checkpoint.text_position = number_in<std::int64_t>(file, "text_position", where, INT64_MAX);
  checkpoint.seed = number_in<std::uint64_t>(file, "seed", where, UINT64_MAX);
  return checkpoint;
}

void check_resumable(const Checkpoint& checkpoint, const Strategy& strategy,
                     std::string_view where) {
  const std::int64_t words = strategy.global_batch * strategy.sequence_length;
  if (checkpoint.step <= INT64_MAX / words && checkpoint.text_position == checkpoint.step * words)
    return;
  refuse(where,
         fmt::format("has read {} words in {} steps, but steps of {} sequences of {} words read {}",
                     checkpoint.text_position, checkpoint.step, strategy.global_batch,
                     strategy.sequence_length, words),
         "resume with the --global-batch and --seq that were saved");
}

std::string checkpoint_path(const std::string& save, std::int64_t step) {
  std::error_code ignored;
  if (!save.ends_with('/') && !std::filesystem::is_directory(save, ignored)) return save;
  return (std::filesystem::path(save) / fmt::format("step-{:06}.safetensors", step)).string();
}

}  // namespace meshwright
