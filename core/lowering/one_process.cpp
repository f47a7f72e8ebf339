// torch.nn.DataParallel: one process drives all devices of a node. Every forward call copies the
// model from device 0 to all others, scatters the inputs, and gathers the outputs on device 0,
// which computes the loss of the whole micro-batch; the backward pass scatters the outputs'
// gradients and sums the parameter gradients on device 0. Only device 0 holds optimizer state and
// updates parameters.
//
// Two classes of ranks: device 0, and all others. Unlike with ordinary collectives, the link of
// device 0 carries all traffic, and the other devices wait while device 0 computes the loss.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/lowering/memory.hpp"
#include "core/lowering/passes.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kTokenBytes = 8;  ///< inputs are int64 token IDs

class OneProcess {
 public:
  explicit OneProcess(LoweringContext& context)
      : context_(context),
        strategy_(context.strategy),
        model_(context.model),
        devices_(context.strategy.degrees.data),
        parameters_(context.parameters.front().local.dense +
                    context.parameters.front().local.expert) {
    graph().ranks.clear();
    add_ranks(context.options.ranks == RankSet::kAll);
    make_works();
    make_exchanges();
  }

  void run() {
    for (std::int64_t m = 0; m < microbatch_count(strategy_); ++m) append_microbatch(m);
    Task task;
    task.work =
        append_work(graph(), optimizer_work(context_, strategy_, PipelineRankId(0), graph().parts));
    task.microbatch = -1;
    task.stage = -1;
    task.kind = TaskKind::kOptimizer;
    append_task(graph(), task, {&last_.front(), 1});
  }

 private:
  TaskGraph& graph() { return context_.graph(); }

  void add_ranks(bool all) {
    const int count = all ? devices_ : 2;
    for (int i = 0; i < count; ++i) {
      RankInfo info;
      info.rank = RankId(i);
      info.coordinate.data = i;
      info.device = DeviceId(i);
      info.multiplicity = i == 0 || all ? 1 : devices_ - 1;
      info.resident = context_.resident.front();
      if (i > 0) info.resident[MemoryClass::kOptimizer] = Bytes(0);
      graph().ranks.push_back(info);
    }
    last_.assign(graph().ranks.size(), TaskId(-1));
  }

  // ---- works ----

  bool is_loss(const Step& step) const {
    const auto* kernel = std::get_if<Kernel>(&step);
    return kernel != nullptr && kernel->source.value >= 0 &&
           std::holds_alternative<CrossEntropy>(model_.operators[kernel->source.index()].shape);
  }

  /// Splits the passes into those without the loss, and the loss over the outputs of all devices.
  void make_works() {
    const StageWorks& whole = context_.stages.front();
    const std::vector<Work> stage_works = std::exchange(graph().works, {});
    Work loss;
    loss.kind = TaskKind::kForward;
    forward_ = append_work(graph(), without_loss(stage_works[whole.forward.index()], loss));
    backward_ = append_work(graph(), without_loss(stage_works[whole.backward.index()], loss));
    for (const Layer& layer : model_.layers) {
      if (layer.kind != LayerKind::kHead) continue;
      const LogitBytes bytes =
          logit_bytes(model_, LayerId(model_.layers.size() - 1), shard_shape_of(strategy_));
      outputs_ = bytes.gradient;  // in the stored type
      // Gathered outputs, their fp32 copy, and their gradient.
      loss.transient[MemoryClass::kLogits] =
          (bytes.gradient * 2 + bytes.values) * std::int64_t{devices_};
    }
    own_outputs(forward_, backward_);
    if (!loss.parts.empty()) loss_ = append_work(graph(), std::move(loss));
  }

  /// A device holds its outputs from forward to backward, and then their gradient.
  void own_outputs(WorkId forward, WorkId backward) {
    constexpr MemoryClass kLogits = MemoryClass::kLogits;
    Work& f = graph().works[forward.index()];
    Work& b = graph().works[backward.index()];
    f.acquired[kLogits] = outputs_;
    f.transient[kLogits] = Bytes(0);
    b.released[kLogits] = outputs_;
    b.transient[kLogits] = outputs_;
  }

  /// A copy of the work without the kernels of the loss, which are moved to `loss` for the tokens
  /// of all devices.
  Work without_loss(Work work, Work& loss) {
    if (work.program >= 0) split_program(work, loss);
    for (WorkPartUse& use : work.parts) {
      const WorkPart& part = graph().parts[static_cast<std::size_t>(use.part)];
      if (!has_loss(part)) continue;
      WorkPart kept, taken;
      kept.name = part.name + " without loss";
      taken.name = part.name + " loss";
      kept.recompute = part.recompute;
      for (const Step& step : part.steps)
        if (is_loss(step))
          taken.steps.emplace_back(times(std::get<Kernel>(step), devices_));
        else
          kept.steps.push_back(step);
      loss.parts.push_back({append_part(std::move(taken)), 1});
      use.part = append_part(std::move(kept));
    }
    return work;
  }

  bool has_loss(const WorkPart& part) const {
    return std::ranges::any_of(part.steps, [&](const Step& step) { return is_loss(step); });
  }

