#include "models/kineto/import_kineto.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "models/import/import.hpp"
#include "models/kineto/kineto_operators.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

/// One step of a linear layer y [64, 128] = x [64, 32] W and an all-reduce over 4 GPUs, as PyTorch
/// 2.6 writes it. Times in microseconds.
///
///   host     115 launches mm, 315 dW, 340 dx, 360 NCCL
///   stream 7       200 mm 250        400 dW 440  441 dx 471
///   stream 20                               430 all-reduce 490
constexpr std::string_view kLinear = R"json({
"schemaVersion": 1,
"deviceProperties": [
  {"id": 0, "name": "NVIDIA H100 80GB HBM3"}, {"id": 1, "name": "NVIDIA H100 80GB HBM3"},
  {"id": 2, "name": "NVIDIA H100 80GB HBM3"}, {"id": 3, "name": "NVIDIA H100 80GB HBM3"}],
"distributedInfo": {"backend": "nccl", "rank": 2, "world_size": 4, "pg_config": [
  {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]}],
  "nccl_version": "2.21.5"},
"cuda_driver_version": 12040,
"baseTimeNanoseconds": 1700000000000000000,
"traceEvents": [
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 9, "ts": 0,
 "dur": 1000},
{"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 9, "tid": 9, "ts": 98, "dur": 30,
 "args": {"External id": 1, "Input Dims": [[2, 32, 32], [128, 32], []],
          "Input type": ["c10::BFloat16", "c10::BFloat16", ""], "Sequence number": 7,
          "Fwd thread id": 0}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 100, "dur": 20,
 "args": {"External id": 2, "Input Dims": [[64, 32], [32, 128]],
          "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[32, 1], [1, 32]],
          "Concrete Inputs": ["", ""], "Sequence number": 8, "Fwd thread id": 0, "Ev Idx": 4}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 110,
 "dur": 5, "args": {"External id": 2, "cbid": 211, "correlation": 41}},
{"ph": "X", "cat": "kernel", "name": "nvjet_hsh_64x64_64x10_2x1_v_bz_TNT", "pid": 0, "tid": 7,
 "ts": 200, "dur": 50, "args": {"External id": 2, "device": 0, "stream": 7, "correlation": 41,
                                "grid": [4, 1, 1], "block": [384, 1, 1]}},
{"ph": "s", "id": 41, "pid": 9, "tid": 9, "ts": 110, "cat": "ac2g", "name": "ac2g"},
{"ph": "f", "id": 41, "pid": 0, "tid": 7, "ts": 200, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: MmBackward0",
 "pid": 9, "tid": 12, "ts": 300, "dur": 60,
 "args": {"External id": 3, "Sequence number": 8, "Fwd thread id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "MmBackward0", "pid": 9, "tid": 12, "ts": 301, "dur": 58,
 "args": {"External id": 4, "Input Dims": [[64, 128]], "Input type": ["c10::BFloat16"],
          "Sequence number": 8, "Fwd thread id": 1}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 12, "ts": 305, "dur": 15,
 "args": {"External id": 5, "Input Dims": [[128, 64], [64, 32]],
          "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 12, "ts": 310,
 "dur": 5, "args": {"External id": 5, "correlation": 42}},
{"ph": "X", "cat": "kernel", "name": "nvjet_hsh_64x32_64x16_1x2_h_bz_NTT", "pid": 0, "tid": 7,
 "ts": 400, "dur": 40, "args": {"External id": 5, "stream": 7, "correlation": 42}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 12, "ts": 330, "dur": 15,
 "args": {"External id": 6, "Input Dims": [[64, 128], [128, 32]],
          "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 12, "ts": 335,
 "dur": 5, "args": {"External id": 6, "correlation": 43}},
{"ph": "X", "cat": "kernel", "name": "nvjet_hsh_64x32_64x16_4x1_v_bz_NNT", "pid": 0, "tid": 7,
 "ts": 441, "dur": 30, "args": {"External id": 6, "stream": 7, "correlation": 43}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 9, "tid": 12, "ts": 350,
 "dur": 10, "args": {"External id": 3, "correlation": 44}},
{"ph": "X", "cat": "kernel",
 "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
 "pid": 0, "tid": 20, "ts": 430, "dur": 60,
 "args": {"stream": 20, "correlation": 44, "Collective name": "allreduce", "In msg nelems": 1000,
          "Out msg nelems": 1000, "Group size": 4, "dtype": "Float", "In split size": "[]",
          "Out split size": "[]", "Process Group Name": "0",
          "Process Group Ranks": "[0, 1, 2, 3]"}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 9, "tid": 9,
 "ts": 400, "dur": 95, "args": {"correlation": 45}},
{"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4>()",
 "pid": 0, "tid": 7, "ts": 1200, "dur": 5, "args": {"stream": 7, "correlation": 99}}
], "traceName": "rank2_trace.json"})json";

