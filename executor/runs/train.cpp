#include "executor/runs/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/plan/weight_versions.hpp"
#include "executor/checkpoint/external_weights.hpp"
#include "executor/launch/shared_flag.hpp"
#include "executor/parameters/owned_parameters.hpp"
#include "executor/runs/gather_reports.hpp"
#include "executor/tasks/compute_slots.hpp"
#include "executor/tasks/device_spans.hpp"
#include "executor/tasks/nccl_groups.hpp"
#include "executor/tasks/replay_actions.hpp"
#include "executor/training/run_report.hpp"
#include "executor/training/training_actions.hpp"
#include "executor/transport/common_clock.hpp"
#include "executor/transport/device_communicator.hpp"
#include "executor/transport/nccl_communicator.hpp"
#include "kernels/device/staged_kernels.hpp"

namespace meshwright {
namespace {

/// One run with all its ranks.
class Training {
 public:
  explicit Training(const TrainingRequest& request)
      : request_(request),
        runnable_(request_.graph, request_.plan, request_.cost_model),
        gathered_(request_) {
    const bool is_real = request.clock != TimelineClock::kReplay;
    for (const Work& work : request.graph.works)  // LoweringOptions::programs
      MW_CHECK(!is_real || !is_pass(work.kind) || work.program >= 0);
    const std::int64_t microbatches = microbatch_count(request.plan.strategy) * request.steps;
    for (const Task& task : request.graph.tasks)
      MW_CHECK(!covers_all_steps_ || task.microbatch < microbatches);
  }

  TrainingRun run() {
    LaunchOptions launch = request_.launch;
    launch.on_report = [this](RankId rank, std::span<const std::byte> bytes) {
      gathered_.take(rank, bytes);
    };
    if (saves_when_interrupted()) launch.finish_step = &finish_step_.get();
    TrainingRun run = gathered_.finish(run_ranks(
        request_.ranks, static_cast<int>(request_.graph.ranks.size()),
        [this](Communicator& c, RankProgress& p) { run_rank(c, p); }, launch));
    if (!run.failure && has_ended_early(run)) {
      run.has_saved_last = true;
      run.failure = RankFailure{
          .kind = FailureKind::kInterruption, .rank = RankId(0), .cause = "interrupted"};
    }
    return run;
  }

 private:
  /// Without a flush, no step has a boundary at which a checkpoint could be written.
  bool saves_when_interrupted() const {
    return !request_.checkpoints.save.empty() && !covers_all_steps_;
  }
  /// Forked ranks cannot set ended_early_ in this process, but it has all their reports.
  bool has_ended_early(const TrainingRun& run) const {
    if (request_.ranks != RankKind::kProcesses) return ended_early_;
    return finish_step_.get() && static_cast<int>(run.steps.size()) < request_.steps;
  }

  void run_rank(Communicator& communicator, RankProgress& progress) const {
    if (request_.ranks == RankKind::kMpi || request_.ranks == RankKind::kJob)
      check_same_run(communicator, request_.settings);
    if (request_.clock == TimelineClock::kReplay) {
      ReplayActions actions(request_.plan.strategy, communicator);
      CommonClock moments(communicator);
      const StepActions all_actions(actions, moments);
      if (covers_all_steps_)
        run_all_steps(
            communicator, progress, all_actions, [](TaskId) {}, [](int) { return StepFigures(); });
      for (int step = 0; step < request_.steps && !covers_all_steps_; ++step)
        run_one_step(
            communicator, progress, all_actions, step, [](TaskId) {}, [] { return StepFigures(); });
      return communicator.report(to_bytes(EndReport()));
    }
    if (request_.device == nullptr) return train_on(communicator, progress, nullptr);
    // Under the virtual clock kernels are timed alone on the device.
    const bool is_virtual = request_.clock == TimelineClock::kVirtual;
    request_.device->select(request_.nccl_device);
    DeviceQueue queue(request_.kernels, *request_.device,
                      is_virtual ? QueueTiming::kEachKernel : QueueTiming::kNone);
    if (request_.nccl == nullptr) {
      DeviceCommunicator on_device(communicator, queue);
      return train_on(on_device, progress, &queue);
    }
    NcclCommunicator by_nccl(communicator, queue, nccl_groups_of(runnable_, request_.plan.strategy),
                             {.table = *request_.nccl,
                              .device = request_.nccl_device,
                              .watchdog_timeout = request_.launch.watchdog_timeout,
                              .must_stop = &progress.must_stop});
    train_on(by_nccl, progress, &queue);
  }

