#include "core/formats/file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/complaints.hpp"

namespace meshwright {
namespace {
namespace fs = std::filesystem;

class IoFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "meshwright-io-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  fs::path folder_;
};

TEST_F(IoFile, ReadsBackWhatItWrote) {
  const std::string content("a\0b\r\n\xff", 6);
  write_file(path("x"), content);
  EXPECT_EQ(read_file(path("x")), content);
  write_file(path("x"), "");
  EXPECT_EQ(read_file(path("x")), "");
  EXPECT_EQ(entries(), 1u) << "no temporary file stays";
}

TEST_F(IoFile, ReadsFilesLargerThanItsFirstChunk) {
  std::string content(200'000, 'x');
  content[150'000] = 'y';
  write_file(path("x"), content);
  EXPECT_EQ(read_file(path("x")), content);
}

TEST_F(IoFile, SaysWhatIsWrongWithAnInput) {
  EXPECT_EQ(complaints_of([&] { read_file(path("missing")); }),
            "error: " + path("missing") + ": cannot open file: No such file or directory\n");
  EXPECT_THAT(complaints_of([&] { read_file(folder_); }), testing::HasSubstr("is a directory"));
}

TEST_F(IoFile, CapsInputs) {
  write_file(path("x"), "12345");
  EXPECT_EQ(read_file(path("x"), 5), "12345");
  EXPECT_THAT(complaints_of([&] { read_file(path("x"), 4); }),
              testing::HasSubstr("exceeds the size limit of 4 bytes"));
  // A character device reports no size and never ends.
  EXPECT_THAT(complaints_of([&] { read_file("/dev/zero", 1000); }),
              testing::HasSubstr("exceeds the size limit of 1000 bytes"));
}

TEST_F(IoFile, LeavesNothingBehindWhenItCannotWrite) {
  EXPECT_THROW(write_file(path("no/such/folder"), "x"), RuntimeFailure);
  fs::create_directory(path("folder"));
  EXPECT_THROW(write_file(path("folder"), "x"), RuntimeFailure);
  EXPECT_EQ(entries(), 1u);
}

/// The system kills the writer in the middle of a file that exceeds the size limit.
TEST_F(IoFile, LeavesNothingBehindWhenItsWriterIsKilled) {
  const int nameless = ::open(folder_.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (nameless < 0) GTEST_SKIP() << "this file system has no files without a name";
  ::close(nameless);
  write_file(path("x"), "old");
  const std::string large(1 << 20, 'x');
  const rlimit half{.rlim_cur = large.size() / 2, .rlim_max = large.size() / 2};
  const auto write_half = [&] {
    ::setrlimit(RLIMIT_FSIZE, &half);
    write_file(path("x"), large);
  };
  EXPECT_EXIT(write_half(), testing::KilledBySignal(SIGXFSZ), "");
  EXPECT_EQ(read_file(path("x")), "old");
  EXPECT_EQ(entries(), 1u) << "half a file stays";
}

TEST_F(IoFile, SaysThatTheDiskIsFullAndKeepsTheDevice) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  try {
    write_file("/dev/full", "x");
    FAIL() << "a full device took the file";
  } catch (const RuntimeFailure& failure) {
    EXPECT_EQ(failure.diagnostic().what, "cannot write file: No space left on device");
    EXPECT_EQ(failure.diagnostic().hint, "free disk space, or choose another location");
  }
  struct stat status {};
  ASSERT_EQ(::stat("/dev/full", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode)) << "a device is not replaced by a file";
}

TEST_F(IoFile, KeepsLinksAndPermissions) {
  write_file(path("real"), "old");
  ASSERT_EQ(::chmod(path("real").c_str(), 0640), 0);
  fs::create_symlink("real", path("link"));
  write_file(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("real")), "new");
  struct stat status {};
  ASSERT_EQ(::stat(path("real").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

}  // namespace
}  // namespace meshwright
