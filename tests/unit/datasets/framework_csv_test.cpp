#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "expect.hpp"
#include "gpumem/job/job_options.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

namespace fs = std::filesystem;

const std::string kHeader =
    "name,model,algorithm,method,micro_batch,gpus,gpu,figure,measured_mib,digits,status,software,args\n";

/// What a test's program says: one batch of 2 x 16, packed.
core::Result<ToldJob> tell(std::string_view settings, std::int64_t gpus) {
  if (settings.find("of_somebody") != std::string_view::npos) {
    return core::Error{core::ErrorCode::invalid_argument, "a recipe that is not known", {}};
  }
  if (settings.find("odd") != std::string_view::npos) {
    return core::Error{core::ErrorCode::unknown_format, "keys of nobody", {}};
  }
  ToldJob told{.program =
                   settings.find(R"("command": "trl sft --)") == std::string_view::npos ? "a-program" : "trl sft"};
  told.request.training.batch_size = 2;
  told.request.training.sequence_length = 16;
  told.request.training.layout.data_parallel = gpus;
  if (settings.find("neat") != std::string_view::npos) told.not_modelled.emplace_back("neat true is not modelled");
  if (settings.find("adapts") != std::string_view::npos) told.request.training.lora = 4;
  if (settings.find("blocks") != std::string_view::npos) {
    told.trained_blocks = [](const model::ModelGraph& graph) -> core::Result<TrainedNames> {
      return TrainedNames{graph.layers().empty() ? "nothing" : "blocks.0.*", "blocks.*"};
    };
  }
  if (settings.find("endless") != std::string_view::npos) told.request.training.sequence_length = 0;
  told.shorter = settings.find("short") != std::string_view::npos;
  return told;
}

/// A model with positions for 96 tokens.
constexpr std::string_view kWrites = R"({"model_type": "whisper", "d_model": 64, "vocab_size": 100,
    "max_target_positions": 96, "max_source_positions": 50, "encoder_layers": 1, "encoder_attention_heads": 4,
    "encoder_ffn_dim": 128, "decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 128})";

/// Small models of classes that Unsloth takes differently, by a part of their names.
std::string config_of(std::string_view path) {
  const auto sized = [](std::string_view type, std::string_view more = "") {
    return R"({"model_type": ")" + std::string(type) +
           R"(", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
               "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32)" +
           std::string(more) + "}";
  };
  if (path.find("Writes") != std::string_view::npos) return std::string(kWrites);
  if (path.find("Speaks") != std::string_view::npos) return sized("llama");
  if (path.find("Gems") != std::string_view::npos) return sized("gemma3_text");
  if (path.find("Grants") != std::string_view::npos) {
    return sized("granitemoe", R"(, "num_local_experts": 4, "num_experts_per_tok": 2)");
  }
  if (path.find("Sees") == std::string_view::npos) return {};
  return R"({"model_type": "gemma3", "mm_tokens_per_image": 4, "text_config": )" + sized("gemma3_text") +
         R"(, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 64, "intermediate_size": 128,
              "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 56, "patch_size": 14}})";
}

/// A folder with a table's configs, of which each is the small model.
class FrameworkCsv : public ::testing::Test {
 protected:
  FrameworkCsv() {
    fs::create_directories(folder_ / "configs_of_tests");
    std::ofstream(folder_ / "configs_of_tests" / "Who--Talks-3B.json") << "{}";
    for (const char* name : {"Writes-1B", "Speaks-3B", "Gems-1B", "Grants-1B", "Sees-4B"}) {
      std::ofstream(folder_ / "configs_of_tests" / ("Who--" + std::string(name) + ".json")) << config_of(name);
    }
  }
  ~FrameworkCsv() override { fs::remove_all(folder_.parent_path()); }
  FrameworkCsv(const FrameworkCsv&) = delete;
  FrameworkCsv& operator=(const FrameworkCsv&) = delete;

