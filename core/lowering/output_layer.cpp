#include "core/lowering/output_layer.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

constexpr double kProportionSteps = 10'000;  ///< resolution of estimated times
constexpr int kStatisticsPerToken = 3;       ///< maximum, sum of exponentials, logit of the target
constexpr std::int32_t kNotAppended = -1;

}  // namespace

int output_barriers_of(const Strategy& strategy) {
  const ScheduleRule* rule = find_schedule_rule(strategy.schedule);
  return rule != nullptr ? rule->output_barriers : 0;
}

Strategy vocabulary_strategy(const Strategy& strategy) {
  Strategy sharded = strategy;
  sharded.degrees.tensor *= strategy.degrees.pipeline;
  return sharded;
}

OutputLayerBytes output_layer_bytes(const ModelGraph& model, const Strategy& strategy) {
  const LayerId head(model.layers.size() - 1);
  const std::span<const Operator> operators = operators_of(model, head);
  const Operator& logits = operators[operators.size() - kOutputOperators];
  return {.input = activation_bytes(activation_of(model, logits.inputs.front()),
                                    shard_shape_of(strategy)),
          .logits = logit_bytes(model, head, shard_shape_of(vocabulary_strategy(strategy)))};
}

Schedule order_by_estimated_times(const LoweringContext& context) {
  const Strategy& strategy = context.strategy;
  const DeviceModel& device = context.device();
  const auto peak = device.peak[static_cast<std::size_t>(strategy.dtype)];
  MW_CHECK(peak.has_value());
  const auto seconds_of = [&](const WorkPart& part) {
    double seconds = 0;
    for (const Step& step : part.steps)
      if (const auto* kernel = std::get_if<Kernel>(&step))
        seconds += std::max((kernel->flops / *peak).value,
                            (kernel->memory_traffic / device.memory_bandwidth).value);
    return seconds;
  };
  const auto seconds_of_work = [&](WorkId id) {
    double seconds = 0;
    for (const WorkPartUse& use : context.graph().works[id.index()].parts)
      seconds += use.count * seconds_of(context.graph().parts[static_cast<std::size_t>(use.part)]);
    return seconds;
  };
  double longest = 0;
  for (const StageWorks& works : context.stages)
    for (const WorkId id : {works.forward, works.backward, works.output_scores})
      longest = std::max(longest, seconds_of_work(id));
  // Only proportions matter, and small numbers cannot overflow.
  const auto time_of = [&](WorkId id) {
    return Ticks(std::llround(kProportionSteps * seconds_of_work(id) / longest));
  };
  StageTimes times;
  for (const StageWorks& works : context.stages) {
    times.forward.push_back(time_of(works.forward));
    times.backward_input.push_back(time_of(works.backward));
    times.backward_weight.emplace_back(0);
    times.output_scores.push_back(time_of(works.output_scores));
    times.output_gradients.push_back(time_of(works.output_gradient));
  }
  ScheduleRequest request = schedule_request_of(strategy);
  request.times = std::move(times);
  return find_schedule_rule(strategy.schedule)->generate(request);
}

class OutputLayerTasks::State {
 public:
  explicit State(LoweringContext& context)
      : folded_(context.folded),
        barriers_(context.schedule.output_barriers),
        devices_(static_cast<std::size_t>(context.placement.devices)) {
    const Schedule& schedule = context.schedule;
    const std::size_t cells = devices_ * static_cast<std::size_t>(schedule.microbatch_count);
    for (std::vector<std::int32_t>* tasks :
         {&inputs_, &scored_, &statistics_, &ended_, &gradients_})
      tasks->assign(cells, kNotAppended);
    const Bytes statistics(local_tokens(shard_shape_of(context.strategy)).gathered *
                           kStatisticsPerToken * kFloat32Bytes);
    const GroupShape group =
        group_shape_of({.count = schedule.placement.devices,
                        .stride = context.groups.pipeline_stride,
                        .job_ranks = schedule.placement.devices * context.groups.stage_ranks,
                        .devices_per_node = context.groups.devices_per_node});
    const auto work = [&](CollectiveKind kind, Bytes bytes) {
      return append_collective_work(
          context.graph(), {.kind = kind, .axis = Axis::kPipeline, .bytes = bytes, .group = group});
    };
    broadcast_ = work(CollectiveKind::kBroadcast, context.output.input);
    first_barrier_ = work(CollectiveKind::kAllReduce,
                          barriers_ == 1 ? statistics + context.output.input : statistics);
    second_barrier_ = work(CollectiveKind::kAllReduce, context.output.input);
  }

