#include "core/formats/event_file.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace meshwright {

std::uint32_t index_of_text(std::string_view text, TextIndex& index,
                            std::vector<std::string>& texts) {
  const auto known = index.find(text);
  if (known != index.end()) return known->second;
  const auto position = static_cast<std::uint32_t>(texts.size());
  texts.emplace_back(text);
  index.emplace(text, position);
  return position;
}

void EventFile::reject(std::string_view what) const {
  throw InputError(Diagnostic{fmt::format("{}: byte {}", where_, scanner.position()),
                              fmt::format("not a valid {}: {}", format_.name, what),
                              fmt::format("use a trace exported by {}", format_.source)});
}

std::string_view EventFile::number_or_text() {
  switch (scanner.next()) {
    case JsonScanner::Kind::kText:
      return scanner.text();
    case JsonScanner::Kind::kNumber:
      return scanner.number();
    default:
      scanner.skip();
      return {};
  }
}

std::optional<std::int64_t> EventFile::integer() {
  return number_from_text<std::int64_t>(number_or_text());
}

std::optional<std::int64_t> EventFile::base_time() {
  const auto base = integer();
  return base && *base >= 0 && *base < kLatestBaseTime ? base : std::nullopt;
}

std::optional<std::int64_t> EventFile::nanoseconds() {
  std::int64_t value = 0;
  const std::string_view text = number_or_text();
  if (text.empty() || !microseconds_to_nanoseconds(text, value)) return std::nullopt;
  return value;
}

char EventFile::phase() {
  const std::string_view text = number_or_text();
  return text.size() == 1 ? text[0] : '\0';
}

bool EventFile::read_times(std::string_view key, EventTimes& event) {
  if (key == "ph")
    event.phase = phase();
  else if (key == "ts")
    event.start = nanoseconds();
  else if (key == "dur")
    event.duration = nanoseconds();
  else
    return false;
  return true;
}

void EventFile::note_event(std::size_t count) const {
  if (count > format_.most_events) reject(fmt::format("more than {} events", format_.most_events));
  constexpr std::size_t kEventsPerReport = 1U << 17;
  if (progress_ && count % kEventsPerReport == 0) progress_(scanner.position());
}

}  // namespace meshwright
