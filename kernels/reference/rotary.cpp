#include <cmath>

#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {

void run(const Launch&, const RotaryTable& a) {
  const std::int64_t pairs = std::ssize(a.frequencies);
  for (std::int64_t p = 0; p < a.positions; ++p) {
    const std::int64_t position = a.first_position + p;
    const auto intervals = static_cast<double>(intervals_before(a.temperature, position));
    const double factor = a.scale * (1 + a.temperature.growth * std::log1p(intervals));
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(position) * double{get(a.frequencies, i)};
      get(a.table, 2 * (p * pairs + i)) = static_cast<float>(factor * std::cos(angle));
      get(a.table, 2 * (p * pairs + i) + 1) = static_cast<float>(factor * std::sin(angle));
    }
  }
}

namespace {

void rotate_head(const Rotary& a, std::int64_t row, std::int64_t head) {
  const std::int64_t pairs = a.rotated / 2, start = head * a.head_size + a.first;
  const std::int64_t entry = std::int64_t{get(a.positions, row)} * pairs;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const bool halves = a.pairs == RotaryPairs::kHalves;
    const std::int64_t first = start + (halves ? i : 2 * i);
    const std::int64_t second = halves ? first + pairs : first + 1;
    const double cosine = double{get(a.table, 2 * (entry + i))};
    const double sine = double{get(a.table, 2 * (entry + i) + 1)} * (a.inverse ? -1 : 1);
    const double u = at(a.x, row, first), v = at(a.x, row, second);
    put(a.y, row, first, u * cosine - v * sine);
    put(a.y, row, second, u * sine + v * cosine);
  }
}

}  // namespace

void run(const Launch&, const Rotary& a) {
  for (std::int64_t row = 0; row < a.x.rows; ++row)
    for (std::int64_t head = 0; head < a.heads; ++head) {
      for (std::int64_t i = 0; i < a.head_size; ++i)
        if (i < a.first || i >= a.first + a.rotated)
          put(a.y, row, head * a.head_size + i, at(a.x, row, head * a.head_size + i));
      rotate_head(a, row, head);
    }
}

void run(const Launch&, const CopyHeads& a) {
  for (std::int64_t row = 0; row < a.x.rows; ++row)
    for (std::int64_t head = 0; head < a.heads_y; ++head)
      for (std::int64_t i = 0; i < a.count; ++i) {
        const bool sums = a.heads_y == 1, shares = a.heads_x == 1;
        double value = 0;
        const std::int64_t first = sums || shares ? 0 : head, last = sums ? a.heads_x - 1 : first;
        for (std::int64_t from = first; from <= last; ++from)
          value += at(a.x, row, from * a.size_x + a.from + i);
        put(a.y, row, head * a.size_y + a.to + i, value);
      }
}

}  // namespace meshwright::reference
