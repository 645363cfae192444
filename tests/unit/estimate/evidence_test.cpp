#include "gpumem/estimate/evidence.hpp"

#include <gtest/gtest.h>

#include <string>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "graphs.hpp"
#include "recordings.hpp"

namespace gpumem::estimate {

namespace {

using testing::succeeds;

TrainingJob job_of(const std::string& text) {
  TrainingJob job;
  job.graph = std::make_shared<const ModelGraph>(*parse_summary(text));
  job.batch_size = 4;
  return job;
}

MemoryEstimate estimated(const TrainingJob& job, const char* gpu) {
  const auto found = (*make_estimator("replay"))->estimate(job, *find_profile(gpu));
  EXPECT_TRUE(succeeds(found));
  return *found;
}

/// What it assumes, as "context capacity ".
std::string subjects(const MemoryEstimate& estimate) {
  std::string all;
  for (const Assumption& assumption : estimate.assumed) all += assumption.about + " ";
  return all;
}

TEST(Evidence, AMeasuredKindOfJobAssumesNothing) {
  const MemoryEstimate found = estimated(job_of(std::string(testing::kSmallGraph)), "a100-40gb");
  EXPECT_EQ(subjects(found), "");
  EXPECT_EQ(found.upper_coverage, 0.95);
}

TEST(Evidence, AnotherGpuWidensTheRangeAndSaysWhy) {
  const TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const MemoryEstimate known = estimated(job, "a100-40gb");
  const MemoryEstimate found = estimated(job, "h100-pcie-80gb");
  EXPECT_EQ(subjects(found), "context capacity workspaces ");
  EXPECT_FALSE(found.upper_coverage.has_value()) << "nobody measured a net with convolutions there";
  const auto width = [](const MemoryEstimate& of) {
    return static_cast<double>(of.upper.count() - of.lower.count()) / static_cast<double>(of.expected.count());
  };
  EXPECT_GT(width(found), width(known));
}

TEST(Evidence, PartsThatAreNotCountedAreInTheUpperFigure) {
  TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const MemoryEstimate counted = estimated(job, "h200-141gb");
  job.uncounted = std::int64_t{45} << 30;
  const MemoryEstimate found = estimated(job, "h200-141gb");
  EXPECT_EQ(found.upper.count() - counted.upper.count(), job.uncounted);
  EXPECT_NE(estimated(job, "a100-40gb").verdict, Verdict::fits) << "they may be larger than the GPU";
  const auto more = [&](const char* trained) {
    TrainingJob denoiser = job_of(R"({"_class_name": "UNet2DConditionModel", "cross_attention_dim": 768,
        "block_out_channels": [32], "attention_head_dim": 8, "layers_per_block": 1, "sample_size": 8,
        "down_block_types": ["CrossAttnDownBlock2D"], "up_block_types": ["CrossAttnUpBlock2D"]})");
    denoiser.parts = "text_encoder";
    denoiser.trained_parts = trained;
    return estimated(denoiser, "a100-40gb").upper.count();
  };
  EXPECT_EQ(more("text_encoder") - more(""), std::int64_t{16} * 123'060'480) << "CLIP ViT-L";
  EXPECT_EQ(more("text_encoder:lora") - more(""), std::int64_t{2} * 123'060'480);
}

TEST(Evidence, ADynamicCheckpointWithoutItsListWidensTheRange) {
  const std::string config = R"({"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128,
      "num_hidden_layers": 8, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu")";
  const auto found = [&](model::Quantization quantize, const std::string& more) {
    TrainingJob job = job_of(config + more + "}");
    job.sequence_length = 32;
    job.lora = 4;
    job.precision = Precision::bf16;
    job.quantize = quantize;
    return estimated(job, "a100-40gb");
  };
  const std::string list = R"(, "quantization_config": {"llm_int8_skip_modules": ["lm_head"]})";
  const MemoryEstimate plain = found(model::Quantization::nf4_double, "");
  const MemoryEstimate listed = found(model::Quantization::nf4_dynamic, list);
  const MemoryEstimate guessed = found(model::Quantization::nf4_dynamic, "");
  EXPECT_EQ(listed.allocated, plain.allocated) << "its list names the head alone";
  EXPECT_GT(*guessed.allocated, *plain.allocated) << "some layers are taken to be whole";
  EXPECT_GT(guessed.upper.count() - guessed.expected.count(), listed.upper.count() - listed.expected.count());
  const auto says = [](const MemoryEstimate& of) {
    return std::ranges::any_of(of.assumed, [](const Assumption& each) {
      return each.text.find("which layers Unsloth's checkpoint leaves whole") != std::string::npos;
    });
  };
  EXPECT_TRUE(says(guessed));
  EXPECT_FALSE(says(listed));
}

TEST(Evidence, RunsThatOthersPublishedOfLanguageModelsNarrowTheirRange) {
  constexpr const char* kConfig =
      R"({"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu"})";
  TrainingJob job = job_of(kConfig);
  job.sequence_length = 64;
  job.precision = Precision::bf16;
  const auto above = [](const MemoryEstimate& of) {
    return static_cast<double>(of.upper.count()) / static_cast<double>(of.expected.count());
  };
  const MemoryEstimate published = estimated(job, "a100-80gb");
  EXPECT_EQ(subjects(published), "context precision padding ");
  EXPECT_FALSE(published.upper_coverage.has_value()) << "they are not our own";
  job.precision = Precision::fp16_mixed;
  EXPECT_LT(above(published), above(estimated(job, "a100-80gb"))) << "nobody published runs of that";
}

/// A small decoder with this start of its config.
TrainingJob decoder(const std::string& begin) {
  TrainingJob job = job_of("{" + begin + R"(, "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512,
    "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "tie_word_embeddings": true})");
  job.batch_size = 16;
  job.sequence_length = 256;
  return job;
}

TEST(Evidence, WhatAConfigLeavesOpenIsNamedAndWidensTheRange) {
  const MemoryEstimate known = estimated(decoder(R"("model_type": "llama")"), "a100-40gb");
  const MemoryEstimate unknown = estimated(decoder(R"("model_type": "newcomer")"), "a100-40gb");
  EXPECT_EQ(known.upper_coverage, 0.95);
  EXPECT_FALSE(unknown.upper_coverage.has_value());
  EXPECT_EQ(subjects(unknown), "model_type padding ");
  EXPECT_EQ(unknown.expected, known.expected);
  EXPECT_LT(unknown.lower, known.lower);
  EXPECT_GT(unknown.upper, known.upper);
  const MemoryEstimate fields = estimated(decoder(R"("model_type": "llama", "gate_width": 8)"), "a100-40gb");
  EXPECT_EQ(subjects(fields), "fields padding ");
  EXPECT_GT(fields.upper, known.upper);
  EXPECT_FALSE(fields.upper_coverage.has_value());
  const MemoryEstimate larger =
      estimated(decoder(R"("model_type": "llama", "_name_or_path": "llama-20M")"), "a100-40gb");
  EXPECT_EQ(subjects(larger), "parameters padding ");
  EXPECT_GT(larger.upper.count(), 3 * known.expected.count()) << "it may be as large as its name says";
}

TEST(Evidence, EveryEstimatorNamesWhatAConfigLeavesOpen) {
  const TrainingJob job = decoder(R"("model_type": "newcomer")");
  for (const EstimatorEntry& entry : estimators()) {
    const auto made = make_estimator(entry.name);
    if (!made) continue;  // a learned one needs its model
    const auto found = (*made)->estimate(job, *find_profile("a100-40gb"));
    if (!found) continue;  // not made for such jobs
    EXPECT_NE(subjects(*found).find("model_type"), std::string::npos) << entry.name;
    EXPECT_FALSE(found->upper_coverage.has_value()) << entry.name;
  }
}

/// Each known decoder whose fields say no more than a Llama's, as if nobody knew it.
TEST(Evidence, TheRangeOfAnUnknownTypeHoldsForTheKnownOnes) {
  const MemoryEstimate unknown = estimated(decoder(R"("model_type": "newcomer")"), "a100-80gb");
  for (const std::string type : {"llama", "mistral", "qwen2", "qwen3", "granite", "gemma", "gemma2", "gemma3_text",
                                 "glm", "glm4", "olmo", "olmo2", "phi3", "stablelm"}) {
    const MemoryEstimate true_one = estimated(decoder(R"("model_type": ")" + type + "\""), "a100-80gb");
    EXPECT_LE(true_one.expected, unknown.upper) << type;
    EXPECT_GE(true_one.expected, unknown.lower) << type;
  }
}

