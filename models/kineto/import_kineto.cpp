// From measured operators to a calibration. Sizes and memory traffic are counted as in
// core/operators/operators.hpp, so that predictions ask for the same kernels.
#include "models/kineto/import_kineto.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/base/check.hpp"
#include "core/base/median.hpp"
#include "models/kineto/kineto_collectives.hpp"
#include "models/kineto/kineto_host.hpp"
#include "models/kineto/kineto_kernels.hpp"
#include "models/kineto/kineto_streams.hpp"
#include "models/kineto/kineto_work.hpp"

namespace meshwright {
namespace {

constexpr double kKinetoNs = 1e-9;
constexpr double kLongestTrace = 1e5;  ///< seconds; beyond, clocks are wrong
constexpr double kMostUpdated = 1e15;  ///< parameters

class CalibrationWriter {
 public:
  CalibrationWriter(const KinetoTrace& trace, const KinetoImportOptions& options)
      : trace_(trace), options_(options), window_(window_of(trace)) {}

  ImportedTrace write() {
    check_window();
    measure_step();
    measure_communication();
    kernels_ = measure_kernels(trace_, window_, communication_);
    check_content();
    dtype_ = dtype_of_products();
    layers_ = count_layers(kernels_).forward;
    add_products_and_attention();
    add_streams();
    add_update();
    add_unshaped();
    measure_slowdown();
    measure_host_times();
    write_provenance();
    describe();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(std::string what, std::string hint) const {
    throw InputError({options_.source, std::move(what), std::move(hint)});
  }
  double steps() const { return window_.steps(); }

  void check_window() const {
    const auto& durations = window_.durations_ns;
    if (durations.empty() || *std::min_element(durations.begin(), durations.end()) <= 0)
      refuse("contains no complete training step",
             "profile at least one whole step, with profiler.step() after each");
    const double seconds = kKinetoNs * static_cast<double>(window_.end_ns - window_.start_ns);
    if (seconds > kLongestTrace)
      refuse(fmt::format("steps span {:.0f} s, expected at most {:.0f} s", seconds, kLongestTrace),
             "check the times in the trace");
  }

  void measure_step() {
    KinetoReport& report = result_.report;
    std::vector<double> times;
    for (const std::int64_t ns : window_.durations_ns)
      times.push_back(static_cast<double>(ns) * kKinetoNs);
    report.steps = window_.steps();
    report.step_time = Seconds(upper_median(times));
    report.shortest_step = Seconds(*std::min_element(times.begin(), times.end()));
    report.longest_step = Seconds(*std::max_element(times.begin(), times.end()));
    report.device = trace_.device;
    const KinetoIdle idle = measure_idle(trace_, window_);
    report.busy = Seconds(idle.busy / steps());
    report.idle_for_host = Seconds(idle.for_host / steps());
    report.idle_other = Seconds(idle.other / steps());
    trainer_.steps = report.steps;
    trainer_.step_time = report.step_time;
  }

  void measure_communication() {
    Intervals nccl, compute;
    for (const KinetoGpuWork& work : trace_.gpu)
      if (window_.contains(work.start_ns))
        (is_communication(trace_, work) ? nccl : compute).emplace_back(work.start_ns, work.end_ns);
    communication_ = merged(nccl);
    const Intervals computing = merged(compute);
    std::int64_t total = 0, beside = 0;
    for (const auto& [start, end] : communication_) {
      total += end - start;
      beside += overlap_with(computing, start, end);
    }
    KinetoReport& report = result_.report;
    if (total > 0) report.overlapped = static_cast<double>(beside) / static_cast<double>(total);
    KinetoCommunication collectives = measure_collectives(trace_, window_, options_);
    report.communication = Seconds(collectives.total / steps());
    report.waiting = Seconds(collectives.waiting / steps());
    result_.calibration.collectives = std::move(collectives.curves);
    report.families = std::move(collectives.families);
    report.notes = std::move(collectives.notes);
  }

  void check_content() const {
    if (kernels_.shapes.empty() && kernels_.others.empty() && kernels_.unshaped.empty())
      refuse("contains no GPU kernels in its steps",
             "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
  }

  Dtype dtype_of_products() const {
    std::map<Dtype, double> seconds;
    for (const MeasuredShape& shape : kernels_.shapes)
      if (shape.routine == Routine::kProduct && shape.size.dtype)
        seconds[*shape.size.dtype] += shape.total();
    const auto most =
        std::max_element(seconds.begin(), seconds.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == seconds.end() ? Dtype::kBf16 : most->first;
  }
  /// fp8 training stores 16-bit activations (stored_element()).
  Dtype stored_dtype() const { return dtype_ == Dtype::kFp8 ? Dtype::kBf16 : dtype_; }
  std::int64_t element() const { return bytes_per_element(stored_dtype()); }

  /// Layers of the model graph that a pass goes through: blocks, embeddings and heads.
  std::int64_t count_parts(KinetoPass pass) const {
    std::int64_t parts = 0;
    bool has_fused = false;
    for (const MeasuredShape& shape : kernels_.shapes)
      has_fused = has_fused || shape.routine == Routine::kAttention;
    for (const MeasuredShape& shape : kernels_.shapes) {
      const bool is_block = shape.routine == (has_fused ? Routine::kAttention : Routine::kSoftmax);
      if (shape.pass == pass && (is_block || shape.routine == Routine::kEmbedding ||
                                 shape.routine == Routine::kCrossEntropy))
        parts += shape.counted;
    }
    return parts;
  }

  // ---- points ----

  struct Row {
    std::int64_t kernels = 0;
    double seconds = 0;
    int shapes = 0;
    std::string note;
  };
  Row& row(const std::string& name) { return rows_[name]; }

  void add_point(const KernelFamily& family, KernelPoint point, double seconds) {
    if (!(seconds > 0 && seconds <= kLongestTrace) || points_ >= kMostKernelPoints) return;
    auto& curves = result_.calibration.kernels;
    auto curve = std::find_if(curves.begin(), curves.end(),
                              [&](const KernelCurve& c) { return c.family == family; });
    if (curve == curves.end())
      curve = curves.insert(curves.end(), KernelCurve{.family = family, .points = {}});
    const bool is_known =
        std::any_of(curve->points.begin(), curve->points.end(), [&](const KernelPoint& p) {
          return std::tuple(p.batch, p.m, p.n, p.k, p.memory_traffic) ==
                 std::tuple(point.batch, point.m, point.n, point.k, point.memory_traffic);
        });
    if (is_known || curve->points.size() >= kMostCurvePoints) return;
    point.time = Seconds(seconds);
    curve->points.push_back(point);
    ++points_;
    ++row(family_name(family)).shapes;
  }

  static std::string family_name(const KernelFamily& family) {
    return fmt::format("{} {}", name_of(family.routine), name_of(family.phase));
  }

  void add_products_and_attention() {
    for (const MeasuredShape& shape : kernels_.shapes) {
      if (shape.kind == KernelKind::kMemoryBound || shape.kind == KernelKind::kOptimizer) continue;
      const Kernel kernel =
          shape.routine == Routine::kProduct ? product_of_shape(shape) : attention_of_shape(shape);
      const KernelFamily family = family_of(kernel);
      Row& sum = row(family_name(family));
      sum.kernels += shape.kernels;
      sum.seconds += shape.total();
      const Typical time = typical(shape.times);
      KernelPoint point = point_of(kernel);
      point.spread = time.spread;
      point.samples = static_cast<int>(shape.times.size());
      add_point(family, point, time.mean);
    }
  }

  Kernel product_of_shape(const MeasuredShape& shape) const {
    const OperatorSize& s = shape.size;
    const bool is_batched = shape.kind == KernelKind::kGemm && s.batch > 1;
    Kernel kernel;
    kernel.kind = shape.kind;
    kernel.dtype = s.dtype.value_or(dtype_);
    kernel.batch = s.batch, kernel.m = s.m, kernel.n = s.n, kernel.k = s.k;
    kernel.phase = shape.pass == KinetoPass::kForward        ? Phase::kForward
                   : shape.is_weight_gradient && !is_batched ? Phase::kBackwardWeight
                                                             : Phase::kBackwardInput;
    const double b = static_cast<double>(s.batch), m = static_cast<double>(s.m);
    kernel.flops = Flops(2 * b * m * static_cast<double>(s.n) * static_cast<double>(s.k));
    const std::int64_t e =
        bytes_per_element(kernel.dtype == Dtype::kFp8 ? Dtype::kBf16 : kernel.dtype);
    const std::int64_t inputs = s.batch * (s.m * s.k + s.k * s.n), output = s.batch * s.m * s.n;
    kernel.memory_traffic =
        Bytes(kernel.phase == Phase::kBackwardWeight ? inputs * e + 2 * output * kFloat32Bytes
                                                     : (inputs + output) * e);
    return kernel;
  }

  Kernel attention_of_shape(const MeasuredShape& shape) const {
    const OperatorSize& s = shape.size;
    const bool forward = shape.pass == KinetoPass::kForward;
    Kernel kernel;
    kernel.kind = KernelKind::kAttention;
    kernel.routine = Routine::kAttention;
    kernel.phase = forward ? Phase::kForward : Phase::kBackwardInput;
    kernel.dtype = s.dtype.value_or(stored_dtype());
    kernel.causal = s.causal;
    kernel.batch = s.batch, kernel.m = s.m, kernel.n = s.n, kernel.k = s.k;
    kernel.value_size = s.value_size;
    const auto key = static_cast<double>(s.k), value = static_cast<double>(s.value_size);
    const double keys = static_cast<double>(s.n) * (s.causal ? 0.5 : 1);
    kernel.flops = Flops(2 * static_cast<double>(s.batch) * static_cast<double>(s.m) * keys *
                         (forward ? key + value : 3 * key + 2 * value));
    const std::int64_t heads = s.batch * s.m * (s.k + s.value_size);
    const std::int64_t keys_values = s.sequences * s.key_heads * s.n * (s.k + s.value_size);
    kernel.memory_traffic =
        Bytes((heads + keys_values) * bytes_per_element(kernel.dtype) * (forward ? 1 : 2));
    return kernel;
  }

  // ---- memory-bound kernels ----

  void add_streams() {
    const KinetoStreams sums = add_up_streams(kernels_);
    for (const auto& [key, stream] : sums.streams) add_stream(key, stream);
    for (const auto& [pass, stream] : sums.unattributed)
      row(fmt::format("elementwise kernels {}", name_of(pass))) = {
          stream.kernels, stream.seconds, 0,
          "not attributed: neither attention nor norms with shapes were found"};
  }

  void add_stream(const KinetoStreamKey& key, const KinetoStream& sum) {
    const auto [routine, pass, elements] = key;
    const KernelFamily family{.kind = KernelKind::kMemoryBound,
                              .routine = routine,
                              .phase = phase_of(routine, pass),
                              .dtype = stored_dtype()};
    Row& totals = row(family_name(family));
    totals.kernels += sum.kernels;
    totals.seconds += sum.seconds;
    if (sum.counted == 0 || sum.times.empty()) {
      totals.note = "operators without their main kernel";
      return;
    }
    KernelPoint point;
    point.memory_traffic = Bytes(traffic_of(routine, pass, elements, element()));
    point.samples = static_cast<int>(std::min<std::int64_t>(sum.counted, 1 << 30));
    point.spread = typical(sum.times).spread;
    add_point(family, point, sum.seconds / static_cast<double>(sum.counted));
    recognized_[static_cast<std::size_t>(pass)] += sum.counted * launches_for(routine, pass);
  }

  // ---- update ----

  void add_update() {
    double seconds = 0, parameters = 0;
    std::int64_t kernels = 0;
    for (const MeasuredShape& shape : kernels_.shapes) {
      if (shape.kind != KernelKind::kOptimizer) continue;
      seconds += shape.total();
      kernels += shape.kernels;
      parameters += static_cast<double>(shape.size.elements) * static_cast<double>(shape.counted);
    }
    for (const OtherKernels& other : kernels_.others)
      if (other.pass == KinetoPass::kUpdate) seconds += other.seconds, kernels += other.kernels;
    if (kernels == 0) return;
    const KernelFamily family{.kind = KernelKind::kOptimizer,
                              .routine = Routine::kUpdate,
                              .phase = Phase::kUpdate,
                              .dtype = stored_dtype()};
    Row& totals = row(family_name(family));
    totals.kernels += kernels;
    totals.seconds += seconds;
    KernelPoint point;
    const double per_step = parameters / steps();
    if (per_step < kMostUpdated) point.m = std::llround(per_step);
    if (point.m == 0) point.m = accumulated_parameters();
    if (point.m == 0) {
      totals.note = "number of parameters not recorded";
      return;
    }
    point.memory_traffic =
        Bytes(traffic_of(Routine::kUpdate, KinetoPass::kUpdate, point.m, element()));
    point.samples = window_.steps();
    add_point(family, point, seconds / steps());
  }

  /// PyTorch does not record lists of more than 30 tensors. Without sharding, the parameters are
  /// those whose gradients one backward pass accumulates; each has one loss.
  std::int64_t accumulated_parameters() const {
    std::int64_t losses = 0;
    for (const MeasuredShape& shape : kernels_.shapes)
      if (shape.routine == Routine::kCrossEntropy && shape.pass == KinetoPass::kForward)
        losses += shape.counted - shape.recomputed;
    for (const CollectiveCurve& curve : result_.calibration.collectives)
      if (curve.kind == CollectiveKind::kReduceScatter) return 0;
    const double parameters = losses == 0 ? 0 : kernels_.accumulated / static_cast<double>(losses);
    return parameters < kMostUpdated ? std::llround(parameters) : 0;
  }

  void add_unshaped() {
    for (const UnshapedKernels& other : kernels_.unshaped) {
      Row& totals = row(fmt::format("{} kernels {}", name_of(other.kind), name_of(other.pass)));
      totals.kernels += other.kernels;
      totals.seconds += other.seconds;
      totals.note = fmt::format("no shapes recorded, e.g. {}", other.example);
    }
    if (kernels_.graph_launches > 0)
      result_.report.notes.push_back(fmt::format(
          "{} kernels per step were launched by CUDA graphs, which hide shapes and host "
          "time: profile one run without them",
          kernels_.graph_launches / window_.steps()));
  }

  // ---- the trainer ----

  void measure_slowdown() {
    double beside = 0, alone = 0;
    for (const MeasuredShape& shape : kernels_.shapes) {
      if (shape.kind != KernelKind::kGemm) continue;
      std::vector<double> with, without;
      for (std::size_t i = 0; i < shape.times.size(); ++i) {
        constexpr double kMostly = 0.5;
        if (shape.overlapping[i] >= kMostly) with.push_back(shape.times[i]);
        if (shape.overlapping[i] == 0) without.push_back(shape.times[i]);
      }
      if (with.empty() || without.empty()) continue;
      const auto calls = static_cast<double>(with.size());
      beside += calls * typical(with).mean;
      alone += calls * typical(without).mean;
    }
    constexpr double kLeast = 1e-3, kMost = 1e3;
    if (alone > 0 && beside > 0) trainer_.slowdown = std::clamp(beside / alone, kLeast, kMost);
  }

  /// Host time beyond the launches of recognized kernels belongs to the layers, because elementwise
  /// kernels and Python in between are not launches that a prediction counts.
  void measure_host_times() {
    const KinetoHost host = measure_host(trace_, window_, kernels_.pass_of_call);
    for (const MeasuredShape& shape : kernels_.shapes)
      if (shape.kind != KernelKind::kMemoryBound && shape.kind != KernelKind::kOptimizer)
        recognized_[static_cast<std::size_t>(shape.pass)] += shape.counted;
    trainer_.host_per_kernel = Seconds(host.per_kernel);
    trainer_.host_per_collective = Seconds(host.per_collective);
    const auto rest = [&](KinetoPass pass) {
      const auto p = static_cast<std::size_t>(pass);
      return host.passes[p] - host.per_kernel * static_cast<double>(recognized_[p]);
    };
    const double forward = rest(KinetoPass::kForward), backward = rest(KinetoPass::kBackward);
    if (layers_ > 0) {
      const auto per_part = [&](double seconds, KinetoPass pass) {
        const auto parts = static_cast<double>(std::max<std::int64_t>(1, count_parts(pass)));
        return Seconds(std::max(0.0, seconds / parts));
      };
      trainer_.host_per_layer_forward = per_part(forward, KinetoPass::kForward);
      trainer_.host_per_layer_backward = per_part(backward, KinetoPass::kBackward);
    } else {
      result_.report.notes.emplace_back(
          "layers were not recognized: host time is attributed to kernels only");
    }
    const double update = host.passes[static_cast<std::size_t>(KinetoPass::kUpdate)];
    trainer_.host_per_step =
        Seconds(std::max(0.0, (host.between_steps + update) / steps() - host.per_kernel));
    result_.report.layers = static_cast<double>(layers_) / steps();
    result_.report.kernel_gap = Seconds(kernels_.gap_seconds);
    result_.calibration.trainer = trainer_;
  }

  void write_provenance() {
    auto& provenance = result_.calibration.provenance;
    provenance["trace"] = options_.source;
    if (!trace_.device.empty()) provenance["device"] = trace_.device;
    for (const auto& [key, value] : trace_.versions) provenance[key] = value;
    if (trace_.rank) provenance["rank"] = fmt::format("{}", *trace_.rank);
    if (trace_.world_size) provenance["world size"] = fmt::format("{}", *trace_.world_size);
    provenance["conditions"] =
        fmt::format("{} steps of a training job under the profiler", window_.steps());
    constexpr std::int64_t kEarliest = 1'000'000'000'000'000'000;  // 2001: the clock is the epoch
    if (window_.start_ns > kEarliest)
      provenance["date"] =
          fmt::format("{:%Y-%m-%d %H:%M} UTC",
                      fmt::gmtime(static_cast<std::time_t>(window_.start_ns / 1'000'000'000)));
  }

  void describe() {
    KinetoReport& report = result_.report;
    for (const auto& [name, totals] : rows_)
      report.families.push_back({.name = name,
                                 .kernels = totals.kernels / window_.steps(),
                                 .time = Seconds(totals.seconds / steps()),
                                 .shapes = totals.shapes,
                                 .note = totals.note});
    for (ImportedFamily& family : report.families)
      family.share = family.time.value / report.step_time.value;
    std::stable_sort(report.families.begin(), report.families.end(),
                     [](const auto& a, const auto& b) { return a.time > b.time; });
    report.defaults = {"pipeline messages", "memory", "shapes that the job does not use"};
    if (result_.calibration.collectives.empty())
      report.defaults.insert(report.defaults.begin(), "all collectives");
    if (trace_.steps.empty())
      report.notes.emplace_back(
          trace_.updates.size() < 2
              ? "no ProfilerStep ranges: the whole trace counts as one step"
              : "no ProfilerStep ranges: steps end with the optimizer's update");
    if (trace_.dropped > 0)
      report.notes.push_back(fmt::format("{} malformed events were ignored", trace_.dropped));
    report.notes.emplace_back(
        "host times include the profiler's own cost per event: compare the step time with one "
        "without it");
    MW_CHECK(check_calibration(result_.calibration, "").empty());
  }

  const KinetoTrace& trace_;
  const KinetoImportOptions& options_;
  KinetoWindow window_;
  Intervals communication_;
  KinetoKernels kernels_;
  Dtype dtype_ = Dtype::kBf16;
  std::int64_t layers_ = 0;                                  ///< attention forwards in all steps
  std::array<std::int64_t, kKinetoPassCount> recognized_{};  ///< launches of Kernels, by pass
  std::map<std::string, Row> rows_;
  std::size_t points_ = 0;
  MeasuredTrainer trainer_;
  ImportedTrace result_;
};

}  // namespace

ImportedTrace import_kineto(const KinetoTrace& trace, const KinetoImportOptions& options) {
  const bool has_kernels =
      std::any_of(trace.gpu.begin(), trace.gpu.end(),
                  [](const KinetoGpuWork& w) { return w.kind == KinetoGpuKind::kKernel; });
  if (!has_kernels)
    throw InputError({options.source, "contains no GPU kernels",
                      "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"});
  return CalibrationWriter(trace, options).write();
}

}  // namespace meshwright
