#include "gpumem/model/training_job.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "graphs.hpp"

namespace gpumem::model {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

TrainingJob job() {
  GraphBuilder builder("test");
  builder.add({.name = "fc", .parameters = 3});
  return TrainingJob(*std::move(builder).build(), 32);
}

TEST(TrainingJob, OfAModelAndABatchSizeIsValid) { EXPECT_TRUE(succeeds(validate(job()))); }

TEST(TrainingJob, AStrictOneTakesNoLargeDoubtAsGiven) {
  const auto of = [](bool large, bool strict) {
    GraphBuilder builder("test");
    builder.add({.name = "fc", .parameters = 3});
    builder.doubt({Doubt::About::fields, "fields that are not understood", large});
    TrainingJob made(*std::move(builder).build(), 32);
    made.strict = strict;
    return validate(made);
  };
  EXPECT_TRUE(fails(of(true, true), ErrorCode::missing_information, 0, "fields that are not understood; a strict job"));
  EXPECT_TRUE(succeeds(of(true, false)));
  EXPECT_TRUE(succeeds(of(false, true)));
}

TEST(TrainingJob, NeedsAModel) {
  EXPECT_TRUE(fails(validate(TrainingJob()), ErrorCode::invalid_argument, 0, "no model"));
}

TEST(TrainingJob, RefusesABatchBelowOne) {
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN}) {
    TrainingJob wrong = job();
    wrong.batch_size = batch;
    EXPECT_TRUE(fails(validate(wrong), ErrorCode::invalid_argument, 0, "the batch size is " + std::to_string(batch)));
  }
}

TEST(TrainingJob, RefusesFiguresOutOfRangeAndNamesThem) {
  TrainingJob accumulation = job();
  accumulation.gradient_accumulation = 0;
  EXPECT_TRUE(fails(validate(accumulation), ErrorCode::invalid_argument, 0, "gradient accumulation is 0"));
  TrainingJob parallel = job();
  parallel.layout.data_parallel = 0;
  EXPECT_TRUE(fails(validate(parallel), ErrorCode::invalid_argument, 0, "the number of GPUs in data parallel is 0"));
  for (std::int64_t Layout::*const count :
       {&Layout::tensor_parallel, &Layout::pipeline_parallel, &Layout::virtual_stages, &Layout::context_parallel,
        &Layout::expert_parallel}) {
    TrainingJob wrong = job();
    wrong.layout.*count = -1;
    EXPECT_TRUE(fails(validate(wrong), ErrorCode::invalid_argument, 0, " is -1; it must be at least 1"));
  }
  TrainingJob sequence = job();
  sequence.sequence_length = -5;
  EXPECT_TRUE(fails(validate(sequence), ErrorCode::invalid_argument, 0, "the sequence length is -5"));
  TrainingJob input = job();
  input.input_shape = {3, 0, 224};
  EXPECT_TRUE(fails(validate(input), ErrorCode::invalid_argument, 0, "an input dimension is 0"));
}

TEST(TrainingJob, MegatronsArgumentsAreOfItsLoop) {
  TrainingJob megatron = job();
  megatron.megatron_options = "grad_reduce_in_bf16,cuda_graph_impl=local";
  EXPECT_TRUE(fails(validate(megatron), ErrorCode::invalid_argument, 0, "say `loop=megatron`"));
  megatron.loop = Loop::megatron;
  EXPECT_TRUE(succeeds(validate(megatron)));
  EXPECT_EQ(megatron_option(megatron, "grad_reduce_in_bf16"), "true");
  EXPECT_EQ(megatron_option(megatron, "cuda_graph_impl"), "local");
  EXPECT_EQ(megatron_option(megatron, "mtp_num_layers"), std::nullopt);
  for (const std::string wrong : {"tp=2", "mtp_num_layers=65", "mtp_num_layers", "cuda_graph_impl=x", "a,b"}) {
    megatron.megatron_options = wrong;
    EXPECT_TRUE(fails(validate(megatron), ErrorCode::invalid_argument, 0, "known are grad_reduce_in_bf16")) << wrong;
  }
  megatron.megatron_options = "tp=2";
  EXPECT_TRUE(fails(validate(megatron), ErrorCode::invalid_argument, 0, "'tp' of `megatron_options` is not known"));
  megatron.megatron_options = "cuda_graph_impl=none, mtp_num_layers=2";
  EXPECT_EQ(further_tokens(megatron), 2);
  EXPECT_TRUE(fails(validate(megatron), ErrorCode::invalid_argument, 0, "predict further tokens of a config.json"));
}

TEST(TrainingJob, TakesSevenInputDimensionsBesideTheBatch) {
  TrainingJob seven = job();
  seven.input_shape.assign(7, 2);
  EXPECT_TRUE(succeeds(validate(seven)));
  seven.input_shape.push_back(2);
  EXPECT_TRUE(fails(validate(seven), ErrorCode::invalid_argument, 0, "more than 7 dimensions"));
}

