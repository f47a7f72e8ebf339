#include "core/lowering/lowering_context.hpp"

namespace meshwright {

LoweringContext::LoweringContext(const Plan& plan_, const ModelGraph& model_,
                                 const Cluster& cluster_, const LoweringOptions& options_)
    : plan(plan_), strategy(plan_.strategy), model(model_), cluster(cluster_), options(options_) {
  folded.graph.dependency_begin.push_back(0);
}

}  // namespace meshwright
