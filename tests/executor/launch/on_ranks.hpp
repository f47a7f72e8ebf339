/// Runs a body on ranks of every kind; results are returned as reports, since processes do not
/// share memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "executor/launch/launch.hpp"
#include "executor/transport/communicator.hpp"

namespace meshwright {

/// Results by rank. T is copied as bytes.
template <class T, class Body>
std::vector<std::vector<T>> on_ranks(RankKind kind, int count, Body body) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<std::vector<T>> results(static_cast<std::size_t>(count));
  LaunchOptions options;
  options.on_report = [&](RankId rank, std::span<const std::byte> bytes) {
    std::vector<T>& values = results[rank.index()];
    values.resize(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  };
  const auto failure = run_ranks(
      kind, count,
      [&](Communicator& communicator, RankProgress&) {
        const std::vector<T> values = body(communicator);
        communicator.report(std::as_bytes(std::span(values)));
      },
      options);
  if (failure) throw std::runtime_error(failure->cause);  // there are no results to look at
  return results;
}

inline std::string kind_name(const testing::TestParamInfo<RankKind>& info) {
  return std::string(name_of(info.param));
}

}  // namespace meshwright
