/// `convert`: checkpoints of runs and of HuggingFace, in both directions.
#include <gmock/gmock.h>

#include "core/formats/safetensors.hpp"
#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

class Convert : public TinyRun {
 protected:
  Convert() : TinyRun(/*layers=*/2) {}
  ProgramRun run(const std::string& options) const {
    return run_program(call_of("--gpus 1 --global-batch 4 --seq 16 --json " + options));
  }
  void convert(const std::string& options) const {
    const ProgramRun done = run_program(ProgramTest::call_of(words_of("convert " + options)));
    ASSERT_EQ(done.exit_code, 0) << done.standard_error;
  }
};

TEST_F(Convert, WritesWhatRunWritesAndReadsItBack) {
  std::filesystem::create_directory(path("hf"));
  losses_of(run("--steps 2 --save own.safetensors"));
  losses_of(run("--steps 2 --save hf --format hf"));
  convert("own.safetensors --model tiny.json -o converted");
  for (const char* file : {"model.safetensors", "config.json"})
    EXPECT_EQ(read_file(path(std::string("converted/") + file)),
              read_file(path(std::string("hf/step-000002/") + file)));
  convert("converted -o back.safetensors");
  EXPECT_EQ(losses_of(run("--steps 2 --resume back.safetensors")),
            losses_of(run("--steps 2 --init converted")));
}

/// SGD has no second moments: its checkpoints are a third smaller, and resume all the same.
TEST_F(Convert, SgdCheckpointsHaveOneMoment) {
  const auto count = [&](const char* file, const std::string& suffix) {
    const TensorFile all = tensors_from_safetensors(read_file(path(file)), file);
    return std::ranges::count_if(
        all.tensors, [&](const NamedTensor& tensor) { return tensor.name.ends_with(suffix); });
  };
  const std::string sgd = " --optimizer sgd --lr 0.1 ";
  losses_of(run("--steps 2 --save sgd.safetensors" + sgd));
  EXPECT_GT(count("sgd.safetensors", ".first_moment"), 0);
  EXPECT_EQ(count("sgd.safetensors", ".second_moment"), 0);
  std::vector<double> whole = losses_of(run("--steps 4" + sgd));
  whole.erase(whole.begin(), whole.begin() + 2);
  EXPECT_EQ(losses_of(run("--steps 2 --resume sgd.safetensors" + sgd)), whole);
}

/// The optimizer is a part of plan files, and can be replaced when a plan runs.
TEST_F(Convert, PlansNameTheirOptimizer) {
  const ProgramRun planned = run_program(ProgramTest::call_of(
      words_of("plan --model tiny.json --cluster cpu-laptop --gpus 1 --global-batch 4 --seq 16 "
               "--dtype fp32 --optimizer sgd -o sgd.plan.json")));
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  EXPECT_THAT(read_file(path("sgd.plan.json")), testing::HasSubstr("\"optimizer\": \"sgd\""));
  const auto losses = [&](const std::string& options) {
    return losses_of(run_program(ProgramTest::call_of(words_of("run " + options))));
  };
  const std::string plan = "sgd.plan.json --steps 3 --lr 0.01 --json";
  const std::vector<double> sgd = losses(plan), adamw = losses(plan + " --optimizer adamw");
  // The plan has another micro-batch.
  const auto same_as = [](const std::vector<double>& expected) {
    return testing::Pointwise(testing::DoubleNear(1e-5), expected);
  };
  EXPECT_THAT(sgd, same_as(losses_of(run("--steps 3 --lr 0.01 --optimizer sgd"))));
  EXPECT_THAT(adamw, same_as(losses_of(run("--steps 3 --lr 0.01"))));
}

}  // namespace
}  // namespace meshwright
