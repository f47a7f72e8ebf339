/// The worked examples: every simulate command in models/examples runs, and the text states the
/// step time that it prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>

#include "core/formats/file.hpp"
#include "tests/cli/run_program.hpp"

namespace meshwright {
namespace {

const std::filesystem::path kRoot = MESHWRIGHT_SOURCE_DIR;

std::vector<std::filesystem::path> example_texts() {
  std::vector<std::filesystem::path> texts;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "models/examples"))
    if (entry.path().extension() == ".md") texts.push_back(entry.path());
  std::sort(texts.begin(), texts.end());
  return texts;
}

/// Arguments of every simulate command; a backslash at the end of a line continues it.
std::vector<std::vector<std::string>> simulations_in(const std::string& text) {
  std::string joined = text;
  for (std::size_t at; (at = joined.find("\\\n")) != std::string::npos;) joined.replace(at, 2, " ");
  std::vector<std::vector<std::string>> commands;
  std::istringstream lines(joined);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, word;
    words >> first >> second;
    if (first != "meshwright" || second != "simulate") continue;
    commands.push_back({second});
    while (words >> word) commands.back().push_back(word);
  }
  return commands;
}

TEST(Examples, PrintTheStepTimesThatTheTextNames) {
  int tried = 0;
  for (const std::filesystem::path& path : example_texts()) {
    const std::string text = read_file(path.string());
    for (const std::vector<std::string>& command : simulations_in(text)) {
      SCOPED_TRACE(testing::Message()
                   << path.filename() << ": " << testing::PrintToString(command));
      const ProgramRun run =
          run_program({.program = MESHWRIGHT_PROGRAM, .arguments = command, .folder = kRoot});
      ASSERT_EQ(run.exit_code, 0) << run.standard_error;
      const std::string_view label = "step time ";
      const std::size_t at = run.standard_output.find(label);
      ASSERT_NE(at, std::string::npos);
      std::istringstream figures(run.standard_output.substr(at + label.size()));
      std::string time, unit;
      figures >> time >> unit;
      EXPECT_THAT(text, testing::HasSubstr(time + ' ' + unit));
      ++tried;
    }
  }
  EXPECT_GE(tried, 8);
}

}  // namespace
}  // namespace meshwright