  MeasuredRuns read(const std::string& rows) {
    const auto table = core::parse_csv(kHeader + rows, (folder_ / "runs.csv").string());
    EXPECT_TRUE(testing::succeeds(table));
    EXPECT_TRUE(framework_csv().sniff(*table));
    RunsOptions options = testing::small_shelf();
    options.read_summary = [](const std::string& path) -> core::Result<model::ModelGraph> {
      const std::string config = config_of(path);
      return config.empty() ? testing::small_model(path) : parse_summary(config);
    };
    options.read_settings = &tell;
    const auto all = framework_csv().read(*table, options);
    EXPECT_TRUE(testing::succeeds(all));
    return all ? *all : MeasuredRuns();
  }
  MeasuredRun read_one(const std::string& row) {
    MeasuredRuns all = read(row + "\n");
    return all.runs.empty() ? MeasuredRun() : all.runs.front();
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("gpumem_framework_csv_" + std::to_string(::getpid())) / "a" / "table";
};

TEST_F(FrameworkCsv, TakesTheProgramsSettingsAndTheModelOfItsName) {
  const MeasuredRun run = read_one(
      "a,Who/Talks-3B,sft,lora,2,4,\"80 GB class (A100), not stated\",\"device (nvidia-smi)\",10240,1 GiB,ok,,"
      "\"{\"\"key\"\": 1}\"");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.batch_size, 2);
  EXPECT_EQ(run.job.layout.data_parallel, 4);
  EXPECT_EQ(run.gpus, 4);
  EXPECT_EQ(run.gpu, "a100-80gb");
  EXPECT_EQ(run.figure, Figure::device);
  EXPECT_EQ(run.rounding_mib, 512.0);
  EXPECT_EQ(run.source, "a-program");
  EXPECT_EQ(run.training, "lora");
  EXPECT_FALSE(run.at_most);
  EXPECT_TRUE(run.job.graph->file().ends_with("Who--Talks-3B.json"));
}

TEST_F(FrameworkCsv, TrlsRowsAreItsCommandsSinceItsDefaultsAreKnown) {
  const auto program = [&](const std::string& software) {
    return read_one("a,Who/Talks-3B,sft,full,2,1,a100-80gb,reserved,1024,exact,ok,\"" + software +
                    R"(, peft 1","{""max_length"": 64}")")
        .source;
  };
  EXPECT_EQ(program("trl 1.9.0"), "trl sft");
  EXPECT_EQ(program("trl 1.6.0"), "a-program") << "its loss was whole";
  EXPECT_EQ(program("ms-swift 4"), "a-program");
}

TEST_F(FrameworkCsv, AsksWhichBlocksOfTheModelAreTrained) {
  const MeasuredRun run =
      read_one(R"(a,Who/Talks-3B,sft,full,2,1,a100-80gb,device (nvidia-smi),10240,1 GiB,ok,,"{""key"": ""blocks""}")");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.train, "blocks.0.*");
  EXPECT_EQ(run.job.freeze, "blocks.*");
}

TEST_F(FrameworkCsv, BoundsSamplesWithoutALengthByTheModelsPositions) {
  const auto of = [&](const std::string& model) {
    return read_one("a,Who/" + model + R"(,sft,full,2,1,H100,reserved,9,,ok,,"{""endless"": 1}")");
  };
  const MeasuredRun run = of("Writes-1B");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.sequence_length, 96);
  EXPECT_TRUE(run.at_most);
  EXPECT_EQ(of("Talks-3B").refusal, "missing: a length of its samples");
}

TEST_F(FrameworkCsv, TakesCopiesAndTunedModelsForTheirBase) {
  for (const char* name : {"unsloth/talks-3b-Instruct-bnb-4bit", "Who/Talks-3B-it", "Other/Talks-3B-Base"}) {
    const MeasuredRun run = read_one(std::string("a,") + name + R"(,sft,full,2,1,H100,reserved,9,,ok,,"{""key"": 1}")");
    EXPECT_FALSE(run.error) << name;
  }
  const MeasuredRun other = read_one(R"(a,Who/Talks-7B,sft,full,2,1,H100,reserved,9,,ok,,"{""key"": 1}")");
  ASSERT_TRUE(other.error);
  EXPECT_EQ(other.refusal, "missing: a config of its model");
}

TEST_F(FrameworkCsv, TakesPackedWeightsUnderAdaptersAlone) {
  const auto told = [&](const std::string& model, const std::string& key) {
    return read_one("a,Who/Talks-3B-" + model + R"(,sft,lora,2,1,H100,reserved,9,,ok,,"{"")" + key + R"("": 1}")");
  };
  const MeasuredRun packed = told("AWQ", "adapts");
  ASSERT_FALSE(packed.error) << core::to_string(*packed.error);
  EXPECT_EQ(packed.job.quantize, model::Quantization::gptq_4bit);
  EXPECT_EQ(told("AWQ", "key").refusal, "not modelled: weights that the checkpoint holds in few bits");
  EXPECT_EQ(told("GPTQ-Int8", "adapts").refusal, "not modelled: weights that the checkpoint holds in few bits");
}

