/// Builds the order of a device with two model chunks; a pass takes its chunk's next micro-batch.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace meshwright {

class ChunkOrderWriter {
 public:
  ChunkOrderWriter(std::array<StageId, 2> stages, std::vector<Action>& order,
                   std::array<int, 2> first_microbatches = {0, 0})
      : order_(order) {
    for (std::size_t c = 0; c < 2; ++c)
      chunks_[c] = {.stage = stages[c], .first = first_microbatches[c]};
  }

  void forward(std::size_t c) { add(c, Pass::kForward, chunks_[c].forwards++); }
  void backward(std::size_t c) {
    ++chunks_[c].weights;
    add(c, Pass::kBackward, chunks_[c].inputs++);
  }
  void input(std::size_t c) { add(c, Pass::kBackwardInput, chunks_[c].inputs++); }
  void weight(std::size_t c) { add(c, Pass::kBackwardWeight, chunks_[c].weights++); }
  void input_and_weight(std::size_t c) {
    input(c);
    weight(c);
  }
  /// The forward of one chunk together with the backward of the other.
  void overlapped(std::size_t forward_chunk) {
    forward(forward_chunk);
    order_.back().overlaps_next = true;
    backward(1 - forward_chunk);
  }
  /// An input gradient; its weight gradient is deferred until kept_weight().
  void input_keeping_weight(std::size_t c) {
    input(c);
    kept_.push_back(order_.back());
    kept_.back().pass = Pass::kBackwardWeight;
  }
  /// The oldest deferred weight gradient.
  void kept_weight() {
    order_.push_back(kept_.front());
    kept_.pop_front();
  }

  int forwards(std::size_t c) const { return chunks_[c].forwards; }
  int weights(std::size_t c) const { return chunks_[c].weights; }

 private:
  struct Chunk {
    StageId stage;
    int first = 0;  ///< micro-batch of its first pass
    int forwards = 0;
    int inputs = 0;
    int weights = 0;
  };
  void add(std::size_t c, Pass pass, int index) {
    order_.push_back({chunks_[c].stage, pass, MicrobatchId(chunks_[c].first + index)});
  }

  std::array<Chunk, 2> chunks_;
  std::vector<Action>& order_;
  std::deque<Action> kept_;
};

}  // namespace meshwright
