/// Resuming continues as if the run had not been interrupted: bitwise under the same plan, within
/// the tolerance of the dtype under another one.
#include "executor/checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "core/formats/file.hpp"
#include "core/formats/safetensors.hpp"
#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

class Checkpoints : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return (folder_ / "saved.safetensors").string(); }

  static TrainingRun run(std::string_view config, const Strategy& strategy, int steps,
                         const CheckpointOptions& checkpoints = {}) {
    return run_plan(config, strategy, {.steps = steps, .checkpoints = checkpoints});
  }
  static Checkpoint read(const std::string& path, std::string_view config) {
    return checkpoint_from_file(read_file(path, kLargestTensorFile),
                                tiny_job(config, tiny_strategy()).model, path);
  }

  /// Ten steps under `strategy`, and five steps, a checkpoint and five more under `other`.
  struct Both {
    TrainingRun whole, rest;
  };
  Both in_two_runs(std::string_view config, const Strategy& strategy, const Strategy& other) {
    Both both{.whole = run(config, strategy, 10), .rest = {}};
    const TrainingRun first = run(config, strategy, 5, {.save = file()});
    EXPECT_FALSE(first.failure.has_value()) << first.failure->cause;
    const Checkpoint saved = read(file(), config);
    EXPECT_EQ(saved.step, 5);
    both.rest = run(config, other, 5, {.save = {}, .every = 0, .resume = &saved});
    both.whole.steps.erase(both.whole.steps.begin(), both.whole.steps.begin() + 5);
    return both;
  }
  void expect_bitwise_resume(std::string_view config, const Strategy& strategy) {
    const auto [whole, rest] = in_two_runs(config, strategy, strategy);
    expect_bitwise_same_run(whole, rest);
  }

  std::filesystem::path folder_;
};

Strategy pipeline_and_tensor() {
  Strategy s = tiny_strategy();
  s.degrees.pipeline = 2, s.degrees.tensor = 2;
  return s;
}
Strategy fully_cut() {
  Strategy s = tiny_strategy();
  s.degrees.data = 4, s.zero = 3;
  return s;
}

TEST_F(Checkpoints, ResumeBitwiseUnderTheSamePlan) {
  for (const Strategy& strategy : {pipeline_and_tensor(), fully_cut()})
    expect_bitwise_resume(kTinyGpt, strategy);
}

TEST_F(Checkpoints, ResumeBitwiseInBf16AndWithOffload) {
  Strategy strategy = fully_cut();
  strategy.dtype = Dtype::kBf16;
  strategy.data_parallelism.offload_optimizer = true;
  expect_bitwise_resume(kTinyLlama, strategy);
}

TEST_F(Checkpoints, ResumeBitwiseWithServersAndExperts) {
  Strategy servers = tiny_strategy();
  use_servers(servers, 2, 2);
  Strategy experts = tiny_strategy();
  experts.degrees.data = 4, experts.degrees.expert = 2, experts.zero = 1;
  experts.data_parallelism.buckets = {BucketRule::kBytes, Bytes(9000)};
  experts.data_parallelism.overlap_gather = true;
  for (const Strategy& strategy : {servers, experts}) expect_bitwise_resume(kTinyMixtral, strategy);
}

/// Each worker uses the weights it pulled last, which the servers have updated since.
TEST_F(Checkpoints, ResumeBitwiseWithStaleWorkers) {
  Strategy apart = tiny_strategy();
  use_servers(apart, 4, 2, DataParallelKind::kAsyncParameterServer);
  Strategy colocated = apart;
  colocated.data_parallelism.servers = 3;
  colocated.data_parallelism.colocated_servers = true;
  colocated.dtype = Dtype::kBf16;
  for (const Strategy& strategy : {apart, colocated}) expect_bitwise_resume(kTinyMixtral, strategy);
}

/// There is no version for a fifth worker, and none is needed for synchronous updates.
TEST_F(Checkpoints, OfWorkersResumeFromServersUnderAnotherPlan) {
  Strategy workers = tiny_strategy();
  use_servers(workers, 2, 1, DataParallelKind::kAsyncParameterServer);
  Strategy more = workers;
  more.degrees.data = 4;
  for (const Strategy& other : {more, fully_cut()}) {
    const auto [whole, rest] = in_two_runs(kTinyGpt, workers, other);
    ASSERT_FALSE(rest.failure.has_value()) << rest.failure->cause;
    EXPECT_NEAR(rest.steps.front().loss / whole.steps.front().loss, 1, 0.05);
  }
}

