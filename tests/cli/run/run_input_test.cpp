/// Training data of `run`, and the resulting loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

class RunInput : public TinyRun {
 protected:
  RunInput() : TinyRun(/*layers=*/2) {}
  std::vector<double> losses(const std::string& more) const {
    return losses_of(run_program(call_of("--gpus 1 --global-batch 4 --seq 32 --json " + more)));
  }
};

/// The initial loss is ln 256 = 5.55, that of 256 equally likely tokens; it falls below the entropy
/// of letter frequencies.
TEST_F(RunInput, IsLearned) {
  const std::vector<double> all = losses("--steps 60");
  ASSERT_EQ(all.size(), 60u);
  EXPECT_NEAR(all.front(), 5.55, 0.1);
  EXPECT_LT(all.back(), 4);
}

/// The bytes of a text as token IDs.
TEST_F(RunInput, IsTheSameAsTextOrAsTokensOfTwoSizes) {
  const std::string text = "A stage that waits is a stage that costs: keep the pipeline full.\n";
  std::string two, four;
  for (const char letter : text) {
    two += {letter, '\0'};
    four += {letter, '\0', '\0', '\0'};
  }
  write_file(path("text"), text);
  write_file(path("two"), two);
  write_file(path("four"), four);
  const std::vector<double> expected = losses("--steps 2 --text " + path("text"));
  EXPECT_EQ(losses("--steps 2 --tokens " + path("two")), expected);
  EXPECT_EQ(losses("--steps 2 --token-type uint32 --tokens " + path("four")), expected);
  EXPECT_NE(losses("--steps 2"), expected);
}

/// Little-endian.
std::string bytes_of(std::uint64_t number, int bytes) {
  std::string text;
  for (int b = 0; b < bytes; ++b) text += static_cast<char>(number >> (8 * b));
  return text;
}
std::string tokens_of(const std::string& text, int bytes) {
  std::string tokens;
  for (const char letter : text) tokens += bytes_of(static_cast<unsigned char>(letter), bytes);
  return tokens;
}

/// The same tokens in the formats of llm.c (dev/data/data_common.py) and Megatron-LM
/// (indexed_dataset.py), and cut into files.
TEST_F(RunInput, IsTheSameInTheFormatsOfOtherPrograms) {
  const std::string text = "A stage that waits is a stage that costs: keep the pipeline full.\n";
  const std::string front = text.substr(0, 20), back = text.substr(20);
  write_file(path("text"), text);
  std::filesystem::create_directory(path("data"));
  std::string header = bytes_of(20240520, 4) + bytes_of(1, 4) + bytes_of(text.size(), 4);
  header.resize(1024);
  write_file(path("llmc"), header + tokens_of(text, 2));
  write_file(path("m.bin"), tokens_of(text, 4));
  write_file(path("m.idx"), std::string("MMIDIDX\0\0", 9) + bytes_of(1, 8) + bytes_of(4, 1) +
                                bytes_of(2, 8) + bytes_of(2, 8) + bytes_of(front.size(), 4) +
                                bytes_of(back.size(), 4) + std::string(2 * 8 + 2 * 8, '\0'));
  write_file(path("data/1.bin"), tokens_of(front, 2));
  write_file(path("data/2.bin"), tokens_of(back, 2));
  const std::vector<double> expected = losses("--steps 2 --text " + path("text"));
  for (const std::string tokens :
       {"llmc", "m", "m.bin", "m.idx", "data/*.bin", "data/1.bin --tokens data/2.bin"})
    EXPECT_EQ(losses("--steps 2 --tokens " + tokens), expected) << tokens;
}

/// All sequences but in another order, also by a run that resumes.
TEST_F(RunInput, IsShuffledByTheSeed) {
  const std::vector<double> plain = losses("--steps 4"), mixed = losses("--steps 4 --shuffle");
  EXPECT_NE(mixed, plain);
  EXPECT_EQ(losses("--steps 4 --shuffle"), mixed);
  losses("--steps 2 --shuffle --save state");
  EXPECT_EQ(losses("--steps 2 --shuffle --resume state"),
            std::vector<double>(mixed.begin() + 2, mixed.end()));
}

}  // namespace
}  // namespace meshwright