  /// With a queue, tensors are in its memory, and the communicator must support that.
  void train_on(Communicator& communicator, RankProgress& progress, DeviceQueue* queue) const {
    TrainingActions actions(runnable_, request_.plan, request_.model, communicator,
                            queue == nullptr ? request_.kernels : queued_, request_.text,
                            request_.options, progress, queue);
    TimedActions timed(actions, work_time_of(request_.kernels.backend));
    const bool is_thread = request_.ranks == RankKind::kThreads;
    const bool is_timed = is_thread && request_.kernel_times;
    TaskActions& own_actions = is_timed ? static_cast<TaskActions&>(timed) : actions;
    ThrottledActions throttled(own_actions, *compute_slots_, communicator.rank(), progress);
    const bool is_throttled = is_thread && request_.clock == TimelineClock::kVirtual;
    if (is_throttled) compute_slots_->pin(communicator.rank());
    std::optional<DeviceSpans> spans;  // wall clock: the host runs ahead of the device
    if (queue != nullptr && request_.clock == TimelineClock::kWall &&
        request_.links == LinkTime::kReal)
      spans.emplace(own_actions, request_.graph, *queue, request_.recorder, request_.ranges);
    CommonClock moments(communicator);
    StepActions all_actions(own_actions, moments, spans ? &*spans : nullptr);
    if (is_throttled) all_actions.actions = &throttled;
    if (spans) all_actions.actions = &*spans;
    const CheckpointOptions& checkpoints = request_.checkpoints;
    if (checkpoints.resume != nullptr) restore(actions, *checkpoints.resume);
    if (checkpoints.init != nullptr) initialize(actions, *checkpoints.init);
    const auto inject_into = [&](TaskId task) { inject_nan(actions, task); };
    if (covers_all_steps_) {
      run_all_steps(communicator, progress, all_actions, inject_into, [&](int step) {
        actions.settle();
        return StepFigures{share_of_loss(actions, step), std::nullopt, std::nullopt,
                           total(actions.memory().peak())};
      });
      const int last = request_.steps - 1;
      if (checkpoints.saves_after(last, request_.steps)) save(communicator, actions, last);
    }
    Validation validation(runnable_, actions, communicator, progress, request_.validation);
    int steps = covers_all_steps_ ? 0 : request_.steps;
    for (int step = 0; step < steps; ++step) {
      if (step == 1) timed.forget();
      run_one_step(communicator, progress, all_actions, step, inject_into, [&] {
        actions.settle();
        const StepEnd end = end_step(communicator, actions, step);
        if (end.is_last) steps = step + 1;
        StepFigures figures{end.loss, actions.gradient_norm(), std::nullopt,
                            total(actions.memory().peak())};
        const std::int64_t completed = checkpoints.first_step() + step + 1;
        if (request_.validation.follows(completed, step + 1 == steps))
          figures.validation_loss = validation.mean_loss();
        return figures;
      });
      if (checkpoints.saves_after(step, steps)) save(communicator, actions, step);
    }
    if (!covers_all_steps_ && steps < request_.steps) ended_early_ = true;
    if (is_timed) {
      const std::lock_guard lock(*kernel_times_mutex_);
      request_.kernel_times(timed.take());
    }
    EndReport end;
    if (request_.steps == 0) {
      if (request_.validation.text != nullptr) end.validation_loss = validation.mean_loss();
      if (!checkpoints.save.empty()) save(communicator, actions, -1);
    }
    end.peak_memory = actions.memory().peak();
    if (request_.keep_parameters) end.parameters = parameters_of(actions);
    communicator.report(to_bytes(end));
  }

  void save(Communicator& communicator, TrainingActions& actions, int step) const {
    const Strategy& s = request_.plan.strategy;
    Checkpoint about;
    about.step = request_.checkpoints.first_step() + step + 1;
    about.text_position = about.step * s.global_batch * s.sequence_length;
    about.seed = request_.options.seed;
    about.settings = request_.checkpoints.settings;
    const CheckpointOptions& options = request_.checkpoints;
    save_checkpoint(communicator, actions, request_.model, about, options);
    if (options.keep > 0 && communicator.rank() == RankId(0))
      remove_old_checkpoints(options, about.step);
  }

