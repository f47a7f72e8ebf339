#include "cli/terminal/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace meshwright {

void reserve_standard_streams() {
  // Opened in the wrong direction: otherwise /dev/null would swallow results without an error.
  constexpr std::array<int, 3> kModes{O_WRONLY, O_RDONLY, O_RDONLY};
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    const bool is_closed = ::fcntl(fd, F_GETFD) < 0 && errno == EBADF;
    // The lowest free descriptor is `fd`: those below it are taken.
    if (is_closed && ::open("/dev/null", kModes.at(static_cast<std::size_t>(fd))) != fd) return;
  }
}

void print_to_stderr(std::string_view text) {
  [[maybe_unused]] const std::size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace meshwright
