/// Lower bounds of the time of layouts before their layers are priced. Most layouts of a mixture of
/// experts differ only in how the experts are sharded, so the operators outside the experts and
/// those of the experts are priced apart, once for all layouts in which they are alike.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "core/base/units.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "planner/search/search_job.hpp"
#include "planner/search/shared_cache.hpp"
#include "planner/search/space.hpp"

namespace meshwright {

/// A strategy with this layout and recomputation, and the default of every other choice that is not
/// fixed: layers do not depend on it.
Strategy strategy_of_layers(const SearchJob& job, const Layout& layout,
                            const Recompute& recompute = {});

/// Forward plus backward of one micro-batch: all layers, and all but the embedding and the head.
struct ModelTimes {
  Ticks all, blocks;
  friend bool operator==(const ModelTimes&, const ModelTimes&) = default;
};

/// On homogeneous clusters.
class LayoutBounds {
 public:
  explicit LayoutBounds(const SearchJob& job);

  /// At most the times of the priced layers without recomputation. Equal to them but for waits for
  /// the slowest rank and collectives that overlap with another micro-batch, which count as free.
  ModelTimes times_of(const Layout& layout);

 private:
  /// All that the times of a part depend on.
  using Key = std::array<std::int64_t, 16>;
  /// Some of the operators, as a model of their own.
  struct Part {
    explicit Part(ModelGraph of) : model(std::move(of)) {}
    ModelGraph model;
    SharedCache<Key, ModelTimes> times = {};
  };
  ModelTimes price(const ModelGraph& part, const Layout& layout) const;

  const SearchJob& job_;
  const Strategy fixed_;
  Part outside_, experts_;
};

}  // namespace meshwright
