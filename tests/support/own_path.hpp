// A path for a test's files that no other test has: ctest runs several at once, each as a process of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace gpumem::testing {

/// Input: a name that says what the file or folder is for. Output: that name in the folder for temporary files, told
/// apart by this process. Nothing is made there.
inline std::filesystem::path own_path(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) / ("gpumem_" + std::to_string(getpid()) + "_" + name);
}

}  // namespace gpumem::testing