ImportedTrace imported(std::string_view text, const KinetoImportOptions& options = {}) {
  return import_kineto(read_kineto_trace(text, "k.json"), options);
}

const KernelCurve* curve_of(const Calibration& calibration, Phase phase) {
  for (const KernelCurve& curve : calibration.kernels)
    if (curve.family.phase == phase) return &curve;
  return nullptr;
}

void expect_only_point(const Calibration& calibration, Phase phase, const KernelPoint& expected) {
  const KernelCurve* curve = curve_of(calibration, phase);
  ASSERT_NE(curve, nullptr) << name_of(phase);
  EXPECT_EQ(curve->family.kind, KernelKind::kGemm);
  EXPECT_EQ(curve->family.dtype, Dtype::kBf16);
  ASSERT_EQ(curve->points.size(), 1U);
  const KernelPoint& point = curve->points.front();
  EXPECT_EQ(point.m, expected.m);
  EXPECT_EQ(point.n, expected.n);
  EXPECT_EQ(point.k, expected.k);
  EXPECT_NEAR(point.time.value, expected.time.value, 1e-12);
}

// dx was launched (340) before dW ended (440) and starts 1 us later: every kernel costs 1 us more
// than its duration. The weight's gradient is [in, rows] · [rows, out].
TEST(KinetoImport, MeasuresTheProductsOfALinearLayer) {
  const Calibration calibration = imported(kLinear).calibration;
  EXPECT_EQ(calibration.kernels.size(), 3U);
  expect_only_point(calibration, Phase::kForward,
                    {.m = 64, .n = 128, .k = 32, .time = Seconds(51e-6)});
  expect_only_point(calibration, Phase::kBackwardWeight,
                    {.m = 32, .n = 128, .k = 64, .time = Seconds(41e-6)});
  expect_only_point(calibration, Phase::kBackwardInput,
                    {.m = 64, .n = 32, .k = 128, .time = Seconds(31e-6)});
}