TEST(Evidence, GpusOfXMemsRunsKeepTheirCoverage) {
  const MemoryEstimate found = estimated(job_of(std::string(testing::kSmallGraph)), "rtx3060-12gb");
  EXPECT_EQ(found.upper_coverage, 0.95);
  EXPECT_EQ(subjects(found), "context workspaces ");
}

TEST(Evidence, APrecisionThatNobodyMeasuredIsSaid) {
  TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const Margin known = margin_of(job, {.graph = job.graph.get(), .convolves = true}, *find_profile("a100-40gb"));
  job.precision = model::Precision::amp_bf16;
  const Margin found = margin_of(job, {.graph = job.graph.get(), .convolves = true}, *find_profile("a100-40gb"));
  EXPECT_LT(found.lower, known.lower);
  EXPECT_GT(found.upper, known.upper);
  EXPECT_FALSE(found.coverage.has_value());
  const MemoryEstimate estimate = estimated(job, "a100-40gb");
  ASSERT_EQ(subjects(estimate), "precision ");
  EXPECT_EQ(estimate.assumed[0].text, "no run in amp-bf16 was measured");
}

TEST(Evidence, ImageModelsHaveTheRangeOfPublishedRuns) {
  TrainingJob job = job_of(R"({"_class_name": "FluxTransformer2DModel", "num_layers": 1, "num_single_layers": 1,
      "num_attention_heads": 2, "attention_head_dim": 16, "axes_dims_rope": [4, 6, 6], "joint_attention_dim": 32,
      "pooled_projection_dim": 24})");
  const auto margin = [&](const char* gpu) {
    return margin_of(job, {.graph = job.graph.get(), .convolves = true}, *find_profile(gpu));
  };
  const Margin unpublished = margin("h100-80gb");  // float32
  job.precision = model::Precision::amp_bf16;
  const Margin found = margin("h100-80gb");
  EXPECT_GT(found.lower, unpublished.lower);
  EXPECT_LT(found.upper, unpublished.upper);
  EXPECT_FALSE(found.coverage.has_value());
  EXPECT_GT(margin("b200-180gb").upper, found.upper) << "no run on such a GPU was published";
  bool said = false;
  for (const Assumption& one : estimated(job, "h100-80gb").assumed) {
    said = said || one.text == "the range for amp-bf16 comes from runs that others published";
  }
  EXPECT_TRUE(said);
}

