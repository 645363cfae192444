#include "gpumem/core/file.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "expect.hpp"

namespace gpumem::core {
namespace {

using testing::fails;
using testing::succeeds;

TEST(ReadFile, GivesEveryByte) {
  const std::string path = ::testing::TempDir() + "gpumem_file_test.bin";
  std::string content(200'000, 'x');
  content += std::string("\r\n\0\xFF", 4);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);
  const Result<std::string> read = read_file(path);
  std::remove(path.c_str());
  ASSERT_TRUE(succeeds(read));
  EXPECT_TRUE(*read == content);
}

TEST(ReadFile, SaysWhyAMissingFileCannotBeRead) {
  const Result<std::string> read = read_file("/nowhere/summary.txt");
  ASSERT_TRUE(fails(read, ErrorCode::unreadable_file, 0, "cannot open: No such file or directory"));
  EXPECT_EQ(read.error().place.file, "/nowhere/summary.txt");
}

TEST(ReadFile, RefusesADirectory) {
  EXPECT_TRUE(fails(read_file(::testing::TempDir()), ErrorCode::unreadable_file, 0, "is a directory"));
}

TEST(WriteFile, MakesAFileAndReplacesIt) {
  const std::string folder = ::testing::TempDir() + "gpumem_write_file_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/out.csv";
  for (const std::string& content : {std::string("first, longer\n"), std::string("a\0\xFF", 3), std::string()}) {
    ASSERT_TRUE(succeeds(write_file(path, content)));
    const Result<std::string> read = read_file(path);
    ASSERT_TRUE(succeeds(read));
    EXPECT_EQ(*read, content);
  }
  const auto files = std::distance(std::filesystem::directory_iterator(folder), {});
  EXPECT_EQ(files, 1) << "what was written beside it is gone";
  std::filesystem::remove_all(folder);
}

TEST(WriteFile, SaysWhyItCannotWrite) {
  EXPECT_TRUE(fails(write_file("/nowhere/out.csv", ""), ErrorCode::unreadable_file, 0,
                    "cannot write: No such file or directory"));
  EXPECT_TRUE(fails(write_file(::testing::TempDir(), ""), ErrorCode::unreadable_file, 0, "is a directory"));
}

}  // namespace
}  // namespace gpumem::core
