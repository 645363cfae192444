#include "gpumem/plan/checkpoints.hpp"

#include <algorithm>

#include "gpumem/ops/matrix.hpp"
#include "plans.hpp"
#include "wired.hpp"

namespace gpumem::plan {
namespace {

using core::ErrorCode;
using testing::bytes_of;
using testing::events;
using testing::fails;
using testing::job_of;
using testing::planned;

using Events = std::vector<std::string>;

constexpr std::string_view kRows = R"({"name": "x", "shape": ["N", 4]})";

std::string linear(std::string_view name, std::string_view input, std::string_view scope = "") {
  return R"({"name": ")" + std::string(name) + R"(", "op": "linear", "class": "Linear", "inputs": [")" +
         std::string(input) + R"("], "attrs": {"in_features": 4, "out_features": 4, "bias": false}, "parameters": 16)" +
         (scope.empty() ? "" : R"(, "scope": )" + std::string(scope)) + "}";
}
std::string tanh(std::string_view name, std::string_view input) {
  return R"({"name": ")" + std::string(name) + R"(", "op": "tanh", "class": "Tanh", "inputs": [")" +
         std::string(input) + R"("]})";
}

/// Two blocks of linear, tanh, linear; batch 2: every tensor has 32 B, every weight 64 B.
TrainingJob net() {
  const std::string nodes = linear("first", "x") + "," + linear("h.0.a", "first") + "," + tanh("h.0.t", "h.0.a") + "," +
                            linear("h.0.b", "h.0.t") + "," + linear("h.1.a", "h.0.b") + "," + tanh("h.1.t", "h.1.a") +
                            "," + linear("h.1.b", "h.1.t") + "," + linear("last", "h.1.b");
  TrainingJob job = job_of(kRows, nodes, 2);
  job.loss = model::Loss::mse;
  job.activation_checkpointing = true;
  return job;
}

TEST(RepeatedBlocks, AreToldByDottedNames) {
  EXPECT_EQ(repeated_blocks(*net().graph), std::vector<Range>({{1, 4}, {4, 7}}));
}

TEST(RepeatedBlocks, OfATowerStandBesideTheTextModels) {
  const auto graph = parse_summary(
      R"({"model_type": "qwen2_5_vl", "text_config": {"model_type": "qwen2_5_vl_text", "vocab_size": 64,
          "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2,
          "num_key_value_heads": 2}, "vision_config": {"model_type": "qwen2_5_vl", "depth": 2, "hidden_size": 16,
          "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 16, "patch_size": 14, "window_size": 112,
          "fullatt_block_indexes": [1], "spatial_merge_size": 2, "temporal_patch_size": 2}})");
  ASSERT_TRUE(testing::succeeds(graph));
  EXPECT_EQ(repeated_blocks(*graph).size(), 3U);
  EXPECT_EQ(blocks_of_all_stacks(*graph).size(), 5U);
  EXPECT_EQ(blocks_of_all_stacks(*net().graph), repeated_blocks(*net().graph));
}

TEST(RepeatedBlocks, AreToldByContainersOfOneClass) {
  const auto graph = parse_summary(R"(Net(
  (stem): Linear(in_features=4, out_features=4, bias=True)
  (stages): Sequential(
    (0): Sequential(
      (0): Cell(
        (a): Linear(in_features=4, out_features=4, bias=True)
        (b): Linear(in_features=4, out_features=4, bias=True)
      )
      (1): Cell(
        (a): Linear(in_features=4, out_features=4, bias=True)
        (b): Linear(in_features=4, out_features=4, bias=True)
      )
    )
    (1): Sequential(
      (0): Cell(
        (a): Linear(in_features=4, out_features=4, bias=True)
        (b): Linear(in_features=4, out_features=4, bias=True)
      )
    )
  )
  (norm1): Norm(
    (a): LayerNorm((4,), eps=1e-05, elementwise_affine=True)
  )
  (norm2): Norm(
    (a): LayerNorm((4,), eps=1e-05, elementwise_affine=True)
  )
  (norm3): Norm(
    (a): LayerNorm((4,), eps=1e-05, elementwise_affine=True)
  )
)
)");
  ASSERT_TRUE(testing::succeeds(graph));
  EXPECT_EQ(repeated_blocks(*graph), std::vector<Range>({{1, 3}, {3, 5}, {5, 7}}))
      << "wherever the class stands; lists are no blocks, nor is what holds no weights of a product";
}

