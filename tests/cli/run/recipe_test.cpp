/// Recipes: options of `run` as a TOML file.
#include <gmock/gmock.h>

#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

class Recipe : public TinyRun {
 protected:
  void write(const std::string& text) const { write_file(path("run.toml"), text); }
  ProgramRun run(const std::string& options) const {
    return run_program(ProgramTest::call_of(words_of("run " + options)));
  }
};

constexpr const char* kRecipe = R"(
model = "tiny.json"
cluster = "cpu-laptop"

[plan]
gpus = 2
pp = 2
dtype = "fp32"
global-batch = 4
seq = 16

[training]
steps = 3
lr = 2e-3
betas = [0.8, 0.95]
shuffle = true
json = true
)";

TEST_F(Recipe, HasTheSameEffectAsItsOptions) {
  write(kRecipe);
  const std::vector<double> by_options = losses_of(run_program(
      call_of("--gpus 2 --pp 2 --global-batch 4 --seq 16 --steps 3 --lr 2e-3 --betas 0.8,0.95 "
              "--shuffle --json")));
  EXPECT_EQ(losses_of(run("run.toml")), by_options);
  EXPECT_EQ(losses_of(run("--recipe run.toml")), by_options);
}

TEST_F(Recipe, IsOverriddenByTheCommandLine) {
  write(kRecipe);
  const std::vector<double> recipe = losses_of(run("run.toml"));
  const std::vector<double> overridden = losses_of(run("run.toml --steps 2 --lr 1e-2"));
  ASSERT_EQ(overridden.size(), 2u);
  EXPECT_EQ(overridden[0], recipe[0]);
  EXPECT_NE(overridden[1], recipe[1]);
}

TEST_F(Recipe, TakesSeveralFilesAndSwitches) {
  const auto write_tokens = [&](const char* file, char first) {
    std::string bytes;
    for (char i = 0; i < 100; ++i) bytes += {static_cast<char>(first + i), '\0'};
    write_file(path(file), bytes);
  };
  write_tokens("a", 0);
  write_tokens("b", 20);
  write(std::string(kRecipe) +
        "sequence-parallel = false\ntokens = ['a', 'b']\nvalidation = 'b'\nevery = 2\n");
  const ProgramRun recipe = run("run.toml");
  const ProgramRun options = run_program(
      call_of("--gpus 2 --pp 2 --global-batch 4 --seq 16 --steps 3 --lr 2e-3 --betas 0.8,0.95 "
              "--shuffle --json --tokens a --tokens b --validation b --every 2"));
  EXPECT_EQ(losses_of(recipe), losses_of(options));
}

TEST_F(Recipe, TakesAPlanFile) {
  ProgramRun made = run_program(ProgramTest::call_of(
      words_of("plan --model tiny.json --cluster cpu-laptop --gpus 1 --global-batch 4 --seq 16 "
               "--dtype fp32 -o best.plan.json")));
  ASSERT_EQ(made.exit_code, 0) << made.standard_error;
  write("plan = 'best.plan.json'\nsteps = 2\njson = true\n");
  EXPECT_EQ(losses_of(run("run.toml")), losses_of(run("best.plan.json --steps 2 --json")));
}

}  // namespace
}  // namespace meshwright
