#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "expect.hpp"
#include "gpumem/ml/network.hpp"

namespace gpumem::ml {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

/// A file with this header, its length before it, and so many bytes of data: 0, 1, 2, ...
std::string file_of(const std::string& header, std::size_t data_bytes = 0) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes += static_cast<char>(static_cast<unsigned char>(header.size() >> shift));
  }
  bytes += header;
  for (std::size_t byte = 0; byte < data_bytes; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

/// One entry of a header.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

// As the format's description has it, byte by byte: written down here, not by the writer.
TEST(Safetensors, ReadsAFileByteByByte) {
  const std::string header = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                             R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}  )";
  std::string bytes = file_of(header);
  bytes += std::string("\x00\x00\x80\x3F", 4);  // 1
  bytes += std::string("\x00\x00\x20\xC1", 4);  // -10
  bytes += std::string("\xDB\x0F\x49\x40", 4);  // pi
  const auto file = parse_safetensors(bytes, "m.safetensors");
  ASSERT_TRUE(succeeds(file));
  ASSERT_EQ(file->tensors.size(), 2U);
  EXPECT_EQ(file->tensors[0], (Tensor{"a", {}, {1.0F}}));
  EXPECT_EQ(file->tensors[1], (Tensor{"b", {2}, {-10.0F, 3.14159274F}}));
  EXPECT_EQ(file->metadata, (std::vector<std::pair<std::string, std::string>>{{"format", "pt"}}));
  EXPECT_EQ(file->find("b"), &file->tensors[1]);
  EXPECT_EQ(file->find("c"), nullptr);
}

TEST(Safetensors, WritesWhatItReads) {
  const float infinity = std::numeric_limits<float>::infinity();
  TensorFile file;
  file.metadata = {{"made", "here \"and\" now"}, {"", "empty"}};
  file.tensors = {{"scalar", {}, {0.1F}},
                  {"none", {3, 0}, {}},
                  {"branches.0.weight", {2, 3}, {1, -2, 3e38F, -0.0F, 1e-45F, infinity}},
                  {"caf\xC3\xA9/~", {1}, {-infinity}}};
  const std::string bytes = write_safetensors(file);
  EXPECT_EQ(bytes.size(), bytes.find('{') + static_cast<unsigned char>(bytes[0]) +
                              256U * static_cast<unsigned char>(bytes[1]) + 8 * 4);
  EXPECT_EQ((bytes.size() - 8 * 4) % 8, 0U) << "data begins at a multiple of 8";
  const auto again = parse_safetensors(bytes);
  ASSERT_TRUE(succeeds(again));
  EXPECT_EQ(again->tensors, file.tensors);
  EXPECT_EQ(again->metadata, file.metadata);
  EXPECT_TRUE(std::signbit(again->tensors[2].values[3]));
  EXPECT_EQ(write_safetensors(*again), bytes);
}

TEST(Safetensors, AFileWithoutTensorsIsOne) {
  EXPECT_EQ(write_safetensors({}), file_of("{}      "));
  const auto file = parse_safetensors(file_of("{}"));
  ASSERT_TRUE(succeeds(file));
  EXPECT_TRUE(file->tensors.empty());
}

TEST(Safetensors, ReadsHeadersThatAreNotPlain) {
  const auto file =
      parse_safetensors(file_of("{\"\\u0061\\n\" : " + entry("x", "F32", "[1]", "[0,4]").substr(4) + "}", 4));
  ASSERT_TRUE(succeeds(file));
  EXPECT_EQ(file->tensors[0].name, "a\n");
}

struct Fault {
  std::string bytes;
  std::string tensor;  ///< as the place of the error
  std::string part;    ///< of the message
};