TEST_F(FrameworkCsv, SaysWhatRowsLack) {
  const auto refusal = [&](const std::string& args, const std::string& algorithm = "sft") {
    return read_one("a,Who/Talks-3B," + algorithm + ",full,2,1,H100,\"allocated, peak\",9,,ok,," + args).refusal;
  };
  EXPECT_EQ(refusal(""), "missing: the program's arguments");
  EXPECT_EQ(refusal(R"("{""odd"": 1}")"), "missing: keys of a program that is known");
  EXPECT_EQ(refusal(R"("{""command"": ""train.sh --recipe of_somebody --steps 2""}")"),
            "missing: what its recipe sets");
  EXPECT_EQ(refusal(R"("{""neat"": true}")"), "not modelled: neat");
  EXPECT_EQ(refusal(R"("{""key"": 1}")", "grpo"), "not modelled: grpo");
}

TEST_F(FrameworkCsv, MarksShorterSamplesAndDropsFiguresOfTheCard) {
  EXPECT_TRUE(read_one(R"(a,Who/Talks-3B,sft,full,2,1,H100,reserved,9,about 0.1 GiB,ok,,"{""short"": 1}")").at_most);
  const MeasuredRuns all = read(
      "a,Who/Talks-3B,sft,full,2,1,H100,reserved,9,,weak: may be the card,,\"{\"\"key\"\": 1}\"\n"
      "b,Who/Talks-3B,sft,full,2,1,H100,reserved,9,,ok,,\"{\"\"key\"\": 1}\"\n");
  EXPECT_EQ(all.dropped, 1);
  ASSERT_EQ(all.runs.size(), 1U);
  EXPECT_EQ(all.runs.front().name, "b");
}