TEST(KinetoImport, CountsBytesOfCollectives) {
  const Calibration calibration = imported(kLinear).calibration;
  ASSERT_EQ(calibration.collectives.size(), 1U);
  const CollectiveCurve& curve = calibration.collectives.front();
  EXPECT_EQ(curve.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(curve.ranks, 4);
  EXPECT_EQ(curve.nodes, 1);  // four GPUs are listed
  ASSERT_EQ(curve.points.size(), 1U);
  EXPECT_EQ(curve.points.front().bytes, Bytes(4000));
  EXPECT_NEAR(curve.points.front().time.value, 60e-6, 1e-12);
}

TEST(KinetoImport, SpreadsGroupsOverTheNodesThatTheUserNames) {
  const Calibration calibration =
      imported(kLinear, {.source = "k.json", .gpus_per_node = 2}).calibration;
  EXPECT_EQ(calibration.collectives.front().nodes, 2);
  EXPECT_EQ(calibration.collectives.front().groups_per_node, 1);
}

// Busy: 200-250 and 400-490. The first two gaps end with kernels launched after they began.
// The all-reduce runs beside dW from 430 to 440 and beside dx from 441 to 471.
TEST(KinetoImport, ReportsIdleTimeAndOverlap) {
  const KinetoReport report = imported(kLinear).report;
  EXPECT_EQ(report.steps, 1);
  EXPECT_NEAR(report.step_time.value, 1e-3, 1e-12);
  EXPECT_NEAR(report.busy.value, 140e-6, 1e-12);
  EXPECT_NEAR(report.idle_for_host.value, 350e-6, 1e-12);
  EXPECT_NEAR(report.idle_other.value, 510e-6, 1e-12);
  EXPECT_NEAR(report.communication.value, 60e-6, 1e-12);
  EXPECT_NEAR(report.overlapped, 40.0 / 60, 1e-12);
  EXPECT_EQ(report.layers, 0);
  EXPECT_EQ(report.device, "NVIDIA H100 80GB HBM3");
}

// Ends of launches: 115, 315, 340, so the intervals between kernels are 200 and 25 us; the launch
// of NCCL runs beside compute kernels and counts to its pass.
TEST(KinetoImport, MeasuresTheHostBetweenLaunches) {
  const Calibration calibration = imported(kLinear).calibration;
  ASSERT_TRUE(calibration.trainer.has_value());
  EXPECT_NEAR(calibration.trainer->host_per_kernel.value, 200e-6, 1e-12);
  EXPECT_EQ(calibration.trainer->host_per_collective, Seconds(0.0));
  EXPECT_EQ(calibration.provenance.at("device"), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(calibration.provenance.at("cuda_driver_version"), "12040");
  EXPECT_EQ(calibration.provenance.at("date"), "2023-11-14 22:13 UTC");
}

TEST(KinetoImport, SurvivesTheCalibrationFile) {
  const Calibration calibration = imported(kLinear).calibration;
  EXPECT_EQ(to_json(calibration_from_json(to_json(calibration), "c")), to_json(calibration));
}

TEST(KinetoImport, IsRecognizedByContent) {
  ASSERT_NE(find_import_format("kineto"), nullptr);
  EXPECT_EQ(guess_import_format(kLinear), find_import_format("kineto"));
}

std::string complaint(std::string_view text) {
  return complaints_of([&] { imported(text); });
}

TEST(KinetoImport, RejectsWhatItCannotLearnFrom) {
  using testing::HasSubstr;
  EXPECT_THAT(complaint(R"({"traceEvents": []})"), HasSubstr("contains no GPU kernels"));
  EXPECT_THAT(complaint(R"({"schemaVersion": 1})"), HasSubstr("missing \"traceEvents\""));
  EXPECT_THAT(complaint(kLinear.substr(0, 4000)), HasSubstr("invalid JSON"));
  EXPECT_THAT(complaint("3"), HasSubstr("expected an object"));
}

// ---- memory-bound kernels ----

/// Writes operators one after another, 10 us each; an operator with kernels launches them at its
/// end, and each runs for 2 us on an otherwise idle GPU.
class TraceBuilder {
 public:
  /// `inner`: operators inside of this one, written by the function.
  template <class Inner>
  void around(const std::string& name, const std::string& arguments, Inner inner) {
    const std::size_t at = events_.size();
    events_.emplace_back();
    const int start = now_;
    inner();
    events_[at] = operator_text(name, arguments, start, now_);
  }
  void leaf(const std::string& name, const std::string& arguments, int kernels = 1) {
    const int start = now_;
    now_ += 10;
    events_.push_back(operator_text(name, arguments, start, now_));
    for (int i = 0; i < kernels; ++i) {
      ++correlation_;
      events_.push_back(fmt::format(
          R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, )"
          R"("ts": {}, "dur": 1, "args": {{"correlation": {}}}}})",
          start + 1 + 3 * i, correlation_));
      events_.push_back(fmt::format(
          R"({{"ph": "X", "cat": "kernel", "name": "elementwise_kernel", "pid": 0, "tid": 7, )"
          R"("ts": {}, "dur": 2, "args": {{"correlation": {}}}}})",
          start + 2 + 3 * i, correlation_));
    }
  }
  std::string text() const {
    return fmt::format(R"({{"traceEvents": [{},)"
                       R"({{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", )"
                       R"("pid": 1, "tid": 1, "ts": 0, "dur": {}}}]}})",
                       fmt::join(events_, ",\n"), now_);
  }

 private:
  static std::string operator_text(const std::string& name, const std::string& arguments, int start,
                                   int end) {
    return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 1, "tid": 1, )"
                       R"("ts": {}, "dur": {}, "args": {{{}}}}})",
                       name, start, end - start, arguments);
  }
  std::vector<std::string> events_;
  int now_ = 0, correlation_ = 0;
};

std::string dims(const std::string& list) {
  return fmt::format(R"("Input Dims": {}, "Input type": ["c10::BFloat16", "c10::BFloat16"])", list);
}
std::string numbered(int sequence, const std::string& more = "") {
  return fmt::format(R"("Sequence number": {}{}{})", sequence, more.empty() ? "" : ", ", more);
}

/// RMS norm of [64, 32] without a fused kernel: three kernels forward.
void write_norm(TraceBuilder& trace, int sequence) {
  trace.around("aten::rms_norm", numbered(sequence, dims("[[64, 32], [], [32]]")), [&] {
    trace.leaf("aten::pow", numbered(sequence, dims("[[64, 32], []]")));
    trace.leaf("aten::mul", numbered(sequence + 1, dims("[[64, 32], [32]]")), 2);
  });
}
/// The backward pass of the same, two kernels.
void write_norm_backward(TraceBuilder& trace, int sequence) {
  trace.around("autograd::engine::evaluate_function: MulBackward0", numbered(sequence + 1),
               [&] { trace.leaf("aten::mul", dims("[[64, 32], [32]]")); });
  trace.around("autograd::engine::evaluate_function: PowBackward0", numbered(sequence),
               [&] { trace.leaf("aten::pow", dims("[[64, 32], []]")); });
}