TEST(Evidence, InferredEdgesAreSaidByEveryEstimatorThatFollowsThem) {
  const TrainingJob job = job_of(
      "Sequential(\n  (0): Linear(in_features=4, out_features=8, bias=True)\n  (1): ReLU()\n"
      "  (2): Linear(in_features=8, out_features=2, bias=True)\n)\n");
  TrainingJob shaped = job;
  shaped.input_shape = {4};
  for (const char* name : {"replay", "fake-tensor"}) {
    const auto found = (*make_estimator(name))->estimate(shaped, *find_profile("a100-40gb"));
    ASSERT_TRUE(succeeds(found));
    EXPECT_EQ(subjects(*found), "edges ") << name;
  }
}

TEST(Evidence, GuessedJoinsAndUnknownLayersHaveNoCoverage) {
  const TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const GpuProfile gpu = *find_profile("a100-40gb");
  const Margin known = margin_of(job, {.graph = job.graph.get()}, gpu);
  const Margin guessed = margin_of(job, {.graph = job.graph.get(), .guesses = {.edges = 2, .layers = 40}}, gpu);
  const Margin more = margin_of(job, {.graph = job.graph.get(), .guesses = {.edges = 20, .layers = 40}}, gpu);
  EXPECT_GT(more.upper, guessed.upper) << "the more is guessed, the wider";
  EXPECT_LT(guessed.lower, known.lower);
  EXPECT_GT(guessed.upper, known.upper);
  EXPECT_FALSE(guessed.coverage.has_value());
  EXPECT_FALSE(margin_of(job, {.graph = job.graph.get(), .unknown_layers = 1}, gpu).coverage.has_value());
}

