/// The gradient norm of a step and the factor that clips gradients by it.
#pragma once

#include <optional>

#include "executor/training/finite_checks.hpp"
#include "executor/training/rank_stages.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

class GradientNorm {
 public:
  /// Gradients are clipped to the norm `limit`.
  GradientNorm(RankContext& rank, RankStages& stages, FiniteChecks& checks, float limit);

  void begin_step() {
    is_known_ = false;
    last_.reset();
  }
  /// Whether the clip factor of this step has been set from a norm.
  bool is_known() const { return is_known_; }
  /// The local part of reduce(), which otherwise computes it.
  void prepare() { own_squared_norm_ = squared_norm_of_all(); }
  /// Computes the norm over all stages and the group, and sets the clip factor. Throws if it is not
  /// finite.
  Ticks reduce(RankGroup& group, std::int64_t step, Ticks ready);
  /// The same over the shards of parameter servers.
  Ticks reduce_over_servers(StageParameters& shard, RankGroup& group, std::int64_t step,
                            Ticks ready);
  /// Sets the clip factor by the norm of these gradients alone.
  void clip_by_own(StageParameters& parameters, std::int64_t step);

  /// Of all gradients in this step, before clipping; nullopt if no norm covers all of them, or on
  /// ranks that do not compute it.
  std::optional<double> of_all() const { return last_; }

  void set_clip_factor(float value);
  float* clip_factor() { return clip_factor_.floats().data(); }  ///< in tensor memory

 private:
  std::int64_t ranks_with(const ParameterShard& shard, int chunk_replicas) const;
  double squared_norm(StageParameters& parameters, int chunk_replicas);
  double squared_norm_of_all();
  void add_squared_norm(ParameterRun& run, const Block& range, float* sum);
  void set_clip_factor_from(float squared_norm);
  bool has_norm_of_all() const;
  [[noreturn]] void report_not_finite(RankGroup& group, std::int64_t step);

  RankContext& rank_;
  RankStages& stages_;
  FiniteChecks& checks_;
  float limit_;
  bool covers_own_elements_only_;  ///< each rank's norm is of its own gradients
  OwnedMatrix clip_factor_;        ///< one number
  bool is_known_ = false;
  std::optional<double> last_;
  std::optional<double> own_squared_norm_;  ///< set by prepare()
};

}  // namespace meshwright
