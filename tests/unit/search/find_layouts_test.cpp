// The layouts that fit, on GPUs that are made small.
#include "gpumem/search/find_layouts.hpp"

#include <algorithm>

#include "gpumem/all.hpp"
#include "gpumem/search/frameworks.hpp"
#include "small_transformers.hpp"

namespace gpumem::search {
namespace {

using core::ErrorCode;
using model::Shardings;
using testing::fails;
using testing::small_llama;
using testing::succeeds;

device::GpuProfile gpu_of(std::int64_t mebibytes) {
  auto profile = device::find_profile("h100-80gb");
  EXPECT_TRUE(succeeds(profile));
  profile->memory_bytes.value = mebibytes << 20;
  profile->usable_bytes.reset();
  return *profile;
}

Question question(std::optional<std::int64_t> gpus, std::int64_t batch, std::string_view framework = "fsdp2") {
  Question asked;
  asked.gpus = gpus;
  asked.global_batch = batch;
  asked.frameworks = *frameworks_of(framework);
  return asked;
}

TEST(FindLayouts, GivesTheFastestThatFit) {
  const auto plan = find_layouts(small_llama(8), gpu_of(80 << 10), question(8, 16));
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(plan->gpus, 8);
  EXPECT_EQ(plan->blocks, 8);
  ASSERT_EQ(plan->layouts.size(), 10U);
  EXPECT_TRUE(std::is_sorted(plan->layouts.begin(), plan->layouts.end(),
                             [](const auto& left, const auto& right) { return left.step < right.step; }));
  for (const PlannedLayout& layout : plan->layouts) {
    EXPECT_TRUE(layout.memory.fits);
    EXPECT_DOUBLE_EQ(layout.tokens, 16.0 * 128 / layout.step / 8);
  }
  EXPECT_EQ(plan->candidates, plan->too_large + plan->estimated + plan->slower);
}

/// Adam's states and masters are most of what a small batch takes.
TEST(FindLayouts, StatesGoToTheHostWhereNothingFitsOtherwise) {
  const model::TrainingJob job = small_llama(8, 2048, 256);
  for (const std::string_view framework : {"fsdp2", "deepspeed"}) {
    bool on_host = false;
    bool nowhere = false;
    for (std::int64_t mebibytes = 6 << 10; mebibytes >= 1 << 10; mebibytes -= 512) {
      Question asked = question(2, 4, framework);
      asked.show = 1;
      const auto plan = find_layouts(job, gpu_of(mebibytes), asked);
      ASSERT_TRUE(succeeds(plan));
      if (plan->layouts.empty()) {
        nowhere = true;
        continue;
      }
      EXPECT_FALSE(nowhere) << "a smaller GPU has room";
      const model::Offload offload = plan->layouts.front().job.offload;
      const bool told = plan->assumed.front().text.find("in the host's memory") != std::string::npos;
      EXPECT_EQ(told, offload != model::Offload::none);
      if (offload == model::Offload::none) {
        EXPECT_FALSE(on_host) << "a larger GPU needed the host";
        continue;
      }
      on_host = true;
      EXPECT_EQ(offload, framework == "fsdp2" ? model::Offload::parameters : model::Offload::optimizer);
      const model::Layout& layout = plan->layouts.front().job.layout;
      if (offload == model::Offload::parameters) {
        EXPECT_GT(parallel::sharing_ranks(layout), 1);
      }
      EXPECT_NE(plan->assumed.front().text.find(" GiB a GPU"), std::string::npos) << plan->assumed.front().text;
    }
    EXPECT_TRUE(on_host) << framework;
  }
}

TEST(FindLayouts, TheBoundLosesNoLayoutWithStatesOnTheHost) {
  model::TrainingJob job = small_llama(8, 2048, 256);
  for (const auto& [offload, framework] :
       {std::pair{model::Offload::parameters, "fsdp2"}, std::pair{model::Offload::optimizer, "deepspeed"},
        std::pair{model::Offload::optimizer, "megatron"}}) {
    job.offload = offload;
    for (const std::int64_t mebibytes : {3 << 10}) {
      Question asked = question(2, 4, framework);
      asked.show = 1000;
      const auto bounded = find_layouts(job, gpu_of(mebibytes), asked);
      asked.prune = false;
      const auto all = find_layouts(job, gpu_of(mebibytes), asked);
      ASSERT_TRUE(succeeds(bounded) && succeeds(all)) << framework;
      EXPECT_EQ(bounded->layouts.size(), all->layouts.size()) << framework << " " << mebibytes;
      EXPECT_EQ(all->too_large, 0);
    }
  }
}

TEST(FindLayouts, ThoseWithHeadroomComeFirst) {
  const model::TrainingJob job = small_llama(8, 2048, 256);
  bool both = false;
  bool gave_way = false;
  for (std::int64_t mebibytes = 4 << 10; !(both && gave_way) && mebibytes <= 6 << 10; mebibytes += 256) {
    const device::GpuProfile gpu = gpu_of(mebibytes);
    const auto has_room = [&](const PlannedLayout& layout) { return headroom(layout.memory, gpu).count() > 0; };
    Question asked = question(8, 32);
    asked.show = 100;
    const auto many = find_layouts(job, gpu, asked);
    ASSERT_TRUE(succeeds(many));
    EXPECT_TRUE(std::is_partitioned(many->layouts.begin(), many->layouts.end(), has_room)) << mebibytes;
    const auto with_room = std::count_if(many->layouts.begin(), many->layouts.end(), has_room);
    both = both || (with_room > 0 && with_room < std::ssize(many->layouts));
    asked.show = 1;
    const auto one = find_layouts(job, gpu, asked);
    ASSERT_TRUE(succeeds(one));
    if (with_room == 0) continue;
    ASSERT_EQ(one->layouts.size(), 1U) << "as many as are asked for";
    gave_way = gave_way || (one->fitting > 1 && has_room(one->layouts.front()));
    EXPECT_EQ(one->candidates, one->too_large + one->estimated + one->slower);
  }
  EXPECT_TRUE(both) << "no size of the GPU has layouts of both kinds";
  EXPECT_TRUE(gave_way) << "on no size of the GPU a faster layout without headroom gives way to a slower one";
}

TEST(FindLayouts, FindsTheFewestGpusThatDo) {
  const model::TrainingJob job = small_llama(8, 2048, 256);
  const auto plan = find_layouts(job, gpu_of(4608), question({}, 32));
  ASSERT_TRUE(succeeds(plan));
  ASSERT_FALSE(plan->layouts.empty());
  EXPECT_GT(plan->gpus, 1);
  const auto fewer = find_layouts(job, gpu_of(4608), question(plan->gpus / 2, 32));
  ASSERT_TRUE(succeeds(fewer));
  for (const PlannedLayout& layout : fewer->layouts) {
    EXPECT_EQ(layout.job.offload, model::Offload::parameters) << "without the host's memory none fits";
  }
}

TEST(FindLayouts, SaysOnHowManyGpusThereWereLayouts) {
  const auto plan = find_layouts(small_llama(8, 512, 31), gpu_of(600), question({}, 2));
  ASSERT_TRUE(succeeds(plan));
  EXPECT_TRUE(plan->layouts.empty());
  EXPECT_GT(plan->candidates, 0) << "two samples are too few for the most GPUs";
  EXPECT_LT(plan->gpus, kMostGpus);
}

TEST(FindLayouts, EndsWhenAsManyFitAsAreAskedFor) {
  Question one = question(8, 16);
  one.show = 1;
  std::size_t told = 0;
  one.progress = [&told](std::size_t done, std::size_t all) {
    EXPECT_LT(done, all);
    ++told;
  };
  const auto plan = find_layouts(small_llama(8), gpu_of(80 << 10), one);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(plan->layouts.size(), 1U);
  EXPECT_GT(plan->slower, 0);
  EXPECT_EQ(static_cast<std::int64_t>(told), plan->candidates - plan->slower);
}

TEST(FindLayouts, RefusesWhatIsNoQuestion) {
  const model::TrainingJob job = small_llama(4);
  EXPECT_TRUE(fails(find_layouts(job, gpu_of(8192), question(0, 8)), ErrorCode::invalid_argument, 0, "`gpus`"));
  EXPECT_TRUE(fails(find_layouts(job, gpu_of(8192), question(8, 0)), ErrorCode::invalid_argument, 0, "`global_batch`"));
  EXPECT_TRUE(fails(find_layouts(job, gpu_of(8192), question(8, std::int64_t{1} << 62)), ErrorCode::invalid_argument, 0,
                    "`global_batch`"))
      << "its divisors are not looked for";
  Question nobody = question(8, 8);
  nobody.frameworks.clear();
  EXPECT_TRUE(fails(find_layouts(job, gpu_of(8192), nobody), ErrorCode::invalid_argument, 0, "framework"));
}

TEST(FindLayouts, AsksNoFrameworkOfLanguageModelsAboutOthers) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  ASSERT_TRUE(succeeds(graph));
  const model::TrainingJob job(*graph, 8);
  EXPECT_TRUE(fails(find_layouts(job, gpu_of(80 << 10), question(8, 16, "megatron")), ErrorCode::invalid_argument, 0,
                    "trains models that read tokens"));
  const auto plan = find_layouts(job, gpu_of(80 << 10), question(8, 16, "any"));
  ASSERT_TRUE(succeeds(plan));
  ASSERT_FALSE(plan->layouts.empty());
  for (const PlannedLayout& layout : plan->layouts) EXPECT_NE(layout.framework->name, "megatron");
}

TEST(FindLayouts, SaysHowManyGpusANodeHas) {
  Question asked = question(8, 16);
  asked.links.gpus_per_node = 4;
  const auto plan = find_layouts(small_llama(8), gpu_of(80 << 10), asked);
  ASSERT_TRUE(succeeds(plan));
  EXPECT_EQ(plan->gpus_per_node, 4);
}

TEST(FindLayouts, KeepsTheBucketsOfZero) {
  model::TrainingJob job = small_llama(8);
  job.layout.zero_reduce_bucket = 1'000'000;
  const auto plan = find_layouts(job, gpu_of(80 << 10), question(4, 8, "deepspeed"));
  ASSERT_TRUE(succeeds(plan));
  ASSERT_FALSE(plan->layouts.empty());
  for (const PlannedLayout& layout : plan->layouts) EXPECT_EQ(layout.job.layout.zero_reduce_bucket, 1'000'000);
}

TEST(FindLayouts, RefusesStagesThatAreGiven) {
  for (const char* const given :
       {R"(, "decoder_first_pipeline_num_layers": 2)", R"(, "account_for_loss_in_pipeline_split": true)"}) {
    const auto plan = find_layouts(testing::small_gpt(14, given), gpu_of(80 << 10), question(4, 8, "megatron"));
    EXPECT_TRUE(fails(plan, ErrorCode::invalid_argument, 0, "leave these arguments out"));
  }
}

TEST(FindLayouts, LeavesOutMicroBatchesThatCannotBeCounted) {
  const auto plan = find_layouts(small_llama(4, 512, 1 << 20), gpu_of(80 << 10), question(1, kMostSamples));
  ASSERT_TRUE(succeeds(plan));
  EXPECT_GT(plan->candidates, 0) << "one sample at a time can be, though all of them at once cannot be counted";
}

/// The first layout of the plan, as somebody would ask about it.
Candidate asked_about(const PlannedLayout& layout) {
  Candidate asked;
  asked.framework = layout.framework;
  asked.layout = layout.job.layout;
  asked.micro_batch = {layout.job.batch_size, {layout.job.activation_checkpointing, layout.job.checkpoints}};
  asked.micro_batches = layout.job.gradient_accumulation;
  return asked;
}

bool has_rule(const Explanation& told, Rule rule, std::string_view part = "") {
  return std::any_of(told.outside.begin(), told.outside.end(),
                     [&](const Refusal& one) { return one.rule == rule && one.text.find(part) != std::string::npos; });
}

TEST(ExplainLayout, SaysOfALayoutOfThePlanWhatThePlanSays) {
  const Question asked = question(8, 16, "any");
  const auto plan = find_layouts(small_llama(8), gpu_of(80 << 10), asked);
  ASSERT_TRUE(succeeds(plan));
  for (const PlannedLayout& layout : plan->layouts) {
    const auto told = explain_layout(small_llama(8), gpu_of(80 << 10), asked, asked_about(layout));
    ASSERT_TRUE(succeeds(told));
    EXPECT_TRUE(told->outside.empty()) << told->outside.front().text;
    ASSERT_TRUE(told->memory && told->time);
    EXPECT_EQ(told->memory->expected, layout.memory.expected);
    EXPECT_DOUBLE_EQ(told->time->step(), layout.step);
  }
}

TEST(ExplainLayout, NamesTheRulesThatLeaveItOut) {
  Question asked = question(16, 16, "any");
  const auto plan = find_layouts(small_llama(8), gpu_of(80 << 10), question(8, 16, "fsdp2"));
  ASSERT_TRUE(succeeds(plan));
  Candidate layout = asked_about(plan->layouts.front());
  layout.layout = {.data_parallel = 1, .sharding = {Shardings::fsdp2, 0}, .tensor_parallel = 16};
  layout.layout.sequence_parallel = true;
  layout.micro_batches = 3;
  asked.most.tensor_parallel = 8;
  const auto told = explain_layout(small_llama(8), gpu_of(80 << 10), asked, layout);
  ASSERT_TRUE(succeeds(told));
  EXPECT_TRUE(has_rule(*told, Rule::asked, "`at_most_tensor_parallel`"));
  EXPECT_TRUE(has_rule(*told, Rule::search, "within a node of 8 GPUs"));
  EXPECT_TRUE(has_rule(*told, Rule::batch, "do not have the 16 samples"));
  EXPECT_TRUE(has_rule(*told, Rule::estimate)) << "eight heads on 16 ranks";
  EXPECT_FALSE(told->memory);
  layout.layout = {.data_parallel = 16, .sharding = {Shardings::ddp, 0}};
  layout.micro_batch.checkpointing = {true, {model::Checkpoints::selective_attention, 0}};
  const auto other = explain_layout(small_llama(8), gpu_of(80 << 10), asked, layout);
  ASSERT_TRUE(succeeds(other));
  EXPECT_TRUE(has_rule(*other, Rule::search, "takes no `sharding=ddp`"));
  EXPECT_TRUE(has_rule(*other, Rule::search, "checkpointing"));
}

TEST(ExplainLayout, SaysThatAFrameworkTrainsLanguageModelsAlone) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  const auto megatron = frameworks_of("megatron");
  ASSERT_TRUE(succeeds(graph));
  ASSERT_TRUE(succeeds(megatron));
  Candidate layout;
  layout.framework = megatron->front();
  layout.layout = {.data_parallel = 8, .sharding = layout.framework->shardings(8, 1, 8).front()};
  layout.micro_batch.size = 2;
  const auto told = explain_layout(model::TrainingJob(*graph, 8), gpu_of(80 << 10), question(8, 16, "any"), layout);
  ASSERT_TRUE(succeeds(told));
  EXPECT_TRUE(has_rule(*told, Rule::search, "megatron trains models that read tokens"));
}