TEST_F(FrameworkCsv, ReadsWhatANotebookSets) {
  const std::string args =
      R"("{""peak"": ""1.5"", ""start"": ""1.0"", ""model"": ""Who/Talks-3B"", ""trainer"": ""SFTTrainer"", )"
      R"(""max_seq"": ""64"", ""batch"": ""2"", ""accum"": ""4"", ""r"": ""8"", ""gc"": ""\""unsloth\"""", )"
      R"(""optim"": ""adamw_8bit"", ""packing"": ""True"", ""targets"": ""['q_proj','v_proj',]"", ""load4"": ""LOAD""}")";
  const auto with = [&](const std::string& load, const std::string& software) {
    std::string text = args;
    text.replace(text.find("LOAD"), 4, load);
    return read_one("a,Who/Talks-3B,sft,lora,2,1,Tesla T4,reserved (torch),9,,ok," + software + "," + text);
  };
  const MeasuredRun run = with("False", "unsloth 2025.8.9");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.gpu, "t4-16gb");
  EXPECT_EQ(run.source, "unsloth");
  EXPECT_EQ(run.job.lora, 8);
  EXPECT_EQ(run.job.lora_targets, "q_proj+v_proj");
  EXPECT_EQ(run.job.precision, model::Precision::amp_fp16) << "a T4 has no bfloat16";
  EXPECT_EQ(run.job.offload, model::Offload::checkpoints);
  EXPECT_EQ(run.job.gradient_accumulation, 4);
  EXPECT_EQ(run.alloc_conf, "expandable_segments:True,roundup_power2_divisions:[32:256,64:128,256:64,>:32]");
  EXPECT_EQ(with("False", "unsloth 2024.10.1").alloc_conf, "expandable_segments:True");
  EXPECT_EQ(with("False", "unsloth 2026.4.4 torch 2.10.0").alloc_conf, "expandable_segments:True");
  EXPECT_FALSE(run.at_most);
  const MeasuredRun dynamic = with("True", "unsloth 2025.8.9");
  ASSERT_FALSE(dynamic.error) << core::to_string(*dynamic.error);
  EXPECT_EQ(dynamic.job.quantize, model::Quantization::nf4_dynamic);
  EXPECT_EQ(with("True", "unsloth 2024.10.1").job.quantize, model::Quantization::nf4_double);
  EXPECT_EQ(with("True", "unsloth 2024.11.9").job.quantize, model::Quantization::nf4_double);
  EXPECT_EQ(with("True", "unsloth 2024.12.4").job.quantize, model::Quantization::nf4_dynamic);
  EXPECT_EQ(with("True", "unsloth").job.quantize, model::Quantization::nf4_double) << "it does not say its month";
}

/// By the releases' own dates.
TEST_F(FrameworkCsv, TakesTheLossThatTheReleaseOfUnslothHas) {
  const auto run_of = [&](std::string_view model, const std::string& software, const std::string& more = "") {
    return read_one(
        "a,Who/" + std::string(model) + ",sft,lora,2,1,Tesla T4,reserved (torch),9,,ok," + software +
        R"(,"{""peak"": ""1.5"", ""start"": ""1.0"", ""model"": ""Who/Talks-3B"", ""trainer"": ""SFTTrainer"", )" +
        R"(""max_seq"": ""64"", ""batch"": ""2"", ""r"": ""8"")" + more + "}\"");
  };
  const auto form_of = [&](std::string_view model, const std::string& software) {
    const MeasuredRun run = run_of(model, software);
    EXPECT_FALSE(run.error) << core::to_string(*run.error);
    return run.job.loss_form;
  };
  using enum model::LossForms;
  const auto is = [](model::LossForms kind, std::int64_t count = 0) { return model::LossForm{kind, count}; };
  EXPECT_EQ(form_of("Talks-3B", "unsloth 2024.9.1"), is(fused_ce));
  EXPECT_EQ(form_of("Talks-3B", "unsloth 2024.11.7"), is(fused_ce));
  EXPECT_EQ(form_of("Speaks-3B", "unsloth 2024.11.8"), is(fused));
  EXPECT_EQ(form_of("Speaks-3B", "unsloth 2025.8.4"), is(fused));
  EXPECT_EQ(form_of("Speaks-3B", "unsloth 2025.9.1 torch 2.7.0"), is(fused_target, 2048));
  EXPECT_EQ(form_of("Speaks-3B", "unsloth 2025.12.8 torch 2.7.0"), is(fused_free_2025));
  EXPECT_EQ(form_of("Speaks-3B", "unsloth 2026.7.2"), is(fused_free));
  EXPECT_EQ(run_of("Speaks-3B", "unsloth 2026.7.2").job.kernels, model::Kernels::unsloth);
  EXPECT_EQ(run_of("Gems-1B", "unsloth 2026.7.2").job.kernels, model::Kernels::usual) << "it has none of its own";
  EXPECT_EQ(form_of("Sees-4B", "unsloth 2025.3.19 torch 2.6.0"), is(compiled)) << "its loss is its own";
  EXPECT_EQ(form_of("Grants-1B", "unsloth 2025.10.11 torch 2.8.0"), is(fused_ce)) << "it casts its logits";
  EXPECT_EQ(form_of("Gems-1B", "unsloth 2025.10.1 torch 2.7.1"), is(fused)) << "not yet PyTorch 2.8";
  EXPECT_EQ(form_of("Gems-1B", "unsloth 2025.10.1 torch 2.8.0+cu126."), is(fused_free_2025));
  const MeasuredRun joined = run_of("Gems-1B", "unsloth 2025.12.3 torch 2.8.0", R"(, ""batchprint"": ""4"")");
  EXPECT_EQ(joined.job.attention, model::AttentionBackend::eager);
  EXPECT_EQ(joined.job.batch_size, 1) << "all tokens of a batch are one row";
  EXPECT_EQ(joined.job.sequence_length, 4 * 64) << "and the run printed a batch of four";
  EXPECT_EQ(run_of("Gems-1B", "unsloth 2025.9.8 torch 2.8.0").job.batch_size, 2);
  EXPECT_EQ(run_of("Gems-1B", "unsloth 2025.9.7 torch 2.8.0").job.attention, model::AttentionBackend::sdpa);
}

TEST_F(FrameworkCsv, AsksForItsColumns) {
  const auto table = core::parse_csv("args,micro_batch,measured_mib\na,1,2\n", "runs.csv");
  ASSERT_TRUE(testing::succeeds(table));
  EXPECT_FALSE(framework_csv().read(*table, {}));
}

}  // namespace
}  // namespace gpumem::datasets