  std::int32_t input_of(const Action& action) const {
    return (action.pass == Pass::kOutputScores ? inputs_ : statistics_)[cell_of(action)];
  }
  std::int32_t gradient_of(MicrobatchId microbatch) const {
    const std::size_t last = (microbatch.index() + 1) * devices_ - 1;
    return (barriers_ == 1 ? statistics_ : gradients_)[last];
  }
  std::int32_t barrier_after(const Action& gradient) const { return gradients_[cell_of(gradient)]; }

  void append_after(const Action& action, TaskId done) {
    const std::size_t first = action.microbatch.index() * devices_;
    if (action.pass == Pass::kForward) {
      std::vector<std::int32_t> after(devices_, kNotAppended);
      after.back() = done.value;
      exchange(broadcast_, Stream::kOutputInputs, action.microbatch, after, inputs_);
      return;
    }
    const bool scores = action.pass == Pass::kOutputScores;
    std::vector<std::int32_t>& ended = scores ? scored_ : ended_;
    ended[cell_of(action)] = done.value;
    const std::vector<std::int32_t> after(
        ended.begin() + static_cast<std::ptrdiff_t>(first),
        ended.begin() + static_cast<std::ptrdiff_t>(first + devices_));
    if (std::find(after.begin(), after.end(), kNotAppended) != after.end()) return;
    if (scores)
      exchange(first_barrier_, Stream::kOutputReductions, action.microbatch, after, statistics_);
    else if (barriers_ == 2)
      exchange(second_barrier_, Stream::kOutputReductions, action.microbatch, after, gradients_);
  }

 private:
  std::size_t cell_of(const Action& action) const {
    return action.microbatch.index() * devices_ + action.stage.index();
  }

  /// One member per device, which waits for its task of `after`; stores the members in `made`.
  void exchange(WorkId work, Stream stream, MicrobatchId microbatch,
                const std::vector<std::int32_t>& after, std::vector<std::int32_t>& made) {
    const std::size_t first = microbatch.index() * devices_;
    if (devices_ == 1) {
      made[first] = after.front();
      return;
    }
    open_collective(folded_, {});
    for (std::size_t d = 0; d < devices_; ++d) {
      Task task;
      task.work = work;
      task.rank = static_cast<std::int32_t>(d);
      task.microbatch = microbatch.value;
      task.stage = static_cast<std::int16_t>(d);
      task.stream = stream;
      const TaskId before(after[d]);
      made[first + d] =
          append_member(folded_, task, {&before, before.value < 0 ? std::size_t{0} : 1}).value;
    }
  }

  FoldedGraph& folded_;
  int barriers_;
  std::size_t devices_;
  WorkId broadcast_{-1}, first_barrier_{-1}, second_barrier_{-1};
  // Tasks by micro-batch x device.
  std::vector<std::int32_t> inputs_;               ///< of the broadcast
  std::vector<std::int32_t> scored_, statistics_;  ///< S, and the barrier after it
  std::vector<std::int32_t> ended_, gradients_;    ///< T, and the barrier after it
};

OutputLayerTasks::OutputLayerTasks(LoweringContext& context)
    : state_(std::make_unique<State>(context)) {}
OutputLayerTasks::~OutputLayerTasks() = default;

std::int32_t OutputLayerTasks::input_of(const Action& action) const {
  return state_->input_of(action);
}
std::int32_t OutputLayerTasks::gradient_of(MicrobatchId microbatch) const {
  return state_->gradient_of(microbatch);
}
std::int32_t OutputLayerTasks::barrier_after(const Action& gradient) const {
  return state_->barrier_after(gradient);
}
void OutputLayerTasks::append_after(const Action& action, TaskId done) {
  state_->append_after(action, done);
}

}  // namespace meshwright
