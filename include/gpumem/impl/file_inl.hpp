#pragma once

#include "gpumem/core/file.hpp"

#include <sys/stat.h>

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

}  // namespace gpumem::core
