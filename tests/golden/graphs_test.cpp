// The shipped graphs: our shapes and parameter counts are PyTorch's, at every node, at two batch and input sizes.
// models/graphs/NAME.json and golden/graphs/NAME.shapes are both made by examples/pytorch/export_graph.py.
#include <algorithm>
#include <array>
#include <map>

#include "golden.hpp"
#include "gpumem/connect/connect.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

/// A tensor's shape in numbers; PyTorch's as its file has it: "2x3x224x224".
using Sizes = std::vector<std::int64_t>;

Sizes sizes_from(const std::string& text) {
  Sizes sizes;
  std::istringstream stream(text == "scalar" ? "" : text);
  for (std::string size; std::getline(stream, size, 'x');) sizes.push_back(std::stoll(size));
  return sizes;
}

Sizes sizes_of(const core::Shape& shape, std::int64_t batch_size) {
  Sizes sizes;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const core::Dim dim = shape[axis];
    sizes.push_back(dim.kind == core::Dim::Kind::batch ? dim.size * batch_size : dim.size);
  }
  return sizes;
}

/// What PyTorch gives for a model in two runs.
struct Measured {
  std::int64_t parameters = 0;
  std::int64_t trainable = 0;
  std::array<Sizes, 2> input;
  std::vector<std::pair<std::string, std::array<Sizes, 2>>> nodes;
};

Measured read_shapes(const fs::path& file) {
  Measured measured;
  std::istringstream text(testing::text_of(file));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string name;
    std::string first;
    std::string second;
    words >> name >> first;
    if (name == "parameters") {
      measured.parameters = std::stoll(first);
    } else if (name == "trainable") {
      measured.trainable = std::stoll(first);
    } else if (name == "input") {
      words >> first >> second;
      measured.input = {sizes_from(first), sizes_from(second)};
    } else {
      words >> second;
      measured.nodes.push_back({name, {sizes_from(first), sizes_from(second)}});
    }
  }
  return measured;
}

/// A job of these input sizes, the batch first.
TrainingJob graph_job(const std::shared_ptr<const ModelGraph>& graph, const Sizes& input) {
  TrainingJob job(graph, input.front());
  if (graph->graph_inputs()[0].dtype == core::DType::int64) {
    job.sequence_length = input.back();
  } else {
    job.input_shape.assign(input.begin() + 1, input.end());
  }
  return job;
}

std::vector<fs::path> files_in(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

fs::path graph_file(const fs::path& shapes) {
  return fs::path(GPUMEM_SOURCE_DIR "/models/graphs") / (shapes.stem().string() + ".json");
}

std::vector<fs::path> shape_files() { return files_in(fs::path(GPUMEM_GOLDEN_DIR) / "graphs", ".shapes"); }

TEST(ShippedGraphs, HaveTheirShapesBesideThem) {
  const auto graphs = files_in(GPUMEM_SOURCE_DIR "/models/graphs", ".json");
  EXPECT_GE(graphs.size(), 10U);
  EXPECT_EQ(graphs.size(), shape_files().size());
  for (const fs::path& shapes : shape_files()) EXPECT_TRUE(fs::exists(graph_file(shapes))) << shapes;
}

TEST(ShippedGraphs, HoldPyTorchsParameters) {
  for (const fs::path& file : shape_files()) {
    const auto graph = read_summary(graph_file(file).string());
    ASSERT_TRUE(testing::succeeds(graph));
    const Measured measured = read_shapes(file);
    EXPECT_EQ(graph->parameters(), measured.parameters) << file;
    EXPECT_EQ(graph->trainable_parameters(), measured.trainable) << file;
    EXPECT_EQ(testing::warnings(*graph), std::vector<std::string>()) << file;
  }
}

TEST(ShippedGraphs, HavePyTorchsShapesAtEveryNode) {
  for (const fs::path& file : shape_files()) {
    auto read = read_summary(graph_file(file).string());
    ASSERT_TRUE(testing::succeeds(read));
    const auto graph = std::make_shared<const ModelGraph>(*std::move(read));
    const Measured measured = read_shapes(file);
    std::map<std::string, std::size_t> layers;
    for (std::size_t index = 0; index < graph->layers().size(); ++index) {
      layers.emplace(graph->name(graph->layers()[index]), index);
    }
    for (const std::size_t run : {0U, 1U}) {
      const TrainingJob job = graph_job(graph, measured.input[run]);
      const auto wired = connect::connect(job, ops::catalogue());
      ASSERT_TRUE(testing::succeeds(wired)) << file;
      std::size_t compared = 0;
      for (const auto& [name, sizes] : measured.nodes) {
        ASSERT_TRUE(layers.contains(name)) << name << " in " << file;
        const auto outputs = wired->outputs(layers[name]);
        ASSERT_EQ(outputs.size(), 1U) << name << " in " << file;
        EXPECT_EQ(sizes_of(outputs[0], job.batch_size), sizes[run]) << name << " in " << file << ", run " << run;
        ++compared;
      }
      EXPECT_EQ(compared, graph->layers().size()) << file;
    }
  }
}

TEST(ShippedGraphs, AreReadBackEqual) {
  for (const fs::path& file : files_in(GPUMEM_SOURCE_DIR "/models/graphs", ".json")) {
    const auto graph = read_summary(file.string());
    ASSERT_TRUE(testing::succeeds(graph));
    const std::string written = to_graph_json(*graph);
    const auto again = parse_summary(written);
    ASSERT_TRUE(testing::succeeds(again)) << file;
    EXPECT_EQ(testing::describe(*again), testing::describe(*graph)) << file;
    EXPECT_EQ(to_graph_json(*again), written) << file;
  }
}

}  // namespace
}  // namespace gpumem
