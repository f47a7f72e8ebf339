#include "simulator/fit/fit_device.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;
using namespace meshwright::testing;

std::string message_of(const std::string& csv, const std::string& device = "") {
  return meshwright::format(
      diagnostics_of([&] { read_measured_kernels(csv, "k.csv", device); }).at(0));
}

TEST(MeasuredKernels, ReadsSizesAndTraffic) {
  const MeasuredKernels read = read_measured_kernels(
      "op,dtype,m,n,k,tokens,hidden,time_us,note\r\n"
      "gemm,bf16,100,200,300,,,12.5,\"quoted, with \"\"comma\"\"\"\r\n"
      "\n"
      "norm_backward,fp32,,,,1000,64,300,\n",
      "k.csv", "");
  ASSERT_EQ(read.kernels.size(), 2u);
  const MeasuredKernel& gemm = read.kernels[0];
  EXPECT_EQ(gemm.line, 2);
  EXPECT_DOUBLE_EQ(gemm.time.value, 12.5e-6);
  EXPECT_EQ(gemm.family, "gemm bf16 < 1 GFLOP");
  EXPECT_EQ(gemm.work.at(0).flops, Flops(2.0 * 100 * 200 * 300));
  EXPECT_EQ(gemm.work.at(0).memory_traffic, Bytes(2 * (30'000 + 60'000 + 20'000)));
  const MeasuredKernel& norm = read.kernels[1];
  EXPECT_EQ(norm.line, 4);
  EXPECT_EQ(norm.family, "norm-backward < 1 MiB");
  EXPECT_EQ(norm.work.at(0).memory_traffic, Bytes(3 * 4 * 64'000));
}

// Forward 2 products, backward 5; causal half; keys and values of 2 heads are read once.
TEST(MeasuredKernels, ReadsAttentionInBothPasses) {
  const MeasuredKernels read = read_measured_kernels(
      "op,dtype,batch,heads,kv_heads,head_dim,seq_q,seq_kv,causal,time_us\n"
      "attention_forward_backward,bf16,3,8,2,64,1024,1024,1,500\n",
      "k.csv", "");
  const std::vector<Kernel>& work = read.kernels.at(0).work;
  ASSERT_EQ(work.size(), 2u);
  const double product = 2.0 * 24 * 1024 * 1024 * 64 / 2;
  EXPECT_EQ(work[0].flops, Flops(2 * product));
  EXPECT_EQ(work[1].flops, Flops(5 * product));
  EXPECT_EQ(work[0].memory_traffic, Bytes(2 * (24 + 6) * 1024 * 128));
  EXPECT_EQ(work[1].memory_traffic, Bytes(4 * (24 + 6) * 1024 * 128));
}

// The collection times the conversion of the activations together with the product.
TEST(MeasuredKernels, AddsQuantizationWhereTheSourceTimedIt) {
  const std::string row = "gemm,fp8,64,128,256,40\n";
  const auto kernels = [&](const std::string& source) {
    return read_measured_kernels("source_repo,op,dtype,m,n,k,time_us\n" + source + "," + row,
                                 "k.csv", "")
        .kernels.at(0);
  };
  EXPECT_FALSE(kernels("deepseek-ai/DeepGEMM").extra.has_value());
  const MeasuredKernel both = kernels("ai-dynamo/aiconfigurator");
  ASSERT_TRUE(both.extra.has_value());
  EXPECT_EQ(both.extra->memory_traffic, Bytes(3 * 64 * 256));
}

TEST(MeasuredKernels, NamesWhatIsWrong) {
  const std::string head = "op,dtype,m,n,k,time_us,device\n";
  EXPECT_EQ(message_of("op,dtype\n"),
            "error: k.csv:1: missing column 'time_us'\n"
            "  hint: name the columns in the first line\n");
  EXPECT_THAT(message_of(head), HasSubstr("no kernels"));
  EXPECT_EQ(message_of(head + "gemm,bf16,1,2,x,5,a\n"),
            "error: k.csv:2: invalid value 'x' for 'k': expected a positive number\n");
  EXPECT_THAT(message_of(head + "gemm,bf16,1,2,-3,5,a\n"), HasSubstr("invalid value '-3'"));
  EXPECT_THAT(message_of(head + "gemm,bf16,1,2,nan,5,a\n"), HasSubstr("invalid value 'nan'"));
  EXPECT_THAT(message_of(head + "gemm,bf16,1,2,1e300,5,a\n"), HasSubstr("expected at most"));
  EXPECT_THAT(message_of(head + "gemm,bf16,1e9,1e9,1e9,5,a\n"), HasSubstr("product too large"));
  EXPECT_THAT(message_of(head + "gemm,bf17,1,2,3,5,a\n"), HasSubstr("for 'dtype': expected fp32"));
  EXPECT_THAT(message_of(head + "gemm,bf16,1,2\n"), HasSubstr("k.csv:2: row of 4 fields"));
  EXPECT_THAT(message_of(head + "gemm,bf16,1,2,3,5,\"a\n"), HasSubstr("missing closing quote"));
  EXPECT_THAT(message_of("op,dtype,time_us,op\n"), HasSubstr("column 'op' occurs twice"));
  const std::string two = head + "gemm,bf16,1,2,3,5,A100\ngemm,bf16,1,2,3,5,H100\n";
  EXPECT_THAT(message_of(two), HasSubstr("choose one with --device: A100, H100"));
  EXPECT_THAT(message_of(two, "H10"), HasSubstr("did you mean 'H100'"));
}

/// Rows of known sizes with the times of `device`.
std::string synthetic_rows(const DeviceModel& device) {
  std::string csv =
      "op,dtype,m,n,k,tokens,hidden,batch,heads,head_dim,seq_q,seq_kv,causal,method,time_us\n";
  const auto add = [&](const std::string& row, const std::string& method) {
    const std::string head = csv.substr(0, csv.find('\n') + 1);
    MeasuredKernel kernel =
        read_measured_kernels(head + row + method + ",1\n", "k.csv", "").kernels.at(0);
    const KernelConditions conditions{.power = method == "sustained" ? PowerState::kSustained
                                                                     : PowerState::kBurst};
    const Seconds time = kernel_time(kernel.work.at(0), device, conditions);
    csv += fmt::format("{}{},{}\n", row, method, 1e6 * time.value);
  };
  for (const int m : {64, 512, 1000, 4096, 16384})
    for (const int n : {768, 5120, 12288})
      for (const int k : {512, 3000, 8192})
        for (const char* method : {"burst", "sustained"})
          add(fmt::format("gemm,bf16,{},{},{},,,,,,,,,", m, n, k), method);
  for (const int tokens : {128, 1024, 4096, 16384, 65536})
    for (const char* op : {"norm", "norm_backward"})
      add(fmt::format("{},bf16,,,,{},8192,,,,,,,", op, tokens), "burst");
  for (const int length : {512, 1024, 4096, 16384})
    for (const int head : {64, 128})
      for (const int causal : {0, 1})
        add(fmt::format("attention_forward,bf16,,,,,,4,32,{},{},{},{},", head, length, length,
                        causal),
            "burst");
  return csv;
}

DeviceModel wanted_device() {
  DeviceModel wanted = reference_a100();
  wanted.launch_overhead = Seconds(3e-6);
  wanted.gemm = {};
  wanted.gemm.max_efficiency = 0.85;
  wanted.gemm.long_efficiency = 0.7;
  wanted.gemm.droop_time = Seconds(2e-3);
  wanted.gemm.sustained_efficiency = 0.6;
  wanted.gemm.memory_share = 0.75;
  wanted.streams[static_cast<std::size_t>(StreamFamily::kNorm)] = {0.8, Bytes(4'000'000)};
  wanted.streams[static_cast<std::size_t>(StreamFamily::kNormBackward)] = {0.6, Bytes(9'000'000)};
  wanted.attention.forward = {
      .head_128 = 0.65, .head_64 = 0.45, .half_length_causal = 700, .half_length_full = 200};
  return wanted;
}

// The start has the defaults; the fit must find what the times were made with. What no row depends
// on, such as the backward pass of attention, keeps its value and gets no source.
TEST(FitDevice, FindsTheParametersThatMadeTheTimes) {
  const DeviceModel wanted = wanted_device();
  DeviceModel start = reference_a100();
  start.gemm = {};
  const MeasuredKernels rows = read_measured_kernels(synthetic_rows(wanted), "k.csv", "");
  const DeviceFit fit = fit_device(start, rows.kernels, 0.2);
  EXPECT_NEAR(fit.device.gemm.max_efficiency, 0.85, 0.02);
  ASSERT_TRUE(fit.device.gemm.sustained_efficiency.has_value());
  EXPECT_NEAR(*fit.device.gemm.sustained_efficiency, 0.6, 0.012);
  EXPECT_NEAR(fit.device.gemm.memory_share, 0.75, 0.04);
  const auto& norm = fit.device.streams[static_cast<std::size_t>(StreamFamily::kNorm)];
  ASSERT_TRUE(norm.has_value());
  EXPECT_NEAR(norm->max_efficiency, 0.8, 0.02);
  EXPECT_NEAR(fit.device.attention.forward.head_128, 0.65, 0.02);
  EXPECT_NEAR(fit.device.attention.forward.head_64, 0.45, 0.02);
  EXPECT_NEAR(fit.device.attention.forward.half_length_causal, 700, 60);
  EXPECT_EQ(fit.device.attention.backward, start.attention.backward);
  EXPECT_TRUE(fit.sources.contains("gemm.sustained_efficiency"));
  EXPECT_FALSE(fit.sources.contains("attention.backward"));
  ASSERT_FALSE(fit.families.empty());
  for (const FamilyError& family : fit.families) {
    EXPECT_LT(family.fitted.median, 0.02) << family.family;
    EXPECT_LT(family.held_back.median, 0.05) << family.family;
  }
}

TEST(FitDevice, IsDeterministic) {
  const MeasuredKernels rows = read_measured_kernels(synthetic_rows(wanted_device()), "k.csv", "");
  const DeviceFit first = fit_device(reference_a100(), rows.kernels, 0.2);
  const DeviceFit second = fit_device(reference_a100(), rows.kernels, 0.2);
  EXPECT_EQ(first.device, second.device);
  EXPECT_EQ(first.sources, second.sources);
}

// The host adds 12 us to every call of a norm.
TEST(FitDevice, SeparatesHostTimeFromTheDevice) {
  const DeviceModel wanted = wanted_device();
  std::string csv = "op,dtype,tokens,hidden,method,time_us\n";
  for (const int tokens : {16, 128, 1024, 4096, 16384, 65536, 131072}) {
    Kernel kernel;
    kernel.routine = Routine::kRmsNorm;
    kernel.memory_traffic = Bytes(2LL * 2 * tokens * 8192);
    const double time = kernel_time(kernel, wanted, {}).value;
    csv += fmt::format("norm,bf16,{},8192,host,{}\n", tokens, 1e6 * time + 12);
    csv += fmt::format("norm,bf16,{},8192,kernel,{}\n", tokens, 1e6 * time - 3);
  }
  DeviceModel start = reference_a100();
  start.launch_overhead = Seconds(3e-6);
  const DeviceFit fit = fit_device(start, read_measured_kernels(csv, "k.csv", "").kernels, 0);
  const auto& norm = fit.device.streams[static_cast<std::size_t>(StreamFamily::kNorm)];
  ASSERT_TRUE(norm.has_value());
  EXPECT_NEAR(norm->max_efficiency, 0.8, 0.02);
  ASSERT_EQ(fit.notes.size(), 1u);
  EXPECT_THAT(fit.notes[0], HasSubstr("host time of norm"));
}

}  // namespace
}  // namespace meshwright