TEST(RepeatedBlocks, OperationsBehindABlockAreIts) {
  const std::string add = R"({"name": "add", "op": "add", "inputs": ["h.0.a", "h.0.b"]},)";
  const std::string more = R"({"name": "add_1", "op": "add", "inputs": ["h.1.a", "h.1.b"]},
                              {"name": "neg", "op": "neg", "inputs": ["add_1"]})";
  const std::string nodes = linear("h.0.a", "x") + "," + linear("h.0.b", "h.0.a") + "," + add + linear("h.1.a", "add") +
                            "," + linear("h.1.b", "h.1.a") + "," + more;
  EXPECT_EQ(repeated_blocks(*job_of(kRows, nodes, 2).graph), std::vector<Range>({{0, 3}, {3, 6}}))
      << "and the last block ends as the one before it";
}

TEST(RepeatedBlocks, OfShippedModels) {
  const auto count = [](const std::string& name) {
    const auto graph = read_summary(std::string(GPUMEM_SOURCE_DIR) + "/models/graphs/" + name + ".json");
    return graph ? repeated_blocks(*graph).size() : 0;
  };
  EXPECT_EQ(count("resnet50"), 16U);
  EXPECT_EQ(count("mobilenet_v2"), 17U);
  EXPECT_EQ(count("efficientnet_b0"), 16U);
  EXPECT_EQ(count("densenet121"), 58U);
  EXPECT_EQ(count("vit_b_16"), 12U);
  EXPECT_EQ(count("gpt_like"), 12U);
  EXPECT_EQ(count("vgg16"), 0U);
  for (const auto& [name, blocks] :
       {std::pair("gpt2", 12U), std::pair("t5-base", 24U), std::pair("bert-base-uncased", 12U)}) {
    const auto job = testing::shipped_tree(name, 64);
    ASSERT_TRUE(testing::succeeds(job)) << name;
    EXPECT_EQ(repeated_blocks(*job->graph).size(), blocks) << name;
  }
}

TEST(RepeatedBlocks, OfConnectedSummaries) {
  for (const char* name : {"resnet50.module_tree", "resnet50.torchinfo", "resnet50.torchsummary"}) {
    const auto graph = read_summary(std::string(GPUMEM_SOURCE_DIR) + "/models/summaries/" + name + ".txt");
    ASSERT_TRUE(testing::succeeds(graph));
    TrainingJob job(*graph, 2);
    job.input_shape = {3, 224, 224};
    const auto wired = testing::wired(job);
    ASSERT_TRUE(testing::succeeds(wired)) << name;
    EXPECT_EQ(repeated_blocks(*wired->graph).size(), 16U) << name;
  }
}

TEST(Checkpoints, AModelWithoutBlocksIsAnError) {
  TrainingJob job = job_of(kRows, linear("a", "x") + "," + linear("b", "a"), 2);
  job.activation_checkpointing = true;
  const auto pass = testing::forward(job);
  ASSERT_TRUE(testing::succeeds(pass));
  EXPECT_TRUE(fails(make_step_plan(job, *pass), ErrorCode::missing_information, 0, "repeated blocks"));
}

TEST(Checkpoints, ModulesAreChosenByName) {
  const auto parts = [](const char* names) {
    const auto tree = testing::shipped_tree("Qwen_Qwen3-0.6B", 64);
    if (!tree) return std::vector<Range>();
    const auto pass = testing::forward(*tree);
    if (!pass) return std::vector<Range>();
    const auto runs = checkpointed(*pass, {model::Checkpoints::selective_modules, 0, names});
    return runs ? *runs : std::vector<Range>();
  };
  EXPECT_EQ(parts("mlp").size(), 28U);
  EXPECT_EQ(parts("mlp+self_attn").size(), 56U) << "one call of checkpoint() a module";
  EXPECT_EQ(parts("model").size(), 1U) << "the outermost module of the name";
  const auto pass = testing::forward(net());
  ASSERT_TRUE(testing::succeeds(pass));
  const auto missing = checkpointed(*pass, {model::Checkpoints::selective_modules, 0, "h+mlp"});
  EXPECT_TRUE(fails(missing, ErrorCode::missing_information, 0, "no module is called 'mlp'"));
}

