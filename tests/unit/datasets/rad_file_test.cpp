#include "gpumem_datasets/rad_file.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"

namespace gpumem::datasets {
namespace {

using testing::fails;
using testing::succeeds;

constexpr auto kMalformed = core::ErrorCode::malformed_input;

/// As CARMA's users write them.
constexpr std::string_view kByPlace =
    "# assumption is that model.txt file is in this directory\n"
    "conda activate tf\n"
    "python /home/me/train.py --batch_size 32\n"
    "net.model\n"
    "/data/imagenet\n"
    "32\n"
    "exclusive\n"
    "2\n"
    "6684\n"
    "21525.8262\n"
    "3121.344643\n"
    "16000";

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kByPlace);
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(RadFile, ReadsEntriesByTheirPlace) {
  const auto file = parse_rad(kByPlace);
  ASSERT_TRUE(succeeds(file));
  EXPECT_EQ(file->commands,
            (std::vector<std::string>{"conda activate tf", "python /home/me/train.py --batch_size 32"}));
  EXPECT_EQ(file->model, "net.model");
  EXPECT_EQ(file->dataset, "/data/imagenet");
  EXPECT_EQ(file->batch_size, 32);
  EXPECT_EQ(file->policy, "exclusive");
  EXPECT_EQ(file->policy_line, 7);
  EXPECT_EQ(file->gpus, 2);
  EXPECT_EQ(file->measured_mib, 6684.0);
  EXPECT_EQ(file->horus_mib, 21525.8262);
  EXPECT_EQ(file->faketensor_mib, 3121.344643);
  EXPECT_EQ(file->gpumemnet_mib, 16000.0);
}

TEST(RadFile, NeedsNoFiguresAndNoComment) {
  const auto file = parse_rad("python train.py\r\nnet.model\r\n\r\n8\r\n\r\n1\r\n\r\n");
  ASSERT_TRUE(succeeds(file));
  EXPECT_EQ(file->commands, std::vector<std::string>{"python train.py"});
  EXPECT_EQ(file->dataset, "");
  EXPECT_EQ(file->batch_size, 8);
  EXPECT_EQ(file->policy, "");
  EXPECT_EQ(file->gpus, 1);
  EXPECT_EQ(file->measured_mib, std::nullopt);
}

TEST(RadFile, ReadsEntriesByTheirName) {
  const auto file = parse_rad(
      "conda activate tf\n"
      "python train.py\n"
      "\n"
      "gpus: 2\n"
      "# what it trains\n"
      "model: net.model\n"
      "dataset: s3://data set\n"
      "batch:\t16\n"
      "policy: magm\n"
      "horus: 100.5\n");
  ASSERT_TRUE(succeeds(file));
  EXPECT_EQ(file->gpus, 2);
  EXPECT_EQ(file->model, "net.model");
  EXPECT_EQ(file->dataset, "s3://data set");
  EXPECT_EQ(file->batch_size, 16);
  EXPECT_EQ(file->policy, "magm");
  EXPECT_EQ(file->horus_mib, 100.5);
}

TEST(RadFile, ReadsOnInPlaceBehindANamedEntry) {
  const auto file = parse_rad("python train.py\nmodel: net.model\nwiki\n4\n");
  ASSERT_TRUE(succeeds(file));
  EXPECT_EQ(file->dataset, "wiki");
  EXPECT_EQ(file->batch_size, 4);
}

TEST(RadFile, NamesTheLineOfWhatIsWrong) {
  EXPECT_TRUE(fails(parse_rad(replaced("\n32\n", "\nmany\n")), kMalformed, 6,
                    "should be the batch size, a whole number of 1 or more, and is 'many'"));
  EXPECT_TRUE(fails(parse_rad(replaced("\n32\n", "\n0\n")), kMalformed, 6, "the batch size"));
  EXPECT_TRUE(fails(parse_rad(replaced("\n32\n", "\n-32\n")), kMalformed, 6, "the batch size"));
  EXPECT_TRUE(fails(parse_rad(replaced("\n32\n", "\n99999999999999999999\n")), kMalformed, 6, "the batch size"));
  EXPECT_TRUE(fails(parse_rad(replaced("\n2\n", "\n2.5\n")), kMalformed, 8, "the number of GPUs"));
  EXPECT_TRUE(fails(parse_rad(replaced("6684", "nan")), kMalformed, 9, "the measured memory in MiB"));
  EXPECT_TRUE(fails(parse_rad(replaced("21525.8262", "-1")), kMalformed, 10, "Horus' estimate"));
  EXPECT_TRUE(fails(parse_rad(std::string(kByPlace) + "\n1\n"), kMalformed, 13, "is one line too many"));
  EXPECT_TRUE(fails(parse_rad("python a.py\nmodle: net.model\n"), kMalformed, 2,
                    "there is no entry 'modle'; the entries are model, dataset, batch"));
  EXPECT_TRUE(fails(parse_rad("python a.py\nmodel: a\nmodel: b\n"), kMalformed, 3, "model is given in line 2 already"));
}

TEST(RadFile, SaysWhatIsMissing) {
  EXPECT_TRUE(fails(parse_rad("", "job.rad"), kMalformed, 0, "none names python"));
  EXPECT_EQ(parse_rad("", "job.rad").error().place.file, "job.rad");
  EXPECT_TRUE(fails(parse_rad("conda activate tf\nnet.model\n"), kMalformed, 0, "none names python"));
  EXPECT_TRUE(fails(parse_rad("python a.py\n"), kMalformed, 0, "names no model"));
  EXPECT_TRUE(fails(parse_rad("python a.py\nnet.model\nwiki\n"), kMalformed, 0, "names no batch size"));
  EXPECT_TRUE(fails(parse_rad(std::string((1 << 20) + 1, 'x')), kMalformed, 0, "larger than 1 MiB"));
}

}  // namespace
}  // namespace gpumem::datasets
