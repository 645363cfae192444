// Source: bitsandbytes 0.45 (functional.py, autograd/_functions.py), AutoGPTQ 0.7 (qlinear_tritonv2.py).
#include "gpumem/ops/matrix.hpp"

#include "adapted_jobs.hpp"

namespace gpumem::ops {
namespace {

using model::Quantization;
using plan::Phase;
using testing::adapted_events;
using testing::count;
using testing::Events;

/// Batch 2: rows [N, 256] through a quantised layer of 256 x 512 with a bias, and a head.
TrainingJob rows(Quantization quantization, Precision precision) {
  TrainingJob job = testing::job_of(R"({"name": "x", "shape": ["N", 256]})", R"(
    {"name": "below", "op": "linear", "inputs": ["x"],
     "attrs": {"in_features": 256, "out_features": 256, "bias": false}},
    {"name": "up", "op": "linear", "inputs": ["below"],
     "attrs": {"in_features": 256, "out_features": 512, "bias": true}},
    {"name": "head", "op": "linear", "inputs": ["up"],
     "attrs": {"in_features": 512, "out_features": 4, "bias": false}})",
                                    2);
  job.lora = 1;
  job.lora_targets = "below";
  job.quantize = quantization;
  job.precision = precision;
  job.loss = model::Loss::mse;
  return job;
}

Events held(Quantization quantization) {
  Events all = adapted_events(rows(quantization, Precision::bf16), Phase::construction, 0);
  std::erase_if(all, [](const std::string& event) { return event.find(" up ") == std::string::npos; });
  return all;
}

TEST(Quantized, IsHeldAsItsLibraryHoldsIt) {
  EXPECT_EQ(held(Quantization::none), (Events{"+262144 up parameter", "+1024 up parameter"}));
  EXPECT_EQ(held(Quantization::nf4),
            (Events{"+65536 up parameter", "+8192 up buffer", "+64 up buffer", "+1024 up parameter"}));
  EXPECT_EQ(held(Quantization::nf4_double), (Events{"+65536 up parameter", "+2048 up buffer", "+64 up buffer",
                                                    "+32 up buffer", "+4 up buffer", "+1024 up parameter"}));
  EXPECT_EQ(held(Quantization::int8), (Events{"+131072 up parameter", "+2048 up buffer", "+1024 up parameter"}));
  EXPECT_EQ(held(Quantization::gptq_4bit), (Events{"+65536 up parameter", "+512 up buffer", "+2048 up buffer",
                                                   "+1024 up buffer", "+1024 up parameter"}));
  EXPECT_EQ(held(Quantization::int8_sdnq), held(Quantization::int8)) << "a scale a row";
  EXPECT_EQ(held(Quantization::fp8_torchao), (Events{"+131072 up parameter", "+4 up buffer", "+1024 up parameter"}));
  EXPECT_EQ(held(Quantization::fp8wo_torchao), held(Quantization::int8));
}

/// The same with 32 rows a sample.
TrainingJob many_rows(Quantization quantization, Precision precision = Precision::bf16) {
  TrainingJob job = testing::job_of(R"({"name": "x", "shape": ["N", 32, 256]})", R"(
    {"name": "below", "op": "linear", "inputs": ["x"],
     "attrs": {"in_features": 256, "out_features": 256, "bias": false}},
    {"name": "up", "op": "linear", "inputs": ["below"],
     "attrs": {"in_features": 256, "out_features": 512, "bias": true}},
    {"name": "head", "op": "linear", "inputs": ["up"],
     "attrs": {"in_features": 512, "out_features": 4, "bias": false}})",
                                    2);
  job.lora = 1;
  job.lora_targets = "below";
  job.quantize = quantization;
  job.precision = precision;
  job.loss = model::Loss::mse;
  return job;
}

TEST(Quantized, BySdnqKeepsNoInputAndIsWholeInBackwardAlone) {
  const TrainingJob job = many_rows(Quantization::int8_sdnq);
  const Events forward = adapted_events(job, Phase::forward);
  EXPECT_EQ(count(forward, "+32768 up temporary"), 1) << "64 rows, rotated";
  EXPECT_EQ(count(forward, "-32768 below.adapter_sum activation"), 1) << "not kept for backward";
  EXPECT_EQ(count(forward, "+524288 up temporary"), 0);
  const Events backward = adapted_events(job, Phase::backward);
  EXPECT_EQ(count(backward, "+524288 up temporary"), 1) << "256 x 512 in float32";
  EXPECT_EQ(count(backward, "+131072 up temporary"), 1) << "and in int8";
  const Events few = adapted_events(rows(Quantization::int8_sdnq, Precision::bf16), Phase::forward);
  EXPECT_EQ(count(few, "+524288 up temporary"), 1) << "below 32 rows the weight is made whole";
}