  struct StepActions {
    StepActions(TaskActions& all, CommonClock& common, DeviceSpans* of_device = nullptr)
        : actions(&all), moments(&common), spans(of_device) {}
    TaskActions* actions;
    CommonClock* moments;
    DeviceSpans* spans;  ///< null: the clock has the times of the tasks
  };

  /// What a rank reports of a step, besides times.
  struct StepFigures {
    double loss = 0;
    std::optional<double> gradient_norm, validation_loss;
    Bytes peak_memory;
    void copy_to(StepReport& report) const {
      report.loss = loss;
      report.gradient_norm = gradient_norm;
      report.validation_loss = validation_loss;
      report.peak_memory = peak_memory;
    }
  };

  /// Reports the step, also if it does not complete.
  template <class InjectNan, class Figures>
  void run_one_step(Communicator& communicator, RankProgress& progress, const StepActions& all,
                    int step, InjectNan inject_nan, Figures figures) const {
    TaskActions& actions = *all.actions;
    const auto inject_before = [&](TaskId task) {
      const std::optional<Fault>& fault = request_.fault;
      if (!fault || fault->task != task || fault->step != step) return;
      fault->kind == FaultKind::kNan ? inject_nan(task) : inject(fault->kind);
    };
    StepReport report{.step = step, .spans = {}};
    try {
      actions.begin_step(static_cast<int>(request_.checkpoints.first_step()) + step);
      const RankClock::Moment origin = all.moments->agree();
      RankClock clock(request_.clock, origin, request_.links, &progress.must_stop, &progress.beats);
      if (all.spans != nullptr) all.spans->start(origin);
      clock.measure_by(work_time_of(request_.kernels.backend));
      run_step(runnable_, communicator, actions, clock, progress, report.spans, inject_before);
      figures().copy_to(report);
      if (all.spans != nullptr) all.spans->correct(report.spans);
      report.is_whole = true;
    } catch (...) {
      communicator.report(to_bytes(report));
      throw;
    }
    communicator.report(to_bytes(report));
  }

  /// Flushless schedules: one graph for all steps. A rank reports a step after its last update of
  /// it; tasks of the next step completed by then are in the same report.
  template <class InjectNan, class Figures>
  void run_all_steps(Communicator& communicator, RankProgress& progress, const StepActions& all,
                     InjectNan inject_nan, Figures figures) const {
    TaskActions& actions = *all.actions;
    std::vector<TaskSpan> spans;
    std::size_t reported = 0;
    int step = 0;
    const auto report = [&](bool is_whole) {
      StepReport made{.step = step, .is_whole = is_whole, .spans = {}};
      if (is_whole) figures(step).copy_to(made);
      if (is_whole && all.spans != nullptr) all.spans->correct(spans, reported);
      made.spans.assign(spans.begin() + static_cast<std::ptrdiff_t>(reported), spans.end());
      reported = spans.size();
      step += is_whole ? 1 : 0;
      communicator.report(to_bytes(made));
    };
    const auto before_task = [&](TaskId next) {
      if (ends_step(spans, step)) report(true);
      const std::optional<Fault>& fault = request_.fault;
      if (!fault || fault->task != next) return;  // the task belongs to one step only
      fault->kind == FaultKind::kNan ? inject_nan(next) : inject(fault->kind);
    };
    try {
      actions.begin_step(static_cast<int>(request_.checkpoints.first_step()));
      const RankClock::Moment origin = all.moments->agree();
      RankClock clock(request_.clock, origin, request_.links, &progress.must_stop, &progress.beats);
      if (all.spans != nullptr) all.spans->start(origin);
      clock.measure_by(work_time_of(request_.kernels.backend));
      run_step(runnable_, communicator, actions, clock, progress, spans, before_task);
      MW_CHECK(ends_step(spans, step));
      report(true);
    } catch (...) {
      report(false);
      throw;
    }
  }

  /// Whether the last of these tasks is the last update of the step.
  bool ends_step(const std::vector<TaskSpan>& spans, int step) const {
    if (spans.empty()) return false;
    const Task& last = request_.graph.tasks[spans.back().task.index()];
    return last.kind == TaskKind::kOptimizer &&
           last.microbatch + 1 == (step + 1) * microbatch_count(request_.plan.strategy);
  }

