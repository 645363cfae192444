// Runs the command line as a script does: what it prints, where, and its exit code.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "golden.hpp"
#include "own_path.hpp"
#include "programs.hpp"

namespace gpumem::testing {

namespace fs = std::filesystem;

struct Outcome {
  int exit = -1;
  std::string out;
  std::string err;
};

/// Runs the command line with these words (as a shell takes them) in the root of the sources.
inline Outcome run(const std::string& words, std::string_view input = "") {
  const fs::path folder = testing::own_path("cli");
  fs::create_directories(folder);
  std::ofstream(folder / "in", std::ios::binary) << input;
  const std::string command = std::string("cd '" GPUMEM_SOURCE_DIR "' && '") + kCommandLine + "' " + words + " <'" +
                              (folder / "in").string() + "' >'" + (folder / "out").string() + "' 2>'" +
                              (folder / "err").string() + "'";
  const int status = std::system(command.c_str());
  Outcome result = {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder / "out"), text_of(folder / "err")};
  fs::remove_all(folder);
  return result;
}

/// The text with every time set to 0: it differs from run to run.
inline std::string without_times(std::string text) {
  constexpr std::string_view kMark = "\"seconds\":";
  for (std::size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    at = text.find_first_not_of(' ', at + kMark.size());
    text.replace(at, text.find_first_of(",}\n", at) - at, "0");
  }
  return text;
}

inline void expect_golden_run(const std::string& name, const std::string& words, std::string_view input = "") {
  const Outcome result = run(words, input);
  const std::string text = "$ gpumem " + words + "\nexit code " + std::to_string(result.exit) + "\n--- stdout\n" +
                           without_times(result.out) + "--- stderr\n" + result.err;
  expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "cli" / (name + ".golden"), text);
}

// What the words of several commands begin with.

inline constexpr const char* kResnet50 = "models/summaries/resnet50.torchsummary.txt";

inline std::string resnet50(std::string_view options) {
  return std::string("estimate ") + kResnet50 + " " + std::string(options);
}

inline constexpr const char* kFit = "fit models/graphs/resnet50.json --gpu rtx4090-24gb ";

/// Its figures are invented for the tests: they measure nothing.
inline constexpr const char* kEvaluate = "evaluate tests/golden/cli/evaluate_runs_made_up.csv";

}  // namespace gpumem::testing