void expect_stream(const Calibration& calibration, Routine routine, Phase phase, std::int64_t bytes,
                   double microseconds) {
  for (const KernelCurve& curve : calibration.kernels) {
    if (curve.family.routine != routine || curve.family.phase != phase) continue;
    ASSERT_EQ(curve.points.size(), 1U);
    EXPECT_EQ(curve.points.front().memory_traffic.value, bytes) << name_of(routine);
    EXPECT_NEAR(curve.points.front().time.value, microseconds * 1e-6, 1e-12) << name_of(routine);
    return;
  }
  ADD_FAILURE() << "no " << name_of(routine) << " " << name_of(phase);
}

// One norm is recomputed, inside of another function's backward pass: three forward calls of three
// kernels, two backward calls of two. A forward norm reads and writes 2 * 64 * 32 elements of 2
// bytes; its backward pass reads two tensors and writes one.
TEST(KinetoImport, AddsUpTheOperatorsOfANorm) {
  TraceBuilder trace;
  write_norm(trace, 10);
  write_norm(trace, 20);
  trace.around("autograd::engine::evaluate_function: MmBackward0", numbered(30),
               [&] { write_norm(trace, 40); });
  write_norm_backward(trace, 40);
  write_norm_backward(trace, 20);
  const Calibration calibration = imported(trace.text()).calibration;
  expect_stream(calibration, Routine::kRmsNorm, Phase::kForward, 2 * 64 * 32 * 2, 6);
  expect_stream(calibration, Routine::kRmsNorm, Phase::kBackwardInput, 3 * 64 * 32 * 2, 4);
}

// The product of SwiGLU reads tensors of SiLU's size [64, 48]: two kernels of 2 us each.
// Elementwise kernels on hidden states are residual additions; without attention, their number is
// not known.
TEST(KinetoImport, CountsElementwiseKernelsWithTheirActivation) {
  TraceBuilder trace;
  write_norm(trace, 10);
  trace.leaf("aten::silu", numbered(20, dims("[[64, 48]]")));
  trace.leaf("aten::mul", numbered(21, dims("[[64, 48], [64, 48]]")));
  trace.leaf("aten::add", numbered(22, dims("[[64, 32], [64, 32], []]")));
  const ImportedTrace learned = imported(trace.text());
  expect_stream(learned.calibration, Routine::kSwiGlu, Phase::kForward, 3 * 64 * 48 * 2, 4);
  std::vector<std::string> unlearned;
  for (const ImportedFamily& family : learned.report.families)
    if (family.shapes == 0) unlearned.push_back(family.name);
  EXPECT_EQ(unlearned, std::vector<std::string>{"elementwise kernels forward"});
}

// One layer: attention, a rotary embedding of queries and keys, and a residual addition that is
// alone and so is counted once. A cast of other size is added to it.
TEST(KinetoImport, CountsGlueByLayers) {
  TraceBuilder trace;
  write_norm(trace, 10);
  trace.leaf("aten::mul", numbered(20, dims("[[1, 64, 2, 16], [64, 16]]")));
  trace.leaf("aten::mul", numbered(21, dims("[[1, 64, 1, 16], [64, 16]]")));
  trace.leaf("aten::_flash_attention_forward",
             numbered(22, dims("[[1, 64, 2, 16], [1, 64, 1, 16], [1, 64, 1, 16]]")));
  trace.leaf("aten::add", numbered(23, dims("[[64, 32], [64, 32], []]")));
  trace.leaf("aten::copy_", numbered(24, dims("[[7, 5], [7, 5], []]")));
  const ImportedTrace learned = imported(trace.text());
  EXPECT_EQ(learned.report.layers, 1);
  expect_stream(learned.calibration, Routine::kRotary, Phase::kForward, 2 * 64 * 3 * 16 * 2, 4);
  expect_stream(learned.calibration, Routine::kResidual, Phase::kForward, 3 * 64 * 32 * 2, 4);
}