TEST_F(Checkpoints, ResumeUnderAnotherPlan) {
  const auto [whole, rest] = in_two_runs(kTinyGpt, pipeline_and_tensor(), fully_cut());
  expect_same_run(whole, rest, 1e-5);
  const auto [again, back] = in_two_runs(kTinyGpt, fully_cut(), pipeline_and_tensor());
  expect_same_run(again, back, 1e-5);
}

TEST_F(Checkpoints, AreWrittenPeriodicallyIntoADirectory) {
  const TrainingRun saved =
      run(kTinyGpt, tiny_strategy(), 5, {.save = folder_.string(), .every = 2});
  ASSERT_FALSE(saved.failure.has_value()) << saved.failure->cause;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("step-000002.safetensors", "step-000004.safetensors",
                                            "step-000005.safetensors"));
  const Checkpoint last = read((folder_ / "step-000005.safetensors").string(), kTinyGpt);
  EXPECT_EQ(last.text_position, 5 * 8 * 8);  // steps of 8 sequences of 8 tokens
  for (const auto& [name, values] : saved.parameters)
    EXPECT_EQ(last.parameters.at(name).weights, values) << name;
}

TEST_F(Checkpoints, EndTheRunIfTheyCannotBeWritten) {
  const TrainingRun saved = run(kTinyGpt, fully_cut(), 2, {.save = "/nowhere/at/all"});
  ASSERT_TRUE(saved.failure.has_value());
  EXPECT_THAT(saved.failure->cause, testing::HasSubstr("/nowhere/at/all"));
}

/// Which files are rejected, and with what message.
class RejectedCheckpoints : public testing::Test {
 protected:
  const ModelGraph model_ = tiny_job(kTinyGpt, tiny_strategy()).model;
  Checkpoint whole() const {
    Checkpoint made{.step = 3, .text_position = 192, .seed = 7, .parameters = {}};
    for (const Tensor& tensor : model_.tensors)
      if (const auto* parameter = std::get_if<ParameterTensor>(&tensor.shape)) {
        std::size_t count = 1;
        for (const std::int64_t extent : parameter->shape)
          count *= static_cast<std::size_t>(extent);
        const std::vector<float> values(count, 0.5F);
        made.parameters[tensor.name] = {values, values, values};
      }
    return made;
  }
  std::string refusal_of(const std::string& content) const {
    try {
      checkpoint_from_file(content, model_, "x");
    } catch (const InputError& error) {
      return format(error.diagnostics().front());
    }
    return "accepted";
  }
};

TEST_F(RejectedCheckpoints, RoundTripIfValid) {
  EXPECT_EQ(checkpoint_from_file(to_file(whole(), model_), model_, "x"), whole());
}

TEST_F(RejectedCheckpoints, ReportTheProblem) {
  const std::string content = to_file(whole(), model_);
  EXPECT_THAT(refusal_of("abc"), testing::HasSubstr("only 3 bytes long"));
  EXPECT_THAT(refusal_of(content.substr(0, 100)),
              testing::HasSubstr("header of 26856 bytes in a file of 100 bytes"));
  EXPECT_THAT(refusal_of(content.substr(0, content.size() - 4)),
              testing::HasSubstr("expected 197760 bytes of tensors, got 197756"));
  EXPECT_THAT(refusal_of(content + "more"),
              testing::HasSubstr("expected 197760 bytes of tensors, got 197764"));

  TensorFile file = tensors_from_safetensors(content, "x");
  std::string& name = file.tensors[0].name;
  const std::string right = name;
  name += "x";
  EXPECT_THAT(refusal_of(to_safetensors(file)),
              testing::AllOf(testing::HasSubstr("missing tensor '" + right + "'"),
                             testing::HasSubstr("did you mean '" + right + "x'")));
  name = right;
  std::swap(file.tensors[0].shape[0], file.tensors[0].shape[1]);
  EXPECT_THAT(refusal_of(to_safetensors(file)),
              testing::HasSubstr("shape mismatch: checkpoint has ["));
  std::swap(file.tensors[0].shape[0], file.tensors[0].shape[1]);
  const std::string steps = std::exchange(file.metadata["step"], "2147483648");  // no int
  EXPECT_THAT(refusal_of(to_safetensors(file)),
              testing::AllOf(testing::HasSubstr("invalid value '2147483648' for 'step'"),
                             testing::HasSubstr("up to 1000000000")));
  file.metadata["step"] = steps;
  file.metadata["model"] = "0123456789abcdef";
  EXPECT_THAT(refusal_of(to_safetensors(file)),
              testing::HasSubstr("saved from another model: parameter hash 0123456789abcdef"));
  file.metadata.erase("format");
  EXPECT_THAT(refusal_of(to_safetensors(file)), testing::HasSubstr("not a checkpoint"));
}