TEST(ExplainLayout, SaysWhatDoesNotFitAndWhatCannotBe) {
  const Question asked = question(8, 16, "fsdp2");
  Candidate layout;
  layout.framework = asked.frameworks.front();
  layout.layout = {.data_parallel = 8, .sharding = {Shardings::fsdp2, 0}};
  layout.micro_batch = {2, {}};
  const auto told = explain_layout(small_llama(8, 2048), gpu_of(1024), asked, layout);
  ASSERT_TRUE(succeeds(told));
  EXPECT_TRUE(told->outside.empty());
  ASSERT_TRUE(told->memory);
  EXPECT_FALSE(told->memory->fits);
  layout.layout.tensor_parallel = 0;
  const auto never = explain_layout(small_llama(8), gpu_of(1024), asked, layout);
  ASSERT_TRUE(succeeds(never));
  EXPECT_TRUE(has_rule(*never, Rule::modelled));
}

TEST(FindLayouts, OfAModelThatSeesWhereSamplesAreText) {
  const auto graph = architectures::read_config(
      R"({"model_type": "llava", "image_token_index": 32000, "text_config": {"model_type": "llama", "hidden_size": 64,
          "intermediate_size": 128, "num_hidden_layers": 5, "num_attention_heads": 4, "vocab_size": 256},
          "vision_config": {"model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 64,
          "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 56, "patch_size": 14}})",
      ops::vocabulary(), "config.json", {});
  ASSERT_TRUE(succeeds(graph));
  model::TrainingJob job(*graph, 1);
  job.sequence_length = 64;
  job.images = 0;
  job.freeze = "*vision_tower*";
  const auto plan = find_layouts(job, gpu_of(8192), question(2, 4, "any"));
  ASSERT_TRUE(succeeds(plan));
  EXPECT_GT(plan->layouts.size(), 0U);
}

TEST(FindLayouts, IgnoresTheJobsOwnLayout) {
  model::TrainingJob other = small_llama(8);
  other.layout.tensor_parallel = 3;
  other.batch_size = 77;
  other.activation_checkpointing = true;
  const auto left = find_layouts(other, gpu_of(80 << 10), question(4, 8));
  const auto right = find_layouts(small_llama(8), gpu_of(80 << 10), question(4, 8));
  ASSERT_TRUE(succeeds(left));
  ASSERT_TRUE(succeeds(right));
  ASSERT_EQ(left->layouts.size(), right->layouts.size());
  EXPECT_EQ(left->layouts.front().job.layout, right->layouts.front().job.layout);
}

}  // namespace
}  // namespace gpumem::search
