#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem_datasets/adapter_file.hpp"
#include "own_path.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

const std::string kHeader =
    "name,model,method,rank,targets,batch,height,width,frames,latent_tokens,text_tokens,frozen_dtype,trainable_dtype,"
    "compute_dtype,checkpointing,optimizer,compile,offload,parts_on_gpu,gpu,gpus,figure,measured_mib,status,software,"
    "source,notes\n";

/// A table with this row. All figures are made up.
MeasuredRuns read(const std::string& row) {
  const auto table = core::parse_csv(kHeader + row + "\n", "data/runs.csv");
  EXPECT_TRUE(testing::succeeds(table));
  EXPECT_TRUE(image_csv().sniff(*table));
  RunsOptions options = testing::small_shelf();
  options.read_summary = [](const std::string& path) -> core::Result<model::ModelGraph> {
    if (!path.ends_with("configs/SD1.5-unet.json")) return core::Error{core::ErrorCode::unreadable_file, "no", {}};
    return session::parse_summary(R"({"_class_name": "UNet2DConditionModel", "cross_attention_dim": 768})");
  };
  options.parse_summary = [](std::string_view text, const std::string&) { return session::parse_summary(text); };
  auto all = image_csv().read(*table, options);
  EXPECT_TRUE(testing::succeeds(all));
  return *std::move(all);
}

std::string row(const std::string& checkpointing, const std::string& parts, const std::string& status = "ok",
                const std::string& model = "Lykon/dreamshaper-8") {
  return "a," + model + ",LORA,16,to_k to_q (family default),2,512,768,1,,80,bf16,bf16 unless,bf16," + checkpointing +
         ",adamw_bf16,no,embeddings and latents precomputed," + parts + ",H100 80GB,1,allocated (inferred),1000.5," +
         status + ",SimpleTuner 2026-08,github who/tuner@1234,";
}

TEST(ImageCsv, ReadsARun) {
  const MeasuredRuns all =
      read(row("full", "denoiser; dinov2-base fp32 (1048576 parameters); prompt cache 2x512x1024 bf16"));
  ASSERT_EQ(all.runs.size(), 1U);
  const MeasuredRun& run = all.runs[0];
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.gpu, "h100-80gb");
  EXPECT_EQ(run.figure, Figure::allocated);
  EXPECT_EQ(run.measured_mib, 1000.5);
  EXPECT_EQ(run.source, "github who/tuner");
  const model::TrainingJob& job = run.job;
  EXPECT_EQ(job.batch_size, 2);
  EXPECT_EQ(job.image, (std::vector<std::int64_t>{768, 512})) << "width and height";
  EXPECT_EQ(job.sequence_length, 80);
  EXPECT_EQ(job.lora, 16);
  EXPECT_EQ(job.lora_targets, "to_k+to_q");
  EXPECT_EQ(job.lora_dtype, model::AdapterType::bf16);
  EXPECT_EQ(job.precision, model::Precision::amp_bf16);
  EXPECT_EQ(job.base_dtype, model::BaseType::bf16);
  EXPECT_EQ(job.optimizer, model::Optimizer::adamw_bf16);
  EXPECT_TRUE(job.activation_checkpointing);
  EXPECT_EQ(job.resident, 4 + 2) << "a million figures of four bytes, and one of two";
}

TEST(ImageCsv, TakesAnAreaForASize) {
  std::string text = row("full", "denoiser");
  text.replace(text.find("512,768"), 7, ",");
  EXPECT_EQ(read(text).runs.at(0).refusal, "the size of its samples is missing");
  const MeasuredRuns all = read(text + "data backend: area of 480x320 px and aspect kept");
  ASSERT_FALSE(all.runs.at(0).error) << core::to_string(*all.runs[0].error);
  EXPECT_EQ(all.runs[0].job.image, (std::vector<std::int64_t>{512, 320})) << "sides are multiples of 64";
}