TEST(Evidence, WhatBoundedLayersMayKeepIsOfTheBatch) {
  TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const connect::Guesses guesses = {.bounded = 1, .fewer_elements = 100, .more_elements = 300};
  const analysis::PlanSource source = {.graph = job.graph.get(), .guesses = guesses};
  const Margin margin = margin_of(job, source, *find_profile("a100-40gb"));
  EXPECT_EQ(margin.fewer.count(), 100 * 4 * 4) << "elements, samples, bytes of float32";
  EXPECT_EQ(margin.more.count(), 300 * 4 * 4);
  EXPECT_FALSE(margin.coverage.has_value());
  job.precision = model::Precision::bf16;
  EXPECT_EQ(margin_of(job, source, *find_profile("a100-40gb")).more.count(), 300 * 4 * 2);
}

TEST(Evidence, AnUnknownClassIsInTheRangeAndNamed) {
  const auto of = [](std::string_view odd) {
    TrainingJob job = job_of("Sequential(\n  (a): Linear(64, 64), 4,160 params\n  (odd): " + std::string(odd) +
                             ", 4,160 params\n  (b): Linear(64, 64), 4,160 params\n), 12,480 params\n");
    job.input_shape = {4096, 64};
    job.batch_size = 64;
    return job;
  };
  const MemoryEstimate known = estimated(of("Linear(64, 64)"), "a100-40gb");
  const MemoryEstimate odd = estimated(of("Mine()"), "a100-40gb");
  EXPECT_LE(odd.lower, known.lower);
  EXPECT_GE(odd.upper, known.upper);
  EXPECT_FALSE(odd.upper_coverage.has_value());
  EXPECT_FALSE(odd.lower_bound);
  EXPECT_TRUE(odd.fits);
  EXPECT_EQ(odd.breakdown.parameters, known.breakdown.parameters);
  ASSERT_EQ(subjects(odd), "guess edges ");
  EXPECT_NE(odd.assumed[0].text.find("line 3: 'odd' has the unknown class 'Mine'"), std::string::npos);
}

TEST(Evidence, BenchmarkModeRaisesTheUpperBoundOfConvolutionsAlone) {
  TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const GpuProfile gpu = *find_profile("a100-40gb");
  const analysis::PlanSource convolves = {.graph = job.graph.get(), .convolves = true};
  const Margin known = margin_of(job, convolves, gpu);
  job.cudnn_benchmark = true;
  const Margin found = margin_of(job, convolves, gpu);
  EXPECT_EQ(found.lower, known.lower);
  EXPECT_GT(found.upper, known.upper);
  EXPECT_FALSE(found.coverage.has_value());
  EXPECT_TRUE(margin_of(job, {.graph = job.graph.get()}, gpu).coverage.has_value());
  EXPECT_EQ(subjects(estimated(job, "a100-40gb")), "benchmark ");
}

TEST(Evidence, CompilingReachesFurtherDown) {
  TrainingJob job = job_of(std::string(testing::kSmallGraph));
  const MemoryEstimate known = estimated(job, "a100-40gb");
  job.compile = true;
  const MemoryEstimate compiled = estimated(job, "a100-40gb");
  EXPECT_EQ(compiled.expected, known.expected);
  EXPECT_EQ(compiled.upper, known.upper);
  EXPECT_LT(compiled.lower, known.lower);
  EXPECT_FALSE(compiled.upper_coverage.has_value());
  EXPECT_EQ(subjects(compiled), "compile ");
}