TEST(Quantized, ByTorchaoInFloat8KeepsWhatItsRowsWereMadeOf) {
  const TrainingJob job = many_rows(Quantization::fp8_torchao);
  const Events forward = adapted_events(job, Phase::forward);
  EXPECT_EQ(count(forward, "-32768 below.adapter_sum activation"), 0) << "of the absolute figures";
  EXPECT_EQ(count(forward, "+65536 up activation"), 4) << "in float32, scaled, clamped; and the output";
  EXPECT_EQ(count(forward, "-65536 up activation"), 2) << "the clamped rows, and what the frozen head reads";
  const Events backward = adapted_events(job, Phase::backward);
  EXPECT_EQ(count(backward, "+524288 up temporary"), 2) << "256 x 512 in float32, and scaled";
  EXPECT_EQ(count(adapted_events(job, Phase::forward), "+524288 up temporary"), 0);
}

TEST(Quantized, ByTorchaoWithoutProductsInFloat8KeepsItsWholeWeight) {
  const Events forward = adapted_events(many_rows(Quantization::fp8wo_torchao), Phase::forward);
  EXPECT_EQ(count(forward, "+524288 up temporary"), 2);
  EXPECT_EQ(count(forward, "+262144 up activation") - count(forward, "-262144 up activation"), 1)
      << "in bfloat16, until backward";
}

TEST(BouncedLinear, HoldsNoWeightAndKeepsItsInput) {
  TrainingJob job = many_rows(Quantization::none);
  EXPECT_EQ(count(adapted_events(job, Phase::forward), "-32768 below.adapter_sum activation"), 1);
  job.offload = model::Offload::ramtorch;
  const Events built = adapted_events(job, Phase::construction, 0);
  EXPECT_EQ(count(built, "+262144 up parameter"), 0) << "it is in the host's memory";
  const Events forward = adapted_events(job, Phase::forward);
  EXPECT_EQ(count(forward, "+262144 up parameter"), 1);
  EXPECT_EQ(count(forward, "-262144 up parameter"), 0) << "it stays while the next one comes";
  EXPECT_EQ(count(forward, "-32768 below.adapter_sum activation"), 0) << "kept, though the weight is frozen";
  const Events backward = adapted_events(job, Phase::backward);
  EXPECT_EQ(count(backward, "+262144 up parameter"), 1) << "the weight crosses once more";
  EXPECT_EQ(count(backward, "-32768 below.adapter_sum activation"), 1);
}

TEST(BouncedLinear, OfEachDirectionTheLastTwoCopiesStay) {
  TrainingJob job = many_rows(Quantization::none);
  job.offload = model::Offload::ramtorch;
  const Events forward = adapted_events(job, Phase::forward, 2);
  EXPECT_EQ(count(forward, "-262144 up parameter"), 1) << "of the step before";
  EXPECT_EQ(count(forward, "-4096 head parameter"), 1);
  EXPECT_EQ(count(forward, "+262144 up parameter"), 1);
}

TEST(BouncedLinear, MakesItsQuantisedWeightWholeOnTheGpu) {
  TrainingJob job = many_rows(Quantization::int8_sdnq);
  job.offload = model::Offload::ramtorch;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    const Events all = adapted_events(job, phase);
    EXPECT_EQ(count(all, "+131072 up parameter"), 1) << "a byte a weight crosses";
    EXPECT_EQ(count(all, "+524288 up temporary"), 1) << "in float32";
    EXPECT_EQ(count(all, "+262144 up temporary"), 1) << "and in the type of the product";
  }
}

TEST(BouncedLinear, KeepsAnInputThatAutocastCasts) {
  TrainingJob job = many_rows(Quantization::none, Precision::amp_bf16);
  job.base_dtype = model::BaseType::bf16;
  job.offload = model::Offload::ramtorch;
  const Events forward = adapted_events(job, Phase::forward);
  EXPECT_EQ(count(forward, "+262144 up parameter"), 1) << "two bytes a weight";
  EXPECT_EQ(count(forward, "-65536 below.adapter_sum activation"), 0) << "in float32, as it came";
}