TEST(Safetensors, NamesWhatIsWrong) {
  const std::string one = entry("w", "F32", "[1]", "[0,4]");
  const std::vector<Fault> faults = {
      {"", "", "is 0 bytes long"},
      {"1234567", "", "is 7 bytes long"},
      {file_of("{}").substr(0, 9), "", "is cut off: its header has 2 bytes, and 1 follow"},
      {std::string(8, '\xFF') + "{}", "", "says that its header has 18446744073709551615 bytes"},
      {std::string("\x01\xE1\xF5\x05\0\0\0\0", 8) + "{}", "", "at most 100,000,000 are allowed"},
      {file_of(""), "", "byte 8 must be '{'"},
      {file_of(" {}"), "", "byte 8 must be '{'"},
      {file_of("[]"), "", "byte 8 must be '{'"},
      {file_of("{\"w\":"), "", "its header is not JSON from byte"},
      {file_of("{} {}"), "", "its header is not JSON from byte"},
      {file_of("{\"\xFF\":1}"), "", "its header is not JSON from byte"},
      {file_of("{" + one + "," + one + "}", 4), "/w", "is in its object twice"},
      {file_of("{\"\":" + one.substr(4) + "}", 4), "", "a tensor without a name"},
      {file_of("{\"w\":[]}"), "w", "must be described by an object"},
      {file_of(R"({"w":{"dtype":"F32","shape":[0]}})"), "w", "lacks one of"},
      {file_of(R"({"w":{"dtype":"F32","shape":[0],"shape":[0],"data_offsets":[0,0]}})"), "/w/shape",
       "is in its object twice"},
      {file_of(R"({"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1}})"), "w", "an unknown field 'x'"},
      {file_of("{" + entry("w", "F31", "[1]", "[0,4]") + "}", 4), "w", "an unknown dtype, 'F31'"},
      {file_of(R"({"w":{"dtype":1,"shape":[0],"data_offsets":[0,0]}})"), "w", "\"dtype\" that is not text"},
      {file_of("{" + entry("w", "F32", "[1.0]", "[0,4]") + "}", 4), "w", "\"shape\" that is not"},
      {file_of("{" + entry("w", "F32", "[-1]", "[0,4]") + "}", 4), "w", "\"shape\" that is not"},
      {file_of("{" + entry("w", "F32", "[18446744073709551615]", "[0,4]") + "}", 4), "w", "\"shape\" that is not"},
      {file_of("{" + entry("w", "F32", "1", "[0,4]") + "}", 4), "w", "\"shape\" that is not"},
      {file_of("{" + entry("w", "F32", "[1]", "[0,4.0]") + "}", 4), "w", "\"data_offsets\" that are not"},
      {file_of("{" + entry("w", "F32", "[1]", "[4]") + "}", 4), "w", "\"data_offsets\" that are not"},
      {file_of("{" + entry("w", "F32", "[1]", "[4,0]") + "}", 4), "w", "\"data_offsets\" that are not"},
      {file_of("{" + entry("w", "F32", "[1]", "[0,8]") + "}", 8), "w", "has 8 bytes of data; its shape needs 4"},
      {file_of("{" + entry("w", "F32", "[4294967296,4294967296]", "[0,0]") + "}"), "w", "more than 64 bits can count"},
      {file_of("{" + one + "}", 3), "w", "up to byte 4 of all data, of which the file has 3"},
      {file_of("{" + one + "}", 5), "", "has 1 bytes after its last tensor"},
      {file_of("{" + one + "," + entry("v", "F32", "[1]", "[8,12]") + "}", 12), "v", "from byte 8 of all data on"},
      {file_of("{" + one + "," + entry("v", "F32", "[1]", "[2,6]") + "}", 6), "v", "from byte 2 of all data on"},
      {file_of("{" + one + "," + entry("v", "F32", "[1]", "[0,4]") + "}", 4), "v", "from byte 0 of all data on"},
      {file_of(R"({"__metadata__":{"a":1}})"), "", "\"__metadata__\" that is not an object of texts"},
      {file_of(R"({"__metadata__":"a"})"), "", "\"__metadata__\" that is not an object of texts"},
  };
  for (const Fault& fault : faults) {
    const auto file = parse_safetensors(fault.bytes, "m.safetensors");
    ASSERT_TRUE(fails(file, ErrorCode::malformed_input, 0, fault.part)) << fault.part;
    EXPECT_EQ(file.error().place.element, fault.tensor) << fault.part;
    EXPECT_EQ(file.error().place.file, "m.safetensors");
  }
}

