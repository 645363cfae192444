// gpumem_fuzz_replay TARGET FOLDER...: runs every file of the folders, seeds first, through that fuzz target: what was
// found once is tested for ever, without libFuzzer and in every build. Fails if the first folder holds no file that the
// library accepts: seeds that are all refused test nothing.
#include <sys/resource.h>

#include <filesystem>
#include <vector>

#include "fuzz.hpp"
#include "gpumem/core/file.hpp"

namespace {

/// The most memory that this process has held so far.
long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

int main(int argc, char** argv) {
  const gpumem::fuzz::Target fuzz_one = gpumem::fuzz::target_named(argc > 1 ? argv[1] : nullptr);
  std::size_t files = 0;
  std::size_t accepted_seeds = 0;
  for (int index = 2; index < argc; ++index) {
    // A target without regressions has no folder of them: git keeps no empty ones.
    if (!std::filesystem::is_directory(argv[index])) continue;
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[index])) paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      const auto content = gpumem::core::read_file(path);
      if (!content) {
        std::fprintf(stderr, "%s\n", gpumem::core::to_string(content.error()).c_str());
        return 1;
      }
      // Named before it runs: a crash must not hide which file did it.
      std::printf("%s (%zu bytes)\n", path.c_str(), content->size());
      std::fflush(stdout);
      const bool accepted = fuzz_one(*content);
      // run.sh sets libFuzzer the same limit: no file here is longer than 64 KiB.
      constexpr long kMostKib = 1024L * 1024L;
      gpumem::fuzz::require(peak_kib() < kMostKib, "memory stays in proportion to the input");
      accepted_seeds += index == 2 && accepted ? 1 : 0;
      ++files;
    }
  }
  std::printf("%zu files, %zu seeds accepted\n", files, accepted_seeds);
  return accepted_seeds > 0 ? 0 : 1;
}