// Transformer Engine launches products without an operator: forward x W^T, backward first the
// gradient of x, then that of W.
TEST(KinetoImport, DerivesProductsOfCustomFunctions) {
  std::string text;
  {
    TraceBuilder trace;
    trace.leaf("_Linear", numbered(10, dims("[[2, 32, 64], [128, 64], [128]]")));
    trace.around("autograd::engine::evaluate_function: _LinearBackward", numbered(10),
                 [&] { trace.leaf("_LinearBackward", numbered(10, dims("[[2, 32, 128]]")), 2); });
    text = trace.text();
  }
  const std::string_view plain = "elementwise_kernel";
  for (std::size_t at = 0; (at = text.find(plain, at)) != std::string::npos;)
    text.replace(at, plain.size(), "nvjet_hsh_128x64_64x6_2x1_v_bz_TNT");
  const Calibration calibration = imported(text).calibration;
  expect_only_point(calibration, Phase::kForward,
                    {.m = 64, .n = 128, .k = 64, .time = Seconds(2e-6)});
  expect_only_point(calibration, Phase::kBackwardInput,
                    {.m = 64, .n = 64, .k = 128, .time = Seconds(2e-6)});
  expect_only_point(calibration, Phase::kBackwardWeight,
                    {.m = 64, .n = 128, .k = 64, .time = Seconds(2e-6)});
}

// ---- operators ----

std::optional<OperatorSize> size_of_call(std::string_view name, const KinetoInputs& inputs) {
  const OperatorRule* rule = rule_of(name);
  EXPECT_NE(rule, nullptr) << name;
  return rule == nullptr ? std::nullopt : size_of(*rule, arguments_of(inputs));
}

TEST(KinetoOperator, ReadsGroupedQueriesAndCausality) {
  const auto size = size_of_call(
      "aten::_scaled_dot_product_flash_attention",
      {.dims = "[[2, 32, 4096, 128], [2, 8, 4096, 128], [2, 8, 4096, 128], [], []]",
       .types = R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"])",
       .strides = "",
       .values = R"(["", "", "", "0.", "False"])"});
  ASSERT_TRUE(size.has_value());
  EXPECT_EQ(size->batch, 64);
  EXPECT_EQ(size->m, 4096);
  EXPECT_EQ(size->n, 4096);
  EXPECT_EQ(size->k, 128);
  EXPECT_EQ(size->key_heads, 8);
  EXPECT_EQ(size->dtype, Dtype::kBf16);
  EXPECT_FALSE(size->causal);
}

TEST(KinetoOperator, CountsTheParametersOfAnUpdate) {
  const auto size =
      size_of_call("aten::_fused_adamw_", {.dims = "[[[10, 20], [5]], [[10, 20], [5]]]",
                                           .types = R"(["TensorList", "TensorList"])",
                                           .strides = "",
                                           .values = ""});
  ASSERT_TRUE(size.has_value());
  EXPECT_EQ(size->elements, 205);
}

TEST(KinetoOperator, RefusesShapesThatDoNotFit) {
  const auto product = [](std::string dims) {
    return size_of_call("aten::mm",
                        {.dims = std::move(dims), .types = "", .strides = "", .values = ""});
  };
  EXPECT_FALSE(product("[[2, 3], [4, 5]]").has_value());
  EXPECT_FALSE(product("[[2, 3]]").has_value());
  EXPECT_FALSE(product("[[-2, 3], [3, 5]]").has_value());
  EXPECT_FALSE(product("[[0, 3], [3, 5]]").has_value());
  EXPECT_FALSE(product("[[4611686018427387904, 3], [3, 5]]").has_value());
  EXPECT_FALSE(product("[[2, 3").has_value());
  EXPECT_TRUE(product("[[2, 3], [3, 5]]").has_value());
}

TEST(KinetoOperator, KnowsKernelsByName) {
  using enum KernelNameKind;
  const std::vector<std::pair<std::string_view, KernelNameKind>> kernels{
      {"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", kProduct},
      {"sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", kProduct},
      {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)", kProduct},
      {"nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", kProduct},
      {"void cublasLt::splitKreduce_kernel<32, 16, int>(cublasSplitKParams)", kProduct},
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>()", kAttention},
      {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", kAttention},
      {"fmha_cutlassB_bf16_aligned_64x64_k64_sm80(Params)", kAttention},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", kNccl},
      {"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", kNorm},
      {"triton_poi_fused_mul_silu_1", kActivation},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<>()", kOptimizer},
      {"void at::native::(anonymous namespace)::cunn_SoftMaxForward<>()", kSoftmax},
      {"void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add>()", kElementwise},
      {"void at::native::reduce_kernel<512, 1, ReduceOp>()", kReduction}};
  for (const auto& [name, kind] : kernels) EXPECT_EQ(kind_of_kernel_name(name), kind) << name;
}

}  // namespace
}  // namespace meshwright
