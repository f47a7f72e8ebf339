#include "core/lowering/units.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/lowering/passes.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

/// Bucket size in elements.
struct BucketSizes {
  std::int64_t first = 1, others = 1;
};

BucketSizes bucket_sizes(const Strategy& strategy, int data_ranks) {
  const GradientBuckets& buckets = strategy.data_parallelism.buckets;
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  const auto elements = [&](std::int64_t bytes) {
    return std::max<std::int64_t>(1, bytes / gradient_bytes(strategy));
  };
  switch (buckets.rule) {
    case BucketRule::kNone:
      return {1, 1};
    case BucketRule::kBytes:
      return {elements(buckets.bytes.value), elements(buckets.bytes.value)};
    case BucketRule::kPyTorch:
      return {elements(1 * kMebibyte), elements(25 * kMebibyte)};
    case BucketRule::kMegatron:
      break;
  }
  constexpr std::int64_t kLeast = 40'000'000, kPerRank = 1'000'000;
  const std::int64_t size = std::max(kLeast, kPerRank * data_ranks);
  return {size, size};
}

/// Builds buckets from parameters in backward order.
class BucketCutter {
 public:
  /// With `whole_layers`, buckets end at layer boundaries. A table is a bucket of its own.
  BucketCutter(const std::vector<std::vector<LocalParameter>>& layers,
               const std::optional<TablePlace>& table, BucketSizes sizes, bool whole_layers)
      : layers_(layers), table_(table), sizes_(sizes), whole_layers_(whole_layers) {}

  /// GradientBucket::unit is the index of the layer that completes the bucket.
  std::vector<GradientBucket> buckets(bool expert) const {
    std::vector<GradientBucket> made;
    GradientBucket open{.expert = expert, .first = count_of(expert), .count = 0, .unit = 0};
    const auto close = [&] {
      if (open.count > 0) made.push_back(open);
      open.count = 0;
      open.is_table = false;
    };
    for (std::size_t layer = layers_.size(); layer-- > 0;) {
      for (std::size_t i = layers_[layer].size(); i-- > 0;) {
        const LocalParameter& parameter = layers_[layer][i];
        if (parameter.expert != expert) continue;
        const bool is_alone = is_table(layer, i);
        if (is_alone) close();
        open.first -= parameter.count;
        open.count += parameter.count;
        open.unit = static_cast<int>(layer);
        open.is_table = is_alone;
        if (is_alone || (!whole_layers_ && is_full(open, made))) close();
      }
      if (is_full(open, made)) close();
    }
    close();
    return made;
  }

 private:
  bool is_table(std::size_t layer, std::size_t parameter) const {
    return table_ && table_->layer == layer && table_->parameter == parameter;
  }
  std::int64_t count_of(bool expert) const {
    std::int64_t count = 0;
    for (const auto& layer : layers_)
      for (const LocalParameter& parameter : layer)
        if (parameter.expert == expert) count += parameter.count;
    return count;
  }
  bool is_full(const GradientBucket& open, const std::vector<GradientBucket>& closed) const {
    return open.count >= (closed.empty() ? sizes_.first : sizes_.others);
  }

  const std::vector<std::vector<LocalParameter>>& layers_;
  const std::optional<TablePlace>& table_;
  BucketSizes sizes_;
  bool whole_layers_;
};

/// The units that start at these layers (the first layer always starts one).
std::vector<ParameterUnit> units_from(const std::vector<std::vector<LocalParameter>>& layers,
                                      const std::vector<bool>& begins) {
  std::vector<ParameterUnit> units;
  LocalParameters before;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (layer == 0 || begins[layer]) {
      if (!units.empty()) before += units.back().parameters;
      units.push_back({.first_layer = static_cast<int>(layer),
                       .layer_count = 0,
                       .before = before,
                       .parameters = {},
                       .works = {},
                       .reads_table = 0});
    }
    ++units.back().layer_count;
    for (const LocalParameter& parameter : layers[layer])
      (parameter.expert ? units.back().parameters.expert : units.back().parameters.dense) +=
          parameter.count;
  }
  return units;
}

int unit_of_layer(const std::vector<ParameterUnit>& units, int layer) {
  for (std::size_t u = 0; u < units.size(); ++u)
    if (layer < units[u].first_layer + units[u].layer_count) return static_cast<int>(u);
  MW_CHECK(!units.empty());
  return static_cast<int>(units.size()) - 1;
}