TEST(BouncedLinear, OneThatRunsBeforeItsTurnLeavesItsWeightForTheNextStep) {
  TrainingJob job = testing::job_of(R"({"name": "x", "shape": ["N", 32, 256]})", R"(
    {"name": "below", "op": "linear", "inputs": ["x"],
     "attrs": {"in_features": 256, "out_features": 256, "bias": false}},
    {"name": "up", "op": "linear", "inputs": ["below"],
     "attrs": {"in_features": 256, "out_features": 512, "bias": false, "out_of_order": true}})",
                                    2);
  job.lora = 1;
  job.lora_targets = "below";
  job.precision = Precision::bf16;
  job.loss = model::Loss::mse;
  job.offload = model::Offload::ramtorch;
  EXPECT_EQ(count(adapted_events(job, Phase::construction, 0), "+262144 up buffer"), 1);
  EXPECT_EQ(count(adapted_events(job, Phase::forward), "+262144 up parameter"), 1);
}

TEST(Quantized, ProductsInFloat8CopyTheirOperandsForTheCallAlone) {
  TrainingJob job = rows(Quantization::float8, Precision::bf16);
  job.lora.reset();
  job.lora_targets.clear();
  const Events forward = adapted_events(job, Phase::forward);
  EXPECT_EQ(count(forward, "+512 up temporary"), 1) << "2 x 256 of the input";
  EXPECT_EQ(count(forward, "+131072 up temporary"), 1) << "256 x 512 of the weight";
  EXPECT_EQ(count(forward, "-131072 up temporary"), 1);
  const Events backward = adapted_events(job, Phase::backward);
  EXPECT_EQ(count(backward, "+1024 up temporary"), 1) << "2 x 512 of the output's gradient";
  job.quantize = Quantization::none;
  EXPECT_EQ(count(adapted_events(job, Phase::forward), "+131072 up temporary"), 0);
}

TEST(Quantized, IsMadeWholeForEachProduct) {
  for (const Quantization four : {Quantization::nf4, Quantization::nf4_double, Quantization::gptq_4bit}) {
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      const Events all = adapted_events(rows(four, Precision::bf16), phase);
      EXPECT_EQ(count(all, "+262144 up temporary"), 1) << model::name_of(model::kQuantizations, four);
      const bool nested = four == Quantization::nf4_double;
      EXPECT_EQ(count(all, "+8192 up temporary"), nested ? 1 : 0) << "the scales, made whole";
    }
  }
}

TEST(Quantized, ToEightBitsIsWholeInBackwardAloneAndKeepsItsInput) {
  const TrainingJob job = rows(Quantization::int8, Precision::bf16);
  const Events forward = adapted_events(job, Phase::forward);
  EXPECT_EQ(count(forward, "+262144 up temporary"), 0);
  EXPECT_EQ(count(forward, "+512 up temporary"), 1) << "the input in int8";
  EXPECT_EQ(count(forward, "+4096 up temporary"), 1) << "the product in int32";
  EXPECT_EQ(count(forward, "+2048 up temporary"), 1) << "the product in float16";
  EXPECT_EQ(count(adapted_events(job, Phase::backward), "+262144 up temporary"), 1);
  const std::string input = "-1024 below.adapter_sum activation";
  EXPECT_EQ(count(forward, input), 0) << "kept for backward";
  EXPECT_EQ(count(adapted_events(rows(Quantization::nf4, Precision::bf16), Phase::forward), input), 1);
}

TEST(Quantized, BeforeBitsandbytes0432KeepsItsInputAndIsMadeWholeInFloat16First) {
  TrainingJob job = rows(Quantization::nf4, Precision::bf16);
  job.lora_dtype = model::AdapterType::bf16;
  job.loop = model::Loop::litgpt;  // which holds to 0.42
  const Events forward = adapted_events(job, Phase::forward);
  EXPECT_EQ(count(forward, "-1024 below.adapter_sum activation"), 0) << "kept for backward";
  EXPECT_EQ(count(forward, "+262144 up temporary"), 2) << "in float16 and in bfloat16";
  EXPECT_EQ(count(adapted_events(job, Phase::backward), "+262144 up temporary"), 2);
  const Events made = adapted_events(job, Phase::construction, 0);
  EXPECT_EQ(count(made, "+1024 head parameter"), 1) << "every linear layer is quantised, the head too";
}

TEST(Quantized, UnderAutocastLeavesWhatItWasGiven) {
  const Events all = adapted_events(rows(Quantization::nf4, Precision::amp_bf16), Phase::forward);
  EXPECT_EQ(count(all, "+262144 up temporary"), 1) << "in bf16";
  EXPECT_EQ(count(all, "+2048 up activation"), 1) << "the product";
  EXPECT_EQ(count(all, "+4096 up activation"), 1) << "in float32 again, as the input is";
}

}  // namespace
}  // namespace gpumem::ops
