/// `run` with a GPT that trains in milliseconds.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "tests/cli/program_fixture.hpp"

namespace meshwright {

inline constexpr const char* kTwoStages = "--gpus 2 --pp 2 --global-batch 4 --seq 16";

class TinyRun : public ProgramTest {
 protected:
  explicit TinyRun(int layers = 4) {
    write_file(path("tiny.json"),
               R"({"model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_positions": 64,
                   "vocab_size": 256, "resid_pdrop": 0, "attn_pdrop": 0, "embd_pdrop": 0,
                   "n_layer": )" +
                   std::to_string(layers) + "}");
  }
  ProgramCall call_of(const std::string& options, const std::string& cluster = "cpu-laptop") const {
    return ProgramTest::call_of(words_of("run --model " + path("tiny.json") + " --cluster " +
                                         cluster + " --dtype fp32 " + options));
  }
  /// The timeline that a run wrote, which must be valid.
  Timeline written_timeline() const {
    const Timeline timeline = timeline_from_pftrace(read_file(path("out.pftrace")), "out.pftrace");
    EXPECT_THAT(check_timeline(timeline), testing::IsEmpty());
    return timeline;
  }
  /// Command lines of processes that name the folder.
  std::vector<std::string> processes_left() const {
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline");
      const std::string line{std::istreambuf_iterator<char>(file), {}};
      if (line.find(folder_.path().string()) != std::string::npos) left.push_back(line);
    }
    return left;
  }
};

/// Runs the program and sends it a signal after its fourth step.
inline ProgramRun run_and_signal(ProgramCall call, int signal) {
  call.interrupt_after = "step   3";
  call.signal = signal;
  return run_program(call);
}

/// Losses of the steps of a run with --json.
inline std::vector<double> losses_of(const ProgramRun& run) {
  EXPECT_EQ(run.exit_code, 0) << run.standard_error;
  std::vector<double> losses;
  const auto json = nlohmann::json::parse(run.standard_output);
  for (const auto& step : json["steps"]) losses.push_back(step["loss"]);
  return losses;
}

}  // namespace meshwright