  /// The steps of the loss move to the program of `loss`. Comes before without_loss() appends the
  /// halves of the part: first the loss, then the other steps.
  void split_program(Work& work, Work& loss) {
    if (loss.program < 0) {
      loss.program = static_cast<std::int32_t>(graph().programs.size());
      graph().programs.push_back({.steps = {},
                                  .buffers = {},
                                  .lowest_layer = LayerId(model_.layers.size() - 1),
                                  .begins_pass = false,
                                  .ends_pass = false,
                                  .of_gathered_outputs = true});
    }
    WorkProgram& taken = graph().programs[static_cast<std::size_t>(loss.program)];
    const WorkProgram& whole = graph().programs[static_cast<std::size_t>(work.program)];
    WorkProgram kept = whole;
    kept.steps.clear();
    kept.buffers.clear();
    auto event = whole.buffers.begin();
    const auto take_events = [&](std::size_t step, WorkProgram& to) {
      for (; event != whole.buffers.end() && event->step <= static_cast<int>(step); ++event) {
        WorkProgram& owner = event->action == BufferAction::kRelease ? kept : to;
        owner.buffers.push_back(*event);
        owner.buffers.back().step = static_cast<std::int32_t>(owner.steps.size());
      }
    };
    const auto loss_part = static_cast<std::int32_t>(graph().parts.size());
    std::int32_t loss_steps = 0, other_steps = 0;  // of the part, so far
    for (std::size_t i = 0; i < whole.steps.size(); ++i) {
      ProgramStep step = whole.steps[i];
      const WorkPart& part = graph().parts[static_cast<std::size_t>(step.part)];
      if (step.step == 0) loss_steps = other_steps = 0;
      const bool is_taken = is_loss(part.steps[static_cast<std::size_t>(step.step)]);
      take_events(i, is_taken ? taken : kept);
      if (has_loss(part)) {
        step.part = is_taken ? loss_part : loss_part + 1;
        step.step = is_taken ? loss_steps++ : other_steps++;
      }
      (is_taken ? taken : kept).steps.push_back(step);
    }
    take_events(whole.steps.size(), kept);
    work.program = static_cast<std::int32_t>(graph().programs.size());
    graph().programs.push_back(std::move(kept));
  }

  std::int32_t append_part(WorkPart part) {
    graph().parts.push_back(std::move(part));
    return static_cast<std::int32_t>(graph().parts.size() - 1);
  }

  static Kernel times(Kernel kernel, int count) {
    kernel.batch *= count;
    kernel.flops = kernel.flops * static_cast<double>(count);
    kernel.memory_traffic = kernel.memory_traffic * std::int64_t{count};
    return kernel;
  }

  // ---- exchanges ----

  void make_exchanges() {
    const std::int64_t tokens = strategy_.micro_batch * strategy_.sequence_length;
    const std::int64_t all = devices_;
    replicate_ = append_exchange(CollectiveKind::kBroadcast,
                                 stored_element(strategy_.dtype) * parameters_, true);
    scatter_inputs_ =
        append_exchange(CollectiveKind::kScatter, Bytes(all * tokens * kTokenBytes), false);
    gather_outputs_ = append_exchange(CollectiveKind::kGather, outputs_ * all, false);
    scatter_gradients_ = append_exchange(CollectiveKind::kScatter, outputs_ * all, false);
    reduce_ = append_exchange(CollectiveKind::kReduce,
                              Bytes(gradient_bytes(strategy_) * parameters_), true);
  }

  WorkId append_exchange(CollectiveKind kind, Bytes bytes, bool of_parameters) {
    Collective collective;
    collective.kind = kind;
    collective.bytes = bytes;
    collective.group = context_.groups.dense_data;
    if (of_parameters)
      collective.parameters = {.part = 0, .expert = false, .first = 0, .count = parameters_};
    return append_collective_work(graph(), collective);
  }

  // ---- tasks ----

  Task task_of(std::int64_t microbatch, std::size_t rank, WorkId work) const {
    Task task;
    task.work = work;
    task.rank = static_cast<std::int32_t>(rank);
    task.microbatch = static_cast<std::int32_t>(microbatch);
    return task;
  }

  void exchange(std::int64_t microbatch, WorkId work) {
    open_collective(context_.folded, {});
    std::vector<TaskId> made;
    for (std::size_t r = 0; r < last_.size(); ++r) {
      Task task = task_of(microbatch, r, work);
      task.stream = Stream::kData;
      made.push_back(append_member(context_.folded, task,
                                   {&last_[r], last_[r].value < 0 ? std::size_t{0} : 1}));
    }
    last_ = std::move(made);
  }

  void compute(std::int64_t microbatch, WorkId work, TaskKind kind, std::size_t ranks) {
    for (std::size_t r = 0; r < ranks; ++r) {
      Task task = task_of(microbatch, r, work);
      task.kind = kind;
      last_[r] = append_task(graph(), task, {&last_[r], 1});
    }
  }

  void append_microbatch(std::int64_t m) {
    exchange(m, replicate_);
    exchange(m, scatter_inputs_);
    compute(m, forward_, TaskKind::kForward, last_.size());
    exchange(m, gather_outputs_);
    if (loss_) compute(m, *loss_, TaskKind::kForward, 1);
    exchange(m, scatter_gradients_);
    compute(m, backward_, TaskKind::kBackward, last_.size());
    exchange(m, reduce_);
  }

  LoweringContext& context_;
  const Strategy& strategy_;
  const ModelGraph& model_;
  int devices_;
  std::int64_t parameters_;
  Bytes outputs_;  ///< of one device, in the stored type
  WorkId forward_, backward_;
  std::optional<WorkId> loss_;
  WorkId replicate_, scatter_inputs_, gather_outputs_, scatter_gradients_, reduce_;
  std::vector<TaskId> last_;  ///< by rank
};

}  // namespace

void run_in_one_process(LoweringContext& context) {
  if (context.strategy.data_parallelism.kind == DataParallelKind::kOneProcess)
    OneProcess(context).run();
}

}  // namespace meshwright
