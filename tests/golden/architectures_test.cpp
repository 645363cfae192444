// Peaks of live tensors that recordings of plain PyTorch have (architectures/*.json, made by make_goldens.py there)
// against those of the graphs that architectures/ makes of the same config.json: batch, length, precision,
// checkpointing.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "graphs.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 0.005;
/// Models whose peaks are further off: by how much at most, and why. The goldens are small, so a copy of one weight
/// shows.
struct Known {
  std::string_view model_type;
  double autocast;
  double otherwise;
};
constexpr Known kKnown[] = {
    // Under autocast, copies of weights that are views, or that layers share (ALBERT), end in another order.
    {"vit", 0.011, kTolerance},
    {"deit", 0.011, kTolerance},
    {"distilbert", 0.012, kTolerance},
    {"clip", 0.018, kTolerance},
    {"modernbert", 0.02, kTolerance},
    {"albert", 0.025, kTolerance},
    {"wav2vec2", 0.007, kTolerance},
    {"patchtsmixer", 0.006, kTolerance},
    {"dinov2", 0.009, kTolerance},
    {"dinov2_with_registers", 0.009, kTolerance},
    {"minicpmv4_6", 0.006, kTolerance},
    // Products of einsums (XLNet) and of parts of a weight are cast as views, whose copies autocast does not keep.
    {"xlnet", 0.011, kTolerance},
    {"granitemoe", 0.015, kTolerance},
    // Functions have names for experts that are one tensor, for attention with sinks and for GPT-J's.
    // gpt-oss with all experts at once has the other calls of transformers 4.48, too.
    {"gpt_oss", 0.02, 0.025},
    {"gptj", 0.009, 0.009},
    {"llama4_text", 0.03, 0.021},
    {"minimax", kTolerance, 0.01},
    // Before 5.0 the tokens' sum is there before the experts run; here it is made behind them.
    {"minimax_m2", 0.013, 0.008},
    // Keys that later layers read are made again by each block that runs again, and held.
    {"gemma4_text", 0.025, 0.025},
    // The router leaves lower types under autocast.
    {"glm4_moe", 0.016, kTolerance},
    // One function is recorded as its parts, each of which gives back what it holds.
    {"mamba2", kTolerance, 0.01},
    // The recording, of transformers 4.52, holds up to 4 % less. This is not explained.
    {"recurrent_gemma", 0.045, 0.03},
    // The parts of its GELU count as live at once.
    {"bloom", 0.011, 0.015},
    // Attention leaves images with their channels innermost, and norms make copies of them.
    {"AutoencoderKL", kTolerance, 0.08},
    // Blocks that run again hold more beside their table of distances. This is not explained.
    {"speecht5", 0.06, 0.06},
    // Batch norms read tokens as they lie in the recording, which has PyTorch's own kernel. cuDNN's copies them.
    {"patchtst", 0.03, 0.12},
    // forward() has a name for what its last block reads, until the block is done. The plan frees it.
    {"UNet2DModel", 0.007, 0.021},
    // Samples of sound are counted as integers.
    {"moonshine", kTolerance, 0.014},
    // 0.6 MB more here. This is not explained.
    {"wav2vec2-bert", 0.009, 0.01},
    // Blocks add up in bfloat16 under autocast.
    {"videomae", 0.026, kTolerance},
    // One that classifies holds a row of tokens less.
    {"siglip", 0.012, 0.012},
    // More under autocast: Whisper's that classifies, and Voxtral. This is not explained.
    {"whisper", 0.011, kTolerance},
    {"voxtral", 0.03, 0.007},
    // The cache is of compressed keys in transformers 5.16, and of whole ones here.
    {"youtu", 0.04, kTolerance},
    {"minicpm3", 0.03, kTolerance},
    {"mistral4", 0.032, kTolerance},
    // Several layers of the tower are read. What is held more is about as much as these side by side; not explained.
    {"llava_next", 0.03, 0.046},
    {"vipllava", 0.03, 0.016},
    // In bfloat16 the recording's model.to() casts the table of the tower's positions, and each block makes float32
    // copies of it; checkpoints are loaded with float32. What is held more under autocast is not explained.
    {"aya_vision", 0.009, kTolerance},
    {"cohere2_vision", 0.009, kTolerance},
    // A little less in bfloat16, most where blocks run again. This is not explained.
    {"ovis2", 0.007, 0.01},
    // A little more or less where blocks run again, and 2 % more in float32. This is not explained.
    {"blip-2", 0.017, 0.033},
    // The last image is held until the loss is there.
    {"convnext", 0.017, kTolerance},
    // A block that runs again holds one more image in PyTorch than the plan says.
    {"resnet", 0.071, 0.088},
    // Under autocast the logits that are as large as the image are there once more. This is not explained.
    {"segformer", 0.111, 0.016},
    // A little more where blocks run again. This is not explained.
    {"dots_ocr", 0.02, 0.027},
    // More and less under autocast. This is not explained.
    {"csm", 0.027, 0.008},
    {"paddleocr_vl", 0.033, 0.018},
    {"glm_ocr", 0.044, 0.02},
    // Not explained: DeBERTa's and Laguna's blocks that run again, EXAONE in bfloat16, and the others.
    {"t5", 0.006, 0.03},
    {"wavlm", kTolerance, 0.01},
    {"deberta", 0.011, 0.016},
    {"laguna", kTolerance, 0.018},
    {"exaone_moe", 0.012, 0.018},
    {"deepseek_ocr2", 0.026, 0.03},
    {"deepseek_vl", 0.013, 0.014},
};

