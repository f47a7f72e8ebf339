/// Losses of one rank's tokens, summed by step.
#pragma once

#include <map>
#include <vector>

#include "executor/operators/microbatch_state.hpp"
#include "executor/ranks/rank_context.hpp"

namespace meshwright {

class LossSums {
 public:
  explicit LossSums(RankContext& rank) : rank_(rank) {}
  struct Sum {
    double loss = 0;
    std::int64_t tokens = 0;
  };

  void begin_step();
  /// Takes the losses of a finished forward pass, if this rank counts them: of equal losses on all
  /// tensor ranks only the first rank's. They are summed by settle(), to avoid a wait for the
  /// device here. `step` is within the graph.
  void add(MicrobatchState& state, int step);
  /// Waits for the device.
  void settle();
  Sum of(int step) const;

 private:
  struct Unsettled {
    int step = 0;
    OwnedMatrix losses;  ///< per token, [1, N]
  };
  RankContext& rank_;
  std::vector<Unsettled> unsettled_;
  std::map<int, Sum> sums_;  ///< by step within the graph
};

}  // namespace meshwright
