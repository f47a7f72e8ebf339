#include "executor/runs/gather_reports.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/plan/weight_versions.hpp"
#include "executor/transport/wire.hpp"

namespace meshwright {

GatheredReports::GatheredReports(const TrainingRequest& request)
    : request_(request),
      ranks_(request.graph.ranks.size()),
      covers_all_steps_(updates_without_flush(request.plan.strategy)) {
  run_.peak_memory.resize(ranks_);
  if (covers_all_steps_) all_steps_ = no_times();
}

void GatheredReports::take(RankId rank, std::span<const std::byte> bytes) {
  const RunReport report = run_report_from(bytes);
  if (const auto* step = std::get_if<StepReport>(&report)) return take(rank, *step);
  const auto& end = std::get<EndReport>(report);
  run_.peak_memory[rank.index()] = end.peak_memory;
  if (end.validation_loss) run_.validation_loss = end.validation_loss;
  for (const ParameterValues& values : end.parameters) take(values);
}

TrainingRun GatheredReports::finish(std::optional<RankFailure> failure) {
  run_.failure = std::move(failure);
  if (!covers_all_steps_) {
    if (!underway_.empty()) run_.unfinished = std::move(underway_.front().step);
  } else if (static_cast<int>(run_.steps.size()) == request_.steps) {
    run_.steps.back().times = std::move(all_steps_.times);
  } else {
    run_.unfinished = std::move(all_steps_);
  }
  return std::move(run_);
}

UnfinishedStep GatheredReports::no_times() const {
  const std::size_t tasks = request_.graph.tasks.size();
  UnfinishedStep made;
  made.times.start.resize(tasks);
  made.times.end.resize(tasks);
  made.is_done.resize(tasks);
  return made;
}

/// Ranks are rarely more than a step apart, but any distance is possible.
GatheredReports::StepUnderway& GatheredReports::underway(int step) {
  while (static_cast<int>(run_.steps.size() + underway_.size()) <= step) {
    StepUnderway& added = underway_.emplace_back();
    added.losses.resize(ranks_);
    if (!covers_all_steps_) added.step = no_times();
  }
  return underway_[static_cast<std::size_t>(step) - run_.steps.size()];
}

void GatheredReports::take(RankId rank, const StepReport& report) {
  // Reports of other processes are untrusted.
  const auto is_task = [&](const TaskSpan& span) {
    return span.task.value >= 0 && span.task.value < std::ssize(request_.graph.tasks);
  };
  if (report.step < std::ssize(run_.steps) || report.step >= request_.steps ||
      !std::ranges::all_of(report.spans, is_task))
    throw InvalidFrame();
  StepUnderway& step = underway(report.step);
  UnfinishedStep& spans = covers_all_steps_ ? all_steps_ : step.step;
  for (const TaskSpan& span : report.spans) {
    spans.times.start[span.task.index()] = span.start;
    spans.times.end[span.task.index()] = span.end;
    spans.is_done[span.task.index()] = true;
    step.end = std::max(step.end, span.end);
  }
  step.losses[rank.index()] = report.loss;
  if (report.gradient_norm) step.gradient_norm = report.gradient_norm;
  if (report.validation_loss) step.validation_loss = report.validation_loss;
  step.peak_memory = std::max(step.peak_memory, report.peak_memory);
  step.ranks += report.is_whole ? 1 : 0;
  if (step.ranks < ranks_) return;
  const Ticks begin = covers_all_steps_ ? std::exchange(end_of_last_, step.end) : Ticks();
  run_.steps.push_back({.loss = covers_all_steps_
                                    ? std::accumulate(step.losses.begin(), step.losses.end(), 0.0)
                                    : step.losses.front(),
                        .gradient_norm = step.gradient_norm,
                        .validation_loss = step.validation_loss,
                        .learning_rate = learning_rate_of(report.step),
                        .peak_memory = step.peak_memory,
                        .times = std::move(step.step.times),
                        .duration = step.end - begin});
  underway_.erase(underway_.begin());
  if (request_.progress) request_.progress(report.step, run_.steps.back());
  if (!covers_all_steps_ && !request_.keep_all_times) median_times_.thin(run_.steps);
}

float GatheredReports::learning_rate_of(int step) const {
  const TrainingOptions& options = request_.options;
  return learning_rate_at(options.learning_rate, options.rate_schedule,
                          request_.checkpoints.first_step() + step);
}

void GatheredReports::take(const ParameterValues& values) {
  const std::vector<Tensor>& tensors = request_.model.tensors;
  if (values.tensor.value < 0 || values.tensor.value >= std::ssize(tensors)) throw InvalidFrame();
  const Tensor& tensor = tensors[values.tensor.index()];
  const auto* shape = std::get_if<ParameterTensor>(&tensor.shape);
  if (shape == nullptr) throw InvalidFrame();
  const ParameterTensor& whole = *shape;
  std::vector<float>& all = run_.parameters[tensor.name];
  all.resize(static_cast<std::size_t>(std::accumulate(whole.shape.begin(), whole.shape.end(),
                                                      std::int64_t{1}, std::multiplies<>())));
  const std::int64_t last = std::ssize(all) - std::ssize(values.values);
  if (values.first < 0 || values.first > last) throw InvalidFrame();
  std::copy(values.values.begin(), values.values.end(), all.begin() + values.first);
}

}  // namespace meshwright
