#include "executor/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <optional>

#include "core/check.hpp"
#include "core/error.hpp"
#include "core/io_file.hpp"
#include "executor/owned_parameters.hpp"
#include "executor/run_report.hpp"
#include "executor/training_actions.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kFormat = "meshwright checkpoint 1";
constexpr std::array<std::string_view, kStateKindCount> kSuffixes{"", ".first_moment",
                                                                  ".second_moment"};
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

std::vector<float>& values_of(ParameterState& state, StateKind kind) {
  switch (kind) {
    case StateKind::kFirstMoment:
      return state.first_moment;
    case StateKind::kSecondMoment:
      return state.second_moment;
    case StateKind::kWeights:
      break;
  }
  return state.weights;
}
const std::vector<float>& values_of(const ParameterState& state, StateKind kind) {
  return values_of(const_cast<ParameterState&>(state), kind);
}

template <class Visit>
void for_each_kind(Visit visit) {
  for (int k = 0; k < kStateKindCount; ++k)
    visit(static_cast<StateKind>(k), kSuffixes[static_cast<std::size_t>(k)]);
}

std::int64_t elements_of(const ParameterTensor& parameter) {
  return std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

template <class Visit>
void for_each_parameter(const ModelGraph& model, Visit visit) {
  for (const Tensor& tensor : model.tensors)
    if (const auto* parameter = std::get_if<ParameterTensor>(&tensor.shape))
      visit(tensor, *parameter);
}

[[noreturn]] void refuse(std::string_view where, std::string what, std::string hint) {
  throw InputError(Diagnostic{std::string(where), std::move(what), std::move(hint)});
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

  std::map<std::string, ParameterState> take() {
    std::map<std::string, ParameterState> found;
    for_each_parameter(model_, [&](const Tensor& tensor, const ParameterTensor& parameter) {
      for_each_kind([&](StateKind kind, std::string_view suffix) {
        values_of(found[tensor.name], kind) = values(tensor.name + std::string(suffix), parameter);
      });
    });
    if (left_ > 0 && problems_.empty())
      problems_.push_back({std::string(where_),
                           fmt::format("has {} tensors more than the model", left_),
                           "is it a checkpoint of another model?"});
    if (!problems_.empty()) throw InputError(std::move(problems_));
    return found;
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

// ---- between ranks and the file ----

constexpr MessageTag kStateTag{Channel::kControl, 2};

/// Dense parameters are the same on all replicas: the first one's are enough.
bool is_replica(const Strategy& strategy, const RankCoordinate& at) {
  const DataParallelKind kind = strategy.data_parallelism.kind;
  const bool is_plain = kind == DataParallelKind::kCollective || kind == DataParallelKind::kRing;
  return is_plain && strategy.zero == 0 && (at.data > 0 || at.context > 0);
}

std::vector<ParameterValues> own_state(TrainingActions& actions, StateKind kind) {
  std::vector<ParameterValues> state;
  const RankContext& rank = actions.rank();
  for (StageParameters* parameters : actions.updated_parameters())
    for (const bool expert : {false, true}) {
      if (!expert && is_replica(rank.strategy, rank.at)) continue;
      const std::vector<float> own = own_values(parameters->run(expert), kind);
      for_each_own_element(rank.model, *parameters, expert,
                           [&](TensorId tensor, std::int64_t number, std::size_t place) {
                             add_element(state, tensor, number, own[place]);
                           });
    }
  return state;
}

void send_state(Communicator& communicator, std::vector<ParameterValues> state) {
  const std::vector<std::byte> bytes =
      to_bytes(EndReport{.peak_memory = {}, .parameters = std::move(state)});
  const std::uint64_t size = bytes.size();
  communicator.send(RankId(0), kStateTag, std::as_bytes(std::span(&size, 1)), {});
  communicator.send(RankId(0), kStateTag, bytes, {});
}

std::vector<ParameterValues> receive_state(Communicator& communicator, RankId from) {
  std::uint64_t size = 0;
  communicator.receive(from, kStateTag, std::as_writable_bytes(std::span(&size, 1)));
  std::vector<std::byte> bytes(size);
  communicator.receive(from, kStateTag, bytes);
  return std::get<EndReport>(run_report_from(bytes)).parameters;
}

void put(Checkpoint& checkpoint, const ModelGraph& model, StateKind kind,
         const std::vector<ParameterValues>& state) {
  for (const ParameterValues& part : state) {
    std::vector<float>& whole =
        values_of(checkpoint.parameters.at(model.tensors[part.tensor.index()].name), kind);
    std::copy(part.values.begin(), part.values.end(), whole.begin() + part.first);
  }
}

}  // namespace

std::uint64_t parameter_hash(const ModelGraph& model) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
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
    for_each_kind([&](StateKind kind, std::string_view suffix) {
      file.tensors.push_back({tensor.name + std::string(suffix), parameter.shape,
                              values_of(checkpoint.parameters.at(tensor.name), kind)});
    });
  });
  return to_safetensors(file);
}

