#include "executor/turns.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace meshwright {
namespace {

constexpr std::chrono::milliseconds kLook{50};  ///< how often a waiting rank looks about

}  // namespace

int Turns::usual_number() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
}

void Turns::take(RankProgress& progress) {
  std::unique_lock lock(mutex_);
  while (free_ == 0) {
    if (progress.must_stop) throw PeerFailure("the run has failed on another rank");
    progress.is_waiting = true;
    given_back_.wait_for(lock, kLook);
  }
  progress.is_waiting = false;
  --free_;
}

void Turns::give_back() {
  {
    const std::lock_guard lock(mutex_);
    ++free_;
  }
  given_back_.notify_one();
}

void ActionsInTurn::enter() {
  if (has_turn_) return;
  turns_.take(progress_);
  has_turn_ = true;
}

void ActionsInTurn::leave() {
  if (has_turn_) turns_.give_back();
  has_turn_ = false;
}

}  // namespace meshwright
