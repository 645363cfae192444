#pragma once

#include "gpumem/core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"

namespace gpumem::core {

namespace file_detail {

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, Closer>;

GPUMEM_INLINE Error failure(const std::string& path, const std::string& what) {
  return Error{ErrorCode::unreadable_file, what, Place{path, 0, {}}};
}

GPUMEM_INLINE Error system_failure(const std::string& path, const char* doing) {
  return failure(path, std::string("cannot ") + doing + ": " + std::generic_category().message(errno));
}

/// For read_file().
GPUMEM_INLINE Error too_long(const std::string& path, std::size_t largest) {
  const std::string bound = to_string(Bytes(static_cast<std::int64_t>(largest)));
  if (largest == kLargestFile) return failure(path, "is larger than the " + bound + " that are read from a file");
  return failure(path, "is a pipe or a device with more than the " + bound +
                           " that are read from one; write its content to a file and name the file");
}

/// What is wrong with a file that must be a regular one; nothing if it is.
GPUMEM_INLINE std::optional<Error> fault_of(const std::string& path, const struct stat& facts, std::size_t largest) {
  if (S_ISDIR(facts.st_mode)) return failure(path, "is a directory; name a file");
  if (!S_ISREG(facts.st_mode)) return failure(path, "is a device, a pipe or a socket; name a regular file");
  if (static_cast<std::uint64_t>(facts.st_size) > largest) {
    return failure(path, "is larger than the " + to_string(Bytes(static_cast<std::int64_t>(largest))) +
                             " that are read from a file");
  }
  return std::nullopt;
}

/// An open file that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

/// All that is left to read. Files of /proc have no size, so that only reading tells.
GPUMEM_INLINE Result<std::string> read_rest(const std::string& path, int file, std::size_t expected,
                                            std::size_t largest) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::string content;
  std::size_t size = 0;
  while (true) {
    if (deadline_passed()) return deadline_error().in_file(path);
    if (content.size() == size) content.resize(size == 0 ? expected + 1 : size + std::min(kChunk, largest + 1 - size));
    const ssize_t count = ::read(file, content.data() + size, std::min(content.size() - size, kChunk));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_failure(path, "read");
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
    if (size > largest) return failure(path, "grew beyond what is read from a file");
  }
  content.resize(size);
  return content;
}

}  // namespace file_detail

GPUMEM_INLINE Result<std::string> read_file(const std::string& path) {
  const bool standard_input = path == "-";
  const file_detail::FilePointer opened(standard_input ? nullptr : std::fopen(path.c_str(), "rb"));
  std::FILE* file = standard_input ? stdin : opened.get();
  if (file == nullptr) return file_detail::system_failure(path, "open");

  struct stat facts {};
  if (fstat(fileno(file), &facts) != 0) return file_detail::system_failure(path, "read");
  if (S_ISDIR(facts.st_mode)) return file_detail::failure(path, "is a directory; name a file");

  const std::size_t largest = S_ISREG(facts.st_mode) ? kLargestFile : kLargestStream;
  std::string content;
  if (facts.st_size > 0 && static_cast<std::size_t>(facts.st_size) <= largest) {
    content.reserve(static_cast<std::size_t>(facts.st_size));
  }
  std::array<char, 1U << 16> chunk{};
  while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file)) {
    if (content.size() + count > largest) return file_detail::too_long(path, largest);
    content.append(chunk.data(), count);
  }
  if (std::ferror(file) != 0) return file_detail::system_failure(path, "read");
  return content;
}

GPUMEM_INLINE Result<std::string> read_regular_file(const std::string& path, std::size_t largest) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return file_detail::system_failure(path, "open");
  if (auto fault = file_detail::fault_of(path, facts, largest)) return *std::move(fault);
  // It may be another file by now: what is opened is looked at again, and never waited for.
  const file_detail::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.number() < 0) return file_detail::system_failure(path, "open");
  if (fstat(file.number(), &facts) != 0) return file_detail::system_failure(path, "read");
  if (auto fault = file_detail::fault_of(path, facts, largest)) return *std::move(fault);
  return file_detail::read_rest(path, file.number(), static_cast<std::size_t>(facts.st_size), largest);
}

GPUMEM_INLINE Result<FileFront> read_front(const std::string& path, std::size_t most) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return file_detail::system_failure(path, "open");
  if (auto fault = file_detail::fault_of(path, facts, SIZE_MAX)) return *std::move(fault);
  const file_detail::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.number() < 0 || fstat(file.number(), &facts) != 0) return file_detail::system_failure(path, "open");
  if (auto fault = file_detail::fault_of(path, facts, SIZE_MAX)) return *std::move(fault);
  FileFront front{{}, static_cast<std::uint64_t>(facts.st_size)};
  front.bytes.resize(std::min<std::uint64_t>(front.size, most));
  std::size_t size = 0;
  while (size < front.bytes.size()) {
    if (deadline_passed()) return deadline_error().in_file(path);
    const ssize_t count = ::read(file.number(), front.bytes.data() + size, front.bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_detail::system_failure(path, "read");
    if (count == 0) return file_detail::failure(path, "became shorter while it was read");
    size += static_cast<std::size_t>(count);
  }
  return front;
}

