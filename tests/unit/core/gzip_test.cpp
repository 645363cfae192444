#include "gpumem/core/file.hpp"

#include <zlib.h>

#include "expect.hpp"

namespace gpumem::core {
namespace {

using testing::fails;
using testing::succeeds;

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
