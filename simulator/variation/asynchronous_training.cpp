#include "simulator/variation/asynchronous_training.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

#include "core/base/check.hpp"
#include "simulator/variation/random_numbers.hpp"

namespace meshwright {
namespace {

enum class EventKind : std::uint8_t {
  kPush,   ///< a worker's gradients arrive at the server
  kAsk,    ///< a worker requests the weights and queues for the outbound link
  kLeave,  ///< the server sends the current weights
};
struct Event {
  Ticks time;
  EventKind kind = EventKind::kAsk;
  std::int32_t worker = 0;
  /// std::priority_queue pops the largest element: earliest time, then kind, then lowest worker.
  bool operator<(const Event& o) const {
    return std::tie(o.time, o.kind, o.worker) < std::tie(time, kind, worker);
  }
};

class Server {
 public:
  explicit Server(const AsynchronousTraining& training)
      : training_(training),
        key_{static_cast<std::uint32_t>(training.seed),
             static_cast<std::uint32_t>(training.seed >> 32)},
        turns_left_(training.compute.size(), training.turns),
        pulled_version_(training.compute.size(), 0) {}

  AsynchronousResult run() {
    for (std::size_t w = 0; w < training_.compute.size(); ++w)
      events_.push({Ticks(), EventKind::kAsk, static_cast<std::int32_t>(w)});
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      switch (event.kind) {
        case EventKind::kPush:
          push(event);
          break;
        case EventKind::kAsk:
          ask(event);
          break;
        case EventKind::kLeave:
          leave(event);
          break;
      }
    }
    return finish();
  }

 private:
  void ask(const Event& event) {
    const Ticks start = std::max(event.time, outward_free_);
    outward_free_ = start + training_.pull;
    events_.push({start, EventKind::kLeave, event.worker});
  }

  void leave(const Event& event) {
    const auto w = static_cast<std::size_t>(event.worker);
    pulled_version_[w] = version_at(event.time);
    const Ticks arrived = event.time + training_.pull + training_.latency;
    events_.push({arrived + compute_time(w), EventKind::kPush, event.worker});
  }

  void push(const Event& event) {
    const Ticks start = std::max(event.time, inward_free_);
    inward_free_ = start + training_.push;
    const Ticks applied = std::max(inward_free_ + training_.latency, updated_) + training_.update;
    updated_ = applied;
    const auto w = static_cast<std::size_t>(event.worker);
    const auto overtaken = static_cast<std::size_t>(static_cast<std::int64_t>(update_ends_.size()) -
                                                    pulled_version_[w]);
    update_ends_.push_back(applied);
    if (staleness_.size() <= overtaken) staleness_.resize(overtaken + 1, 0);
    ++staleness_[overtaken];
    if (--turns_left_[w] > 0) events_.push({applied, EventKind::kAsk, event.worker});
  }

  /// Number of updates that have ended by `time`; updates end in order.
  std::int64_t version_at(Ticks time) const {
    return std::upper_bound(update_ends_.begin(), update_ends_.end(), time) - update_ends_.begin();
  }

  /// Lengthened by a uniform random fraction (32 bits) of the jitter.
  Ticks compute_time(std::size_t worker) {
    const Ticks plain = training_.compute[worker];
    if (training_.jitter <= 0) return plain;
    constexpr double kFraction = 1.0 / 4294967296.0;  // 2^-32
    const PhiloxBlock counter{static_cast<std::uint32_t>(turns_drawn_),
                              static_cast<std::uint32_t>(turns_drawn_ >> 32), 0, 0};
    ++turns_drawn_;
    const double share = philox4x32_10(counter, key_)[0] * kFraction;
    return plain + to_ticks(share * training_.jitter * to_seconds(plain));
  }

  AsynchronousResult finish() {
    AsynchronousResult result;
    result.duration = updated_;
    result.staleness = std::move(staleness_);
    const auto updates = static_cast<double>(update_ends_.size());
    result.period = Ticks(updated_.value / training_.turns);
    result.updates_per_second = updates / to_seconds(updated_).value;
    for (std::size_t s = 0; s < result.staleness.size(); ++s)
      result.mean_staleness +=
          static_cast<double>(s) * static_cast<double>(result.staleness[s]) / updates;
    result.busy = updates * ratio(training_.push, updated_);
    return result;
  }

  const AsynchronousTraining& training_;
  std::array<std::uint32_t, 2> key_;
  std::uint64_t turns_drawn_ = 0;
  std::priority_queue<Event> events_;
  Ticks inward_free_, outward_free_, updated_;
  std::vector<Ticks> update_ends_;
  std::vector<int> turns_left_;               ///< by worker
  std::vector<std::int64_t> pulled_version_;  ///< by worker: updates in the weights it pulled
  std::vector<std::int64_t> staleness_;
};

}  // namespace

AsynchronousResult simulate_asynchronous(const AsynchronousTraining& training) {
  MW_CHECK(!training.compute.empty());
  MW_CHECK(training.turns >= 1);
  MW_CHECK(training.jitter >= 0);
  return Server(training).run();
}

}  // namespace meshwright