TEST(Evidence, SaysWhatIsPlannedOfACompiledModel) {
  const auto said = [](const std::string& text) {
    TrainingJob job = job_of(text);
    job.compile = true;
    if (job.graph->recording() == nullptr) job.sequence_length = 16;
    for (const Assumption& assumption : estimated(job, "a100-40gb").assumed) {
      if (assumption.about == "compile") return assumption.text;
    }
    return std::string();
  };
  constexpr const char* kBlocks =
      R"({"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu"})";
  EXPECT_TRUE(said(kBlocks).starts_with("backward recomputes elementwise results"));
  EXPECT_TRUE(said(std::string(testing::kSmallGraph)).ends_with("the model shows no repeated blocks"));
  EXPECT_TRUE(said(testing::kSmallRecording).starts_with("as much as was recorded"));
}

TEST(Evidence, WhereNothingWasMeasuredTheUpperBoundDecidesWhetherItFits) {
  const TrainingJob job = job_of(std::string(testing::kSmallGraph));
  for (const char* name : {"a100-40gb", "h100-80gb"}) {
    GpuProfile gpu = *find_profile(name);
    const auto replay = make_estimator("replay");
    const auto roomy = (*replay)->estimate(job, gpu);
    ASSERT_TRUE(succeeds(roomy));
    EXPECT_TRUE(roomy->fits) << name;
    gpu.memory_bytes.value = roomy->expected.count();
    gpu.usable_bytes.reset();
    const auto tight = (*replay)->estimate(job, gpu);
    ASSERT_TRUE(succeeds(tight));
    EXPECT_EQ(tight->fits, roomy->upper_coverage.has_value()) << name;
    EXPECT_EQ(tight->upper <= gpu.capacity(), tight->fits) << name;
  }
}

TrainingJob on_several_gpus(std::string_view more) {
  TrainingJob job = job_of(R"({"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 128,
                              "max_position_embeddings": 32)" +
                           std::string(more) + "}");
  job.precision = Precision::bf16_mixed;
  job.optimizer = Optimizer::adamw;
  job.sequence_length = 32;
  job.layout.data_parallel = 2;
  job.layout.sharding.kind = model::Shardings::distributed_optimizer;
  return job;
}

TEST(Evidence, CommunicatorsAreInTheRangeAndApartFromIt) {
  const TrainingJob job = on_several_gpus("");
  const MemoryEstimate found = estimated(job, "a100-40gb");
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  // Three communicators of two ranks, 576 MiB each by NCCL's source.
  EXPECT_EQ(found.communicators.below.count(), (3 * 576 - 200) * kMiB);
  EXPECT_EQ(found.communicators.above.count(), 3 * 576 / 2 * kMiB);
  EXPECT_GT(found.upper.count() - found.expected.count(), 3 * 576 / 2 * kMiB);
  EXPECT_EQ(found.gpus, 2);
  EXPECT_NE(subjects(found).find("communicators"), std::string::npos);
  // Of a job that fits and could take more than there is, only what is left is theirs.
  GpuProfile small = *find_profile("a100-40gb");
  small.usable_bytes = {};
  small.memory_bytes.value = found.upper.count() - 100 * kMiB;
  const auto limited = (*make_estimator("replay"))->estimate(job, small);
  ASSERT_TRUE(succeeds(limited));
  if (limited->fits) {
    EXPECT_EQ(limited->communicators.above.count(), (3 * 576 / 2 - 100) * kMiB);
  }
  TrainingJob alone = job;
  alone.layout = {};
  EXPECT_EQ(estimated(alone, "a100-40gb").communicators.above.count(), 0);
}

TEST(Evidence, ARankThatIsNamedIsOneGpu) {
  TrainingJob job = on_several_gpus("");
  job.layout.rank = {model::Ranks::one, 1};
  EXPECT_EQ(estimated(job, "a100-40gb").gpus, 1);
}

