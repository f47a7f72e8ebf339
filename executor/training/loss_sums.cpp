#include "executor/training/loss_sums.hpp"

namespace meshwright {

void LossSums::begin_step() {
  sums_.clear();
  unsettled_.clear();
}

void LossSums::add(MicrobatchState& state, int step) {
  if ((rank_.at.tensor != 0 && !state.loss_of_own_rows) || state.loss.empty()) return;
  unsettled_.push_back({step, std::move(state.loss)});
}

void LossSums::settle() {
  for (Unsettled& of_tokens : unsettled_) {
    Sum& sum = sums_[of_tokens.step];
    for (const float loss : rank_.on_host(of_tokens.losses.floats()))
      sum.loss += static_cast<double>(loss);
    sum.tokens += of_tokens.losses.columns();
  }
  unsettled_.clear();
}

LossSums::Sum LossSums::of(int step) const {
  const auto found = sums_.find(step);
  return found == sums_.end() ? Sum() : found->second;
}

}  // namespace meshwright