/// The file has the right size, but its last block never reached the disk.
TEST_F(RejectedCheckpoints, AreMissingValues) {
  std::string content = to_file(whole(), model_);
  std::fill(content.end() - 64, content.end(), '\0');
  const std::string last =
      tensors_from_safetensors(to_file(whole(), model_), "x").tensors.back().name;
  EXPECT_THAT(refusal_of(content), testing::AllOf(testing::HasSubstr("#/" + last),
                                                  testing::HasSubstr("checksum mismatch")));
}

TEST_F(RejectedCheckpoints, WereChanged) {
  Checkpoint checkpoint = whole();
  auto& [weights, first_moment, second_moment] = checkpoint.parameters.begin()->second;
  weights.assign(weights.size(), 1.0F);
  const TensorFile saved = tensors_from_safetensors(to_file(checkpoint, model_), "x");
  TensorFile file = saved;
  const auto ones = std::ranges::find(file.tensors, weights, &NamedTensor::values);
  ASSERT_NE(ones, file.tensors.end());
  for (NamedTensor& other : file.tensors)
    if (other.shape == ones->shape && other.name != ones->name) {
      std::swap(other.name, ones->name);
      break;
    }
  EXPECT_THAT(refusal_of(to_safetensors(file)), testing::HasSubstr("checksum mismatch"));
  file = saved;
  file.metadata["seed"] = "8";
  EXPECT_THAT(refusal_of(to_safetensors(file)), testing::HasSubstr("checksum mismatch"));
  file = saved;
  file.metadata["setting.lr"] = "0.1";
  EXPECT_THAT(refusal_of(to_safetensors(file)), testing::HasSubstr("checksum mismatch"));
  file = saved;
  file.metadata.erase("checksum");
  EXPECT_THAT(refusal_of(to_safetensors(file)), testing::HasSubstr("missing 'checksum'"));
}

/// A tensor without a checksum of its own, in metadata whose checksum is right.
TEST_F(RejectedCheckpoints, LackTheChecksumOfATensor) {
  TensorFile file = tensors_from_safetensors(to_file(whole(), model_), "x");
  const std::string key = "checksum." + file.tensors.front().name;
  file.metadata.erase(key);
  file.metadata.erase("checksum");
  std::uint64_t hash = kFnv1aStart;
  for (const auto& [name, value] : file.metadata)
    hash = fnv1a(fmt::format("{}={}\n", name, value), hash);
  file.metadata["checksum"] = fmt::format("{:016x}", hash);
  EXPECT_THAT(refusal_of(to_safetensors(file)), testing::HasSubstr("missing '" + key + "'"));
}

/// A file of an earlier format, which has one checksum. It covers only values in the first one.
TensorFile of_earlier_format(TensorFile file, int format) {
  std::erase_if(file.metadata,
                [](const auto& entry) { return entry.first.starts_with("checksum"); });
  file.metadata["format"] = fmt::format("meshwright checkpoint {}", format);
  std::uint64_t hash = kFnv1aStart;
  for (const auto& [name, value] : file.metadata)
    if (format == 2) hash = fnv1a(fmt::format("{}={}\n", name, value), hash);
  for (const NamedTensor& tensor : file.tensors) {
    if (format == 2)
      hash = fnv1a(fmt::format("{} [{}]\n", tensor.name, fmt::join(tensor.shape, ", ")), hash);
    for (const float value : tensor.values)
      hash = fnv1a_next(hash, std::bit_cast<std::uint32_t>(value));
  }
  file.metadata["checksum"] = fmt::format("{:016x}", hash);
  return file;
}

TEST_F(RejectedCheckpoints, AreNotThoseOfEarlierFormats) {
  const TensorFile saved = tensors_from_safetensors(to_file(whole(), model_), "x");
  for (const int format : {1, 2}) {
    TensorFile file = of_earlier_format(saved, format);
    EXPECT_EQ(refusal_of(to_safetensors(file)), "accepted") << format;
    file.tensors.back().values.back() += 1;
    EXPECT_THAT(refusal_of(to_safetensors(file)), testing::HasSubstr("checksum mismatch"));
  }
}

TEST_F(RejectedCheckpoints, RequireWholeSteps) {
  Strategy strategy = tiny_strategy();  // 8 sequences of 8 tokens
  EXPECT_NO_THROW(check_resumable(whole(), strategy, "x"));
  strategy.global_batch = 16;
  EXPECT_THROW(check_resumable(whole(), strategy, "x"), InputError);
}

}  // namespace
}  // namespace meshwright
