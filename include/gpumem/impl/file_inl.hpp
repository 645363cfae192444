#pragma once

#include "gpumem/core/file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

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
  return failure(path, std::string("cannot ") + doing + ": " + std::strerror(errno));
}

}  // namespace file_detail

GPUMEM_INLINE Result<std::string> read_file(const std::string& path) {
  constexpr std::size_t kLargest = std::size_t{4} << 30;
  const bool standard_input = path == "-";
  const file_detail::FilePointer opened(standard_input ? nullptr : std::fopen(path.c_str(), "rb"));
  std::FILE* file = standard_input ? stdin : opened.get();
  if (file == nullptr) return file_detail::system_failure(path, "open");

  struct stat facts {};
  if (fstat(fileno(file), &facts) != 0) return file_detail::system_failure(path, "read");
  if (S_ISDIR(facts.st_mode)) return file_detail::failure(path, "is a directory; name a file");

  std::string content;
  if (facts.st_size > 0 && static_cast<std::size_t>(facts.st_size) <= kLargest) {
    content.reserve(static_cast<std::size_t>(facts.st_size));
  }
  std::array<char, 1U << 16> chunk{};
  while (const std::size_t count = std::fread(chunk.data(), 1, chunk.size(), file)) {
    if (content.size() + count > kLargest) {
      return file_detail::failure(path, "is larger than 4 GiB; no model summary is that long");
    }
    content.append(chunk.data(), count);
  }
  if (std::ferror(file) != 0) return file_detail::system_failure(path, "read");
  return content;
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
