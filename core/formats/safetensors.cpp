#include "core/formats/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/json_value.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kLengthBytes = 8;
constexpr std::int64_t kMostTensorElements = std::int64_t{1} << 34;
constexpr std::size_t kMostDimensions = 8;

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

void read_float32(const char* data, std::vector<float>& values) {
  std::memcpy(values.data(), data, values.size() * sizeof(float));
}

/// bf16 is the upper half of fp32.
void read_bfloat16(const char* data, std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, data + i * sizeof half, sizeof half);
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  }
}

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits.
float float16(std::uint16_t half) {
  constexpr int kFraction = 10, kBias = 15, kLargestExponent = 31;
  const int exponent = half >> kFraction & kLargestExponent;
  const auto fraction = static_cast<double>(half & ((1 << kFraction) - 1));
  const double unit = std::ldexp(1.0, -kFraction);
  double size = std::ldexp(1 + fraction * unit, exponent - kBias);
  if (exponent == 0) size = std::ldexp(fraction * unit, 1 - kBias);
  if (exponent == kLargestExponent) size = fraction == 0 ? INFINITY : NAN;
  return static_cast<float>(half >> 15 != 0 ? -size : size);
}
void read_float16(const char* data, std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, data + i * sizeof half, sizeof half);
    values[i] = float16(half);
  }
}

struct Element {
  std::string_view name;
  std::int64_t bytes;
  void (*read)(const char* data, std::vector<float>& values);
};
constexpr Element kElements[] = {
    {"F32", 4, read_float32}, {"F16", 2, read_float16}, {"BF16", 2, read_bfloat16}};

using Entry = SafetensorsFile::Entry;

constexpr const char* kNotComplete =
    "check that this is a complete safetensors file, such as those written by --save";

[[noreturn]] void refuse(std::string_view where, std::string what, std::string hint) {
  throw InputError(Diagnostic{std::string(where), std::move(what), std::move(hint)});
}

/// The length of the header of a file with these first bytes.
std::uint64_t header_length(std::string_view start, std::uint64_t file_size,
                            std::string_view where) {
  if (start.size() < kLengthBytes)
    refuse(where, fmt::format("not a valid safetensors file: only {} bytes long", start.size()),
           kNotComplete);
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), kLengthBytes);
  if (length > kLargestTensorHeader || length > file_size - kLengthBytes)
    refuse(where,
           fmt::format("not a valid safetensors file: header of {} bytes in a file of {} bytes "
                       "(maximum header size: {} bytes)",
                       length, file_size, kLargestTensorHeader),
           kNotComplete);
  return length;
}

/// The metadata and the entries of a header, which the data must fill.
class Header {
 public:
  Header(std::string_view text, std::uint64_t data_size, std::string_view where) : where_(where) {
    const JsonValue json = parse_json(text, std::string(where_) + " (header)");
    const auto* members = json.as<JsonObject>();
    if (members == nullptr)
      refuse(where_, fmt::format("invalid header: expected an object, got {}", describe(json)),
             kNotComplete);
    for (const JsonMember& member : *members)
      member.key == kMetadata ? read_metadata(member.value) : read_entry(member);
    throw_if_any(problems_);
    check_data(data_size);
  }

  std::map<std::string, std::string> metadata;
  std::vector<Entry> entries;

 private:
  void read_metadata(const JsonValue& value) {
    const auto* members = value.as<JsonObject>();
    if (members == nullptr)
      refuse(where_, fmt::format("invalid metadata: expected an object, got {}", describe(value)),
             kNotComplete);
    for (const JsonMember& member : *members) {
      const auto* text = member.value.as<std::string>();
      if (text == nullptr)
        refuse(where_,
               fmt::format("invalid metadata '{}': expected a string, got {}", member.key,
                           describe(member.value)),
               kNotComplete);
      metadata[member.key] = *text;
    }
  }

  void read_entry(const JsonMember& member) {
    const std::string place = fmt::format("{}#/{}", where_, member.key);
    JsonObjectReader reader(member.value, place, problems_);
    Entry entry;
    entry.name = member.key;
    const std::string type = reader.text("dtype");
    const auto known = std::ranges::find(kElements, type, &Element::name);
    if (problems_.empty() && known == std::end(kElements))
      reader.note("dtype", fmt::format("expected \"F32\", \"F16\" or \"BF16\", got \"{}\"", type),
                  "convert the tensor to fp32");
    if (problems_.empty()) entry.element = static_cast<std::size_t>(known - kElements);
    entry.shape = reader.integers("shape", 0, kMostTensorElements, kMostDimensions);
    const std::vector<std::int64_t> offsets =
        reader.integers("data_offsets", 0, static_cast<std::int64_t>(kLargestTensorFile), 2);
    reader.finish();
    if (!problems_.empty()) return;
    const std::int64_t bytes = kElements[entry.element].bytes;
    if (offsets.size() != 2 || !agrees(entry.shape, offsets, bytes)) {
      reader.note("data_offsets",
                  fmt::format("[{}] does not match shape [{}] with {}-byte elements",
                              fmt::join(offsets, ", "), fmt::join(entry.shape, ", "), bytes),
                  fmt::format("give the begin and end of the data, {} bytes per element", bytes));
      return;
    }
    entry.begin = offsets[0];
    entry.end = offsets[1];
    entries.push_back(std::move(entry));
  }

