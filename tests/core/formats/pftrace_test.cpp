#include "core/formats/pftrace.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/formats/file.hpp"
#include "tests/complaints.hpp"
#include "tests/core/timeline/random_timeline.hpp"
#include "tests/mutants.hpp"

namespace meshwright {
namespace {
using testing::HasSubstr;

std::string refusal_of(std::string_view bytes) {
  return complaints_of([&] { timeline_from_pftrace(bytes, "x.pftrace"); });
}

TEST(Pftrace, ReadsBackEqual) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const Timeline timeline =
        random_timeline(seed, {.ranks = static_cast<int>(seed % 4), .derived_names = seed % 5 > 0});
    EXPECT_EQ(timeline_from_pftrace(to_pftrace(timeline), "x"), timeline) << "seed " << seed;
  }
}

TEST(Pftrace, KeepsEveryPicosecond) {
  Timeline t;
  t.tracks = {{RankId(0), Stream::kCompute}};
  t.names = {"a"};
  t.spans = {{Ticks(1), Ticks(999), 0, 0},
             {Ticks(999), Ticks(1'000), 0, 0},
             {Ticks(1'000), Ticks(123'456'789'012'345), 0, 0}};
  EXPECT_EQ(timeline_from_pftrace(to_pftrace(t), "x"), t);
}

TEST(Pftrace, ReportsProgressAndStopsOnRequest) {
  Timeline t;
  t.tracks = {{RankId(0), Stream::kCompute}};
  t.names = {"a"};
  for (int i = 0; i < 300'000; ++i) t.spans.push_back({Ticks(i), Ticks(i + 1), 0, 0});
  const std::string bytes = to_pftrace(t);
  std::vector<std::size_t> read;
  timeline_from_pftrace(bytes, "x", [&](std::size_t done) { read.push_back(done); });
  EXPECT_GE(read.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(read));
  EXPECT_LE(read.back(), bytes.size());
  struct Stop {};
  EXPECT_THROW(timeline_from_pftrace(bytes, "x", [](std::size_t) { throw Stop{}; }), Stop);
}

TEST(Pftrace, AFileIsReadInPieces) {
  Timeline t;
  t.tracks = {{RankId(0), Stream::kCompute}};
  t.names = {"a"};
  for (int i = 0; i < 600'000; ++i) t.spans.push_back({Ticks(i), Ticks(i + 1), 0, 0});
  t.provenance["note"] = std::string(2 * kPftracePiece + 5, 'x');  // a packet of three pieces
  const std::string path = fmt::format("{}pieces-{}.pftrace", testing::TempDir(), ::getpid());
  const std::string bytes = to_pftrace(t);
  write_file(path, bytes);
  std::vector<std::size_t> read;
  EXPECT_EQ(read_pftrace(path, [&](std::size_t done) { read.push_back(done); }), t);
  EXPECT_GE(read.size(), 5U);
  EXPECT_TRUE(std::ranges::is_sorted(read));

  for (const std::size_t size : {bytes.size() - 1, kPftracePiece + 7, std::size_t{3}}) {
    const std::string_view cut = std::string_view(bytes).substr(0, size);
    write_file(path, cut);
    EXPECT_EQ(complaints_of([&] { read_pftrace(path); }),
              complaints_of([&] { timeline_from_pftrace(cut, path); }));
  }
  std::filesystem::remove(path);
}

TEST(Pftrace, PiecesMayEndAnywhere) {
  const std::string path = fmt::format("{}ends-{}.pftrace", testing::TempDir(), ::getpid());
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const Timeline timeline = random_timeline(seed, {.ranks = 3, .derived_names = seed % 2 == 0});
    write_file(path, to_pftrace(timeline));
    for (const std::size_t piece : {1u, 2u, 157u, 401u, 1000u})
      EXPECT_EQ(read_pftrace(path, {}, piece), timeline) << "seed " << seed << ", piece " << piece;
  }
  std::filesystem::remove(path);
}

TEST(Pftrace, RefusesWhatIsNoFileAndFilesThatAreTooLarge) {
  EXPECT_THAT(complaints_of([] { read_pftrace(testing::TempDir()); }),
              HasSubstr("is not a regular file"));
  const std::string path = fmt::format("{}huge-{}.pftrace", testing::TempDir(), ::getpid());
  write_file(path, "");
  std::filesystem::resize_file(path, kLargestTraceFile + 1);  // without blocks on the disk
  EXPECT_THAT(complaints_of([&] { read_pftrace(path); }), HasSubstr("exceeds the size limit"));
  std::filesystem::remove(path);
}

TEST(Pftrace, AnEmptyTimelineIsATimeline) {
  EXPECT_EQ(timeline_from_pftrace(to_pftrace(Timeline{}), "x"), Timeline{});
}

TEST(Pftrace, IsTheSameForTheSameTimeline) {
  EXPECT_EQ(to_pftrace(random_timeline(3)), to_pftrace(random_timeline(3)));
}

TEST(Pftrace, RefusesWhatIsNoTimeline) {
  EXPECT_THAT(refusal_of(""), HasSubstr("x.pftrace: byte 0: not a valid Meshwright timeline: "
                                        "missing Meshwright metadata"));
  EXPECT_THAT(refusal_of("hello, world"), HasSubstr("x.pftrace: byte 2: not a valid Meshwright "
                                                    "timeline: invalid protobuf message"));
  std::string cut = to_pftrace(random_timeline(1));
  cut.resize(cut.size() / 2);
  EXPECT_THAT(refusal_of(cut), HasSubstr("error: x.pftrace: byte "));
}

/// Independent of the reader: protoc prints fields by number without knowing the schema.
struct Decoded {
  std::map<std::string, long long> last_timestamp;  ///< of BEGIN and END, by track uuid
  int begins = 0, ends = 0, counters = 0, overlaps = 0, packets = 0;
  std::size_t flows = 0;
};

Decoded decode_raw(const std::string& path) {
  Decoded d;
  FILE* pipe = ::popen(("protoc --decode_raw < " + path).c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  char line[4096];
  std::string timestamp, type, track;
  const auto value = [&](const char* prefix) -> std::string {
    const std::string text = line;
    if (text.rfind(prefix, 0) != 0) return "";
    return text.substr(std::string(prefix).size(), text.find('\n') - std::string(prefix).size());
  };
  while (std::fgets(line, sizeof line, pipe)) {
    if (std::string(line) == "1 {\n") timestamp = type = track = "";
    if (const std::string v = value("  8: "); !v.empty()) timestamp = v;
    if (const std::string v = value("    9: "); !v.empty()) type = v;
    if (const std::string v = value("    11: "); !v.empty()) track = v;
    d.flows += !value("    47: ").empty() || !value("    48: ").empty();
    if (std::string(line) != "}\n") continue;
    ++d.packets;
    d.counters += type == "4";
    if (type != "1" && type != "2") continue;
    ++(type == "1" ? d.begins : d.ends);
    const long long time = std::stoll(timestamp);
    const auto known = d.last_timestamp.find(track);
    d.overlaps += known != d.last_timestamp.end() && time < known->second;
    d.last_timestamp[track] = time;
  }
  EXPECT_EQ(::pclose(pipe), 0) << "protoc did not accept the bytes";
  return d;
}

TEST(Pftrace, DecodesWithProtocAndItsSpansDoNotOverlapInNanoseconds) {
  if (std::system("protoc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "protoc is missing";
  std::string pattern = std::filesystem::temp_directory_path() / "meshwright-pftrace-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Timeline timeline = random_timeline(seed);
    write_file(pattern + "/x.pftrace", to_pftrace(timeline));
    const Decoded d = decode_raw(pattern + "/x.pftrace");
    EXPECT_EQ(d.begins, static_cast<int>(timeline.spans.size()));
    EXPECT_EQ(d.ends, static_cast<int>(timeline.spans.size()));
    EXPECT_EQ(d.flows, 2 * timeline.flows.size());
    EXPECT_EQ(d.last_timestamp.size(), timeline.tracks.size());
    EXPECT_EQ(d.overlaps, 0);
    EXPECT_GE(d.counters, static_cast<int>(timeline.memory.size()));
  }
  std::filesystem::remove_all(pattern);
}

TEST(Pftrace, SurvivesMutations) {
  constexpr int kCases = 5000;
  const std::string original = to_pftrace(random_timeline(1, {.ranks = 2, .spans_per_track = 5}));
  const auto mutant = [&](std::mt19937& random) {
    std::string bytes = original;
    for (auto edits = 1 + random() % 3; edits > 0 && !bytes.empty(); --edits) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.erase(at, 1 + random() % 60);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 100));
      }
    }
    return bytes;
  };
  const int accepted = accepted_mutants(kCases, mutant, [](const std::string& bytes) {
    const Timeline timeline = timeline_from_pftrace(bytes, "x");
    EXPECT_EQ(timeline_from_pftrace(to_pftrace(timeline), "x"), timeline);
  });
  EXPECT_GT(accepted, 0) << "a changed time or size is still a timeline";
  EXPECT_LT(accepted, kCases);
}

TEST(Pftrace, StaysSmallPerSpan) {
  // About 5 s of 1F1B-like work; derived names, as simulated timelines have.
  Timeline t;
  constexpr int kSpans = 20'000, kTracks = 16;
  for (int r = 0; r < kTracks; ++r) t.tracks.push_back({RankId(r), Stream::kCompute});
  std::mt19937 random(1);
  for (int i = 0; i < kSpans; ++i) {
    const int track = i / (kSpans / kTracks);
    const bool first = i % (kSpans / kTracks) == 0;
    const Ticks start = first ? Ticks(0) : t.spans.back().end;
    const Ticks end = start + Ticks(4'000'000'000 + random() % 1'000'000);
    const int mb = i % 512;
    t.spans.push_back({start, end, track, i, mb, static_cast<std::int16_t>(track)});
    std::string name = "r" + std::to_string(track) + ".";
    name += name_of(Stream::kCompute);
    name += ".s" + std::to_string(track) + "." + std::string(name_of(TaskKind::kForward));
    t.names.push_back(name + std::to_string(mb) + (i >= 512 ? "#2" : ""));
  }
  const std::size_t size = to_pftrace(t).size();
  EXPECT_LE(size / kSpans, 72u);
  RecordProperty("bytes_per_span", static_cast<int>(size / kSpans));
}

}  // namespace
}  // namespace meshwright
