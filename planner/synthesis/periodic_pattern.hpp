/// Modulo scheduling of pipelines: a few micro-batches repeat the passes of those before, one
/// interval later.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/random.hpp"
#include "core/schedule/dispatch.hpp"

namespace meshwright {

/// Starts of the passes of n micro-batches; the next n run one interval later.
struct PeriodicPattern {
  Ticks interval;
  int microbatches = 1;
  std::vector<Ticks> starts;  ///< by micro-batch, pass and stage
};

/// Searches patterns in which no device runs two passes at once or exceeds its memory limit (B. R.
/// Rau, "Iterative modulo scheduling", 1994). The passes of a micro-batch are placed along the
/// route, each into the first free slot of its device after a wait; a local search changes a few
/// waits at a time, and whether a weight gradient is placed right after its input gradient or after
/// all other passes, until memory suffices. Bisection finds a short interval. Deterministic.
class PatternSearch {
 public:
  PatternSearch(const DispatchTask& task, int microbatches);

  /// A pattern within the limits of the task. Its interval is as short as possible, but at least
  /// `least` per micro-batch, which must not be less than the work of a device.
  /// For several limits, call it in ascending order: it starts from the last pattern.
  std::optional<PeriodicPattern> improve(Ticks least, int placements);
  /// By device; not below those of the last call.
  void set_limits(const std::vector<std::int64_t>& limits) { task_.limits = limits; }

 private:
  /// What the search changes, by micro-batch, pass and stage.
  struct Shape {
    std::vector<std::int64_t> wait;
    std::vector<char> is_early;
  };
  struct Slot {
    std::int64_t phase = 0, length = 0;
  };
  struct Change {
    std::int64_t phase = 0, amount = 0;
    friend auto operator<=>(const Change&, const Change&) = default;
  };

  std::size_t index(int copy, int pass, std::size_t stage) const {
    return static_cast<std::size_t>(copy * 3 + pass) * task_.held.size() + stage;
  }
  std::uint32_t below(std::size_t count) {
    return xorshift32(random_state_) % static_cast<std::uint32_t>(count);
  }
  bool fits(std::int64_t interval, int& placements);
  void keep();
  void change(Shape& shape);
  double excess_of(const Shape& shape);
  void place_all(const Shape& shape);
  std::int64_t place(const Shape& shape, std::size_t pass, std::int64_t ready);
  void count(std::size_t device, std::int64_t time, std::int64_t amount);
  double memory_excess();

  DispatchTask task_;
  int copies_;
  std::vector<std::int64_t> durations_;  ///< by micro-batch, pass and stage
  std::vector<std::size_t> devices_;     ///< the same
  std::vector<std::int64_t> lags_;       ///< by position on the route, to the next one
  std::int64_t interval_ = 0;
  Shape shape_;  ///< the shape of the last pattern
  std::vector<std::int64_t> starts_;
  bool is_free_of_conflicts_ = false;
  std::optional<PeriodicPattern> found_;
  std::uint32_t random_state_ = 1;
  // Scratch, by device.
  std::vector<std::vector<Slot>> taken_;
  std::vector<std::vector<Change>> changes_;
  std::vector<std::int64_t> levels_;
};

/// Start times of all operations of the task if all micro-batches follow the pattern.
std::vector<Ticks> keys_of(const DispatchTask& task, const PeriodicPattern& pattern);

}  // namespace meshwright
