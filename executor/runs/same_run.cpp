#include "executor/runs/same_run.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "executor/transport/wire.hpp"

namespace meshwright {
namespace {

constexpr MessageTag kSettingsTag{Channel::kControl, 4};
constexpr std::uint64_t kMostBytes = 1 << 20;

std::vector<std::byte> bytes_of(const RunSettings& settings) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(settings.size()));
  for (const auto& [name, value] : settings) {
    writer.text(name);
    writer.text(value);
  }
  return writer.take();
}

RunSettings settings_from(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  RunSettings settings;
  for (auto left = reader.number<std::uint32_t>(); left > 0; --left) {
    std::string name = reader.text();
    settings[std::move(name)] = reader.text();
  }
  return settings;
}

RunSettings settings_of_first(Communicator& communicator) {
  std::uint64_t size = 0;
  communicator.receive(RankId(0), kSettingsTag, std::as_writable_bytes(std::span(&size, 1)));
  if (size > kMostBytes) throw RuntimeFailure({"rank 0", "sent an invalid message", ""});
  std::vector<std::byte> bytes(size);
  communicator.receive(RankId(0), kSettingsTag, bytes);
  return settings_from(bytes);
}

[[noreturn]] void refuse(const std::string& name, const std::string& own,
                         const std::string& first) {
  throw InputError(Diagnostic{name, fmt::format("is {} on this rank, but {} on rank 0", own, first),
                              "start all ranks with the same options, files and program"});
}

}  // namespace

void check_same_run(Communicator& communicator, const RunSettings& settings) {
  if (communicator.rank() == RankId(0)) {
    const std::vector<std::byte> bytes = bytes_of(settings);
    const std::uint64_t size = bytes.size();
    for (int rank = 1; rank < communicator.rank_count(); ++rank) {
      communicator.send(RankId(rank), kSettingsTag, std::as_bytes(std::span(&size, 1)), {});
      communicator.send(RankId(rank), kSettingsTag, bytes, {});
    }
    return;
  }
  const RunSettings first = settings_of_first(communicator);
  constexpr const char* kNone = "not set";
  for (const auto& [name, value] : settings) {
    const auto found = first.find(name);
    if (found == first.end()) refuse(name, value, kNone);
    if (found->second != value) refuse(name, value, found->second);
  }
  for (const auto& [name, value] : first)
    if (!settings.contains(name)) refuse(name, kNone, value);
}

}  // namespace meshwright
