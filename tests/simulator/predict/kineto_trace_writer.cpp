#include "tests/simulator/predict/kineto_trace_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr int kForwardThread = 4100, kAutogradThread = 4177;
constexpr int kComputeStream = 7, kNcclStream = 20;
constexpr std::int64_t kElement = 2;  // bf16

using Dims = std::vector<std::int64_t>;

std::string text_of(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

/// A tensor argument; without dims, a scalar with a value.
struct Argument {
  Dims dims;
  std::string type = "c10::BFloat16";
  std::string value = "";
  bool is_transposed = false;
};

/// One operator that launches kernels, each with a share of the time of the Kernel.
struct Operator {
  std::string name;
  std::vector<Argument> arguments;
  std::string kernel = "void at::native::vectorized_elementwise_kernel<4>()";
  double share = 1;
  int launches = 1;
};

class Writer {
 public:
  explicit Writer(const WrittenJob& job) : job_(job), host_times_(job.cost_model.host_times()) {}

  std::string write(int steps) {
    for (int s = 0; s < steps; ++s) write_step(s);
    return fmt::format(
        R"({{"schemaVersion": 1, "deviceProperties": [{}],
"distributedInfo": {{"backend": "nccl", "rank": 0, "world_size": 64, "pg_config": [{}], "nccl_version": "2.21.5"}},
"cuda_driver_version": 12040, "baseTimeNanoseconds": 1700000000000000000,
"traceEvents": [
{}
], "traceName": "rank0_trace.json"}})",
        devices(), fmt::join(groups_, ", "), fmt::join(events_, ",\n"));
  }

 private:
  std::string devices() const {
    std::vector<std::string> list;
    for (int i = 0; i < job_.gpus_per_node; ++i)
      list.push_back(fmt::format(R"({{"id": {}, "name": "Test GPU"}})", i));
    return fmt::format("{}", fmt::join(list, ", "));
  }

  // ---- events; times in ns since the start of the trace ----

  static std::string time(double ns) { return fmt::format("{:.3f}", std::round(ns) / 1e3); }
  void event(const char* category, const std::string& name, const std::string& place, double start,
             double end, const std::string& arguments) {
    events_.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
        category, name, place, time(start), time(std::round(end) - std::round(start)), arguments));
  }
  std::string cpu(int thread) const { return fmt::format(R"("pid": 4100, "tid": {})", thread); }

  void cpu_operator(const std::string& name, int thread, double start, double end,
                    const std::string& arguments) {
    event("cpu_op", name, cpu(thread), start, end,
          fmt::format(R"("External id": {}, {})", ++external_id_, arguments));
  }
  void call(const std::string& name, int thread, double start, double end, int correlation) {
    event("cuda_runtime", name, cpu(thread), start, end,
          fmt::format(R"("External id": {}, "cbid": 211, "correlation": {})", external_id_,
                      correlation));
  }
  void kernel(const std::string& name, int stream, double start, double end, int correlation,
              const std::string& more = "") {
    event("kernel", name, fmt::format(R"("pid": 0, "tid": {})", stream), start, end,
          fmt::format(R"("External id": {}, "queued": 0, "device": 0, "context": 1, "stream": {}, )"
                      R"("correlation": {}, "grid": [432, 1, 1], "block": [128, 1, 1]{})",
                      external_id_, stream, correlation, more));
  }

  static std::string inputs(const std::vector<Argument>& arguments) {
    std::vector<std::string> dims, types, strides, values;
    for (const Argument& a : arguments) {
      const bool is_list = a.type == "TensorList";
      dims.push_back(is_list ? "[" + text_of(a.dims) + "]" : text_of(a.dims));
      types.push_back("\"" + a.type + "\"");
      values.push_back("\"" + a.value + "\"");
      Dims steps(a.dims.size(), 1);
      for (std::size_t i = a.dims.size(); i-- > 1;) steps[i - 1] = steps[i] * a.dims[i];
      if (a.is_transposed) steps = {1, a.dims[0]};
      strides.push_back(is_list ? "[]" : text_of(steps));
    }
    return fmt::format(
        R"("Input Dims": [{}], "Input type": [{}], "Input Strides": [{}], "Concrete Inputs": [{}])",
        fmt::join(dims, ", "), fmt::join(types, ", "), fmt::join(strides, ", "),
        fmt::join(values, ", "));
  }

  // ---- a step ----

  void write_step(int step) {
    const double begin = origin_;
    host_ = begin;
    calls_ = {begin};
    double end = begin;
    const TaskGraph& graph = job_.graph;
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      if (graph.tasks[t].rank != 0) continue;
      const double task_end = origin_ + 1e-3 * static_cast<double>(job_.times.end[t].value);
      end = std::max(end, task_end);
      if (is_compute(graph.tasks[t].kind)) write_task(t, task_end);
    }
    for (std::size_t t = 0; t < graph.tasks.size(); ++t)
      if (graph.tasks[t].rank == 0 && graph.tasks[t].kind == TaskKind::kCollective)
        write_collective_task(t);
    call("cudaDeviceSynchronize", kForwardThread, host_, end, ++correlation_);
    event("user_annotation", fmt::format("ProfilerStep#{}", step), cpu(kForwardThread), begin, end,
          R"("External id": 1)");
    origin_ = std::round(end);
  }

  void write_task(std::size_t t, double task_end) {
    const Task& task = job_.graph.tasks[t];
    double device = origin_ + 1e-3 * static_cast<double>(job_.times.start[t].value);
    is_update_ = task.kind == TaskKind::kOptimizer;
    if (is_update_) {
      double arrived = host_;
      for (const TaskId d : job_.graph.dependencies_of(TaskId(static_cast<std::int32_t>(t))))
        arrived = std::max(arrived,
                           origin_ + 1e-3 * static_cast<double>(job_.times.end[d.index()].value));
      call("cudaStreamSynchronize", kForwardThread, host_, arrived, ++correlation_);
      host_ = arrived + 1e9 * host_times_.per_step.value;
    }
    for (const WorkPartUse& use : job_.graph.works[task.work.index()].parts)
      for (int i = 0; i < use.count; ++i)
        write_part(job_.graph.parts[static_cast<std::size_t>(use.part)], device);
    // The engine's own arithmetic: the trace is the timeline that was predicted.
    MW_CHECK(std::abs(device - task_end) < 1e-4 * (task_end - origin_) + 1000);
  }

  void write_part(const WorkPart& part, double& device) {
    bool is_backward = false;
    for (const meshwright::Step& step : part.steps)
      if (const auto* k = std::get_if<Kernel>(&step)) {
        is_backward = k->phase != Phase::kForward;
        break;
      }
    host_ +=
        1e9 * (is_backward ? host_times_.per_layer_backward : host_times_.per_layer_forward).value;
    const std::vector<Ticks> times = price_steps(part, job_.cost_model);
    for (std::size_t i = 0; i < part.steps.size(); ++i) {
      const double duration = 1e-3 * static_cast<double>(times[i].value);
      if (const auto* k = std::get_if<Kernel>(&part.steps[i]))
        write_kernel(*k, duration, device);
      else
        write_blocking(std::get<Collective>(part.steps[i]), duration, device);
    }
  }

  void write_kernel(const Kernel& k, double duration, double& device) {
    const double each = 1e9 * host_times_.per_kernel.value;
    const double host = each * job_.cost_model.launches_of(k);
    const std::vector<Operator> operators = operators_of(k);
    int launches = 0;
    for (const Operator& o : operators) launches += o.launches;
    const bool is_backward = k.phase == Phase::kBackwardInput || k.phase == Phase::kBackwardWeight;
    const int thread = is_backward ? kAutogradThread : kForwardThread;
    const double until = host_ + host;
    if (is_backward) {
      const std::string node = node_of(k);
      const auto sequence = sequences_.find(k.source.value);
      const std::string numbers = fmt::format(R"("Sequence number": {}, "Fwd thread id": 1)",
                                              sequence == sequences_.end() ? 0 : sequence->second);
      cpu_operator("autograd::engine::evaluate_function: " + node, thread, host_, until, numbers);
      cpu_operator(node, thread, host_, until, numbers);
    }
    if (is_update_)
      event("user_annotation", "Optimizer.step#AdamW.step", cpu(thread), host_, until,
            R"("External id": 2)");
    for (const Operator& o : operators)
      write_operator(o, thread, host / launches, duration, device, is_backward, k);
    host_ = until;
  }

  void write_operator(const Operator& o, int thread, double host, double duration, double& device,
                      bool is_backward, const Kernel& k) {
    const double until = host_ + host * o.launches;
    std::string arguments = inputs(o.arguments);
    if (!is_backward) {
      sequences_[k.source.value] = ++sequence_;
      arguments += fmt::format(R"(, "Sequence number": {}, "Fwd thread id": 0)", sequence_);
    }
    cpu_operator(o.name, thread, host_, until, arguments);
    for (int i = 0; i < o.launches; ++i) {
      call("cudaLaunchKernel", thread, host_ + 0.5 * host, host_ + host, ++correlation_);
      host_ += host;
      calls_.push_back(host_);
      const double start = std::max(device, host_);
      device = start + duration * o.share / o.launches;
      kernel(o.kernel, kComputeStream, start, device, correlation_);
    }
  }

  // ---- communication ----

  void write_blocking(const Collective& c, double duration, double& device) {
    const double host = 1e9 * host_times_.per_collective.value;
    cpu_operator("record_param_comms", kForwardThread, host_, host_ + host, R"("Seq": 1)");
    call("cudaLaunchKernelExC", kForwardThread, host_ + 0.5 * host, host_ + host, ++correlation_);
    host_ += host;
    calls_.push_back(host_);
    const double start = std::max(device, host_);
    device = start + duration;
    write_nccl(c, start, device);
  }

  /// Launched in no time together with the last kernel before it.
  void write_collective_task(std::size_t t) {
    const double start = origin_ + 1e-3 * static_cast<double>(job_.times.start[t].value);
    const double end = origin_ + 1e-3 * static_cast<double>(job_.times.end[t].value);
    const auto after = std::upper_bound(calls_.begin(), calls_.end(), start);
    const double launched = after == calls_.begin() ? origin_ : *(after - 1);
    call("cudaLaunchKernelExC", kForwardThread, launched, launched, ++correlation_);
    write_nccl(job_.graph.works[job_.graph.tasks[t].work.index()].collective, start, end);
  }

  void write_nccl(const Collective& c, double start, double end) {
    const bool is_data = c.axis == Axis::kData;
    const std::int64_t elements = c.bytes.value / (is_data ? 4 : kElement);
    const bool gathers = c.kind == CollectiveKind::kAllGather;
    const bool scatters = c.kind == CollectiveKind::kReduceScatter;
    const char* name = gathers    ? "_allgather_base"
                       : scatters ? "_reduce_scatter_base"
                                  : "allreduce";
    const GroupShape& g = c.group;
    // A shard is rounded up, as PyTorch pads it.
    const std::int64_t shard = (elements + g.ranks - 1) / g.ranks;
    kernel(fmt::format("ncclDevKernel_{}_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                       gathers    ? "AllGather"
                       : scatters ? "ReduceScatter_Sum_bf16"
                                  : "AllReduce_Sum_f32"),
           kNcclStream, start, end, correlation_,
           fmt::format(R"(, "Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, )"
                       R"("Group size": {}, "dtype": "{}", "In split size": "[]", )"
                       R"("Out split size": "[]", "Process Group Name": "{}", )"
                       R"("Process Group Description": "default_pg", )"
                       R"("Process Group Ranks": "[0, 1, ...]", "Rank": 0)",
                       name, gathers ? shard : elements, scatters ? shard : elements, g.ranks,
                       is_data ? "Float" : "BFloat16", group_of(g)));
  }

  std::string group_of(const GroupShape& g) {
    const auto key = std::pair(g.ranks, g.nodes);
    const auto [at, is_new] = group_names_.try_emplace(key, std::to_string(group_names_.size()));
    if (is_new) {
      const int on_node = g.ranks / g.nodes;
      const int stride = g.nodes == 1 ? 1 : job_.gpus_per_node / on_node;
      Dims ranks;
      for (int n = 0; n < g.nodes; ++n)
        for (int i = 0; i < on_node; ++i) ranks.push_back(n * job_.gpus_per_node + i * stride);
      groups_.push_back(
          fmt::format(R"({{"pg_name": "{}", "pg_desc": "default_pg", "pg_size": {}, "ranks": {}}})",
                      at->second, g.ranks, text_of(ranks)));
    }
    return at->second;
  }

  // ---- operators of a Kernel ----

  std::string node_of(const Kernel& k) const {
    switch (k.routine) {
      case Routine::kProduct:
        return "MmBackward0";
      case Routine::kBias:
        return "AddmmBackward0";
      case Routine::kAttention:
        return "ScaledDotProductFlashAttentionBackward0";
      default:
        return "FusedBackward0";
    }
  }

  std::int64_t rows() const { return job_.strategy.micro_batch * job_.strategy.sequence_length; }
  /// [rows, width] with that many elements in total.
  Argument activation(std::int64_t elements) const {
    std::int64_t count = rows();
    while (elements % count != 0) ++count;
    return {.dims = {count, elements / count}};
  }

  std::vector<Operator> operators_of(const Kernel& k) const {
    const bool forward = k.phase == Phase::kForward;
    const std::int64_t bytes = k.memory_traffic.value;
    switch (k.routine) {
      case Routine::kProduct:
        return {product(k)};
      case Routine::kAttention:
        return {attention(k)};
      case Routine::kLayerNorm:
      case Routine::kRmsNorm:
        return {norm(k)};
      case Routine::kGelu: {
        const Argument x = activation(bytes / (kElement * (forward ? 2 : 3)));
        if (forward) return {{"aten::gelu", {x}}};
        return {{"aten::gelu_backward", {x, x}}};
      }
      case Routine::kSwiGlu: {
        const Argument x = activation(bytes / (kElement * (forward ? 3 : 5)));
        if (forward)
          return {{.name = "aten::silu", .arguments = {x}, .share = 0.4},
                  {.name = "aten::mul", .arguments = {x, x}, .share = 0.6}};
        return {{.name = "aten::mul", .arguments = {x, x}, .share = 0.6, .launches = 2},
                {.name = "aten::silu_backward", .arguments = {x, x}, .share = 0.4}};
      }
      case Routine::kResidual: {
        const Argument x = activation(job_.hidden * local_rows());
        return {{"aten::add", {x, x, {.dims = {}, .type = "Scalar", .value = "1"}}}};
      }
      case Routine::kRotary:
        return rotary(k);
      case Routine::kBias:
        return {{"aten::sum", {activation(bytes / kElement)}}};
      case Routine::kEmbedding: {
        if (!forward)
          return {{"aten::embedding_dense_backward", {activation(bytes / (kElement + 8))}}};
        const std::int64_t looked_up = bytes / (2 * kElement * job_.hidden);
        return {{"aten::embedding",
                 {{.dims = {32000, job_.hidden}}, {.dims = {looked_up}, .type = "long int"}}}};
      }
      case Routine::kCrossEntropy:
        return loss(k);
      case Routine::kUpdate:
        return {
            {.name = "aten::_fused_adamw_",
             .arguments = {{.dims = {k.m}, .type = "TensorList"},
                           {.dims = {k.m}, .type = "TensorList"}},
             .kernel = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<>()"}};
      default:
        MW_CHECK(false);
    }
    return {};
  }
  std::int64_t local_rows() const {
    return job_.strategy.sequence_parallel ? rows() / job_.strategy.degrees.tensor : rows();
  }

  /// PyTorch multiplies the transposed gradient of the output with the input.
  static Operator product(const Kernel& k) {
    const char* name = "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT";
    if (k.phase == Phase::kBackwardWeight)
      return {
          "aten::mm", {{.dims = {k.n, k.k}, .is_transposed = true}, {.dims = {k.k, k.m}}}, name};
    return {"aten::mm", {{.dims = {k.m, k.k}}, {.dims = {k.k, k.n}}}, name};
  }

  Argument heads(std::int64_t count, std::int64_t length, std::int64_t size) const {
    return {.dims = {job_.strategy.micro_batch, length, count, size}};
  }
  std::int64_t local_key_heads() const {
    const int tensor = job_.strategy.degrees.tensor;
    return (job_.key_heads + tensor - 1) / tensor;
  }

  Operator attention(const Kernel& k) const {
    const Argument q = heads(k.batch / job_.strategy.micro_batch, k.m, k.k);
    const Argument kv = heads(local_key_heads(), k.n, k.k);
    const Argument none{.dims = {}, .type = ""};
    const auto scalar = [](const char* value) {
      return Argument{.dims = {}, .type = "Scalar", .value = value};
    };
    const char* causal = k.causal ? "True" : "False";
    if (k.phase == Phase::kForward)
      return {"aten::_flash_attention_forward",
              {q, kv, kv, none, none, scalar("4096"), scalar("4096"), scalar("0."), scalar(causal),
               scalar("False")},
              "void pytorch_flash::flash_fwd_kernel<>()"};
    // Three kernels: row sums, gradients, conversion of dQ.
    return {.name = "aten::_flash_attention_backward",
            .arguments = {q, q, kv, kv, q, none, none, none, scalar("4096"), scalar("4096"),
                          scalar("0."), scalar(causal)},
            .kernel = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<>()",
            .launches = 3};
  }

  Operator norm(const Kernel& k) const {
    const bool forward = k.phase == Phase::kForward;
    const Argument x = activation(k.memory_traffic.value / (kElement * (forward ? 2 : 3)));
    const std::string kind =
        k.routine == Routine::kRmsNorm ? "aten::_fused_rms_norm" : "aten::native_layer_norm";
    return {kind + (forward ? "" : "_backward"), {x, x}, "void vectorized_layer_norm_kernel<>()"};
  }

  std::vector<Operator> rotary(const Kernel& k) const {
    const std::int64_t size = 128;
    const std::int64_t elements = k.memory_traffic.value / (2 * kElement);
    const std::int64_t key_elements = rows() * local_key_heads() * size;
    const std::int64_t query_heads = (elements - key_elements) / (rows() * size);
    const double share = static_cast<double>(key_elements) / static_cast<double>(elements);
    const std::int64_t length = job_.strategy.sequence_length;
    return {
        {.name = "aten::mul", .arguments = {heads(query_heads, length, size)}, .share = 1 - share},
        {.name = "aten::mul",
         .arguments = {heads(local_key_heads(), length, size)},
         .share = share}};
  }

  std::vector<Operator> loss(const Kernel& k) const {
    const Argument logits = activation(k.memory_traffic.value / (kElement + 4));
    if (k.phase != Phase::kForward) return {{"aten::_log_softmax_backward_data", {logits, logits}}};
    return {{.name = "aten::to", .arguments = {logits}, .share = 0.3},
            {.name = "aten::_log_softmax", .arguments = {logits}, .share = 0.6},
            {.name = "aten::nll_loss_forward", .arguments = {logits}, .share = 0.1}};
  }

  const WrittenJob& job_;
  HostTimes host_times_;
  std::vector<std::string> events_, groups_;
  std::map<std::pair<int, int>, std::string> group_names_;
  std::map<std::int32_t, int> sequences_;  ///< by operator
  std::vector<double> calls_;              ///< ends of the launches of this step
  double origin_ = 0, host_ = 0;           ///< ns
  int external_id_ = 10, correlation_ = 1000, sequence_ = 500;
  bool is_update_ = false;
};

}  // namespace

std::string kineto_trace_of(const WrittenJob& job, int steps) { return Writer(job).write(steps); }

}  // namespace meshwright
