#include "gpumem/summary/model_folder.hpp"

#include <filesystem>
#include <fstream>

#include "expect.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/summary/formats.hpp"
#include "own_path.hpp"

namespace gpumem::summary {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using testing::fails;
using testing::succeeds;

/// A Llama of one layer: 100 * 8 + 4 * 8 * 8 + 3 * 8 * 16 + 3 * 8 parameters, and as many as the embedding for its
/// head.
constexpr std::string_view kConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8,
  "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 100})";
constexpr std::string_view kTiedConfig = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 100,
  "tie_word_embeddings": true})";

struct Stored {
  std::string name;
  std::int64_t rows = 1;
  std::int64_t columns = 0;  ///< 0: one axis
  std::string type = "F32";
};

const std::vector<Stored> kBody = {{"model.embed_tokens.weight", 100, 8},
                                   {"model.layers.0.input_layernorm.weight", 8},
                                   {"model.layers.0.self_attn.q_proj.weight", 8, 8},
                                   {"model.layers.0.self_attn.k_proj.weight", 8, 8},
                                   {"model.layers.0.self_attn.v_proj.weight", 8, 8},
                                   {"model.layers.0.self_attn.o_proj.weight", 8, 8},
                                   {"model.layers.0.post_attention_layernorm.weight", 8},
                                   {"model.layers.0.mlp.gate_proj.weight", 16, 8},
                                   {"model.layers.0.mlp.up_proj.weight", 16, 8},
                                   {"model.layers.0.mlp.down_proj.weight", 8, 16},
                                   {"model.norm.weight", 8}};

std::vector<Stored> stored_with_head() {
  std::vector<Stored> tensors = kBody;
  tensors.push_back({"lm_head.weight", 100, 8});
  return tensors;
}

class ModelFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  void store(const std::string& name, const std::vector<Stored>& tensors) const {
    std::string header;
    std::int64_t at = 0;
    for (const Stored& tensor : tensors) {
      const std::int64_t elements = tensor.rows * std::max<std::int64_t>(tensor.columns, 1);
      const std::int64_t bytes = tensor.type == "F32" ? 4 : tensor.type == "BF16" ? 2 : 1;
      const std::string columns = tensor.columns > 0 ? "," + std::to_string(tensor.columns) : "";
      header += (header.empty() ? "{\"" : ",\"") + tensor.name + R"(":{"dtype":")" + tensor.type + R"(","shape":[)" +
                std::to_string(tensor.rows) + columns + R"(],"data_offsets":[)" + std::to_string(at) + "," +
                std::to_string(at + elements * bytes) + "]}";
      at += elements * bytes;
    }
    header += "}";
    std::string file(8, '\0');
    for (std::size_t byte = 0; byte < file.size(); ++byte) {
      file[byte] = static_cast<char>(static_cast<unsigned char>(header.size() >> (8 * byte)));
    }
    write(name, file + header + std::string(static_cast<std::size_t>(at), '\0'));
  }

  [[nodiscard]] core::Result<model::ModelGraph> read() const {
    return read_file(folder_.string(), {&ops::vocabulary()});
  }

  fs::path folder_ = testing::own_path("model_folder");
};

TEST_F(ModelFolder, IsItsConfigAlone) {
  write("config.json", kConfig);
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 2 * 100 * 8 + 4 * 8 * 8 + 3 * 8 * 16 + 3 * 8);
  EXPECT_TRUE(graph->warnings().empty());
}

TEST_F(ModelFolder, AgreesWithItsFiles) {
  write("config.json", kConfig);
  store("model.safetensors", stored_with_head());
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(graph->warnings().empty()) << graph->warnings()[0].message;
}

TEST_F(ModelFolder, AgreesWithFilesOfTheBodyAlone) {
  write("config.json", R"({"model_type": "llama", "architectures": ["LlamaModel"], "hidden_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 100})");
  std::vector<Stored> tensors = kBody;
  for (Stored& tensor : tensors) tensor.name = tensor.name.substr(std::string("model.").size());
  store("model.safetensors", tensors);
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(graph->warnings().empty()) << graph->warnings()[0].message;
}

TEST_F(ModelFolder, NamesTheTensorThatIsMissing) {
  write("config.json", kConfig);
  store("model.safetensors", kBody);
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 1U);
  EXPECT_NE(graph->warnings()[0].message.find("no tensor is stored for 'lm_head'"), std::string::npos);
}

TEST_F(ModelFolder, NamesTheTensorThatNoLayerHolds) {
  write("config.json", kTiedConfig);
  std::vector<Stored> tensors = kBody;
  tensors.push_back({"model.layers.1.mlp.up_proj.weight", 16, 8});
  store("model.safetensors", tensors);
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 1U);
  EXPECT_NE(graph->warnings()[0].message.find("'model.layers.1.mlp.up_proj.weight'"), std::string::npos);
}

TEST_F(ModelFolder, SaysThatATiedWeightIsStoredTwice) {
  write("config.json", kTiedConfig);
  store("model.safetensors", stored_with_head());
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 1U);
  EXPECT_NE(graph->warnings()[0].message.find("'lm_head.weight' is stored in addition"), std::string::npos);
}