TEST(Evidence, ExpertsOfARankMayGetMoreTokens) {
  constexpr std::string_view kExperts = R"(, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 128)";
  TrainingJob job = on_several_gpus(kExperts);
  EXPECT_EQ(subjects(estimated(job, "a100-40gb")).find("routing"), std::string::npos) << "each rank has all experts";
  job.layout.expert_parallel = 2;
  const MemoryEstimate found = estimated(job, "a100-40gb");
  EXPECT_NE(subjects(found).find("routing"), std::string::npos);
  const MemoryEstimate dense = estimated(on_several_gpus(""), "a100-40gb");
  EXPECT_GT(found.upper.count() - found.expected.count(), dense.upper.count() - dense.expected.count());
}

TEST(Evidence, UpperIsForTheImbalanceThatIsSaidOrThatTheRouterAllows) {
  const auto found = [](const std::string& more, std::optional<double> imbalance) {
    TrainingJob job = on_several_gpus(R"(, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 128)" + more);
    job.layout.expert_parallel = 2;
    job.layout.expert_imbalance = imbalance;
    return estimated(job, "a100-40gb");
  };
  const auto above = [&](const std::string& more, std::optional<double> imbalance) {
    const MemoryEstimate estimate = found(more, imbalance);
    return estimate.upper.count() - estimate.expected.count();
  };
  const std::int64_t usual = above("", std::nullopt);
  EXPECT_EQ(above("", 1.5), usual);
  EXPECT_LT(above("", 1.0), usual);
  EXPECT_GT(above("", 3.0), usual);
  EXPECT_EQ(above(R"(, "moe_expert_capacity_factor": 3.0)", std::nullopt), above("", 3.0));
  EXPECT_EQ(above(R"(, "moe_router_force_load_balancing": true)", std::nullopt), above("", 1.0));
  // Padded to twice the even share, experts take that, and no more.
  const std::string padded = R"(, "moe_expert_capacity_factor": 2.0, "moe_pad_expert_input_to_capacity": true)";
  const auto allocated = [&](const std::string& more) { return *found(more, std::nullopt).allocated; };
  EXPECT_GT(allocated(padded), allocated(""));
  // What does not fit is dropped.
  EXPECT_LT(allocated(R"(, "moe_expert_capacity_factor": 0.5)"), allocated(""));
}

TEST(Evidence, ExpertsBesideCheckpointedBlocksCountToo) {
  const auto routed = [](const std::string& more) {
    TrainingJob job = on_several_gpus(R"(, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 128)" + more);
    job.layout.expert_parallel = 2;
    job.activation_checkpointing = true;
    analysis::Analysis analysis(job);
    const auto source = analysis.source();
    EXPECT_TRUE(succeeds(source));
    return source->routed_elements;
  };
  EXPECT_EQ(routed(R"(, "mtp_num_layers": 1)"), 2 * routed("")) << "the layer that predicts runs no second time";
}

TEST(Evidence, ReentrantCheckpointingUnderFullyShardIsSaid) {
  TrainingJob job = job_of(R"({"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "silu"})");
  job.sequence_length = 32;
  job.layout.data_parallel = 2;
  job.layout.sharding.kind = model::Shardings::fsdp2;
  job.activation_checkpointing = true;
  const MemoryEstimate plain = estimated(job, "a100-40gb");
  EXPECT_EQ(subjects(plain).find("checkpointing"), std::string::npos);
  job.loop = model::Loop::hf_trainer;
  const MemoryEstimate reentrant = estimated(job, "a100-40gb");
  EXPECT_NE(subjects(reentrant).find("checkpointing"), std::string::npos);
  const auto down = [](const MemoryEstimate& of) {
    return static_cast<double>(of.lower.count()) / static_cast<double>(of.expected.count());
  };
  EXPECT_LT(down(reentrant), down(plain)) << "newer releases of PyTorch take less";
  Breakdown at_peak = reentrant.breakdown;
  at_peak.gathered = core::Bytes(1000);
  EXPECT_EQ(evidence_detail::gathered_again(job, at_peak).count(), 1000) << "not the whole model";
  job.transformers = model::Transformers::v5_0;
  EXPECT_EQ(subjects(estimated(job, "a100-40gb")).find("checkpointing"), std::string::npos);
  EXPECT_EQ(evidence_detail::gathered_again(job, at_peak).count(), 0);
}

