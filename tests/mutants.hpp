/// Readers that meet damaged files.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "core/base/error.hpp"

namespace meshwright {

/// Number of the `cases` mutants that read(mutant) accepts; for the others it must throw an
/// InputError with diagnostics.
inline int accepted_mutants(int cases, const std::function<std::string(std::mt19937&)>& mutant,
                            const std::function<void(const std::string&)>& read) {
  std::mt19937 random(20261121);
  int accepted = 0;
  for (int i = 0; i < cases; ++i) {
    const std::string text = mutant(random);
    SCOPED_TRACE(testing::Message() << "case " << i);
    try {
      read(text);
      ++accepted;
    } catch (const InputError& error) {
      EXPECT_FALSE(error.diagnostics().empty());
    }
  }
  return accepted;
}

}  // namespace meshwright