TEST_F(ModelFolder, RefusesSizesThatContradictTheConfig) {
  write("config.json", kConfig);
  std::vector<Stored> tensors = stored_with_head();
  tensors[9].columns = 32;
  store("model.safetensors", tensors);
  EXPECT_TRUE(fails(read(), ErrorCode::malformed_input, 0, "'model.layers.0.mlp.down_proj.weight'"));
}

TEST_F(ModelFolder, NamesTypesThatAreNoNumbersOfTraining) {
  write("config.json", kConfig);
  std::vector<Stored> tensors = stored_with_head();
  tensors[2].type = "F8_E4M3";
  tensors[3].type = "BF16";
  store("model.safetensors", tensors);
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 1U);
  EXPECT_NE(graph->warnings()[0].message.find("F8_E4M3, 'model.layers.0.self_attn.q_proj.weight'"), std::string::npos);
}

constexpr std::string_view kIndex = R"({"metadata": {"total_size": 9056}, "weight_map": {
  "model.norm.weight": "model-2.safetensors", "model.embed_tokens.weight": "model-1.safetensors"}})";

TEST_F(ModelFolder, ReadsTheFilesOfAnIndex) {
  write("config.json", kConfig);
  write("model.safetensors.index.json", kIndex);
  const std::vector<Stored> all = stored_with_head();
  store("model-1.safetensors", {all.begin(), all.begin() + 5});
  store("model-2.safetensors", {all.begin() + 5, all.end()});
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  EXPECT_TRUE(graph->warnings().empty());
  store("model-2.safetensors", {all.begin(), all.begin() + 2});
  EXPECT_TRUE(fails(read(), ErrorCode::malformed_input, 0, "'model.norm.weight'")) << "the index says otherwise";
}

TEST_F(ModelFolder, SaysWhichFileIsNotThere) {
  write("config.json", kConfig);
  write("model.safetensors.index.json", kIndex);
  const std::vector<Stored> all = stored_with_head();
  store("model-1.safetensors", {all.begin(), all.begin() + 5});
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->warnings().size(), 1U);
  EXPECT_NE(graph->warnings()[0].message.find("'model-2.safetensors'"), std::string::npos);
}

TEST_F(ModelFolder, HoldsTheBytesOfAnIndexWithoutFilesAgainstTheCount) {
  const auto doubted = [&](std::string_view config, std::string_view bytes) {
    write("config.json", config);
    write("model.safetensors.index.json",
          R"({"metadata": {"total_size": )" + std::string(bytes) + R"(}, "weight_map": {"a": "model-1.safetensors"}})");
    const auto graph = read();
    EXPECT_TRUE(succeeds(graph));
    return graph && !graph->doubts().empty() ? graph->doubts().back().times : 1.0;
  };
  EXPECT_EQ(doubted(kConfig, "9056"), 1.0) << "2,264 parameters of float32";
  EXPECT_EQ(doubted(kConfig, "4528"), 1.0) << "of bfloat16";
  EXPECT_NEAR(doubted(kConfig, "45280"), 5.0, 0.01);
  EXPECT_NEAR(doubted(kConfig, "6792"), 1.5, 0.01);
  const std::string packed =
      std::string(kConfig.substr(0, kConfig.rfind('}'))) + R"(, "quantization_config": {"bits": 4}})";
  EXPECT_EQ(doubted(packed, "1500"), 1.0) << "of 4 bits";
}

TEST_F(ModelFolder, DoubtsTheConfigOfFilesThatHoldMore) {
  write("config.json", kTiedConfig);
  std::vector<Stored> tensors = kBody;
  tensors.push_back({"model.layers.0.mlp.experts.up_proj.weight", 160, 8});
  store("model.safetensors", tensors);
  const auto graph = read();
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->doubts().size(), 1U);
  EXPECT_TRUE(graph->doubts()[0].large);
  EXPECT_NEAR(graph->doubts()[0].times, (1464.0 + 1280.0) / 1464.0, 0.001);
}

TEST_F(ModelFolder, ReadsNoFileOutsideOfIt) {
  write("config.json", kConfig);
  for (const std::string_view name : {"../model.safetensors", "/etc/passwd", "weights.bin", ""}) {
    write("model.safetensors.index.json", R"({"weight_map": {"a": ")" + std::string(name) + "\"}}");
    EXPECT_TRUE(fails(read(), ErrorCode::malformed_input, 0, ".safetensors file of the folder")) << name;
  }
}

TEST_F(ModelFolder, RefusesWhatIsNoModel) {
  EXPECT_TRUE(fails(read(), ErrorCode::unreadable_file, 0, "is a directory"));
  write("config.json", kConfig);
  write("model.safetensors", "no tensors");
  EXPECT_TRUE(fails(read(), ErrorCode::malformed_input, 0, "safetensors"));
}

}  // namespace
}  // namespace gpumem::summary
