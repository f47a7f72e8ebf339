#include "core/formats/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/error.hpp"

namespace meshwright {

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string decompress_gzip(std::string_view bytes, std::string_view where, std::size_t limit) {
  const auto refuse = [&](std::string what) {
    throw InputError(
        Diagnostic{std::string(where), std::move(what), "check the file with 'gunzip -t'"});
  };
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) refuse("cannot decompress file");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closing(&stream, inflateEnd);
  std::string out;
  std::vector<char> piece(std::size_t{1} << 20);
  std::size_t at = 0;
  int state = Z_OK;
  while (at < bytes.size() || stream.avail_in > 0) {
    if (stream.avail_in == 0) {
      const std::size_t take = std::min<std::size_t>(bytes.size() - at, std::size_t{1} << 28);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + at));
      stream.avail_in = static_cast<uInt>(take);
      at += take;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) refuse("not a valid gzip file");
    out.append(piece.data(), piece.size() - stream.avail_out);
    if (out.size() > limit) refuse(fmt::format("larger than {} bytes when decompressed", limit));
    if (state == Z_STREAM_END && inflateReset(&stream) != Z_OK) refuse("cannot decompress file");
  }
  // The last member must be complete.
  if (state != Z_STREAM_END) refuse("gzip data is truncated");
  return out;
}

}  // namespace meshwright
