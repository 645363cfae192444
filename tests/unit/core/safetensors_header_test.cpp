#include "gpumem/core/safetensors_header.hpp"

#include <fstream>

#include "expect.hpp"
#include "own_path.hpp"

namespace gpumem::core {
namespace {

using testing::fails;
using testing::succeeds;

std::string file_of(std::string_view header, std::size_t data) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + std::string(header) + std::string(data, '\0');
}

constexpr std::string_view kHeader =
    R"({"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";

TEST(SafetensorsHeader, TellsEachTensorInTheOrderOfTheData) {
  const auto header = parse_safetensors_header(file_of(kHeader, 16));
  ASSERT_TRUE(succeeds(header));
  ASSERT_EQ(header->tensors.size(), 2U);
  EXPECT_EQ(header->tensors[0].name, "a");
  EXPECT_EQ(header->tensors[0].elements(), 1);
  EXPECT_EQ(header->tensors[1].dtype->name, "BF16");
  EXPECT_EQ(header->tensors[1].elements(), 6);
  EXPECT_EQ(header->data_begin, 8 + kHeader.size());
}

TEST(SafetensorsHeader, IsReadWithoutTheData) {
  const std::string path = testing::own_path("safetensors_header_test.safetensors").string();
  std::ofstream(path, std::ios::binary) << file_of(kHeader, 16);
  const auto header = read_safetensors_header(path);
  ASSERT_TRUE(succeeds(header));
  EXPECT_EQ(header->tensors.size(), 2U);
  std::ofstream(path, std::ios::binary) << file_of(kHeader, 12);
  EXPECT_TRUE(fails(read_safetensors_header(path), ErrorCode::malformed_input, 0, "of which the file has 12"));
  std::ofstream(path, std::ios::binary) << "short";
  EXPECT_TRUE(fails(read_safetensors_header(path), ErrorCode::malformed_input, 0, "5 bytes long"));
  EXPECT_TRUE(fails(read_safetensors_header(::testing::TempDir()), ErrorCode::unreadable_file, 0, "directory"));
}

}  // namespace
}  // namespace gpumem::core