Checkpoint checkpoint_from_file(std::string_view content, const ModelGraph& model,
                                std::string_view where) {
  TensorFile file = tensors_from_safetensors(content, where);
  if (const auto format = file.metadata.find("format");
      format == file.metadata.end() || format->second != kFormat)
    refuse(where, "holds tensors, but is no checkpoint",
           fmt::format("its metadata need \"format\": \"{}\", as --save writes it", kFormat));
  Checkpoint checkpoint;
  checkpoint.parameters = ParameterFinder(file, model, where).take();
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

void save_checkpoint(Communicator& communicator, TrainingActions& actions, const ModelGraph& model,
                     const Checkpoint& about, const std::string& path) {
  Checkpoint whole = about;
  const bool collects = communicator.rank() == RankId(0);
  if (collects)
    for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor& parameter) {
      for_each_kind([&](StateKind kind, std::string_view) {
        values_of(whole.parameters[tensor.name], kind)
            .resize(static_cast<std::size_t>(elements_of(parameter)));
      });
    });
  for_each_kind([&](StateKind kind, std::string_view) {
    std::vector<ParameterValues> own = own_state(actions, kind);
    if (!collects) return send_state(communicator, std::move(own));
    put(whole, model, kind, own);
    for (int rank = 1; rank < communicator.rank_count(); ++rank)
      put(whole, model, kind, receive_state(communicator, RankId(rank)));
  });
  if (collects) write_file(path, to_file(whole, model));
}

namespace {

/// Of all elements of the run that this rank's parameters have, padding included.
std::vector<float> held_values(const ModelGraph& model, StageParameters& parameters, bool expert,
                               const Checkpoint& checkpoint, StateKind kind) {
  std::vector<float> values(static_cast<std::size_t>(parameters.run(expert).elements()));
  for (const ParameterShard& shard : parameters.shards().shards) {
    if (shard.expert != expert) continue;
    const Tensor& tensor = model.tensors[shard.tensor.index()];
    const std::vector<float>& whole = values_of(checkpoint.parameters.at(tensor.name), kind);
    auto place = static_cast<std::size_t>(shard.offset);
    for_each_element(shard, std::get<ParameterTensor>(tensor.shape), [&](std::int64_t number) {
      if (number >= 0) values[place] = whole[static_cast<std::size_t>(number)];
      ++place;
    });
  }
  return values;
}

void restore(RankContext& rank, StageParameters& parameters, bool expert,
             const Checkpoint& checkpoint) {
  ParameterRun& run = parameters.run(expert);
  const std::vector<ParameterPiece>& pieces = run.layout().pieces;
  for_each_kind([&](StateKind kind, std::string_view) {
    const std::vector<float> held = held_values(rank.model, parameters, expert, checkpoint, kind);
    if (kind == StateKind::kWeights && !run.layout().cuts_weights)
      for (const ParameterPiece& piece : pieces)
        rank.run(rank.kernels.cast,
                 {.x = {held.data() + piece.all.begin, piece.all.size(), Dtype::kFp32},
                  .y = run.weights(piece.all)});
    if (!run.layout().has_state) return;
    std::vector<float> own;
    for (const ParameterPiece& piece : pieces)
      own.insert(own.end(), held.begin() + piece.own.begin, held.begin() + piece.own.end);
    set_own_values(rank, run, kind, own);
  });
}

}  // namespace

void restore(TrainingActions& actions, const Checkpoint& checkpoint) {
  for (StageParameters* parameters : actions.held_parameters())
    for (const bool expert : {false, true})
      restore(actions.rank(), *parameters, expert, checkpoint);
  actions.resume_after(checkpoint.step);
}

}  // namespace meshwright
