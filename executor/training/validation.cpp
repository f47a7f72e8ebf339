#include "executor/training/validation.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "executor/tasks/forward_tasks.hpp"
#include "executor/tasks/forwarding_actions.hpp"

namespace meshwright {
namespace {

/// Leaves the callback of a decorator that also runs training steps in place.
class WithoutWaitCallback final : public ForwardingActions {
 public:
  using ForwardingActions::ForwardingActions;
  void set_wait_callback(std::function<void(bool begins)> /*callback*/) override {}
};

}  // namespace

Validation::Validation(const RunnableGraph& runnable, TrainingActions& actions,
                       Communicator& communicator, RankProgress& progress,
                       const ValidationOptions& options)
    : runnable_(runnable),
      actions_(actions),
      communicator_(communicator),
      progress_(progress),
      options_(options) {
  if (options.text != nullptr) tasks_ = forward_tasks(runnable, communicator.rank());
}

double Validation::mean_loss() {
  LossSums::Sum share;
  WithoutWaitCallback actions(actions_);
  actions_.begin_validation(*options_.text);
  for (std::int64_t batch = 0; batch < options_.batches; ++batch) {
    actions_.begin_step(static_cast<int>(batch));
    // The times are not used: by the wall clock no task waits.
    RankClock clock(TimelineClock::kWall, std::chrono::steady_clock::now(), LinkTime::kReal,
                    &progress_.must_stop, &progress_.beats);
    run_tasks(runnable_, tasks_, communicator_, actions, clock, progress_);
    actions_.settle();
    share.loss += actions_.loss_sum();
    share.tokens += actions_.loss_tokens();
  }
  actions_.end_validation();
  const LossSums::Sum all = sum_over_ranks(communicator_, share);
  const double mean = all.loss / static_cast<double>(all.tokens);
  if (!std::isfinite(mean))
    throw std::runtime_error(fmt::format("the validation loss is {}", mean));
  return mean;
}

LossSums::Sum sum_over_ranks(Communicator& communicator, const LossSums::Sum& share) {
  constexpr std::int32_t kTag = 3;  // others: steps, checkpoints, settings
  RankGroup all(communicator, all_ranks(communicator.rank_count()), {Channel::kControl, kTag});
  std::vector<LossSums::Sum> shares(static_cast<std::size_t>(all.size()));
  shares[static_cast<std::size_t>(all.index())] = share;
  all.all_gather(std::as_writable_bytes(std::span(shares)), sizeof(LossSums::Sum), Ticks());
  LossSums::Sum sum;
  for (const LossSums::Sum& part : shares) {
    sum.loss += part.loss;
    sum.tokens += part.tokens;
  }
  return sum;
}

}  // namespace meshwright
