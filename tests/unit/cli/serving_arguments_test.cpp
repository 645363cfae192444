#include "serving_arguments.hpp"

#include <gtest/gtest.h>

namespace gpumem::cli {
namespace {

/// The options that these words say; throws what CLI11 throws.
ServeOptions parsed(std::vector<std::string> words) {
  CLI::App app;
  ServeOptions options;
  add_serve(app, options);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return options;
}

TEST(ServingArguments, OneQuestionAtATime) {
  const std::vector<std::vector<std::string>> questions = {{"--fit"}, {"--advise"}, {"--plan", "4"}, {"--for", "hami"}};
  for (const auto& one : questions) {
    EXPECT_NO_THROW(parsed(one)) << one.front();
    for (const auto& other : questions) {
      if (&one == &other) continue;
      std::vector<std::string> words = one;
      words.insert(words.end(), other.begin(), other.end());
      EXPECT_THROW(parsed(words), CLI::ExcludesError) << one.front() << " " << other.front();
    }
  }
  EXPECT_EQ(parsed({"--plan", "4", "--json"}).plan, 4);
  EXPECT_THROW(parsed({"--for", "hami", "--json"}), CLI::ExcludesError) << "what a scheduler reads is no JSON of ours";
}

TEST(ServingArguments, APlanIsOfAtLeastOneGpu) {
  for (const std::string gpus : {"0", "-4", "many"}) EXPECT_THROW(parsed({"--plan", gpus}), CLI::ParseError) << gpus;
}

}  // namespace
}  // namespace gpumem::cli
