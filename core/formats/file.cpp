#include "core/formats/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Closes now to catch deferred errors (network file systems); returns 0 or errno.
  int close() { return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno; }

 private:
  int fd_;
};

[[noreturn]] void refuse_input(const std::string& path, std::string what, std::string hint) {
  throw InputError(
      Diagnostic{path == "-" ? "standard input" : path, std::move(what), std::move(hint)});
}

[[noreturn]] void fail_write(const std::string& path, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  throw RuntimeFailure(Diagnostic{path, fmt::format("cannot write file: {}", reason(error)),
                                  is_full ? "free disk space, or choose another location" : ""});
}

[[noreturn]] void refuse_size(const std::string& path, std::uint64_t limit) {
  refuse_input(path, fmt::format("exceeds the size limit of {} bytes", limit),
               "check that this is the right file");
}

/// Reads to the end; the size reported by the file system is only a hint.
std::string read_all(int fd, const std::string& path, std::size_t expected, std::size_t limit) {
  constexpr std::size_t kFirstChunk = 1 << 16;
  std::string content(std::min(limit, std::max(expected, kFirstChunk)) + 1, '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t n = ::read(fd, content.data() + size, content.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse_input(path, fmt::format("cannot read file: {}", reason(errno)), "");
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
    if (size > limit) refuse_size(path, limit);
    if (size == content.size()) content.resize(std::min(limit, 2 * size) + 1);
  }
  content.resize(size);
  return content;
}

/// Returns 0 or errno.
int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

void write_standard_output(std::string_view content) {
  const std::size_t written = std::fwrite(content.data(), 1, content.size(), stdout);
  if (written == content.size() && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw BrokenPipe();
  fail_write("standard output", errno);
}

/// Devices and pipes are written in place, because a rename would replace them with a file.
void write_in_place(const std::string& path, std::string_view content) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) fail_write(path, errno);
  if (const int error = write_all(file.get(), content)) fail_write(path, error);
}

/// Follows symbolic links, so that the target is replaced and not the link.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? std::string(real.get()) : path;
}

/// Calls `create` with temporary names in the directory of `target` until it returns true; `create`
/// returns false with errno set on failure. Names contain the process ID, so two processes never
/// use the same one.
template <class Create>
std::string create_beside(const std::string& target, const std::string& path, Create create) {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string name = fmt::format("{}.{}-{}.tmp", target, ::getpid(), attempt);
    if (create(name)) return name;
    if (errno != EEXIST) fail_write(path, errno);
  }
  fail_write(path, EEXIST);
}

/// Name of the temporary file that is being written; null: none. Volatile, since a signal handler
/// reads it.
const char* volatile unfinished_file = nullptr;

struct NewFile {
  int fd;
  std::string name;  ///< empty: unnamed
};

/// A new file in the directory of `target`. If the file system supports O_TMPFILE, the file is
/// unnamed while it is written, so that a killed process leaves nothing behind.
NewFile create_temporary(const std::string& target, const std::string& path) {
  constexpr mode_t kMode = 0666;  // less the umask
  const std::size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : target.substr(0, slash + 1);
  const bool can_be_named = ::access("/proc/self/fd", X_OK) == 0;
  int fd = can_be_named ? ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kMode) : -1;
  if (fd >= 0) return {fd, ""};
  std::string name = create_beside(target, path, [&](const std::string& free) {
    fd = ::open(free.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    return fd >= 0;
  });
  return {fd, std::move(name)};
}

/// Links an unnamed file to a new temporary name.
std::string give_name(int fd, const std::string& target, const std::string& path) {
  const std::string open_file = fmt::format("/proc/self/fd/{}", fd);
  return create_beside(target, path, [&](const std::string& free) {
    return ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, free.c_str(), AT_SYMLINK_FOLLOW) == 0;
  });
}

}  // namespace

std::string read_file(const std::string& path, std::size_t limit) {
  if (path == "-") return read_all(STDIN_FILENO, path, 0, limit);
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) refuse_input(path, fmt::format("cannot open file: {}", reason(errno)), "");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    refuse_input(path, fmt::format("cannot read file: {}", reason(errno)), "");
  if (S_ISDIR(status.st_mode)) refuse_input(path, "is a directory", "give a file in it");
  // Character devices such as /dev/zero never end: use the small limit.
  if (S_ISCHR(status.st_mode)) limit = std::min(limit, kLargestTextFile);
  const auto size = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  if (size > limit) refuse_size(path, limit);
  return read_all(file.get(), path, size, limit);
}

std::string read_part(const std::string& path, std::uint64_t offset, std::size_t size) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) refuse_input(path, fmt::format("cannot open file: {}", reason(errno)), "");
  std::string content(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count =
        ::pread(file.get(), content.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_input(path, fmt::format("cannot read file: {}", reason(errno)), "");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  content.resize(done);
  return content;
}

std::uint64_t size_of_file(const std::string& path, std::uint64_t limit) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    refuse_input(path, fmt::format("cannot open file: {}", reason(errno)), "");
  if (!S_ISREG(status.st_mode)) refuse_input(path, "is not a regular file", "");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit) refuse_size(path, limit);
  return size;
}

void write_file(const std::string& path, std::string_view content) {
  if (path == "-") return write_standard_output(content);
  const std::string target = resolved(path);
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail_write(path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) return write_in_place(path, content);

  auto [fd, temporary] = create_temporary(target, path);
  FileDescriptor file(fd);
  if (!temporary.empty()) unfinished_file = temporary.c_str();
  int error = write_all(file.get(), content);
  if (error == 0 && exists && ::fchmod(file.get(), status.st_mode & 07777) != 0) error = errno;
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (error == 0 && temporary.empty()) temporary = give_name(file.get(), target, path);
  if (error == 0) error = file.close();
  unfinished_file = nullptr;
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (!temporary.empty()) ::unlink(temporary.c_str());
  fail_write(path, error);
}

void remove_unfinished_file() {
  if (const char* name = unfinished_file) ::unlink(name);
}

}  // namespace meshwright