TEST(TrainingJob, NamesAndValuesAgree) {
  for (const auto& row : kOptimizers) EXPECT_EQ(value_of(kOptimizers, name_of(kOptimizers, row.value)), row.value);
  for (const auto& row : kPrecisions) EXPECT_EQ(value_of(kPrecisions, name_of(kPrecisions, row.value)), row.value);
  for (const auto& row : kLosses) EXPECT_EQ(value_of(kLosses, name_of(kLosses, row.value)), row.value);
  EXPECT_EQ(value_of(kOptimizers, "Adam"), std::nullopt);
}

TEST(TrainingJob, RefusesAFusedFormThatThereIsNot) {
  for (const OptimizerRow& row : kOptimizerRows) {
    TrainingJob fused = job();
    fused.optimizer = row.value;
    fused.fused = true;
    if (row.has_fused) {
      EXPECT_TRUE(succeeds(validate(fused))) << row.name;
    } else {
      EXPECT_TRUE(
          fails(validate(fused), ErrorCode::invalid_argument, 0,
                "the optimizer " + std::string(row.name) +
                    " has no fused form for a GPU; sgd, sgd-momentum, adam, adamw and adamw-half-states have one"));
    }
  }
}

TEST(TrainingJob, AdaptersHaveARankAndADropoutBelowOne) {
  TrainingJob adapters = job();
  adapters.lora = 16;
  adapters.lora_targets = "q_proj";
  adapters.lora_dropout = 0.05;
  adapters.lora_dtype = AdapterType::bf16;
  EXPECT_TRUE(succeeds(validate(adapters)));
  for (const double outside : {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    adapters.lora_dropout = outside;
    EXPECT_TRUE(fails(validate(adapters), ErrorCode::invalid_argument, 0, "the dropout of LoRA"));
  }
  adapters.lora_dropout = 0.0;
  adapters.lora = 0;
  EXPECT_TRUE(fails(validate(adapters), ErrorCode::invalid_argument, 0, "the rank of LoRA is 0"));
  adapters.lora.reset();
  EXPECT_TRUE(fails(validate(adapters), ErrorCode::invalid_argument, 0, "say `lora=16`"));
}

TEST(TrainingJob, ABaseHasATypeOnlyWhereSomethingIsFrozen) {
  TrainingJob loaded = job();
  loaded.base_dtype = BaseType::bf16;
  EXPECT_TRUE(fails(validate(loaded), ErrorCode::invalid_argument, 0, "nothing is frozen"));
  loaded.freeze = "*";
  EXPECT_TRUE(succeeds(validate(loaded)));
  GraphBuilder builder("test");
  builder.add({.name = "fc", .parameters = 3});
  builder.add({.name = "unet", .parameters = 5, .frozen = true});
  TrainingJob guided(*std::move(builder).build(), 32);
  guided.base_dtype = BaseType::bf16;
  EXPECT_TRUE(succeeds(validate(guided))) << "the model itself has frozen layers";
}

TEST(TrainingJob, ParametersStayInFloat32UnderAutocast) {
  EXPECT_EQ(parameter_dtype(Precision::fp32), core::DType::float32);
  EXPECT_EQ(parameter_dtype(Precision::fp32_strict), core::DType::float32);
  EXPECT_EQ(parameter_dtype(Precision::amp_fp16), core::DType::float32);
  EXPECT_EQ(parameter_dtype(Precision::amp_bf16), core::DType::float32);
  EXPECT_EQ(parameter_dtype(Precision::bf16), core::DType::bfloat16);
}

TEST(TrainingJob, PrecisionsAreOfOneKind) {
  for (const auto& [precision, name] : kPrecisions) {
    EXPECT_EQ(is_autocast(precision), name.starts_with("amp-")) << name;
    EXPECT_EQ(is_float32(precision), name.starts_with("fp32")) << name;
    EXPECT_EQ(has_masters(precision), name.ends_with("-mixed")) << name;
  }
}

TEST(TrainingJob, LoopsWithModelsOfTheirOwnDoNotRunTransformersCode) {
  TrainingJob trained = job();
  trained.loop = Loop::hf_trainer;
  trained.transformers = Transformers::v4_56;
  EXPECT_FALSE(runs_transformers_5(trained));
  trained.transformers = Transformers::v5_0;
  EXPECT_TRUE(runs_transformers_5(trained));
  trained.loop = Loop::megatron;
  EXPECT_FALSE(runs_transformers_5(trained));
}

TEST(TrainingJob, CallsThatKeepResultsAreNotReentrant) {
  TrainingJob trained = job();
  trained.loop = Loop::hf_trainer;
  EXPECT_FALSE(has_reentrant_checkpoints(trained)) << "nothing is checkpointed";
  trained.activation_checkpointing = true;
  for (const auto& [kind, name] : kCheckpoints) {
    trained.checkpoints.kind = kind;
    const bool keeps = kind == Checkpoints::selective_op || kind == Checkpoints::selective_attention;
    EXPECT_EQ(has_reentrant_checkpoints(trained), !keeps) << name;
  }
  trained.checkpoints.kind = Checkpoints::full;
  trained.transformers = Transformers::v5_0;
  EXPECT_FALSE(has_reentrant_checkpoints(trained));
}

TEST(TrainingJob, CopiesShareTheGraph) {
  const TrainingJob first = job();
  const TrainingJob second = first;  // NOLINT: the copy is the point
  EXPECT_EQ(first.graph.get(), second.graph.get());
}

}  // namespace
}  // namespace gpumem::model
