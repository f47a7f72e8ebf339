#include "executor/training/one_process.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr MessageTimes kAtOnce{};  ///< members are synchronized: data carry no times

Block all_of(const ParameterRun& run) { return {0, run.elements()}; }

}  // namespace

Ticks OneProcess::broadcast_weights(RankGroup& group, Ticks ready) {
  for (const bool expert : {false, true}) {
    ParameterRun& run = parameters_.run(expert);
    if (run.elements() > 0) ready = group.broadcast(bytes_of(run.weights(all_of(run))), 0, ready);
  }
  return ready;
}

void OneProcess::scatter_tokens(std::span<const RankId> members, MessageTag tag,
                                std::span<const TokenRows> all, TokenRows& own) {
  if (!is_first()) {
    std::vector<std::int64_t> words(own.words.size());
    rank_.communicator.receive(members.front(), tag, std::as_writable_bytes(std::span(words)));
    std::ranges::transform(words, own.words.begin(),
                           [](std::int64_t word) { return static_cast<std::int32_t>(word); });
    return;
  }
  for (std::size_t i = 1; i < members.size(); ++i) {
    const std::vector<std::int64_t> words(all[i].words.begin(), all[i].words.end());
    rank_.communicator.send(members[i], tag, std::as_bytes(std::span(words)), kAtOnce);
  }
}

/// Outputs are sent in their storage dtype; the loss is computed in fp32.
void OneProcess::gather_outputs(std::span<const RankId> members, MessageTag tag, TensorId outputs,
                                MicrobatchState& own) {
  OwnedMatrix& mine = *own.find(outputs, Form::kValue);
  const auto stored = [&] {
    return rank_.matrix(MemoryClass::kLogits, mine.rows(), mine.columns(), rank_.dtype);
  };
  OwnedMatrix traveling = stored();
  rank_.run(rank_.kernels.cast, {.x = flat(mine.view()), .y = flat(traveling.view())});
  if (!is_first()) {
    rank_.communicator.send(members.front(), tag, traveling.bytes(), kAtOnce);
    return;
  }
  states_.clear();
  states_.resize(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0) rank_.communicator.receive(members[i], tag, traveling.bytes());
    OwnedMatrix& values = states_[i].tensors[{outputs.value, Form::kValue}];
    values = rank_.matrix(MemoryClass::kLogits, mine.rows(), mine.columns(), Dtype::kFp32);
    rank_.run(rank_.kernels.cast, {.x = flat(traveling.view()), .y = flat(values.view())});
  }
}

void OneProcess::scatter_gradients(std::span<const RankId> members, MessageTag tag,
                                   TensorId outputs, MicrobatchState& own) {
  OwnedMatrix& mine = own.tensors[{outputs.value, Form::kGradient}];
  if (!is_first()) {
    const OwnedMatrix& values = *own.find(outputs, Form::kValue);
    mine = rank_.matrix(MemoryClass::kLogits, values.rows(), values.columns(), rank_.dtype);
    rank_.communicator.receive(members.front(), tag, mine.bytes());
    return;
  }
  for (std::size_t i = 1; i < members.size(); ++i)
    rank_.communicator.send(members[i], tag, states_[i].find(outputs, Form::kGradient)->bytes(),
                            kAtOnce);
  mine = std::move(*states_.front().find(outputs, Form::kGradient));
  states_.clear();
}

void OneProcess::reduce_gradients(std::span<const RankId> members, MessageTag tag) {
  for (const bool expert : {false, true}) {
    ParameterRun& run = parameters_.run(expert);
    if (run.elements() == 0) continue;
    const Vector mine = run.gradients(all_of(run));
    if (!is_first()) {
      rank_.communicator.send(members.front(), tag, bytes_of(mine), kAtOnce);
      continue;
    }
    for (const RankId from : members.subspan(1))
      rank_.communicator.receive_into(mine, {from, tag}, Reduction::kSum);
  }
  if (!is_first()) parameters_.clear_gradients();
}

}  // namespace meshwright