TEST(Checkpoints, ForwardKeepsTheBlocksInputsOnly) {
  const TrainingJob job = net();
  const auto plan = planned(job).plan;
  EXPECT_EQ(events(job, plan, Phase::forward),
            Events({"+32 first activation", "+32 h.0.a activation", "+32 h.0.t activation", "-32 h.0.a activation",
                    "+32 h.0.b activation", "-32 h.0.t activation",  // first stands: an argument
                    "+32 h.1.a activation", "+32 h.1.t activation", "-32 h.1.a activation", "+32 h.1.b activation",
                    "-32 h.1.t activation", "+32 last activation", "+4 last activation", "+32 last temporary",
                    "-32 last temporary"}));
}

TEST(Checkpoints, BackwardRunsABlockAgainUpToItsLastSavedTensor) {
  const TrainingJob job = net();
  const auto plan = planned(job).plan;
  EXPECT_EQ(events(job, plan, Phase::backward), Events({"+4 flow",
                                                        "+32 last flow",  // mse_loss
                                                        "+64 last gradient",
                                                        "+32 last flow",
                                                        "-32 last flow",
                                                        "-32 h.1.b activation",
                                                        "+32 h.1.a activation",
                                                        "+32 h.1.t activation",
                                                        "-32 h.1.a activation",  // again; b saves its input
                                                        "+64 h.1.b gradient",
                                                        "+32 h.1.b flow",
                                                        "-32 last flow",
                                                        "+32 h.1.t flow",
                                                        "-32 h.1.t activation",
                                                        "-32 h.1.b flow",
                                                        "+64 h.1.a gradient",
                                                        "+32 h.1.a flow",
                                                        "-32 h.1.t flow",
                                                        "-32 h.0.b activation",
                                                        "+32 h.0.a activation",
                                                        "+32 h.0.t activation",
                                                        "-32 h.0.a activation",
                                                        "+64 h.0.b gradient",
                                                        "+32 h.0.b flow",
                                                        "-32 h.1.a flow",
                                                        "+32 h.0.t flow",
                                                        "-32 h.0.t activation",
                                                        "-32 h.0.b flow",
                                                        "+64 h.0.a gradient",
                                                        "+32 h.0.a flow",
                                                        "-32 h.0.t flow",
                                                        "-32 first activation",
                                                        "+64 first gradient",
                                                        "-32 h.0.a flow",
                                                        "-4 flow"}));
}

TEST(Checkpoints, TheSecondRunIsOfTheBackwardThread) {
  const auto plan = planned(net()).plan;
  const auto again = [](const LibraryCall& call) {
    return call.direction == Direction::forward && call.backward_thread;
  };
  EXPECT_EQ(std::count_if(plan.calls.begin(), plan.calls.end(), again), 4) << "a of each block, in each of two steps";
}

TEST(Checkpoints, StepsRepeatAndLeaveAsMuchAsWithout) {
  for (const Precision precision : {Precision::fp32, Precision::amp_fp16}) {
    TrainingJob job = net();
    job.precision = precision;
    const auto plan = planned(job).plan;
    job.activation_checkpointing = false;
    const auto without = planned(job).plan;
    EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
    EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(without, 2).left);
  }
}

