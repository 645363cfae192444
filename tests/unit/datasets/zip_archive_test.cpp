#include "gpumem_datasets/zip_archive.hpp"

#include <gtest/gtest.h>

#include "checkpoints.hpp"
#include "expect.hpp"

namespace gpumem::datasets {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::little_endian;
using testing::succeeds;
using testing::zip_of;
using testing::ZipItem;

const std::vector<ZipItem> kTwo = {{"a", "alpha", 0, false}, {"b/c", "", 9, true}};

::testing::AssertionResult refused(const std::string& bytes, std::string_view part) {
  return fails(ZipArchive::open(bytes, "t.ckpt"), ErrorCode::malformed_input, 0, part);
}

/// The bytes with others over them, `at` behind the `nth` place of `signature`.
std::string patched(std::string bytes, std::string_view signature, std::size_t at, const std::string& with,
                    int nth = 0) {
  std::size_t place = bytes.find(signature);
  for (; nth > 0; --nth) place = bytes.find(signature, place + 1);
  EXPECT_NE(place, std::string::npos);
  return bytes.replace(place + at, with.size(), with);
}

TEST(ZipArchive, ReadsStoredEntries) {
  for (const bool zip64_end : {false, true}) {
    const std::string bytes = zip_of(kTwo, zip64_end);
    const auto archive = ZipArchive::open(bytes);
    ASSERT_TRUE(succeeds(archive));
    ASSERT_EQ(archive->entries().size(), 2U);
    EXPECT_EQ(archive->entries()[1].name, "b/c");
    ASSERT_NE(archive->find("a"), nullptr);
    EXPECT_EQ(archive->find("a")->data, "alpha");
    EXPECT_EQ(archive->find("b"), nullptr);
  }
}

TEST(ZipArchive, ReadsZip64FieldsAndSizesBehindTheData) {
  for (const bool behind : {false, true}) {
    for (const bool zip64 : {false, true}) {
      // Sizes that follow the data are not stated as "elsewhere" in the local header.
      const std::string bytes = zip_of({{"x", "data", 0, behind, zip64}, {"y", "more", 32, behind, zip64}}, zip64);
      const auto archive = ZipArchive::open(bytes);
      ASSERT_TRUE(succeeds(archive)) << behind << zip64;
      EXPECT_EQ(archive->find("y")->data, "more");
    }
  }
}

TEST(ZipArchive, AnEmptyArchiveHasNoEntries) {
  const std::string bytes = zip_of({});
  const auto archive = ZipArchive::open(bytes);
  ASSERT_TRUE(succeeds(archive));
  EXPECT_TRUE(archive->entries().empty());
}

TEST(ZipArchive, KnowsTheChecksum) {
  EXPECT_EQ(crc32(""), 0U);
  EXPECT_EQ(crc32("123456789"), 0xCBF43926U);  // the check value of CRC-32/ISO-HDLC
}

TEST(ZipArchive, NoPrefixIsAnArchive) {
  const std::string bytes = zip_of(kTwo, true);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(refused(bytes.substr(0, length), "")) << length;
  }
}

TEST(ZipArchive, AFlippedBitIsFoundOrChangesNothing) {
  const std::string bytes = zip_of(kTwo, true);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const auto archive = ZipArchive::open(damaged);
    if (!archive) continue;
    // Dates, versions and padding say nothing of the data.
    ASSERT_EQ(archive->entries().size(), 2U);
    EXPECT_EQ(archive->entries()[0].data, "alpha") << bit;
    EXPECT_EQ(archive->entries()[1].data, "") << bit;
  }
}

