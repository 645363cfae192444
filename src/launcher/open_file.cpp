#include "open_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <system_error>

namespace gpumem::launcher {

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

OpenFile::~OpenFile() {
  if (number_ >= 0) close(number_);
}

bool wait_for_lock(const OpenFile& file) {
  while (flock(file.number(), LOCK_EX) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

core::Result<std::pair<OpenFile, OpenFile>> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("a pipe cannot be made");
  return std::pair(OpenFile(ends[0]), OpenFile(ends[1]));
}

void take_standard_places() {
  for (const int place : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(place, F_GETFD) < 0) (void)open("/dev/null", place == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

core::Error system_error(const std::string& what, const std::string& path, int code) {
  return {core::ErrorCode::unreadable_file, what + ": " + std::generic_category().message(code), {path, 0, {}}};
}

}  // namespace gpumem::launcher