TEST(Checkpoints, ACountNamesTheBlocks) {
  const TrainingJob job = net();
  const auto pass = testing::forward(job);
  ASSERT_TRUE(testing::succeeds(pass));
  const auto parts = [&](model::Checkpoints kind, std::int64_t count) {
    return *checkpointed(*pass, model::CheckpointPolicy{kind, count});
  };
  const std::vector<Range> all = *checkpointed(*pass);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(parts(model::Checkpoints::first, 1), std::vector<Range>({all[0]}));
  EXPECT_EQ(parts(model::Checkpoints::first, 9), all);
  EXPECT_EQ(parts(model::Checkpoints::every, 1), all);
  EXPECT_EQ(parts(model::Checkpoints::every, 2), std::vector<Range>({all[1]})) << "the second of two";
  EXPECT_EQ(parts(model::Checkpoints::every, 3), std::vector<Range>());
  const std::vector<Range> both = {{all[0].first, all[1].end}};
  EXPECT_EQ(parts(model::Checkpoints::joined, 1), all);
  EXPECT_EQ(parts(model::Checkpoints::joined, 2), both);
  EXPECT_EQ(parts(model::Checkpoints::joined, 3), both) << "as many as there are";
  EXPECT_EQ(parts(model::Checkpoints::joined_every_other, 1), std::vector<Range>({all[0]}));
  EXPECT_EQ(parts(model::Checkpoints::joined_every_other, 2), both);
  EXPECT_EQ(parts(model::Checkpoints::first_of, 2), std::vector<Range>({all[0]}));
  EXPECT_EQ(parts(model::Checkpoints::every_other, 1), std::vector<Range>({all[0]}));
  EXPECT_EQ(parts(model::Checkpoints::every_other, 2), all);
}

TEST(Checkpoints, SelectiveKindsKeepWhatIsDearToCompute) {
  TrainingJob job = net();
  job.checkpoints = {model::Checkpoints::selective_op, 0};
  const auto pass = testing::forward(job);
  ASSERT_TRUE(testing::succeeds(pass));
  const std::vector<Range> blocks = *checkpointed(*pass, job.checkpoints);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(kept_results(pass->tape, blocks[0], job.checkpoints), std::vector<std::uint32_t>({blocks[0].first}))
      << "the first product of a block, not the second";
  EXPECT_TRUE(kept_results(pass->tape, blocks[0], {}).empty());
}

TEST(Checkpoints, SelectiveOpKeepsWhatRanksSumAndScatter) {
  ops::Tape tape(model::Precision::bf16);
  tape.begin_layer(0);
  const ops::TensorId weight = tape.add_parameter(8 * 8);
  ops::TensorId rows = tape.add_input({4 * 8, 0, core::DType::bfloat16});
  for (int product = 0; product < 2; ++product) {
    rows = ops::linear(tape, rows, {4 * 8, 0}, {&weight, 1}, 2, false, 8);
  }
  (void)ops::scatter_sum(tape, rows, {2 * 8, 0});
  EXPECT_EQ(kept_results(tape, {0, 3}, {model::Checkpoints::selective_op, 0}), std::vector<std::uint32_t>({0, 2}))
      << "the first product, and the part of the second one's sum";
}

TEST(Checkpoints, ACompiledGraphKeepsWhatStandsAlone) {
  TrainingJob job = net();
  job.activation_checkpointing = false;
  const auto pass = testing::forward(job);
  ASSERT_TRUE(testing::succeeds(pass));
  const auto none = recomputed_parts(*pass, job);
  ASSERT_TRUE(testing::succeeds(none));
  EXPECT_TRUE(none->empty());
  job.compile = true;
  const auto parts = recomputed_parts(*pass, job);
  ASSERT_TRUE(testing::succeeds(parts));
  ASSERT_EQ(parts->size(), 2U) << "its blocks, though nothing is checkpointed";
  const Range block = (*parts)[0];
  const std::uint32_t first = block.first;
  EXPECT_EQ(compiled_results(pass->tape, block), std::vector<std::uint32_t>({first, first + 1, first + 2}))
      << "two products, and the tanh that the second one reads again";
  EXPECT_EQ(kept_of_part(pass->tape, block, job), std::vector<std::uint32_t>({first + 1}))
      << "backward reads the tanh's result alone: of the first product it needs nothing else";
}

