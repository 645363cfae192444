// What every shipped summary is read as, in one small file each: a change in a reader shows as a difference.
#include <algorithm>

#include "golden.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> shipped_summaries() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(GPUMEM_SOURCE_DIR "/models/summaries")) {
    const auto extension = entry.path().extension();
    if (extension == ".txt" || extension == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string horus(const TrainingJob& job) {
  const auto estimate = (*make_estimator("horus"))->estimate(job, *find_profile("a100-40gb"));
  if (!estimate) return core::to_string(estimate.error());
  return core::with_separators(estimate->expected.count()) + " bytes";
}

std::string described(const fs::path& file) {
  Result<ModelGraph> read = summary::read(testing::text_of(file), {&ops::vocabulary(), file.filename().string()});
  if (!read)
    return "error: " + std::string(core::to_string(read.error().code)) + ": " + core::to_string(read.error()) + "\n";
  const auto graph = std::make_shared<const ModelGraph>(*std::move(read));
  std::ostringstream text;
  text << "format: " << graph->format() << "\n"
       << "layers: " << graph->layers().size() << "\n"
       << "unknown layers: " << graph->unknown_layers() << "\n"
       << "parameters: " << core::with_separators(graph->parameters()) << "\n"
       << "trainable: " << core::with_separators(graph->trainable_parameters()) << "\n"
       << "horus, batch 32: " << horus(TrainingJob(graph, 32)) << "\n";
  const bool no_input = graph->format().starts_with("keras") && graph->graph_inputs().empty();
  if (!graph->shapes_printed() || no_input) {
    TrainingJob image(graph, 32);
    image.input_shape = {3, 224, 224};
    TrainingJob tokens(graph, 32);
    tokens.sequence_length = 128;
    text << "horus, batch 32, input 3x224x224: " << horus(image) << "\n"
         << "horus, batch 32, sequence 128: " << horus(tokens) << "\n";
  }
  for (const std::string& warning : testing::warnings(*graph)) text << "warning: line " << warning << "\n";
  return text.str();
}

TEST(ShippedSummaries, AreReadAsBefore) {
  for (const fs::path& file : shipped_summaries()) {
    testing::expect_golden(fs::path(GPUMEM_GOLDEN_DIR) / "summaries" / (file.stem().string() + ".golden"),
                           described(file));
  }
}

TEST(ShippedSummaries, EachGoldenFileBelongsToOne) {
  for (const auto& entry : fs::directory_iterator(fs::path(GPUMEM_GOLDEN_DIR) / "summaries")) {
    const std::string stem = entry.path().stem().string();
    const auto files = shipped_summaries();
    EXPECT_TRUE(std::any_of(files.begin(), files.end(), [&](const fs::path& file) { return file.stem() == stem; }))
        << entry.path();
  }
}

TEST(ShippedSummaries, OfOneModelAgreeOnItsParameters) {
  const fs::path folder = GPUMEM_SOURCE_DIR "/models/summaries";
  const std::vector<std::pair<std::string, std::int64_t>> published = {
      // torchvision's documentation of its weights: num_params.
      {"resnet18.", 11689512},   {"resnet50.", 25557032},     {"vgg16.", 138357544},   {"mobilenet_v2.", 3504872},
      {"densenet121.", 7978856}, {"inception_v3.", 27161264}, {"vit_b_16.", 86567656}, {"efficientnet_b0.", 5288548},
  };
  for (const auto& [model, parameters] : published) {
    int read = 0;
    for (const fs::path& file : shipped_summaries()) {
      if (!file.filename().string().starts_with(model)) continue;
      const auto graph = read_summary(file.string(), true);
      ASSERT_TRUE(testing::succeeds(graph));
      EXPECT_EQ(graph->parameters(), parameters) << file;
      ++read;
    }
    EXPECT_GT(read, 0) << model;
  }
}

}  // namespace
}  // namespace gpumem
