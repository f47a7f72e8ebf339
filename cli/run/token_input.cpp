#include "cli/run/token_input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/error.hpp"
#include "core/formats/file.hpp"
#include "executor/runs/example_text.hpp"

namespace meshwright {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_tokens(std::string where, std::string what, std::string hint) {
  throw InputError(Diagnostic{std::move(where), std::move(what), std::move(hint)});
}

/// The bytes of a file, and what keeps them in memory.
struct Mapped {
  std::shared_ptr<const void> mapping;
  std::span<const std::byte> bytes;
};

/// Standard input and pipes, which cannot be mapped.
Mapped read_whole(const std::string& path) {
  constexpr std::size_t kLargestPipe = std::size_t{1} << 30;
  auto content = std::make_shared<const std::string>(read_file(path, kLargestPipe));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(*content));
  return {std::move(content), bytes};
}

Mapped map_file(const std::string& path) {
  std::error_code error;
  const bool is_file = path != "-" && fs::is_regular_file(path, error);
  const std::size_t size = is_file ? fs::file_size(path, error) : 0;
  if (error || size == 0) return read_whole(path);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return read_whole(path);  // reports why
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (data == MAP_FAILED) return read_whole(path);  // some file systems cannot map
  const auto unmap = [size](const void* mapped) { ::munmap(const_cast<void*>(mapped), size); };
  return {std::shared_ptr<const void>(data, unmap), {static_cast<const std::byte*>(data), size}};
}

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t offset) {
  Number number = 0;
  for (std::size_t b = sizeof(Number); b-- > 0;)
    number = static_cast<Number>((number << 8) | std::to_integer<Number>(bytes[offset + b]));
  return number;
}

/// Which bytes of a file are tokens, and of what type.
struct Layout {
  TokenType type = TokenType::kUint16;
  std::size_t first = 0, size = 0;
};

// ---- llm.c ----

constexpr std::size_t kLlmcHeader = 256 * sizeof(std::int32_t);

/// A header of 256 int32: magic number, version, number of tokens (llm.c, dev/data/data_common.py).
std::optional<Layout> layout_of_llmc(const std::string& path, std::span<const std::byte> bytes) {
  constexpr std::uint32_t kGpt2 = 20240520, kLlama3 = 20240801;
  if (bytes.size() < kLlmcHeader) return std::nullopt;
  const auto magic = number_at<std::uint32_t>(bytes, 0);
  if (magic != kGpt2 && magic != kLlama3) return std::nullopt;
  const TokenType type = magic == kGpt2 ? TokenType::kUint16 : TokenType::kUint32;
  const auto tokens = std::size_t{number_at<std::uint32_t>(bytes, 2 * sizeof(std::uint32_t))};
  const std::size_t size = tokens * static_cast<std::size_t>(bytes_of(type));
  if (kLlmcHeader + size != bytes.size())
    refuse_tokens(
        path,
        fmt::format("llm.c header says {} tokens, which need {} bytes, but the file has {}", tokens,
                    kLlmcHeader + size, bytes.size()),
        "write the file again: it is incomplete");
  return Layout{type, kLlmcHeader, size};
}

// ---- Megatron-LM ----

constexpr std::string_view kMegatronMagic{"MMIDIDX\0\0", 9};

/// Header of an index: magic, version, type code, number of sequences, number of documents; then
/// the length of each sequence (megatron/core/datasets/indexed_dataset.py).
Layout layout_of_megatron(const std::string& index, std::span<const std::byte> bytes,
                          std::size_t tokens_size) {
  constexpr std::size_t kVersionAt = 9, kTypeAt = 17, kCountAt = 18, kLengthsAt = 34;
  constexpr std::uint8_t kInt32 = 4, kUint16 = 8;
  const bool is_index =
      bytes.size() >= kLengthsAt &&
      std::equal(kMegatronMagic.begin(), kMegatronMagic.end(), bytes.begin(),
                 [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
  if (!is_index || number_at<std::uint64_t>(bytes, kVersionAt) != 1)
    refuse_tokens(index, "not an index of Megatron-LM (version 1)",
                  "remove it if the tokens next to it are plain");
  const auto code = number_at<std::uint8_t>(bytes, kTypeAt);
  if (code != kInt32 && code != kUint16)
    refuse_tokens(index,
                  fmt::format("unsupported token type (code {}): expected int32 or uint16", code),
                  "preprocess the data with the tokenizer of the model");
  const Layout layout{code == kInt32 ? TokenType::kUint32 : TokenType::kUint16, 0, tokens_size};
  const auto count = number_at<std::uint64_t>(bytes, kCountAt);
  if (count > (bytes.size() - kLengthsAt) / sizeof(std::int32_t))
    refuse_tokens(index, fmt::format("{} sequences do not fit in {} bytes", count, bytes.size()),
                  "preprocess the data again: the index is incomplete");
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < count; ++i)
    tokens += number_at<std::uint32_t>(bytes, kLengthsAt + i * sizeof(std::int32_t));
  if (tokens * static_cast<std::uint64_t>(bytes_of(layout.type)) != tokens_size)
    refuse_tokens(index,
                  fmt::format("describes {} tokens, but the file next to it has {} bytes", tokens,
                              tokens_size),
                  "use the .bin and .idx files of the same preprocessing");
  return layout;
}

// ---- plain tokens ----

/// Whether 16-bit numbers are the halves of 32-bit token IDs: every second one is at most the upper
/// half of the largest ID.
bool are_halves(std::span<const std::byte> bytes, std::int64_t vocabulary) {
  constexpr std::size_t kFewest = 16, kMost = std::size_t{1} << 16;
  const std::size_t pairs = std::min(bytes.size() / sizeof(std::uint32_t), kMost);
  bool all_zero = true;
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto token = number_at<std::uint32_t>(bytes, i * sizeof(std::uint32_t));
    if (token >= vocabulary) return false;
    all_zero = all_zero && token == 0;
  }
  return pairs >= kFewest && !all_zero;
}