/// Of any one run with adapters. Under checkpointing the second run of a block holds more in PyTorch than the plan
/// says.
constexpr double kWithAdapters = 0.03;
constexpr double kWithAdaptersAndCheckpointing = 0.06;

std::vector<fs::path> goldens(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(GPUMEM_GOLDEN_DIR) / folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

double tolerance_of(const nlohmann::json& config, const nlohmann::json& run) {
  for (const Known& known : kKnown) {
    if (config.value("model_type", config.value("_class_name", "")) == known.model_type)
      return run["precision"] == "amp-bf16" ? known.autocast : known.otherwise;
  }
  return kTolerance;
}

TrainingJob job_of(const std::shared_ptr<const ModelGraph>& graph, const nlohmann::json& run) {
  TrainingJob job(graph, run["batch_size"].get<std::int64_t>());
  if (run.contains("sequence_length")) job.sequence_length = run["sequence_length"].get<std::int64_t>();
  if (run.contains("image")) job.image = run["image"].get<std::vector<std::int64_t>>();
  job.precision = *model::value_of(model::kPrecisions, run["precision"].get<std::string>());
  job.activation_checkpointing = run["activation_checkpointing"].get<bool>();
  job.optimizer = Optimizer::adamw;
  if (run.contains("transformers")) {
    job.transformers = *model::value_of(model::kTransformers, run["transformers"].get<std::string>());
  }
  if (!run.contains("lora")) return job;
  if (!run["lora"].is_null()) job.lora = run["lora"].get<std::int64_t>();
  if (run.contains("peft")) {
    job.peft = *model::value_of(model::kPeftMethods, run["peft"].get<std::string>());
    job.peft_options = run["peft_options"].get<std::string>();
  }
  job.lora_targets = run["lora_targets"].get<std::string>();
  job.lora_dtype = *model::value_of(model::kAdapterTypes, run["lora_dtype"].get<std::string>());
  job.lora_dropout = run["lora_dropout"].get<double>();
  job.quantize = *model::value_of(model::kQuantizations, run["quantize"].get<std::string>());
  return job;
}

TEST(Architectures, HoldWhatPyTorchHolds) {
  std::size_t compared = 0;
  std::size_t close = 0;
  for (const fs::path& file : goldens("architectures")) {
    const auto golden = nlohmann::json::parse(testing::text_of(file));
    const auto graph = parse_summary(golden["config"].dump());
    ASSERT_TRUE(testing::succeeds(graph)) << file;
    EXPECT_EQ(graph->parameters(), golden["parameters"].get<std::int64_t>()) << file;
    const bool mixes = golden["config"].dump().find("experts") != std::string::npos;  // which it says about the routing
    EXPECT_EQ(graph->warnings().size(), graph->doubts().size() + (mixes ? 1 : 0)) << file;
    const auto shared = std::make_shared<const ModelGraph>(*graph);
    for (const nlohmann::json& run : golden["runs"]) {
      analysis::Analysis analysis(job_of(shared, run));
      const auto steps = analysis.steps();
      ASSERT_TRUE(testing::succeeds(steps)) << file << run;
      const auto expected = run["peak_bytes"].get<double>();
      const double error = static_cast<double>((*steps)->peak_bytes) / expected - 1.0;
      EXPECT_LE(std::abs(error), tolerance_of(golden["config"], run)) << file << run << ": " << error;
      ++compared;
      if (std::abs(error) <= kTolerance) ++close;
    }
  }
  EXPECT_GE(compared, 854U);
  EXPECT_GE(close, compared * 21 / 25) << "within half a per cent";
}

struct Agreement {
  std::size_t compared = 0;
  std::size_t close = 0;
};

/// All goldens in a folder of models with adapters.
Agreement compare_adapted(const fs::path& folder) {
  std::size_t compared = 0;
  std::size_t close = 0;
  for (const fs::path& file : goldens(folder)) {
    const auto golden = nlohmann::json::parse(testing::text_of(file));
    const auto graph = parse_summary(golden["config"].dump());
    EXPECT_TRUE(testing::succeeds(graph)) << file;
    if (!graph) continue;
    const auto shared = std::make_shared<const ModelGraph>(*graph);
    for (const nlohmann::json& run : golden["runs"]) {
      analysis::Analysis analysis(job_of(shared, run));
      const auto steps = analysis.steps();
      EXPECT_TRUE(testing::succeeds(steps)) << file << run;
      if (!steps) continue;
      const auto expected = run["peak_bytes"].get<double>();
      const double error = static_cast<double>((*steps)->peak_bytes) / expected - 1.0;
      const bool again = run["activation_checkpointing"].get<bool>();
      const double tolerance = again ? kWithAdaptersAndCheckpointing : kWithAdapters;
      EXPECT_LE(std::abs(error), tolerance) << file << run << ": " << error;
      ++compared;
      if (std::abs(error) <= kTolerance) ++close;
    }
  }
  return {compared, close};
}

// The same models with adapters on a frozen base, quantised or not (architectures/adapted).
TEST(Architectures, HoldWhatPyTorchHoldsWithAdapters) {
  const Agreement all = compare_adapted(fs::path("architectures") / "adapted");
  EXPECT_GE(all.compared, 186U);
  EXPECT_GE(all.close, all.compared * 4 / 5) << "within half a per cent";
}

// With adapters of PEFT's other methods, one of each kind (architectures/peft).
TEST(Architectures, HoldWhatPyTorchHoldsWithPeftsMethods) {
  const Agreement all = compare_adapted(fs::path("architectures") / "peft");
  EXPECT_GE(all.compared, 44U);
  EXPECT_GE(all.close, all.compared * 3 / 4) << "within half a per cent";
}

}  // namespace
}  // namespace gpumem