TEST(ZipArchive, RefusesWhatTorchSaveDoesNotWrite) {
  const std::string one = zip_of({{"x", "data"}});
  EXPECT_TRUE(refused("text", "does not end as a zip archive does"));
  EXPECT_TRUE(refused(one + "more", "does not end as"));
  EXPECT_TRUE(refused(patched(one, "PK\5\6", 20, little_endian(1, 2)), "with a comment"));
  EXPECT_TRUE(refused(patched(one, "PK\5\6", 4, little_endian(1, 2)), "of several files"));
  const std::string compressed = patched(patched(one, "PK\1\2", 10, "\x8"), "PK\3\4", 8, "\x8");
  EXPECT_TRUE(refused(compressed, "'x' is compressed"));
  EXPECT_TRUE(refused(patched(patched(one, "PK\1\2", 8, "\1"), "PK\3\4", 6, "\1"), "'x' is encrypted"));
  EXPECT_TRUE(refused(zip_of({{"x", "1"}, {"x", "2"}}), "'x' is in it twice"));
  EXPECT_TRUE(refused(zip_of({{"", "1"}}), "without a name"));
}

TEST(ZipArchive, RefusesADirectoryThatLies) {
  const std::string one = zip_of({{"x", "data"}});
  EXPECT_TRUE(refused(patched(one, "data", 0, "dota"), "'x' is damaged"));
  EXPECT_TRUE(refused(patched(one, "PK\3\4", 30, "y"), "'x' has a header that differs"));
  EXPECT_TRUE(refused(patched(one, "PK\3\4", 22, "\5"), "'x' has a header that differs"));
  EXPECT_TRUE(refused(patched(one, "PK\1\2", 42, "\1"), "'x' has no header where"));
  EXPECT_TRUE(refused(patched(one, "PK\1\2", 42, little_endian(1'000'000, 4)), "'x' begins outside"));
  EXPECT_TRUE(refused(patched(patched(one, "PK\1\2", 20, "\x40"), "PK\1\2", 24, "\x40"), "'x' reaches beyond"));
  EXPECT_TRUE(refused(patched(one, "PK\5\6", 16, "\1"), "does not end where its end record begins"));
  const std::string two_said = patched(patched(one, "PK\5\6", 8, "\2"), "PK\5\6", 10, "\2");
  EXPECT_TRUE(refused(two_said, "no directory entry at byte"));
  const std::string none_said =
      patched(patched(one, "PK\5\6", 8, little_endian(0, 1)), "PK\5\6", 10, little_endian(0, 1));
  EXPECT_TRUE(refused(none_said, "continues after its last entry"));
}

TEST(ZipArchive, RefusesEntriesThatShareBytes) {
  // The second entry is wrapped into the first one's data.
  const std::string inner = zip_of({{"x", "data"}});
  const std::string local = inner.substr(0, inner.find("PK\1\2"));
  const std::string outer = zip_of({{"o", local}, {"x", "data"}});
  const std::size_t within = outer.find("PK\3\4", 1);
  EXPECT_TRUE(refused(patched(outer, "PK\1\2", 42, little_endian(within, 4), 1), "entries that overlap"));
}

TEST(ZipArchive, RefusesBrokenZip64) {
  const std::string one = zip_of({{"x", "data", 0, false, true}}, true);
  EXPECT_TRUE(refused(patched(one, "PK\6\6", 4, "\x2d"), "of an unknown kind"));
  EXPECT_TRUE(refused(patched(one, "PK\6\6", 24, "\2"), "of several files"));
  EXPECT_TRUE(refused(patched(one, "PK\6\7", 8, little_endian(0, 8)), "before its locator"));
  EXPECT_TRUE(refused(patched(one, "PK\5\6", 8, little_endian(0x20002, 4)), "two end records"));
  EXPECT_TRUE(refused(patched(one, "PK\5\6", 12, "\x50"), "two end records"));
  EXPECT_TRUE(refused(patched(one, "PK\1\2", 47, "\2"), "broken extra fields"));
  EXPECT_TRUE(refused(patched(one, "PK\3\4", 31, "\2"), "broken extra fields"));
  EXPECT_TRUE(refused(patched(one, "PK\1\2", 49, "\x30"), "broken extra fields"));
}

}  // namespace
}  // namespace gpumem::datasets
