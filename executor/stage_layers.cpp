#include "executor/stage_layers.hpp"

#include "core/check.hpp"
#include "core/lower_passes.hpp"

namespace meshwright {

std::vector<std::vector<LayerId>> layers_of_stages(const Plan& plan, const ModelGraph& model) {
  const Placement placement = placement_of(plan);
  std::vector<std::vector<LayerId>> parts(plan.blocks_per_stage.size());
  std::size_t next = 0;
  const auto is_kind = [&](LayerKind kind) {
    return next < model.layers.size() && model.layers[next].kind == kind;
  };
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (part == 0 && is_kind(LayerKind::kEmbedding)) parts[part].push_back(LayerId(next++));
    for (int block = 0; block < plan.blocks_per_stage[part]; ++block) {
      MW_CHECK(is_kind(LayerKind::kBlock));
      parts[part].push_back(LayerId(next++));
    }
    if (part + 1 == parts.size() && is_kind(LayerKind::kHead))
      parts[part].push_back(LayerId(next++));
  }
  MW_CHECK(next == model.layers.size());
  std::vector<std::vector<LayerId>> stages;
  for (const int part : placement.part_of_stage)
    stages.push_back(parts[static_cast<std::size_t>(part)]);
  return stages;
}

}  // namespace meshwright
