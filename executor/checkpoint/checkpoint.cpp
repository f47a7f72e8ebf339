// Gathers a checkpoint on rank 0 and restores the shards of each rank.
#include "executor/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <optional>

#include "core/formats/file.hpp"
#include "executor/checkpoint/checkpoint_parts.hpp"
#include "executor/checkpoint/external_weights.hpp"
#include "executor/parameters/owned_parameters.hpp"
#include "executor/ranks/copies_in_pieces.hpp"
#include "executor/training/owned_blocks.hpp"
#include "executor/training/run_report.hpp"
#include "executor/training/training_actions.hpp"

namespace meshwright {
namespace {

constexpr MessageTag kStateTag{Channel::kControl, 2};

/// Whether the rank only holds copies of dense parameters, which the first replica saves.
bool is_replica(const Strategy& strategy, const RankCoordinate& at) {
  const DataParallelKind kind = strategy.data_parallelism.kind;
  const bool is_plain = kind == DataParallelKind::kCollective || kind == DataParallelKind::kRing;
  return is_plain && strategy.zero == 0 && !is_first_replica(at);
}

/// SGD has no second moments.
bool has_state(const Strategy& strategy, StateKind kind) {
  return kind != StateKind::kSecondMoment || moment_count(strategy.optimizer) > 1;
}

std::vector<ParameterValues> own_state(TrainingActions& actions, StateKind kind) {
  std::vector<ParameterValues> state;
  const RankContext& rank = actions.rank();
  for (StageParameters* parameters : actions.updated_parameters())
    for (const bool expert : {false, true}) {
      if (!expert && is_replica(rank.strategy, rank.at)) continue;
      const std::vector<float> own = own_values(parameters->run(expert), kind, rank.progress.beats);
      for_each_own_element(rank.model, *parameters, expert,
                           [&](TensorId tensor, std::int64_t number, std::size_t place) {
                             add_element(state, tensor, number, own[place]);
                             beat_occasionally(rank.progress.beats, place);
                           });
    }
  return state;
}

bool is_asynchronous(const Strategy& strategy) {
  return strategy.data_parallelism.kind == DataParallelKind::kAsyncParameterServer;
}

/// An asynchronous worker's own version of the weights; empty on other ranks.
std::vector<ParameterValues> weights_of_worker(TrainingActions& actions) {
  std::vector<ParameterValues> state;
  RankContext& rank = actions.rank();
  StageParameters* parameters = actions.stages().front().parameters.get();
  if (parameters == nullptr) return state;
  for (const ParameterShard& shard : parameters->shards().shards) {
    std::vector<float> values(static_cast<std::size_t>(shard.elements()));
    rank.run(
        rank.kernels.cast,
        {.x =
             parameters->run(shard.expert).weights({shard.offset, shard.offset + shard.elements()}),
         .y = {values.data(), shard.elements(), Dtype::kFp32}});
    const Tensor& tensor = rank.model.tensors[shard.tensor.index()];
    std::size_t place = 0;
    for_each_element(shard, std::get<ParameterTensor>(tensor.shape), [&](std::int64_t number) {
      if (number >= 0) add_element(state, shard.tensor, number, values[place]);
      beat_occasionally(rank.progress.beats, ++place);
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

/// Appends the weights of the next worker.
void put_worker(Checkpoint& checkpoint, const ModelGraph& model,
                const std::vector<ParameterValues>& state) {
  for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor& parameter) {
    checkpoint.of_workers[tensor.name].emplace_back(
        static_cast<std::size_t>(elements_of(parameter)));
  });
  for (const ParameterValues& part : state)
    std::copy(part.values.begin(), part.values.end(),
              checkpoint.of_workers.at(model.tensors[part.tensor.index()].name).back().begin() +
                  part.first);
}

/// Gathers every worker's version on rank 0. Workers are the first ranks.
void collect_workers(Communicator& communicator, TrainingActions& actions, const ModelGraph& model,
                     Checkpoint& whole) {
  const Strategy& strategy = actions.rank().strategy;
  if (!is_asynchronous(strategy) || communicator.rank().value >= strategy.degrees.data) return;
  std::vector<ParameterValues> own = weights_of_worker(actions);
  if (communicator.rank() != RankId(0)) return send_state(communicator, std::move(own));
  put_worker(whole, model, own);
  for (int worker = 1; worker < strategy.degrees.data; ++worker)
    put_worker(whole, model, receive_state(communicator, RankId(worker)));
}

}  // namespace

void save_checkpoint(Communicator& communicator, TrainingActions& actions, const ModelGraph& model,
                     const Checkpoint& about, const CheckpointOptions& options) {
  Checkpoint whole = about;
  const bool collects = communicator.rank() == RankId(0);
  if (collects)
    for_each_parameter(model, [&](const Tensor& tensor, const ParameterTensor& parameter) {
      for_each_state_kind([&](StateKind kind, std::string_view) {
        if (!has_state(actions.rank().strategy, kind)) return;
        values_of(whole.parameters[tensor.name], kind) = zeros<float>(
            static_cast<std::size_t>(elements_of(parameter)), actions.rank().progress.beats);
      });
    });
  for_each_state_kind([&](StateKind kind, std::string_view) {
    if (!has_state(actions.rank().strategy, kind)) return;
    std::vector<ParameterValues> own = own_state(actions, kind);
    if (!collects) return send_state(communicator, std::move(own));
    put(whole, model, kind, own);
    for (int rank = 1; rank < communicator.rank_count(); ++rank)
      put(whole, model, kind, receive_state(communicator, RankId(rank)));
  });
  collect_workers(communicator, actions, model, whole);
  if (!collects) return;
  const FlagGuard on_disk(actions.rank().progress.is_on_disk);
  const std::string path = checkpoint_path(options, about.step);
  if (options.layout == nullptr) return write_file(path, to_file(whole, model));
  if (path != options.save) write_model_directory(path, options.model_config);
  write_file(path, to_external_file(whole, model, *options.layout));
}

namespace {

/// The worker whose version of the weights this rank resumes from; nullopt: there is one version.
std::optional<std::size_t> worker_of(const RankContext& rank, const RunLayout& layout,
                                     const Checkpoint& checkpoint) {
  if (!is_asynchronous(rank.strategy) || layout.has_state || checkpoint.of_workers.empty())
    return std::nullopt;
  const std::size_t workers = checkpoint.of_workers.begin()->second.size();
  if (workers != static_cast<std::size_t>(rank.strategy.degrees.data)) return std::nullopt;
  return rank.rank.index();
}

/// All elements of the run on this rank, including padding.
std::vector<float> held_values(const RankContext& rank, StageParameters& parameters, bool expert,
                               const Checkpoint& checkpoint, StateKind kind) {
  const std::optional<std::size_t> worker =
      worker_of(rank, parameters.run(expert).layout(), checkpoint);
  std::vector<float> values = zeros<float>(
      static_cast<std::size_t>(parameters.run(expert).elements()), rank.progress.beats);
  for (const ParameterShard& shard : parameters.shards().shards) {
    if (shard.expert != expert) continue;
    const Tensor& tensor = rank.model.tensors[shard.tensor.index()];
    const std::vector<float>& whole = worker
                                          ? checkpoint.of_workers.at(tensor.name)[*worker]
                                          : values_of(checkpoint.parameters.at(tensor.name), kind);
    auto place = static_cast<std::size_t>(shard.offset);
    for_each_element(shard, std::get<ParameterTensor>(tensor.shape), [&](std::int64_t number) {
      if (number >= 0 && !whole.empty()) values[place] = whole[static_cast<std::size_t>(number)];
      beat_occasionally(rank.progress.beats, ++place);
    });
  }
  return values;
}

void restore(RankContext& rank, StageParameters& parameters, bool expert,
             const Checkpoint& checkpoint) {
  ParameterRun& run = parameters.run(expert);
  const std::vector<ParameterPiece>& pieces = run.layout().pieces;
  for_each_state_kind([&](StateKind kind, std::string_view) {
    if (!has_state(rank.strategy, kind)) return;
    const std::vector<float> held = held_values(rank, parameters, expert, checkpoint, kind);
    if (kind == StateKind::kWeights && !run.layout().shards_weights)
      for (const ParameterPiece& piece : pieces)
        rank.run(rank.kernels.cast,
                 {.x = {held.data() + piece.all.begin, piece.all.size(), Dtype::kFp32},
                  .y = run.weights(piece.all)});
    if (!run.layout().has_state) return;
    std::vector<float> own;
    for (const ParameterPiece& piece : pieces)
      append(own,
             std::span(held).subspan(static_cast<std::size_t>(piece.own.begin),
                                     static_cast<std::size_t>(piece.own.size())),
             rank.progress.beats);
    set_own_values(rank, run, kind, own);
  });
}

}  // namespace

namespace {

/// The whole parameter is in memory, but no other one.
void initialize(RankContext& rank, ParameterRun& run, const ParameterShard& shard,
                const ExternalWeights& weights) {
  const Tensor& tensor = rank.model.tensors[shard.tensor.index()];
  std::vector<float> held =
      zeros<float>(static_cast<std::size_t>(shard.elements()), rank.progress.beats);
  {
    const std::vector<float> whole = weights.values(tensor);
    std::size_t place = 0;
    for_each_element(shard, std::get<ParameterTensor>(tensor.shape), [&](std::int64_t number) {
      if (number >= 0) held[place] = whole[static_cast<std::size_t>(number)];
      beat_occasionally(rank.progress.beats, ++place);
    });
  }
  const Block all = block_of(shard);
  const auto cast_to = [&](const Vector& to, const Block& block) {
    rank.run(rank.kernels.cast,
             {.x = {held.data() + (block.begin - all.begin), block.size(), Dtype::kFp32}, .y = to});
  };
  for (std::size_t p = 0; p < run.layout().pieces.size(); ++p) {
    const ParameterPiece& piece = run.layout().pieces[p];
    const Block block = intersection(piece.all, all), own = intersection(piece.own, all);
    if (block.size() > 0 && !run.layout().shards_weights) cast_to(run.weights(block), block);
    if (own.size() == 0) continue;
    const std::int64_t first = own.begin - piece.own.begin;
    if (run.layout().shards_weights) cast_to(part_of(run.own_weights(p), first, own.size()), own);
    if (run.layout().has_state && run.has_master())
      rank.copy(run.master(p).data() + first, held.data() + (own.begin - all.begin),
                static_cast<std::size_t>(own.size()) * sizeof(float));
  }
  rank.wait();
}

}  // namespace

void initialize(TrainingActions& actions, const ExternalWeights& weights) {
  for (StageParameters* parameters : actions.held_parameters())
    for (const ParameterShard& shard : parameters->shards().shards)
      initialize(actions.rank(), parameters->run(shard.expert), shard, weights);
}

void restore(TrainingActions& actions, const Checkpoint& checkpoint) {
  for (StageParameters* parameters : actions.held_parameters())
    for (const bool expert : {false, true})
      restore(actions.rank(), *parameters, expert, checkpoint);
  actions.resume_after(checkpoint.step);
}

}  // namespace meshwright