TEST(ImageCsv, TakesAnIntervalAsTheModelDoes) {
  const MeasuredRuns all = read(row("two blocks a checkpoint", "denoiser"));
  EXPECT_EQ(all.runs.at(0).job.checkpoints.kind, model::Checkpoints::full) << "diffusers' UNet knows none";
  const auto kind_of = [](const std::string& checkpointing, const std::string& name) {
    return read(row(checkpointing, "denoiser", "ok", name)).runs.at(0).job.checkpoints.kind;
  };
  const std::string alone = "baidu/ERNIE-Image";
  EXPECT_EQ(kind_of("two blocks a checkpoint", alone), model::Checkpoints::first_of);
  EXPECT_EQ(kind_of("two blocks of every four", alone), model::Checkpoints::every_other);
  EXPECT_EQ(kind_of("two blocks of every four", "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"),
            model::Checkpoints::joined_every_other);
}

TEST(ImageCsv, TakesWhatTheTrainersCodeSays) {
  std::string text = row("full", "denoiser", "ok", "baidu/ERNIE-Image");
  text.replace(text.find(",80,"), 4, ",,");
  EXPECT_EQ(read(text).runs.at(0).job.sequence_length, 5) << "the examples' prompt is one character";
  text = row("full", "denoiser", "ok", "Wan-AI/Wan2.1-T2V-1.3B-Diffusers");
  text.replace(text.find("512,768"), 7, ",");
  const MeasuredRuns wan = read(text + "data backend: area of 480x480 px and aspect kept");
  ASSERT_FALSE(wan.runs.at(0).error) << core::to_string(*wan.runs[0].error);
  EXPECT_EQ(wan.runs[0].job.image, (std::vector<std::int64_t>{480, 480})) << "sides are multiples of 32";
  EXPECT_EQ(wan.runs[0].job.graph->parameters(), 1418996800);
  text = row("full", "denoiser", "ok", "Lightricks/LTX-2");
  const MeasuredRuns ltx = read(text);
  ASSERT_FALSE(ltx.runs.at(0).error) << core::to_string(*ltx.runs[0].error);
  EXPECT_EQ(ltx.runs[0].job.graph->parameters(), 18'876'174'592);
}

TEST(ImageCsv, ReadsWhichActivationsAreOnTheHost) {
  const MeasuredRuns all = read(row("\"full, with attention activations offloaded to the CPU\"", "denoiser"));
  ASSERT_FALSE(all.runs.at(0).error) << core::to_string(*all.runs[0].error);
  EXPECT_EQ(all.runs[0].job.checkpoints.host_attention, model::HostAttention::module);
}

TEST(ImageCsv, ReadsHowFrozenWeightsAreHeld) {
  std::string text = row("full", "denoiser");
  text.replace(text.find(",bf16,bf16 unless"), 5, ",fp8 dynamic (torchao)");
  const MeasuredRuns all = read(text);
  ASSERT_FALSE(all.runs.at(0).error) << core::to_string(*all.runs[0].error);
  EXPECT_EQ(all.runs[0].job.quantize, model::Quantization::fp8_torchao);
  EXPECT_EQ(all.runs[0].job.base_dtype, model::BaseType::bf16);
  text.replace(text.find("fp8 dynamic (torchao)"), 21, "fp8 weight only (checkpoint)");
  EXPECT_EQ(read(text).runs.at(0).job.quantize, model::Quantization::fp8wo_torchao);
}

TEST(ImageCsv, ReadsGradientsThatLeaveTheGpuOneByOne) {
  std::string text = row("full", "denoiser");
  text.replace(text.find("LORA,16"), 7, "full,");
  text.replace(text.find("adamw_bf16"), 10, "\"adamw, state and gradients on the CPU (torchao CPUOffloadOptimizer)\"");
  text.replace(text.find("embeddings and latents precomputed"), 34, "optimizer+gradients");
  const MeasuredRuns all = read(text);
  ASSERT_FALSE(all.runs.at(0).error) << core::to_string(*all.runs[0].error);
  EXPECT_EQ(all.runs[0].job.offload, model::Offload::optimizer);
  EXPECT_TRUE(all.runs[0].job.optimizer_in_backward);
}

TEST(ImageCsv, ReadsWhatIsInTheHostsMemory) {
  const auto offload_of = [](const std::string& what) {
    std::string text = row("full", "denoiser");
    text.replace(text.find("embeddings and"), 0, what + "; ");
    const MeasuredRuns all = read(text);
    EXPECT_FALSE(all.runs.at(0).error) << what;
    return all.runs[0].job.offload;
  };
  EXPECT_EQ(offload_of("ramtorch: frozen weights stream from the CPU"), model::Offload::ramtorch);
  EXPECT_EQ(offload_of("checkpointed activations on the CPU"), model::Offload::checkpoints);
}

TEST(ImageCsv, ReadsWhatIsAllocatedWhenAStepHasEnded) {
  std::string text = row("full", "denoiser");
  text.replace(text.find("allocated (inferred)"), 20, "allocated at the end of a step");
  EXPECT_EQ(read(text).runs.at(0).figure, Figure::after_step);
}

TEST(ImageCsv, FindsAModelInAnyCapitals) {
  EXPECT_FALSE(read(row("full", "denoiser", "ok", "lykon/DreamShaper-8")).runs.at(0).error);
}

TEST(ImageCsv, ReadsLycorisFromTheExampleBesideTheTable) {
  const std::filesystem::path folder = testing::own_path("lycoris");
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "simpletuner_examples.json").string();
  std::ofstream(file) << R"({"sd.lycoris-lokr": {"_lycoris_config": {
      "algo": "lokr", "linear_dim": 10000, "factor": 4, "full_matrix": true, "bypass_mode": true,
      "apply_preset": {"target_module": ["Attention", "FeedForward"],
                       "module_algo_map": {"FeedForward": {"factor": 2}}}}}})";
  const auto table = core::parse_csv(kHeader, "data/runs.csv");
  ASSERT_TRUE(testing::succeeds(table));
  const core::CsvRow none{1, std::vector<std::string>(table->header.size())};
  const core::CsvCells cells(*table, none);
  job::JobRequest request;
  MeasuredRun run;
  run.name = "st-sd-bf16-none-h100";
  ASSERT_TRUE(testing::succeeds(take_lycoris_example(file, cells, request, run)));
  EXPECT_EQ(request.training.peft, model::PeftMethod::lokr);
  EXPECT_EQ(request.training.lora, 10000);
  EXPECT_EQ(request.training.peft_options,
            "decompose_factor=4,full_matrix=true,bypass_mode=true,factor_pattern.proj=2,factor_pattern.2=2");
  EXPECT_NE(request.training.lora_targets.find("to_out.0"), std::string::npos);
  EXPECT_NE(request.training.lora_targets.find("net.2"), std::string::npos);
  run.name = "st-other-bf16-none-h100";
  EXPECT_FALSE(take_lycoris_example(file, cells, request, run));
  EXPECT_EQ(run.refusal, "settings of the method LyCORIS are missing");
}

TEST(ImageCsv, NamesWhatIsMissing) {
  EXPECT_EQ(read(row("by moonlight", "")).runs.at(0).refusal, "not modelled: checkpointing by moonlight");
  const MeasuredRuns unknown = read(row("full", "", "ok", "who/paints"));
  ASSERT_TRUE(unknown.runs.at(0).error);
  EXPECT_EQ(unknown.runs[0].refusal, "a model that is not read");
  EXPECT_NE(unknown.runs[0].error->message.find("the config.json of who/paints is missing"), std::string::npos);
  const MeasuredRuns bound = read(row("full", "", "upper bound"));
  EXPECT_TRUE(bound.runs.empty());
  EXPECT_EQ(bound.dropped, 1);
  const MeasuredRuns failed = read(row("full", "", "OOM"));
  EXPECT_TRUE(failed.runs.at(0).out_of_memory);
}

}  // namespace
}  // namespace gpumem::datasets