  /// Avoids overflow by stopping once the product exceeds the largest possible file.
  static bool agrees(const std::vector<std::int64_t>& shape,
                     const std::vector<std::int64_t>& offsets, std::int64_t bytes) {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return offsets[0] == offsets[1];
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
      if (extent > kMostTensorElements / count) return false;
      count *= extent;
    }
    return offsets[1] - offsets[0] == count * bytes;
  }

  /// The data must be contiguous and fill the file.
  void check_data(std::uint64_t size) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::int64_t end = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != end)
        refuse(fmt::format("{}#/{}/data_offsets", where_, entry.name),
               fmt::format("begins at {}, but the previous tensor ends at {}", entry.begin, end),
               "store tensors contiguously, without gaps");
      end = entry.end;
    }
    if (static_cast<std::uint64_t>(end) != size)
      refuse(where_, fmt::format("expected {} bytes of tensors, got {}", end, size), kNotComplete);
  }

  std::string_view where_;
  std::vector<Diagnostic> problems_;
};

/// `data`: of this entry.
std::vector<float> values_of(const Entry& entry, const char* data) {
  const Element& element = kElements[entry.element];
  std::vector<float> values(static_cast<std::size_t>((entry.end - entry.begin) / element.bytes));
  if (!values.empty()) element.read(data, values);
  return values;
}

}  // namespace

std::string to_safetensors(const TensorFile& file) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) header[kMetadata] = file.metadata;
  std::int64_t end = 0;
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : file.tensors) {
    MW_CHECK(tensor.name != kMetadata && names.insert(tensor.name).second);
    MW_CHECK(elements_of(tensor.shape) == static_cast<std::int64_t>(tensor.values.size()));
    const std::int64_t begin = end;
    end += static_cast<std::int64_t>(tensor.values.size() * sizeof(float));
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  using Handler = nlohmann::ordered_json::error_handler_t;
  std::string text = header.dump(-1, ' ', false, Handler::replace);  // names may be any bytes
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');  // data aligned
  const std::uint64_t length = text.size();
  std::string content(kLengthBytes, '\0');
  std::memcpy(content.data(), &length, kLengthBytes);
  content += text;
  content.reserve(content.size() + static_cast<std::size_t>(end));
  for (const NamedTensor& tensor : file.tensors)
    content.append(reinterpret_cast<const char*>(tensor.values.data()),
                   tensor.values.size() * sizeof(float));
  return content;
}

TensorFile tensors_from_safetensors(std::string_view content, std::string_view where) {
  const std::uint64_t length = header_length(content, content.size(), where);
  const std::string_view data = content.substr(kLengthBytes + length);
  Header header(content.substr(kLengthBytes, length), data.size(), where);
  TensorFile file{.metadata = std::move(header.metadata), .tensors = {}};
  for (Entry& entry : header.entries) {
    std::vector<float> values = values_of(entry, data.data() + entry.begin);
    file.tensors.push_back({std::move(entry.name), std::move(entry.shape), std::move(values)});
  }
  return file;
}

SafetensorsFile::SafetensorsFile(std::string path) : path_(std::move(path)) {
  const std::uint64_t size = size_of_file(path_);
  const std::uint64_t length = header_length(read_part(path_, 0, kLengthBytes), size, path_);
  data_begin_ = static_cast<std::int64_t>(kLengthBytes + length);
  const std::string text = read_part(path_, kLengthBytes, static_cast<std::size_t>(length));
  Header header(text, size - static_cast<std::uint64_t>(data_begin_), path_);
  metadata_ = std::move(header.metadata);
  entries_ = std::move(header.entries);
}

std::vector<float> SafetensorsFile::values(const Entry& entry) const {
  const std::string data = read_part(path_, static_cast<std::uint64_t>(data_begin_ + entry.begin),
                                     static_cast<std::size_t>(entry.end - entry.begin));
  if (std::ssize(data) != entry.end - entry.begin)
    refuse(path_,
           fmt::format("expected {} bytes of '{}', got {}", entry.end - entry.begin, entry.name,
                       data.size()),
           "do not change the file while it is read");
  return values_of(entry, data.data());
}

}  // namespace meshwright