/// The first parameter of the embedding, or the copy after the head's own parameters.
std::optional<TablePlace> table_among(const LoweringContext& context,
                                      const std::vector<PlacedLayer>& placed,
                                      const std::vector<std::vector<LocalParameter>>& layers,
                                      bool has_copy) {
  if (!context.model.tied_embeddings) return std::nullopt;
  if (has_copy) return TablePlace{layers.size() - 1, layers.back().size() - 1};
  if (placed.front().layer_class == context.model.layers.front().layer_class)
    return TablePlace{0, 0};
  return std::nullopt;
}

PartUnits units_of(const LoweringContext& context, int part) {
  const auto index = static_cast<std::size_t>(part);
  std::vector<std::vector<LocalParameter>> layers;
  for (const PlacedLayer& layer : context.layers[index])
    layers.push_back(context.held(layer).parameter_list);
  const std::int64_t copy = context.parameters[index].tied_copy;
  if (copy > 0) layers.back().push_back({copy, false});
  std::optional<TablePlace> table;
  if (context.strategy.zero >= 2 || shards_two_tables(context))
    table = table_among(context, context.layers[index], layers, copy > 0);
  PartUnits made = cut_into_units(layers, table, context.strategy, context.groups);
  const bool is_last = part + 1 == part_count(context.placement);
  const bool has_it = part == 0 && made.units.size() == 1;
  if (context.model.tied_embeddings && is_last && copy == 0 && !has_it &&
      context.strategy.zero >= 2)
    made.units.back().reads_table =
        local_tied_parameters(context.model, shard_shape_of(context.strategy));
  return made;
}

}  // namespace

bool shards_two_tables(const LoweringContext& context) {
  return context.strategy.zero >= 1 && context.model.tied_embeddings &&
         context.parameters.back().tied_copy > 0;
}

bool reduces_among_replicas(const Strategy& strategy) {
  const DataParallelKind kind = strategy.data_parallelism.kind;
  return kind == DataParallelKind::kCollective || kind == DataParallelKind::kRing;
}

bool has_units(const LoweringContext& context) {
  const auto copies = static_cast<std::int64_t>(context.placement.routes.size());
  return cuts_passes(context.strategy) && reduces_among_replicas(context.strategy) &&
         context.groups.stage_ranks * copies > context.strategy.degrees.tensor;
}

PartUnits cut_into_units(const std::vector<std::vector<LocalParameter>>& layers,
                         const std::optional<TablePlace>& table, const Strategy& strategy,
                         const JobGroups& groups) {
  const bool whole_layers = strategy.zero >= 2;
  const BucketSizes sizes =
      strategy.zero >= 3 ? BucketSizes{} : bucket_sizes(strategy, groups.dense_data.ranks);
  const BucketCutter cutter(layers, table, sizes, whole_layers);
  PartUnits made;
  made.buckets = cutter.buckets(false);
  const std::vector<GradientBucket> expert = cutter.buckets(true);
  made.buckets.insert(made.buckets.end(), expert.begin(), expert.end());
  std::stable_sort(
      made.buckets.begin(), made.buckets.end(),
      [](const GradientBucket& a, const GradientBucket& b) { return a.unit > b.unit; });

  std::vector<bool> begins(
      layers.size(), whole_layers && strategy.data_parallelism.buckets.rule == BucketRule::kNone);
  for (const GradientBucket& bucket : made.buckets)
    begins[static_cast<std::size_t>(bucket.unit)] = true;
  made.units = units_from(layers, begins);
  for (GradientBucket& bucket : made.buckets) bucket.unit = unit_of_layer(made.units, bucket.unit);
  return made;
}

std::int64_t full_bucket_size(const Strategy& strategy, int data_ranks) {
  const BucketSizes sizes = bucket_sizes(strategy, data_ranks);
  return std::max(sizes.first, sizes.others);
}

void cut_units(LoweringContext& context) {
  context.units.resize(context.layers.size());
  if (!has_units(context)) return;
  for (std::size_t part = 0; part < context.units.size(); ++part)
    context.units[part] = units_of(context, static_cast<int>(part));
}

}  // namespace meshwright