Layout plain_layout(const std::string& path, std::span<const std::byte> bytes,
                    const std::string& type, std::int64_t vocabulary) {
  constexpr std::string_view kNumpy = "\x93NUMPY";
  if (bytes.size() > kNumpy.size() &&
      std::equal(kNumpy.begin(), kNumpy.end(), bytes.begin(),
                 [](char a, std::byte b) { return static_cast<std::byte>(a) == b; }))
    refuse_tokens(path, "NumPy files are not supported", "write the tokens with array.tofile()");
  const bool is_wide = type == "uint32";
  const std::size_t size = is_wide ? sizeof(std::uint32_t) : sizeof(std::uint16_t);
  if (bytes.size() % size != 0)
    refuse_tokens(path,
                  fmt::format("size of {} bytes is not a multiple of the token size ({} bytes)",
                              bytes.size(), size),
                  "set --token-type to uint16 or uint32, as written by the tokenizer");
  if (type.empty() && are_halves(bytes, vocabulary))
    refuse_tokens(
        path, "contains 32-bit token IDs, but the default token type is uint16",
        "set --token-type uint32 (or uint16, if the IDs really alternate with small ones)");
  return {is_wide ? TokenType::kUint32 : TokenType::kUint16, 0, bytes.size()};
}

// ---- files ----

/// "x.bin" and "x.idx" for a path "x", "x.bin" or "x.idx" with an index.
struct TokenPaths {
  std::string tokens, index;  ///< no index: empty
};

TokenPaths paths_of(const std::string& path) {
  std::error_code error;
  fs::path stem(path);
  if (stem.extension() == ".bin" || stem.extension() == ".idx") stem.replace_extension();
  const std::string index = stem.string() + ".idx", tokens = stem.string() + ".bin";
  const bool is_pair = (path != stem.string() || !fs::exists(path, error)) &&
                       fs::exists(index, error) && fs::exists(tokens, error);
  return is_pair ? TokenPaths{tokens, index} : TokenPaths{path, ""};
}

/// Larger files are checked while they are used.
constexpr std::int64_t kMostTokensToCheck = std::int64_t{1} << 26;

void check_tokens(const TokenFile& file) {
  try {
    for (std::int64_t i = 0; i < std::min(file.size(), kMostTokensToCheck); ++i)
      static_cast<void>(file.at(i));
  } catch (const RuntimeFailure& failure) {
    throw InputError(failure.diagnostic());
  }
}

TokenFile token_file(const std::string& path, const std::string& type, std::int64_t vocabulary) {
  const TokenPaths paths = paths_of(path);
  Mapped mapped = map_file(paths.tokens);
  if (mapped.bytes.empty())
    refuse_tokens(paths.tokens, "file is empty", "use a file with token IDs");
  std::optional<Layout> layout = layout_of_llmc(paths.tokens, mapped.bytes);
  if (!layout && !paths.index.empty())
    layout = layout_of_megatron(paths.index, map_file(paths.index).bytes, mapped.bytes.size());
  if (!layout) layout = plain_layout(paths.tokens, mapped.bytes, type, vocabulary);
  TokenFile file({.path = paths.tokens,
                  .mapping = std::move(mapped.mapping),
                  .bytes = mapped.bytes.subspan(layout->first, layout->size),
                  .type = layout->type,
                  .vocabulary = static_cast<std::uint32_t>(vocabulary)});
  check_tokens(file);
  return file;
}

/// The files that match, sorted; the pattern itself if none does, so that the error names it.
std::vector<std::string> files_of(const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&::globfree)> owner(&found, &::globfree);
  if (::glob(pattern.c_str(), GLOB_NOCHECK, nullptr, &found) != 0) return {pattern};
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

}  // namespace

TokenText words_of_text(const std::string& path, const ModelGraph& model) {
  constexpr std::int64_t kByteValues = 256;
  if (traits_of(model).vocabulary < kByteValues)
    refuse_tokens("--model",
                  fmt::format("vocabulary size must be at least {} for byte-level text, got {}",
                              kByteValues, traits_of(model).vocabulary),
                  "use a model with a larger vocabulary, or --tokens");
  const std::string bytes = path.empty() ? std::string(example_text()) : read_file(path);
  if (bytes.empty()) refuse_tokens(path, "file is empty", "use another file, or remove --text");
  TokenText text;
  text.words.reserve(bytes.size());
  for (const char c : bytes) text.words.push_back(static_cast<unsigned char>(c));
  return text;
}

TokenText read_words(const RunFlags& flags, const ModelGraph& model) {
  if (!flags.tokens.empty() && !flags.text.empty())
    throw UsageError({.where = "--tokens",
                      .what = "cannot be combined with '--text'",
                      .hint = "remove one of them"});
  return flags.tokens.empty() ? words_of_text(flags.text, model)
                              : words_of_tokens(flags.tokens, flags.token_type, model);
}

TokenText words_of_tokens(const std::vector<std::string>& patterns, const std::string& type,
                          const ModelGraph& model) {
  TokenText text;
  for (const std::string& pattern : patterns)
    for (const std::string& file : files_of(pattern))
      text.files.push_back(token_file(file, type, traits_of(model).vocabulary));
  return text;
}

}  // namespace meshwright