TEST(Checkpoints, ACompiledGraphComputesElementwiseChainsAgain) {
  const std::string nodes = linear("first", "x") + "," + linear("h.0.a", "first") + "," + tanh("h.0.t", "h.0.a") + "," +
                            tanh("h.0.u", "h.0.t") + "," + linear("h.0.b", "h.0.u") + "," + linear("h.1.a", "h.0.b") +
                            "," + tanh("h.1.t", "h.1.a") + "," + tanh("h.1.u", "h.1.t") + "," +
                            linear("h.1.b", "h.1.u") + "," + linear("last", "h.1.b");
  TrainingJob job = job_of(kRows, nodes, 2);
  job.loss = model::Loss::mse;
  const std::int64_t eager = bytes_of(planned(job).plan, 2).left;
  const auto count = [](const Events& all, std::string_view event) {
    return std::count(all.begin(), all.end(), event);
  };
  job.compile = true;
  const auto plan = planned(job).plan;
  EXPECT_EQ(bytes_of(plan, 2).left, eager);
  EXPECT_EQ(count(events(job, plan, Phase::forward), "-32 h.0.t activation"), 1) << "it ends in forward";
  EXPECT_EQ(count(events(job, plan, Phase::forward), "-32 h.0.u activation"), 0) << "the product reads it again";
  EXPECT_EQ(count(events(job, plan, Phase::backward), "+32 h.0.t activation"), 1);
  EXPECT_EQ(count(events(job, plan, Phase::backward), "+32 h.0.a activation"), 0) << "no product runs again";
}

TEST(Checkpoints, WhatBackwardDoesNotReadACompiledGraphDoesNotKeep) {
  TrainingJob job = net();
  job.checkpoints = {model::Checkpoints::selective_op, 0};
  const auto pass = testing::forward(job);
  ASSERT_TRUE(testing::succeeds(pass));
  const Range block = (*checkpointed(*pass, job.checkpoints))[0];
  const std::uint32_t first = block.first;
  EXPECT_EQ(asked_for(pass->tape, block, {first, first + 2}), std::vector<std::uint32_t>({first}))
      << "the last product's result is the next block's input";
  job.compile = true;
  EXPECT_EQ(kept_of_part(pass->tape, block, job), std::vector<std::uint32_t>({first}));
}

TEST(Checkpoints, AKeptResultStandsUntilTheSecondRunTakesIt) {
  TrainingJob job = net();
  job.checkpoints = {model::Checkpoints::selective_op, 0};
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_EQ(std::count(forward.begin(), forward.end(), "-32 h.0.a activation"), 0) << "kept for the second run";
  EXPECT_EQ(std::count(forward.begin(), forward.end(), "-32 h.0.t activation"), 1);
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_EQ(std::count(backward.begin(), backward.end(), "+32 h.0.a activation"), 0) << "it does not run again";
  EXPECT_EQ(std::count(backward.begin(), backward.end(), "-32 h.0.a activation"), 1);
  EXPECT_EQ(std::count(backward.begin(), backward.end(), "+32 h.0.t activation"), 1);
  job.checkpoints = {};
  EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(planned(job).plan, 2).left);
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(Checkpoints, SelectiveAttentionRunsTheAttentionsAlone) {
  TrainingJob job = net();
  job.checkpoints = {model::Checkpoints::selective_attention, 0};
  const auto pass = testing::forward(job);
  ASSERT_TRUE(testing::succeeds(pass));
  EXPECT_TRUE(fails(checkpointed(*pass, job.checkpoints), ErrorCode::missing_information, 0, "as a layer of its own"));
  TrainingJob attends = job_of(R"({"name": "x", "shape": ["N", 2, 8, 4]})",
                               linear("q", "x") + R"(,
    {"name": "s", "op": "scaled_dot_product_attention", "inputs": ["q", "q", "q"]},)" +
                                   linear("o", "s"),
                               2);
  attends.activation_checkpointing = true;
  attends.checkpoints = job.checkpoints;
  const auto attention = testing::forward(attends);
  ASSERT_TRUE(testing::succeeds(attention));
  const auto parts = checkpointed(*attention, job.checkpoints);
  ASSERT_TRUE(testing::succeeds(parts));
  ASSERT_EQ(parts->size(), 1U);
  for (std::uint32_t at = (*parts)[0].first; at < (*parts)[0].end; ++at) {
    EXPECT_EQ(attention->tape.functions()[at].layer, 1U);
  }
}

TEST(Checkpoints, ManyBlocksNeedLess) {
  auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  ASSERT_TRUE(testing::succeeds(graph));
  TrainingJob job(*graph, 8);
  job.optimizer = Optimizer::sgd;
  const std::int64_t without = bytes_of(planned(job).plan, 2).peak;
  job.activation_checkpointing = true;
  EXPECT_LT(bytes_of(planned(job).plan, 2).peak, without);
}