// They are sound files, but no model's.
TEST(Safetensors, OtherDtypesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> dtypes = {{"F64", "8"}, {"F16", "2"}, {"BF16", "2"},
                                                                   {"I64", "8"}, {"I32", "4"}, {"I16", "2"},
                                                                   {"I8", "1"},  {"U8", "1"},  {"BOOL", "1"}};
  for (const auto& [dtype, bytes] : dtypes) {
    const std::string header = "{" + entry("w", dtype, "[1]", "[0," + bytes + "]") + "}";
    const auto file = parse_safetensors(file_of(header, std::stoul(bytes)));
    ASSERT_TRUE(fails(file, ErrorCode::malformed_input, 0, "has dtype " + dtype)) << dtype;
    EXPECT_EQ(file.error().place.element, "w");
    EXPECT_TRUE(fails(parse_safetensors(file_of(header, 9)), ErrorCode::malformed_input, 0, "after its last tensor"));
  }
}

TEST(Safetensors, WhatIsCutOffNeverLoads) {
  TensorFile file;
  file.tensors = {{"a", {3}, {1, 2, 3}}, {"b", {1, 1}, {4}}};
  const std::string bytes = write_safetensors(file);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_safetensors(bytes.substr(0, length)).has_value()) << length;
  }
  EXPECT_FALSE(parse_safetensors(bytes + "x").has_value());
}

TEST(Mixture, OfOneComponentIsALaplaceDistribution) {
  const Mixture mixture = {{0.3}, {1.0}, {0.1}};
  EXPECT_NEAR(mixture.quantile(0.5), 0.3, 1e-9);
  EXPECT_NEAR(mixture.quantile(0.95), 0.3 + 0.1 * std::log(10.0), 1e-9);
  EXPECT_NEAR(mixture.quantile(0.025), 0.3 - 0.1 * std::log(20.0), 1e-9);
  EXPECT_NEAR(mixture.below(0.3), 0.5, 1e-12);
}

TEST(Mixture, ItsComponentsMayBeOfDifferentScale) {
  const Mixture mixture = {{0.0, 0.0, 1.0}, {0.6, 0.3, 0.1}, {0.01, 0.5, 0.02}};
  for (const double share : {0.025, 0.5, 0.9, 0.975}) {
    EXPECT_NEAR(mixture.below(mixture.quantile(share)), share, 1e-8) << share;
  }
  // Far out only the wide one is left.
  EXPECT_NEAR(mixture.below(-2.0), 0.3 * 0.5 * std::exp(-4.0), 1e-12);
}

TEST(Mixture, QuantilesUpToALimitAreThoseOfWhatLiesThere) {
  const Mixture mixture = {{0.0, 0.0, 1.0}, {0.6, 0.3, 0.1}, {0.01, 0.5, 0.02}};
  for (const double share : {0.025, 0.5, 0.975}) {
    EXPECT_NEAR(mixture.quantile_up_to(100.0, share), mixture.quantile(share), 1e-8) << share;
    const double value = mixture.quantile_up_to(0.1, share);
    EXPECT_LT(value, 0.1);
    EXPECT_NEAR(mixture.below(value) / mixture.below(0.1), share, 1e-7) << share;
  }
  EXPECT_EQ(mixture.quantile_up_to(-1e6, 0.5), -1e6);  // it has nothing there
}

TEST(Mixture, TheRangeOfWhatFitsHasTheWholeMixturesUpperBound) {
  const Mixture mixture = {{0.0, 0.0, 1.0}, {0.6, 0.3, 0.1}, {0.01, 0.5, 0.02}};
  const MixtureRange whole = range_of(mixture, {0.025, 0.95}, std::nullopt);
  EXPECT_EQ(whole.lower, mixture.quantile(0.025));
  EXPECT_EQ(whole.expected, mixture.quantile(0.5));
  EXPECT_EQ(whole.upper, mixture.quantile(0.95));
  const MixtureRange fits = range_of(mixture, {0.025, 0.95}, -0.05);
  EXPECT_EQ(fits.lower, mixture.quantile_up_to(-0.05, 0.025));
  EXPECT_EQ(fits.expected, mixture.quantile_up_to(-0.05, 0.5));
  EXPECT_LT(fits.expected, -0.05);
  EXPECT_EQ(fits.upper, whole.upper);
}

TEST(Mixture, SharesAreThoseOfTheLogits) {
  const std::vector<float> logits = {1000.0F, 1000.0F, -1000.0F};
  EXPECT_EQ(softmax(logits), (std::vector<double>{0.5, 0.5, 0.0}));
}

}  // namespace
}  // namespace gpumem::ml
