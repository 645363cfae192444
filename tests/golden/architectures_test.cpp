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
/// Models that hold more in places than the tape says, and by how much at most they are off. Under autocast copies of
/// weights that are views, or that several layers share (ALBERT), end in another order: that shows in models as small
/// as these. A mask in addition to the queries (Falcon's ALiBi) is cast by autocast for each layer. Products of einsums
/// (XLNet) and of parts of a weight (GraniteMoe) are cast as views, whose copies autocast does not keep for later
/// calls. Experts that all are one tensor, and attention with sinks, have names of functions (gpt-oss, Llama 4,
/// MiniMax-M2), and so has GPT-J's; gpt-oss with all experts at once has the other calls of transformers 4.48, too. The parts of BLOOM's GELU count as live at once. GLM-4.5's router leaves lower
/// types under autocast. Mamba-2's one function is recorded as its parts, each of which gives back what it holds. Keys
/// that Gemma 4's later layers read are made again by each block that runs again, and held. An autoencoder's attention
/// leaves images with their channels innermost, of which norms make copies. The recording of RecurrentGemma, of
/// transformers 4.52, holds up to 4 % less than the tape, which is not explained. SpeechT5's blocks that run again hold
/// up to 6 % more beside their table of distances, which is not explained either. PatchTST's batch norms read tokens as
/// they lie in the recording, which has PyTorch's own kernel; cuDNN's copies them. UNet2DModel's forward() has a name
/// for what its last block reads, which lasts until the block is done; the plan frees it. Moonshine's samples of sound
/// are counted as integers. Wav2Vec2-BERT holds 0.6 MB more here, which is not explained, and VideoMAE, whose blocks
/// add up in bfloat16 under autocast, up to 2.5 % less. SigLIP that classifies holds a row of tokens less, Whisper that
/// classifies 1 % more under autocast, and Voxtral up to 3 % more there, which is not explained. The cache of
/// Youtu-LLM, MiniCPM3 and Mistral 4 is of compressed keys in transformers 5.16, and of whole ones here. DeBERTa v1's
/// blocks that run again hold up to 1.5 % more, which is not explained; nor is what EXAONE MoE in bfloat16 and Laguna's
/// blocks that run again hold otherwise, up to 1.8 %. Nor is what LLaVA's relatives that read several layers of their
/// tower hold more, which is about as much as these states side by side, nor what PaddleOCR-VL and GLM-OCR hold more
/// under autocast. In their recordings in bfloat16 model.to() casts the table of the towers' positions, of which each
/// block then makes float32 copies; checkpoints are loaded with float32.
struct Known {
  std::string_view model_type;
  double autocast;
  double otherwise;
};
constexpr Known kKnown[] = {{"vit", 0.011, kTolerance},
                            {"deit", 0.011, kTolerance},
                            {"distilbert", 0.012, kTolerance},
                            {"clip", 0.018, kTolerance},
                            {"modernbert", 0.02, kTolerance},
                            {"albert", 0.025, kTolerance},
                            {"xlnet", 0.011, kTolerance},
                            {"granitemoe", 0.015, kTolerance},
                            {"gpt_oss", 0.02, 0.025},
                            {"gptj", 0.009, 0.009},
                            {"llama4_text", 0.03, 0.021},
                            {"gemma4_text", 0.025, 0.025},
                            {"minimax_m2", 0.008, kTolerance},
                            {"glm4_moe", 0.016, kTolerance},
                            {"minimax", 0.011, 0.01},
                            {"mamba2", kTolerance, 0.01},
                            {"recurrent_gemma", 0.045, 0.03},
                            {"t5", 0.006, 0.03},
                            {"bloom", 0.011, 0.015},
                            {"wav2vec2", 0.007, kTolerance},
                            {"wavlm", kTolerance, 0.01},
                            {"AutoencoderKL", kTolerance, 0.08},
                            {"speecht5", 0.06, 0.06},
                            {"patchtst", 0.03, 0.12},
                            {"UNet2DModel", 0.007, 0.021},
                            {"moonshine", kTolerance, 0.014},
                            {"wav2vec2-bert", 0.009, 0.01},
                            {"patchtsmixer", 0.006, kTolerance},
                            {"dinov2", 0.009, kTolerance},
                            {"dinov2_with_registers", 0.009, kTolerance},
                            {"videomae", 0.026, kTolerance},
                            {"siglip", 0.012, 0.012},
                            {"whisper", 0.011, kTolerance},
                            {"voxtral", 0.03, 0.007},
                            {"youtu", 0.04, kTolerance},
                            {"minicpm3", 0.03, kTolerance},
                            {"deberta", 0.011, 0.016},
                            {"llava_next", 0.03, 0.046},
                            {"vipllava", 0.03, 0.016},
                            {"aya_vision", 0.009, kTolerance},
                            {"cohere2_vision", 0.009, kTolerance},
                            {"paddleocr_vl", 0.033, 0.025},
                            {"glm_ocr", 0.044, 0.013},
                            {"minicpmv4_6", 0.006, kTolerance},
                            {"afmoe", 0.009, kTolerance},
                            {"laguna", 0.017, 0.018},
                            {"exaone_moe", 0.009, 0.018},
                            {"mistral4", 0.032, kTolerance},
                            {"deepseek_ocr2", 0.026, 0.03},
                            {"deepseek_vl", 0.013, 0.014}};

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
  EXPECT_GE(compared, 806U);
  EXPECT_GE(close, compared * 17 / 20) << "within half a per cent";
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
