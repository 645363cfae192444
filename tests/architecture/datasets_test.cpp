// Data sets, the simulator of traces and the reader of checkpoints are separate from the library: they use its public
// headers, and nothing that a scheduler links knows about them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sources.hpp"

namespace gpumem::architecture {
namespace {

using SourceNames = std::set<std::string>;

constexpr std::string_view kDatasets = "gpumem_datasets/";

/// What several readers share, and what reads through them; every other file reads one table or one dialect.
const SourceNames kSharedByDatasets = {
    "measured_run", "runs_format", "runs_tables", "summary_shelf",        "adapter_file", "gpumemnet_net", "accuracy",
    "trace",        "simulation",  "pickle",      "lightning_checkpoint", "zip_archive",  "serving_starts"};
/// What is no table of runs.
const SourceNames kOtherDatasets = {"rad_file", "gpumemnet_checkpoint", "simulator", "serving_table",
                                    "vllm_log", "image_models"};
const SourceNames kListsOfDatasets = {"read_runs", "datasets"};

/// Headers and bodies; only the headers' folder is installed.
std::vector<Source> datasets() {
  std::vector<Source> all = sources_below(kRoot / "include" / "gpumem_datasets");
  const std::vector<Source> bodies = sources_below(kRoot / "src" / "datasets");
  all.insert(all.end(), bodies.begin(), bodies.end());
  return all;
}

/// Includes of the files that a reader of data sets must not have, in words.
std::vector<std::string> forbidden_in_datasets(const std::vector<Source>& files) {
  std::vector<std::string> faults;
  for (const Source& file : files) {
    const std::string stem = stem_of(file.path);
    for (const std::string& include : file.includes) {
      const std::string arrow = file.path + " includes " + include;
      if (include.starts_with("gpumem/") && include.find("/impl/") != std::string::npos) faults.push_back(arrow);
      if (!include.starts_with(kDatasets)) continue;
      const std::string target = stem_of(include);
      if (target != stem && !kSharedByDatasets.contains(target) && !kListsOfDatasets.contains(stem))
        faults.push_back(arrow);
    }
  }
  return faults;
}

/// Files of these that include a data set's header, in words.
std::vector<std::string> who_know(const std::vector<Source>& files) {
  std::vector<std::string> found;
  for (const Source& file : files) {
    for (const std::string& include : file.includes) {
      if (include.starts_with(kDatasets)) found.push_back(file.path + " includes " + include);
    }
  }
  return found;
}

TEST(Datasets, AreFound) {
  EXPECT_GT(datasets().size(), 15U);
  EXPECT_FALSE(who_know(sources_below(kRoot / "src" / "cli")).empty()) << "the command line evaluates";
}

TEST(Datasets, UseTheLibraryByItsPublicHeaders) {
  EXPECT_EQ(forbidden_in_datasets(datasets()), std::vector<std::string>());
}

TEST(Datasets, AForbiddenArrowIsFound) {
  const std::vector<Source> files = {
      {"runs_csv.cpp", {"gpumem_datasets/runs_tables.hpp", "gpumem/core/csv.hpp", "gpumem_datasets/summary_shelf.hpp"}},
      {"xmem_csv.cpp", {"gpumem_datasets/simulator.hpp", "gpumem/core/impl/csv_inl.hpp"}},
      {"read_runs.cpp", {"gpumem_datasets/simulator.hpp"}},
  };
  EXPECT_EQ(forbidden_in_datasets(files),
            (std::vector<std::string>{"xmem_csv.cpp includes gpumem_datasets/simulator.hpp",
                                      "xmem_csv.cpp includes gpumem/core/impl/csv_inl.hpp"}));
  EXPECT_EQ(who_know({files[2]}), (std::vector<std::string>{"read_runs.cpp includes gpumem_datasets/simulator.hpp"}));
}

TEST(Datasets, NothingThatASchedulerLinksKnowsThem) {
  const std::vector<std::string> none;
  EXPECT_EQ(who_know(sources_below(kRoot / "include" / "gpumem")), none);
  for (const char* folder : {"library", "job_json", "capi", "webhook"}) {
    const std::vector<Source> files = sources_below(kRoot / "src" / folder);
    EXPECT_FALSE(files.empty()) << folder;
    EXPECT_EQ(who_know(files), none);
  }
}

TEST(Datasets, TheListHoldsEveryTableOfRuns) {
  SourceNames tables;
  for (const Source& file : sources_below(kRoot / "src" / "datasets")) {
    const std::string stem = stem_of(file.path);
    if (!kSharedByDatasets.contains(stem) && !kListsOfDatasets.contains(stem) && !kOtherDatasets.contains(stem))
      tables.insert(stem);
  }
  EXPECT_GE(tables.size(), 8U);
  const std::string text = text_of(kRoot / "src/datasets/read_runs.cpp");
  for (const std::string& table : tables) EXPECT_NE(text.find("&" + table + "(),"), std::string::npos) << table;
}

}  // namespace
}  // namespace gpumem::architecture
