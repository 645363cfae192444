#include <gtest/gtest.h>

#include <sys/stat.h>
#include <zlib.h>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "expect.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/core/file.hpp"
#include "own_path.hpp"

namespace gpumem::core {
namespace {

using testing::fails;
using testing::succeeds;

TEST(ReadFile, GivesEveryByte) {
  const std::string path = testing::own_path("file_test.bin").string();
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

TEST(ReadFile, ReadsAPipeToItsEnd) {
  const std::string fifo = testing::own_path("read_file_fifo").string();
  std::remove(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string content(300'000, 'x');  // more than a pipe holds
  std::thread writer([&] {
    std::FILE* file = std::fopen(fifo.c_str(), "wb");
    if (file == nullptr) return;
    std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
  });
  const Result<std::string> read = read_file(fifo);
  writer.join();
  std::remove(fifo.c_str());
  ASSERT_TRUE(succeeds(read));
  EXPECT_TRUE(*read == content);
}

TEST(ReadFile, GivesUpOnADeviceWithoutEnd) {
  const Result<std::string> read = read_file("/dev/zero");
  ASSERT_TRUE(fails(read, ErrorCode::unreadable_file, 0, "more than the 256.0 MiB"));
  EXPECT_NE(read.error().message.find("write its content to a file"), std::string::npos);
  EXPECT_EQ(read.error().place.file, "/dev/zero");
}

TEST(ReadRegularFile, GivesEveryByteUpToItsBound) {
  const std::string path = testing::own_path("regular_file_test.bin").string();
  const std::string content = std::string(3'000'000, 'x') + std::string("\r\n\0\xFF", 4);
  ASSERT_TRUE(succeeds(write_file(path, content)));
  const Result<std::string> read = read_regular_file(path, content.size());
  ASSERT_TRUE(succeeds(read));
  EXPECT_TRUE(*read == content);
  EXPECT_TRUE(fails(read_regular_file(path, content.size() - 1), ErrorCode::unreadable_file, 0, "is larger than"));
  std::remove(path.c_str());
}

TEST(ReadRegularFile, ReadsAFileWithoutASizeToItsEnd) {
  if (!std::filesystem::exists("/proc/self/status")) GTEST_SKIP() << "there is no /proc";
  const Result<std::string> read = read_regular_file("/proc/self/status", 1 << 20);
  ASSERT_TRUE(succeeds(read));
  EXPECT_NE(read->find("Pid:"), std::string::npos);
  EXPECT_TRUE(fails(read_regular_file("/proc/self/status", 10), ErrorCode::unreadable_file, 0, "grew beyond"));
}

TEST(ReadRegularFile, OpensNothingThatIsNone) {
  EXPECT_TRUE(fails(read_regular_file(::testing::TempDir(), 10), ErrorCode::unreadable_file, 0, "is a directory"));
  EXPECT_TRUE(fails(read_regular_file("/dev/null", 10), ErrorCode::unreadable_file, 0, "name a regular file"));
  EXPECT_TRUE(fails(read_regular_file("/nowhere", 10), ErrorCode::unreadable_file, 0, "No such file"));
  const std::string fifo = testing::own_path("regular_file_fifo").string();
  std::remove(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_TRUE(fails(read_regular_file(fifo, 10), ErrorCode::unreadable_file, 0, "name a regular file"));
  std::remove(fifo.c_str());
}

TEST(ReadRegularFile, EndsAtItsDeadline) {
  const std::string path = testing::own_path("file_deadline_test.bin").string();
  ASSERT_TRUE(succeeds(write_file(path, "content")));
  const Deadline deadline(1);
  while (!deadline_passed()) {
  }
  const Result<std::string> read = read_regular_file(path, 100);
  std::remove(path.c_str());
  EXPECT_TRUE(fails(read, ErrorCode::deadline_exceeded, 0, "deadline"));
}

TEST(WriteFile, MakesAFileAndReplacesIt) {
  const std::string folder = testing::own_path("write_file_test").string();
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

std::string packed(const std::string& text) {
  z_stream state{};
  EXPECT_EQ(deflateInit2(&state, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string bytes(deflateBound(&state, text.size()) + 64, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(bytes.data());
  state.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
  bytes.resize(state.total_out);
  deflateEnd(&state);
  return bytes;
}

TEST(Gzip, UnpacksWhatWasPacked) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{3'000'000}}) {
    std::string text(size, 'x');
    for (std::size_t at = 0; at < size; at += 7) text[at] = static_cast<char>('a' + at % 26);
    const auto unpacked = unpack_gzip(packed(text), size);
    ASSERT_TRUE(succeeds(unpacked)) << size;
    EXPECT_EQ(*unpacked, text) << size;
  }
}

TEST(Gzip, RefusesMoreThanItMayTake) {
  EXPECT_TRUE(fails(unpack_gzip(packed(std::string(1000, 'x')), 999), ErrorCode::malformed_input, 0, "more than"));
}

TEST(Gzip, RefusesWhatIsDamagedOrCutOff) {
  const std::string whole = packed("a recording of a step");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(unpack_gzip(whole.substr(0, length), 1000)) << length;
  }
  std::string changed = whole;
  changed[changed.size() / 2] ^= 0x55;
  EXPECT_FALSE(unpack_gzip(changed, 1000));
}

TEST(Gzip, IsKnownByItsFirstBytes) {
  EXPECT_TRUE(is_gzip(packed("x")));
  EXPECT_FALSE(is_gzip("{\"format\""));
  EXPECT_FALSE(is_gzip(""));
}

}  // namespace
}  // namespace gpumem::core
