// Golden files: what a test expects, kept next to it. GPUMEM_UPDATE_GOLDEN=1 rewrites them; look at the difference
// before you commit it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace gpumem::testing {

inline std::string text_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

/// Whether `text` is what the golden file holds.
inline void expect_golden(const std::filesystem::path& file, std::string_view text) {
  const char* update = std::getenv("GPUMEM_UPDATE_GOLDEN");
  if (update != nullptr && std::string_view(update) == "1") {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(file)) << file << " is missing; GPUMEM_UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(text, text_of(file)) << file << " differs; GPUMEM_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace gpumem::testing
