/// The lowering passes; lower.cpp lists them in order. A pass that does not concern the plan
/// returns at once.
#pragma once

#include "core/lowering/lowering_context.hpp"

namespace meshwright {

// ---- what the stages compute and hold, whatever the schedule (lower_stages()) ----
void cut_stages(LoweringContext& context);
void describe_layers(LoweringContext& context);
void shard_output_layer(LoweringContext& context);
void list_parameters(LoweringContext& context);
void cut_units(LoweringContext& context);
void compose_works(LoweringContext& context);
void add_recomputation(LoweringContext& context);
void describe_programs(LoweringContext& context);
void estimate_activations(LoweringContext& context);
void count_model_state(LoweringContext& context);

// ---- the tasks of one pipeline ----
void order_microbatches(LoweringContext& context);
void count_unsharded_gradients(LoweringContext& context);
void add_representatives(LoweringContext& context);
void append_pipeline(LoweringContext& context);

// ---- synchronization of the replicas ----
void run_in_one_process(LoweringContext& context);
void add_parameter_servers(LoweringContext& context);
void reduce_gradients(LoweringContext& context);
void update_parameters(LoweringContext& context);
void gather_parameters(LoweringContext& context);
void share_batch(LoweringContext& context);

void unfold_ranks(LoweringContext& context);

}  // namespace meshwright
