#include "help_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "gpumem/job/job_options.hpp"
#include "job_arguments.hpp"

namespace gpumem::cli {
namespace {

constexpr std::size_t kWidth = 60;

std::string help_of_a_job(std::size_t width) {
  CLI::App app("what it is for", "program");
  app.formatter(std::make_shared<HelpText>(width));
  app.add_flag("--json")->description("print one JSON object");
  job::JobRequest request;
  add_job_options(app, request);
  return app.help();
}

TEST(HelpText, LinesEndBeforeTheWidth) {
  for (const std::size_t width : {50U, 80U, 100U}) {
    std::istringstream lines(help_of_a_job(width));
    for (std::string line; std::getline(lines, line);) {
      const bool one_word = line.find_first_not_of(' ') == line.find_last_of(' ') + 1;
      EXPECT_TRUE(line.size() <= width || one_word) << line;
    }
  }
}

TEST(HelpText, EachGroupHasAHeadingAndWhatHasNoneComesLast) {
  const std::string help = help_of_a_job(kWidth);
  std::size_t last = 0;
  for (const job::JobOption& option : job::job_options()) {
    const std::size_t heading = help.find("\n" + std::string(job::to_string(option.group)) + ":\n");
    ASSERT_NE(heading, std::string::npos) << option.name;
    last = std::max(last, heading);
  }
  EXPECT_GT(help.find("\nOptions:\n"), last);
  EXPECT_GT(help.find("--json"), help.find("\nOptions:\n"));
}

TEST(HelpText, NamesTheDefaultAndWhatIsRequired) {
  const std::string help = help_of_a_job(kWidth);
  EXPECT_NE(help.find("[a100-40gb]"), std::string::npos);
  CLI::App app("", "program");
  app.formatter(std::make_shared<HelpText>(kWidth));
  app.add_option("--out")->description("the file")->required();
  EXPECT_NE(app.help().find("the file (required)"), std::string::npos);
}

TEST(HelpText, UsageOfRunNamesTheCommand) {
  CLI::App app("", "run");
  app.formatter(std::make_shared<HelpText>(kWidth));
  EXPECT_NE(app.help().find("Usage: run [OPTIONS] -- COMMAND [ARGUMENTS]\n"), std::string::npos) << app.help();
}

TEST(HelpText, ANameThatIsTooLongStandsOnALineOfItsOwn) {
  EXPECT_EQ(help_entry("--short", "text", kWidth), "  --short                   text\n");
  EXPECT_EQ(help_entry("--quite-a-long-name-of-an-option", "text", kWidth),
            "  --quite-a-long-name-of-an-option\n                            text\n");
}

TEST(HelpText, ParagraphsAreJoinedAndIndentedLinesStay) {
  EXPECT_EQ(paragraphs("one two\nthree\n  sbatch job.sh\nfour", 80), "one two three\n  sbatch job.sh\nfour\n");
  EXPECT_EQ(paragraphs("one two three", 9), "one two\nthree\n");
}

}  // namespace
}  // namespace gpumem::cli
