/// Serialization of numbers and arrays for messages between processes of this program: native byte
/// order, no padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace meshwright {

class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// Prefixed with its length.
  template <class T>
  void array(std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    number(static_cast<std::uint64_t>(values.size()));
    const auto bytes = std::as_bytes(values);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(const std::string& value) { array(std::span<const char>(value)); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// A message that no rank sends: damaged on the way, or from another program.
class InvalidFrame : public std::runtime_error {
 public:
  InvalidFrame() : std::runtime_error("received an invalid message") {}
};

/// Throws InvalidFrame if the bytes end early.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    copy(&value, sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> array() {
    static_assert(std::is_arithmetic_v<T>);
    const auto count = number<std::uint64_t>();
    if (count > rest_.size() / sizeof(T)) throw InvalidFrame();
    std::vector<T> values(count);
    copy(values.data(), count * sizeof(T));
    return values;
  }
  std::string text() {
    const std::vector<char> characters = array<char>();
    return {characters.begin(), characters.end()};
  }
  bool is_at_end() const { return rest_.empty(); }
  std::size_t size() const { return rest_.size(); }

 private:
  void copy(void* to, std::size_t size) {
    if (size > rest_.size()) throw InvalidFrame();
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  std::span<const std::byte> rest_;
};

}  // namespace meshwright