TEST(Evidence, ARecordingOfAnotherGenerationIsSaid) {
  const TrainingJob job = job_of(testing::kSmallRecording);
  EXPECT_EQ(subjects(estimated(job, "a100-40gb")), "values pytorch ") << "the recording says that it invented one";
  const MemoryEstimate found = estimated(job, "t4-16gb");
  EXPECT_NE(subjects(found).find("recording"), std::string::npos);
}

/// What is assumed of the small recording, whose program sets this.
std::string texts_with(const std::string& settings, const std::string& alloc_conf) {
  const TrainingJob job = job_of(testing::with(testing::kSmallRecording, R"("optimizer": )",
                                               R"("settings": {)" + settings + R"(}, "optimizer": )"));
  const auto allocator = device::parse_allocator_options(alloc_conf);
  EXPECT_TRUE(succeeds(allocator));
  const auto found = (*make_estimator("replay", {*allocator}))->estimate(job, *find_profile("a100-40gb"));
  EXPECT_TRUE(succeeds(found));
  std::string all;
  for (const Assumption& assumption : found->assumed) all += assumption.text + "\n";
  return all;
}

TEST(Evidence, ARecordingSaysWhichPyTorchItIsOf) {
  EXPECT_NE(texts_with("", "").find("PyTorch 2.6.0, which recorded it"), std::string::npos);
  const std::string older = texts_with(R"("torch": "1.7")", "");
  EXPECT_NE(older.find("with PyTorch 1.7, as PyTorch 2.6.0 was told"), std::string::npos) << older;
  EXPECT_EQ(older.find("the program sets torch"), std::string::npos) << "said once";
}

TEST(Evidence, SaysWhetherASettingOfTheRecordedProgramCounts) {
  const auto texts = [](const std::string& alloc_conf) {
    return texts_with(R"("alloc_conf": "expandable_segments:True", "memory_fraction": 0.5, "cudnn_benchmark": true)",
                      alloc_conf);
  };
  const std::string as_recorded = texts("");
  EXPECT_NE(as_recorded.find("expandable_segments:True: it counts"), std::string::npos) << as_recorded;
  EXPECT_NE(as_recorded.find("may take 0.500000 of the GPU's memory\n"), std::string::npos) << as_recorded;
  EXPECT_NE(as_recorded.find("cudnn_benchmark: the job's option counts"), std::string::npos) << "it is off in the job";
  const std::string asked = texts("expandable_segments:False,per_process_memory_fraction:1");
  EXPECT_NE(asked.find("expandable_segments:True: `alloc_conf` of the job counts"), std::string::npos) << asked;
  EXPECT_NE(asked.find("memory: `alloc_conf` of the job counts"), std::string::npos) << asked;
}

TEST(Evidence, AFractionThatTheRecordedProgramSetsTwiceIsNotTheJobs) {
  const std::string texts =
      texts_with(R"("alloc_conf": "per_process_memory_fraction:0.25", "memory_fraction": 0.5)", "");
  EXPECT_NE(texts.find("may take 0.500000 of the GPU's memory\n"), std::string::npos) << texts;
}

TEST(Evidence, ALongSettingOfARecordedProgramIsCut) {
  const std::string texts = texts_with(R"("cudnn": ")" + std::string(5000, 'x') + "\"", "");
  EXPECT_NE(texts.find("xxx..."), std::string::npos);
  EXPECT_EQ(texts.find(std::string(201, 'x')), std::string::npos);
}

}  // namespace

}  // namespace gpumem::estimate
