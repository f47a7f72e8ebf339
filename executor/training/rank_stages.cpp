#include "executor/training/rank_stages.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/lowering/lower.hpp"
#include "executor/parameters/parameter_server.hpp"

namespace meshwright {

RankStages::RankStages(RankContext& rank, const RunnableGraph& runnable, const Plan& plan,
                       std::uint64_t seed)
    : rank_(rank), runnable_(runnable) {
  const Placement placement = placement_of(plan);
  const std::vector<std::vector<LayerId>> layers = layers_of_stages(plan, rank.model);
  find_shared_table(placement);
  stages_.resize(layers.size());
  for (std::size_t s = 0; s < layers.size(); ++s) {
    stages_[s].layers = layers[s];
    stages_[s].chunk_replicas =
        static_cast<int>(std::count(placement.part_of_stage.begin(), placement.part_of_stage.end(),
                                    placement.part_of_stage[s]));
  }
  connect(placement);
  if (is_dedicated_server(rank.strategy, rank.rank)) return;
  // Embeddings first, since a tied output layer on the same device uses their table.
  for (const bool embeds : {true, false})
    for (std::size_t s = 0; s < layers.size(); ++s)
      if (placement.device_of_stage[s].value == rank_.at.pipeline &&
          (layers[s].front() == LayerId(0)) == embeds)
        hold(s, seed);
}

void RankStages::hold(std::size_t stage, std::uint64_t seed) {
  RankStage& held = stages_[stage];
  const bool reads_table = rank_.model.tied_embeddings &&
                           held.layers.back().index() + 1 == rank_.model.layers.size() &&
                           held.layers.front() != LayerId(0);
  const auto embedding = std::find_if(stages_.begin(), stages_.end(), [](const RankStage& s) {
    return s.parameters && s.layers.front() == LayerId(0);
  });
  const bool table_is_here = reads_table && embedding != stages_.end();
  held.parameters = std::make_unique<StageParameters>(
      rank_, held.layers,
      layouts_of(runnable_, rank_.strategy, rank_.rank, runnable_.part_of_stage(stage)), seed,
      table_is_here ? embedding->parameters.get() : nullptr,
      table_is_here ? token_table() : TensorId(-1));
}

TensorId RankStages::token_table() const {
  const auto lookup = static_cast<std::size_t>(rank_.model.layers.front().first_operator);
  return rank_.model.operators[lookup].parameters.front();
}

void RankStages::find_shared_table(const Placement& placement) {
  const std::vector<StageId>& route = placement.routes.front();
  const bool on_two_devices = placement.device_of_stage[route.front().index()] !=
                              placement.device_of_stage[route.back().index()];
  if (rank_.model.tied_embeddings && placement.routes.size() == 1 && on_two_devices)
    shared_table_ = token_table();
}

/// Neighbors of each stage, and the activation that it sends to the next.
void RankStages::connect(const Placement& placement) {
  const auto here = [&](StageId stage) {
    return placement.device_of_stage[stage.index()].value == rank_.at.pipeline;
  };
  for (const std::vector<StageId>& route : placement.routes)
    for (std::size_t i = 0; i + 1 < route.size(); ++i) {
      RankStage& from = stages_[route[i].index()];
      RankStage& to = stages_[route[i + 1].index()];
      from.next = route[i + 1].value;
      to.previous = route[i].value;
      from.next_is_here = here(route[i + 1]);
      to.previous_is_here = here(route[i]);
      from.output = operators_of(rank_.model, from.layers.back()).back().outputs.front();
      to.input = from.output;
    }
}

RankStage& RankStages::of_part(int part) {
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (stages_[s].parameters && runnable_.part_of_stage(s) == part) return stages_[s];
  MW_CHECK(false);
}

void RankStages::begin_step() {
  for (RankStage& stage : stages_) {
    stage.microbatches.clear();
    stage.summed_over_tensor = false;
    if (stage.parameters) stage.parameters->clear_gradients();
  }
}

void RankStages::move_input(RankStage& stage, std::int32_t microbatch) {
  MicrobatchState& state = stage.microbatches[microbatch];
  if (!stage.previous_is_here) return;
  RankStage& producer = stages_[static_cast<std::size_t>(stage.previous)];
  MicrobatchState& produced = producer.microbatches.at(microbatch);
  OwnedMatrix& slot = state.tensors[{stage.input.value, Form::kValue}];
  slot = std::move(*produced.find(stage.input, Form::kValue));
  produced.erase(stage.input, Form::kValue);
}

void RankStages::move_gradient(RankStage& stage, std::int32_t microbatch) {
  if (!stage.next_is_here) return;
  RankStage& producer = stages_[static_cast<std::size_t>(stage.next)];
  MicrobatchState& produced = producer.microbatches.at(microbatch);
  MicrobatchState& state = stage.microbatches.at(microbatch);
  state.tensors[{stage.output.value, Form::kGradient}] =
      std::move(*produced.find(stage.output, Form::kGradient));
  produced.erase(stage.output, Form::kGradient);
}

}  // namespace meshwright