  /// The contribution of this rank's tokens to the mean loss of the step.
  double share_of_loss(const TrainingActions& actions, int step) const {
    const Strategy& s = request_.plan.strategy;
    const double share =
        actions.loss_sum(step) / static_cast<double>(s.global_batch * s.sequence_length);
    if (!std::isfinite(share))
      throw std::runtime_error(fmt::format("the loss of step {} is {}", step, share));
    return share;
  }

  /// What all ranks know after a step.
  struct StepEnd {
    double loss = 0;       ///< mean
    bool is_last = false;  ///< a rank has been told to end the run
  };

  StepEnd end_step(Communicator& communicator, const TrainingActions& actions, int step) const {
    struct Share {
      double loss = 0, tokens = 0, is_last = 0;
    };
    RankGroup all(communicator, all_ranks(communicator.rank_count()), {Channel::kControl, 1});
    std::vector<Share> shares(static_cast<std::size_t>(all.size()));
    shares[static_cast<std::size_t>(all.index())] = {
        .loss = actions.loss_sum(),
        .tokens = static_cast<double>(actions.loss_tokens()),
        .is_last = finish_step_.get() ? 1.0 : 0.0};
    all.all_gather(std::as_writable_bytes(std::span(shares)), sizeof(Share), Ticks());
    Share sum;
    for (const Share& share : shares) {
      sum.loss += share.loss;
      sum.tokens += share.tokens;
      sum.is_last += share.is_last;
    }
    if (!std::isfinite(sum.loss))
      throw std::runtime_error(
          fmt::format("the loss of step {} is {}", step, sum.loss / sum.tokens));
    return {.loss = sum.loss / sum.tokens, .is_last = sum.is_last > 0};
  }

  /// All elements owned by this rank.
  std::vector<ParameterValues> parameters_of(TrainingActions& actions) const {
    std::vector<ParameterValues> parameters;
    for (StageParameters* updated : actions.updated_parameters())
      for (const bool expert : {false, true}) {
        const std::vector<float> own =
            own_values(updated->run(expert), StateKind::kWeights, actions.rank().progress.beats);
        for_each_own_element(request_.model, *updated, expert,
                             [&](TensorId tensor, std::int64_t number, std::size_t place) {
                               add_element(parameters, tensor, number, own[place]);
                             });
      }
    return parameters;
  }

  /// Sets a weight of the task's stage to NaN: in the first linear operator after the stage's
  /// middle.
  void inject_nan(TrainingActions& actions, TaskId task) const {
    const std::int16_t number = request_.graph.tasks[task.index()].stage;
    MW_CHECK(number >= 0);
    RankStage& stage = actions.stages()[static_cast<std::size_t>(number)];
    for (std::size_t l = stage.layers.size() / 2; l < stage.layers.size(); ++l) {
      for (const Operator& op : operators_of(request_.model, stage.layers[l])) {
        if (!std::holds_alternative<Linear>(op.shape)) continue;
        const Matrix weight = stage.parameters->weight(op.parameters.front());
        if (weight.data == nullptr) continue;  // sharded, and not gathered now
        // All bits set is NaN in every floating-point format.
        const std::uint32_t nan_bits = ~std::uint32_t{0};
        actions.rank().copy(weight.data, &nan_bits,
                            static_cast<std::size_t>(bytes_per_element(weight.dtype)));
        return;
      }
    }
  }

  const TrainingRequest request_;
  bool covers_all_steps_ = updates_without_flush(request_.plan.strategy);
  const KernelTable queued_ = queued_kernels(request_.kernels.backend);
  RunnableGraph runnable_;
  GatheredReports gathered_;
  SharedFlag finish_step_;
  mutable std::atomic<bool> ended_early_ = false;
  std::unique_ptr<std::mutex> kernel_times_mutex_ = std::make_unique<std::mutex>();
  std::unique_ptr<ComputeSlots> compute_slots_ =
      std::make_unique<ComputeSlots>(ComputeSlots::default_count());
};

}  // namespace

TrainingRun train(const TrainingRequest& request) {
  auto training = std::make_unique<Training>(request);
  TrainingRun run = training->run();
  // A thread that could not be stopped still uses it.
  if (run.failure && run.failure->is_stuck) static_cast<void>(training.release());
  return run;
}

}  // namespace meshwright
