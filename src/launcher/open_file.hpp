// Input: what the operating system opens, and what it refuses.
// Output: OpenFile, which closes itself; pipes; errors with the system's reason.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include "gpumem/core/result.hpp"

namespace gpumem::launcher {

/// An open file that closes itself, and can be moved.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int number) : number_(number) {}
  OpenFile(OpenFile&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  OpenFile& operator=(OpenFile&& other) noexcept;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// Waits for the lock on the whole file; closing it gives the lock back. False: there can be none, errno says why.
[[nodiscard]] bool wait_for_lock(const OpenFile& file);

/// Both ends, the one to read from first; a program that is started does not get them. Errors: unreadable_file.
[[nodiscard]] core::Result<std::pair<OpenFile, OpenFile>> make_pipe();

/// What is closed of the three standard descriptors is taken, so that no file that is opened later gets its number: to
/// read or to write there stays an error (EBADF), for who is started too.
void take_standard_places();

/// "cannot open: No such file or directory", of the file at `path`, if it is one.
[[nodiscard]] core::Error system_error(const std::string& what, const std::string& path = {}, int code = errno);

}  // namespace gpumem::launcher
