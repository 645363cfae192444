#include "table.hpp"

#include <gtest/gtest.h>

#include "progress.hpp"

namespace gpumem::cli {
namespace {

using core::Bytes;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(ByteUnits, AreChosenByTheLargestFigure) {
  EXPECT_EQ(in_unit(Bytes(550 * kMiB), unit_for(Bytes(4 * kGiB))), "0.54 GiB");
  EXPECT_EQ(in_unit(Bytes(550 * kMiB), unit_for(Bytes(550 * kMiB))), "550.0 MiB");
  EXPECT_EQ(in_unit(Bytes(7 * kMiB), unit_for(Bytes(7 * kMiB))), "7.00 MiB");
  EXPECT_EQ(in_unit(Bytes(4 * kGiB), unit_for(Bytes(400 * kGiB))), "4.0 GiB");
  EXPECT_EQ(in_unit(Bytes(2048 * kGiB), unit_for(Bytes(2048 * kGiB))), "2048.0 GiB");
  EXPECT_EQ(in_unit(Bytes(20480 * kGiB), unit_for(Bytes(20480 * kGiB))), "20.00 TiB");
  EXPECT_EQ(in_unit(Bytes(100), unit_for(Bytes(1000))), "100 B");
  EXPECT_EQ(in_unit(Bytes(0), unit_for(Bytes(0))), "0 B");
}

TEST(ByteUnits, TellWhatIsLittleFromNothing) {
  EXPECT_EQ(in_unit(Bytes(1), unit_for(Bytes(kGiB))), "<0.01 GiB");
  EXPECT_EQ(in_unit(Bytes(0), unit_for(Bytes(kGiB))), "0.00 GiB");
  EXPECT_EQ(in_unit(Bytes(8 * kMiB), unit_for(Bytes(kGiB)), false), "0.01");
}

Table parts() {
  Table table({{.title = "part"},
               {.title = "memory", .right = true},
               {.title = "of 4.00 GiB", .gauge = true, .below = true},
               {.title = "why"}});
  table.add({"context", Bytes(512 * kMiB), "a driver's own"}, Gauge{0.125, 0.125, 0.125, Tone::plain});
  table.add({"activations", Bytes(2 * kGiB), Cell("kept for the backward pass", Tone::good)},
            Gauge{0.5, 0.5, 0.5, Tone::plain});
  table.add({"states", "cannot be told"});
  return table;
}

TEST(Tables, ArePlainInAPipe) {
  EXPECT_EQ(parts().text(),
            "part           memory  why\n"
            "context      0.50 GiB  a driver's own\n"
            "activations  2.00 GiB  kept for the backward pass\n"
            "states       cannot be told\n");
}

TEST(Tables, HaveGaugesWhereThereIsRoom) {
  EXPECT_EQ(parts().text({.shown = true, .width = 63}),
            "part           memory  of 4.00 GiB   why\n"
            "context      0.50 GiB  ##..........  a driver's own\n"
            "activations  2.00 GiB  ######......  kept for the backward pass\n"
            "states       cannot be told\n");
  EXPECT_EQ(parts().text({.shown = true, .width = 60}),
            "part           memory  why\n"
            "context      0.50 GiB  a driver's own\n"
            "  #####................................... of 4.00 GiB\n"
            "activations  2.00 GiB  kept for the backward pass\n"
            "  ####################.................... of 4.00 GiB\n"
            "states       cannot be told\n");
}

TEST(Tables, WrapTheLastTextAndThenTakeALineAFigure) {
  Table table({{.title = "change"}, {.title = "what it costs"}});
  table.add({"--fused", "nothing: the same result in one kernel"});
  EXPECT_EQ(table.text({.shown = true, .width = 36}),
            "change   what it costs\n"
            "--fused  nothing: the same result in\n"
            "         one kernel\n");
  const std::string narrow = parts().text({.shown = true, .width = 30});
  EXPECT_EQ(narrow,
            "part context\n"
            "  memory  0.50 GiB\n"
            "  ##.............. of 4.00 GiB\n"
            "  why     a driver's own\n"
            "part activations\n"
            "  memory  2.00 GiB\n"
            "  ########........ of 4.00 GiB\n"
            "  why     kept for the\n"
            "          backward pass\n"
            "part states\n"
            "          cannot be told\n");
}

TEST(Tables, ColourWordsAndNotTheBlanksBesideThem) {
  const std::string text = parts().text({.shown = true, .width = 60, .colour = true});
  EXPECT_NE(text.find("  \033[32mkept for the backward pass\033[0m\n"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("\033[1mpart           memory  why\033[0m\n")) << text;
}

TEST(Tables, LeaveOutWhatIsSpareBeforeTheyStack) {
  Table table({{.title = "GPU"}, {.title = "profile", .spare = true}, {.title = "used", .right = true}});
  table.add({"0", "a100-40gb-mig-3g.20gb", Bytes(kGiB)});
  EXPECT_EQ(table.text({.shown = true, .width = 20}), "GPU      used\n0    1.00 GiB\n");
}

TEST(Tables, KeepDecimalsBelowEachOtherBesideBrackets) {
  Table table({{.title = "job"}, {.title = "promised", .right = true}});
  Cell asked = Bytes(20 * kGiB);
  asked.enclosed = true;
  table.add({"one", Bytes(2 * kGiB)});
  table.add({"two", asked});
  EXPECT_EQ(table.text(),
            "job     promised\n"
            "one    2.00 GiB\n"
            "two  (20.00 GiB)\n");
}

TEST(ProgressLines, SayWhatIsDoneAndTheShare) {
  EXPECT_EQ(progress_line("estimating", 1200, 3000, "runs"), "estimating 1,200 of 3,000 runs (40 %)");
  EXPECT_EQ(progress_line("answered", 7, 0, "jobs"), "answered 7 jobs");
}

}  // namespace
}  // namespace gpumem::cli
