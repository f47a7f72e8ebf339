/// The training text as token IDs, in memory or in memory-mapped files, and its order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace meshwright {

enum class TokenType : std::uint8_t { kUint16, kUint32 };
constexpr std::int64_t bytes_of(TokenType type) { return type == TokenType::kUint16 ? 2 : 4; }

/// Little-endian token IDs in a memory-mapped file: pages are read when their tokens are used.
class TokenFile {
 public:
  struct Content {
    std::string path;                     ///< for messages
    std::shared_ptr<const void> mapping;  ///< keeps `bytes` alive
    std::span<const std::byte> bytes;     ///< tokens only
    TokenType type = TokenType::kUint16;
    std::uint32_t vocabulary = 0;
  };
  explicit TokenFile(Content content) : content_(std::move(content)) {}
  std::int64_t size() const { return std::ssize(content_.bytes) / bytes_of(content_.type); }
  /// Throws RuntimeFailure if the token ID is not in the vocabulary.
  std::int32_t at(std::int64_t index) const;

 private:
  Content content_;
};

/// Sequence i of the global batch of step s is number s * global_batch + i. It reads
/// sequence_length + 1 tokens from number * sequence_length on, wrapping around at the end; or, if
/// shuffled, from order(number) * sequence_length on.
struct TokenText {
  std::vector<std::int32_t> words;
  std::vector<TokenFile> files;  ///< after `words`
  /// Visits all whole sequences in a random order, another one in every epoch; nullopt: as they
  /// are.
  std::optional<std::uint64_t> shuffle_seed;

  std::int64_t size() const;
  /// Token `index`, below size().
  std::int32_t at(std::int64_t index) const;
  /// First token of a sequence, below size().
  std::int64_t start_of(std::int64_t sequence, std::int64_t sequence_length) const;
};

/// Position of `index` in a permutation of [0, count) that the seed chooses. Takes constant memory:
/// a Feistel network on the bits of the index, repeated until the result is below `count`.
std::int64_t shuffled(std::int64_t index, std::int64_t count, std::uint64_t seed);

}  // namespace meshwright
