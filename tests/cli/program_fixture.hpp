/// Tests that run the program in a folder of their own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/cli/run_program.hpp"

namespace meshwright {

class ProgramTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  ProgramCall call_of(std::vector<std::string> arguments) const {
    return {
        .program = MESHWRIGHT_PROGRAM, .arguments = std::move(arguments), .folder = folder_.path()};
  }
  ProgramRun run(std::vector<std::string> arguments) const {
    return run_program(call_of(std::move(arguments)));
  }
  const TemporaryFolder folder_;
};

/// A run with this exit code and this text in standard error.
inline testing::Matcher<const ProgramRun&> fails_with(int exit_code, const std::string& message) {
  return testing::AllOf(
      testing::Field("exit_code", &ProgramRun::exit_code, exit_code),
      testing::Field("standard_error", &ProgramRun::standard_error, testing::HasSubstr(message)));
}

}  // namespace meshwright
