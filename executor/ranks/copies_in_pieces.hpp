/// Host copies of long vectors with a heartbeat per chunk: first-touch page faults are slow on a
/// busy machine.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "executor/ranks/kernel_pieces.hpp"
#include "executor/transport/communicator.hpp"

namespace meshwright {

template <class T, class Visit>
void visit_in_pieces(std::span<T> all, Beats& beats, const Visit& visit) {
  for_each_piece(
      std::ssize(all), PieceLimits().elements, [&](std::int64_t first, std::int64_t count) {
        visit(all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
        beats.fetch_add(1, std::memory_order_relaxed);
      });
}

template <class T>
void append(std::vector<T>& to, std::span<const T> from, Beats& beats) {
  to.reserve(to.size() + from.size());
  visit_in_pieces(from, beats, [&](std::span<const T> piece) {
    to.insert(to.end(), piece.begin(), piece.end());
  });
}

/// A vector of `count` zeros.
template <class T>
std::vector<T> zeros(std::size_t count, Beats& beats) {
  std::vector<T> made;
  made.reserve(count);
  for_each_piece(static_cast<std::int64_t>(count), PieceLimits().elements,
                 [&](std::int64_t, std::int64_t more) {
                   made.resize(made.size() + static_cast<std::size_t>(more));
                   beats.fetch_add(1, std::memory_order_relaxed);
                 });
  return made;
}

}  // namespace meshwright