/// Two blocks of an attention with dropout and of a linear layer; batch 2: a tensor has 2 x 8 x 16 x 4 B = 1,024 B.
TrainingJob attending() {
  const auto inside = [](std::string_view name, std::string_view op, std::string_view reads, std::string_view more) {
    return R"({"name": ")" + std::string(name) + R"(", "op": ")" + std::string(op) + R"(", "inputs": [)" +
           std::string(reads) + "]" + std::string(more) + "}";
  };
  constexpr std::string_view kSides = R"(, "attrs": {"in_features": 16, "out_features": 16, "bias": false})";
  std::string nodes = inside("first", "linear", R"("x")", kSides);
  std::string before = R"("first")";
  for (const std::string block : {"h.0.", "h.1."}) {
    const auto named = [&](const std::string& name) { return "\"" + block + name + "\""; };
    nodes += "," + inside(block + "attn.q", "linear", before, kSides);
    nodes += "," + inside(block + "attn.d", "dropout", named("attn.q"), R"(, "attrs": {"p": 0.1})");
    nodes += "," + inside(block + "attn.s", "scaled_dot_product_attention",
                          named("attn.d") + "," + named("attn.d") + "," + named("attn.d"), "");
    nodes += "," + inside(block + "t", "tanh", named("attn.s"), "");
    nodes += "," + inside(block + "b", "linear", named("t"), kSides);
    before = named("b");
  }
  TrainingJob job = job_of(R"({"name": "x", "shape": ["N", 8, 16]})", nodes, 2);
  job.loss = model::Loss::mse;
  job.activation_checkpointing = true;
  return job;
}

std::ptrdiff_t times(const Events& all, std::string_view event) { return std::count(all.begin(), all.end(), event); }

TEST(Recomputation, WhatAttentionKeepsGoesToTheHostButItsMasks) {
  TrainingJob job = attending();
  const Events usual = events(job, planned(job).plan, Phase::forward);
  EXPECT_EQ(times(usual, "-256 h.0.attn.d activation"), 1) << "a byte an element: it runs again";
  job.checkpoints.host_attention = model::HostAttention::module;
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_EQ(times(forward, "+256 h.0.attn.d activation"), 1);
  EXPECT_EQ(times(forward, "-256 h.0.attn.d activation"), 0) << "the mask needs no gradient, so it stays";
  EXPECT_EQ(times(forward, "-1024 h.0.attn.q activation"), 1) << "it is on the host";
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_EQ(times(backward, "+256 h.0.attn.d activation"), 1) << "its block runs again all the same";
  EXPECT_EQ(times(backward, "-256 h.0.attn.d activation"), 2);
  EXPECT_GT(times(backward, "+1024 h.0.attn.d activation"), 1) << "and what was kept comes back";
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
  EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(planned(attending()).plan, 2).left);
}

TEST(Recomputation, HooksTakeNothingOfResultsThatAreKept) {
  TrainingJob job = attending();
  job.precision = model::Precision::amp_bf16;  // the second run makes copies of weights again
  job.checkpoints = {model::Checkpoints::selective_op, 0};
  const auto usual = bytes_of(planned(job).plan, 2);
  job.checkpoints.host_attention = model::HostAttention::module;
  const auto plan = planned(job).plan;
  EXPECT_EQ(bytes_of(plan, 1).left, usual.left);
  EXPECT_EQ(bytes_of(plan, 2).left, usual.left);
}

TEST(Recomputation, OfAnAttentionsKernelAloneNothingStays) {
  TrainingJob job = attending();
  const auto usual = planned(job).plan;
  job.checkpoints.host_attention = model::HostAttention::kernel;
  const auto plan = planned(job).plan;
  EXPECT_EQ(times(events(job, plan, Phase::forward), "-256 h.0.attn.d activation"), 1) << "dropout is not its kernel";
  constexpr std::string_view kRead = "+1024 h.0.attn.d activation";
  EXPECT_GT(times(events(job, plan, Phase::backward), kRead), times(events(job, usual, Phase::backward), kRead))
      << "what the kernel read comes back for its backward";
  EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(usual, 2).left);
}

}  // namespace
}  // namespace gpumem::plan