GPUMEM_INLINE Status write_file(const std::string& path, std::string_view content) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) {
    return file_detail::failure(path, "is a directory; name a file");
  }
  // In the same folder, for a rename does not reach across file systems.
  const std::string beside = path + ".tmp" + std::to_string(getpid());
  std::FILE* file = std::fopen(beside.c_str(), "wb");
  if (file == nullptr) return file_detail::system_failure(path, "write");
  const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(beside.c_str(), path.c_str()) == 0) return Done{};
  Error error = file_detail::system_failure(path, "write");
  std::remove(beside.c_str());
  return error;
}

}  // namespace gpumem::core

#if !defined(GPUMEM_NO_ZLIB)
#include <zlib.h>
#endif

#include <algorithm>
#include <limits>

namespace gpumem::core {

#if defined(GPUMEM_NO_ZLIB)

/// In a browser: the page has unpacked what it hands over.
GPUMEM_INLINE Result<std::string> unpack_gzip(std::string_view /*bytes*/, std::size_t /*most*/) {
  return malformed("is packed with gzip, which this build does not read; unpack it with gunzip first");
}

#else

namespace gzip_detail {

/// zlib's stream, which must be ended.
class Stream {
 public:
  Stream() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (ready_) inflateEnd(&stream_);
  }
  [[nodiscard]] bool ready() const { return ready_; }
  z_stream& get() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace gzip_detail

GPUMEM_INLINE Result<std::string> unpack_gzip(std::string_view bytes, std::size_t most) {
  if (bytes.size() > std::numeric_limits<uInt>::max()) return malformed("is a gzip file that is too large");
  gzip_detail::Stream stream;
  if (!stream.ready()) return malformed("could not be unpacked: there is not enough memory");
  z_stream& state = stream.get();
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib only reads it
  state.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  constexpr std::size_t kStep = std::size_t{1} << 18;
  int result = Z_OK;
  while (result == Z_OK) {
    const std::size_t done = text.size();
    const std::size_t room = std::min(std::max(kStep, done), most + 1 - done);
    text.resize(done + room);
    state.next_out = reinterpret_cast<Bytef*>(text.data() + done);
    state.avail_out = static_cast<uInt>(room);
    result = inflate(&state, Z_NO_FLUSH);
    text.resize(done + room - state.avail_out);
    if (text.size() > most) {
      return malformed("unpacks to more than " + to_string(Bytes(static_cast<std::int64_t>(most))));
    }
    if (result == Z_BUF_ERROR || (result == Z_OK && state.avail_in == 0 && state.avail_out > 0)) break;
  }
  if (result != Z_STREAM_END) return malformed("is a damaged gzip file, or one that is cut off");
  return text;
}

#endif

namespace file_detail {

/// Of one file, or of a folder by itself.
GPUMEM_INLINE std::uint64_t stamp_of_one(const std::filesystem::path& path) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  std::error_code failure;
  const std::filesystem::file_time_type changed = std::filesystem::last_write_time(path, failure);
  if (failure) return 0;
  const std::uintmax_t size = std::filesystem::file_size(path, failure);  // of a folder none
  return (static_cast<std::uint64_t>(changed.time_since_epoch().count()) * kOdd ^ (failure ? 0 : size)) * kOdd;
}

/// The sum over all that is in the folder, and so many folders below it.
GPUMEM_INLINE std::uint64_t stamp_of_all(const std::filesystem::path& folder, int below, int& left) {
  std::error_code failure;
  std::uint64_t stamp = 0;
  for (std::filesystem::directory_iterator at(folder, failure), end; !failure && at != end && left > 0; --left) {
    stamp += stamp_of_one(at->path());
    if (below > 0 && at->is_directory(failure)) stamp += stamp_of_all(at->path(), below - 1, left);
    at.increment(failure);
  }
  return stamp;
}

}  // namespace file_detail

GPUMEM_INLINE std::uint64_t stamp_of(const std::string& path) {
  constexpr int kMostFiles = 10'000;
  std::error_code failure;
  std::uint64_t stamp = file_detail::stamp_of_one(path);
  int left = kMostFiles;
  if (stamp != 0 && std::filesystem::is_directory(path, failure)) stamp += file_detail::stamp_of_all(path, 1, left);
  return stamp;
}

}  // namespace gpumem::core
