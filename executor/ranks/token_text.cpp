#include "executor/ranks/token_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/random.hpp"

namespace meshwright {

std::int32_t TokenFile::at(std::int64_t index) const {
  const std::int64_t bytes = bytes_of(content_.type);
  std::uint32_t token = 0;
  for (std::int64_t b = bytes; b-- > 0;)
    token = (token << 8) | std::to_integer<std::uint32_t>(
                               content_.bytes[static_cast<std::size_t>(index * bytes + b)]);
  if (token >= content_.vocabulary)
    throw RuntimeFailure(
        {content_.path,
         fmt::format("token ID {} at index {} is out of range for a vocabulary "
                     "of {}",
                     token, index, content_.vocabulary),
         "use the model that the file was tokenized for, or another --token-type"});
  return static_cast<std::int32_t>(token);
}

std::int64_t TokenText::size() const {
  std::int64_t all = std::ssize(words);
  for (const TokenFile& file : files) all += file.size();
  return all;
}

std::int32_t TokenText::at(std::int64_t index) const {
  if (index < std::ssize(words)) return words[static_cast<std::size_t>(index)];
  index -= std::ssize(words);
  for (const TokenFile& file : files) {
    if (index < file.size()) return file.at(index);
    index -= file.size();
  }
  MW_CHECK(false);
}

/// A sequence also reads the token after its last one, which is the first of the next sequence.
std::int64_t TokenText::start_of(std::int64_t sequence, std::int64_t sequence_length) const {
  const std::int64_t tokens = size();
  const std::int64_t count = (tokens - 1) / sequence_length;
  if (!shuffle_seed || count < 1) return sequence * sequence_length % tokens;
  const auto epoch = static_cast<std::uint64_t>(sequence / count);
  return shuffled(sequence % count, count, mixed_bits(*shuffle_seed + epoch)) * sequence_length;
}

std::int64_t shuffled(std::int64_t index, std::int64_t count, std::uint64_t seed) {
  constexpr int kRounds = 4;  // a random permutation from four rounds (Luby and Rackoff, 1988)
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1)));
  const int half = std::max(1, (bits + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto at = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = at >> half, right = at & mask;
    for (std::uint64_t round = 0; round < kRounds; ++round)
      left = std::exchange(right,
                           left ^ (mixed_bits(seed ^ mixed_bits(right * kRounds + round)) & mask));
    at = left << half | right;
  } while (at >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(at);
}

}  // namespace meshwright
