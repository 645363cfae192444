// Files of torchtitan, and commands of torchtitan, Megatron-LM and Megatron-Bridge.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "command_words.hpp"
#include "expect.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/session/session.hpp"
#include "launch_command.hpp"
#include "wanted_options.hpp"

namespace gpumem::trainer_files {
namespace {

namespace large_jobs_test {

using testing::succeeds;
using Files = std::map<std::string, std::string>;

LaunchedJob launched(const std::string& line, const Files& files = {}) {
  std::istringstream text(line);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  auto job = read_launch_command(words, [&](const std::string& path) -> core::Result<std::string> {
    const auto found = files.find(path);
    if (found != files.end()) return found->second;
    return core::Error{core::ErrorCode::unreadable_file, "is not here", {path, 0, {}}};
  });
  EXPECT_TRUE(succeeds(job)) << line;
  return job ? *std::move(job) : LaunchedJob();
}

const std::string kModel = "[model]\nname = \"qwen3\"\nflavor = \"32B\"\n";

TEST(Torchtitan, ReadsItsFile) {
  auto job = read_trainer_job(GPUMEM_SOURCE_DIR "/examples/trainers/torchtitan.toml");
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(job->format, "torchtitan");
  EXPECT_EQ(job->model, "meta-llama/Llama-3.1-70B");
  expect_wanted(*job, {{"batch_size", "4"},
                       {"seq_length", "8192"},
                       {"loop", "torchtitan"},
                       {"precision", "bf16-mixed"},
                       {"sharding", "hsdp:8"},
                       {"data_parallel", "16"},
                       {"tensor_parallel", "8"},
                       {"sequence_parallel", "true"},
                       {"checkpointing", "selective-op"},
                       {"compile", "true"},
                       {"loss", "compiled"},
                       {"optimizer", "adamw"},
                       {"fused", "true"},
                       {"alloc_conf", "expandable_segments:True"}});
  EXPECT_TRUE(job->unknown.empty()) << job->unknown.front();
  EXPECT_TRUE(job->not_modelled.empty()) << job->not_modelled.front();
  EXPECT_TRUE(job->missing.empty()) << job->missing.front();
}

TEST(Torchtitan, ItsDefaultsAreTheJobs) {
  const TrainerJob job = parsed(kModel + "[training]\nsteps = 1_000\nsize = 3\n");
  EXPECT_EQ(job.model, "Qwen/Qwen3-32B");
  expect_wanted(job, {{"batch_size", "8"},
                      {"seq_length", "2048"},
                      {"checkpointing", "every:2"},
                      {"sharding", "fsdp2"},
                      {"compile", "-"},
                      {"tensor_parallel", "-"}});
  EXPECT_EQ(job.missing, std::vector<std::string>{"on how many GPUs it runs (--data-parallel)"});
  EXPECT_EQ(job.unknown, std::vector<std::string>{"training.size"});
}

TEST(Torchtitan, APipelinePartsTheLocalBatch) {
  const TrainerJob job = parsed(kModel + R"([training]
local_batch_size = 16
[parallelism]
data_parallel_shard_degree = 4
pipeline_parallel_degree = 4
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 2
expert_parallel_degree = 2
fsdp_reshard_after_forward = "always"
[activation_checkpoint]
mode = "memory_budget"
)");
  expect_wanted(job, {{"batch_size", "2"},
                      {"accumulate", "8"},
                      {"pipeline_parallel", "4"},
                      {"schedule", "interleaved-1f1b"},
                      {"virtual_stages", "2"},
                      {"expert_parallel", "2"},
                      {"data_parallel", "4"},
                      {"checkpointing", "-"}});
  expect_wanted(job, {{"reshard_after_forward", "always"}});
  EXPECT_EQ(job.not_modelled, std::vector<std::string>{"activation_checkpoint.mode memory_budget"});
}

TEST(Torchtitan, ReadsCopiesThatTrainApartAndWhatIsGatheredInEightBits) {
  const std::string layout = "[training]\nlocal_batch_size = 1\n[parallelism]\ndata_parallel_shard_degree = 8\n";
  const std::string copies = "[fault_tolerance]\nenable = true\ngroup_size = 2\nsync_steps = 10\n";
  expect_wanted(parsed(kModel + layout + copies + "semi_sync_method = \"diloco\"\nnum_fragments = 2\n"),
                {{"semi_sync", "diloco:2"}, {"loop", "torchtitan"}, {"data_parallel", "8"}});
  expect_wanted(parsed(kModel + layout + copies + "semi_sync_method = \"diloco\"\nfragment_sync_delay = 1\n"),
                {{"semi_sync", "streaming-diloco:1"}});
  expect_wanted(parsed(kModel + layout + copies + "semi_sync_method = \"local_sgd\"\n"), {{"semi_sync", "local-sgd"}});
  expect_wanted(parsed(kModel + layout + copies), {{"semi_sync", "-"}});
  const TrainerJob job =
      parsed(kModel + "converters = [\"float8\"]\n" + layout + "[float8]\nenable_fsdp_float8_all_gather = true\n");
  expect_wanted(job, {{"quantize", "float8-gather"}});
  EXPECT_TRUE(job.not_modelled.empty());
}

TEST(Torchtitan, OneGpuComputesUnderAutocastAndFloat8IsAConverter) {
  expect_wanted(parsed(kModel + "converters = [\"float8\"]\n[training]\nlocal_batch_size = 1\n[parallelism]\n"
                                "data_parallel_shard_degree = 1\n[optimizer]\nname = \"Adam\"\n"
                                "implementation = \"for-loop\"\n[activation_checkpoint]\nmode = \"none\"\n"),
                {{"precision", "amp-bf16"},
                 {"sharding", "-"},
                 {"quantize", "float8"},
                 {"optimizer", "adam"},
                 {"foreach", "false"},
                 {"fused", "-"},
                 {"checkpointing", "-"}});
}

TEST(Torchtitan, ItsCommandSaysOnHowManyGpus) {
  const Files files = {
      {"q.toml", kModel + "[training]\nlocal_batch_size = 2\n[parallelism]\ntensor_parallel_degree = 2\n"}};
  const LaunchedJob job = launched(
      "torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file q.toml --training.seq_len 4096", files);
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.files, std::vector<std::string>{"q.toml"});
  expect_wanted(job.job, {{"data_parallel", "4"}, {"sharding", "fsdp2"}, {"seq_length", "4096"}, {"batch_size", "2"}});
  EXPECT_TRUE(job.job.missing.empty()) << job.job.missing.front();
  EXPECT_TRUE(job.job.unknown.empty()) << job.job.unknown.front();
  const LaunchedJob script = launched("NGPU=4 CONFIG_FILE=q.toml ./run_train.sh --compile.enable", files);
  EXPECT_EQ(script.gpus, 4);
  expect_wanted(script.job, {{"data_parallel", "2"}, {"compile", "true"}, {"loss", "compiled"}});
}

const std::string kMegatron =
    " pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 2 --global-batch-size 32 --bf16 --swiglu --vocab-size 32000";

TEST(MegatronLm, ReadsLayoutAndModel) {
  const LaunchedJob job = launched(
      "torchrun --nproc_per_node 8" + kMegatron +
      " --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 "
      "--sequence-parallel --use-distributed-optimizer --recompute-granularity full --recompute-method uniform "
      "--recompute-num-layers 1 --disable-bias-linear --no-gradient-accumulation-fusion --untied 3");
  expect_wanted(job.job, {{"loop", "megatron"},
                          {"batch_size", "2"},
                          {"seq_length", "1024"},
                          {"precision", "bf16-mixed"},
                          {"tensor_parallel", "2"},
                          {"pipeline_parallel", "2"},
                          {"virtual_stages", "2"},
                          {"schedule", "interleaved-1f1b"},
                          {"sequence_parallel", "true"},
                          {"sharding", "distributed-optimizer"},
                          {"checkpointing", "full"},
                          {"optimizer", "adamw"},
                          {"attention", "flash"}});
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.job.global_batch, 32);
  EXPECT_EQ(job.job.unknown, std::vector<std::string>{"untied"});
  for (const char* part : {R"("padded_vocab_size": 32000)", R"("add_bias_linear": false)", R"("swiglu": true)",
                           R"("gradient_accumulation_fusion": false)", R"("num_layers": 4)"}) {
    EXPECT_NE(job.job.model.find(part), std::string::npos) << part << " in " << job.job.model;
  }
  const auto graph = session::read_summary(job.job.model);
  ASSERT_TRUE(succeeds(graph));
  // Embeddings of words and positions, and per layer q, k, v, o, and a gated MLP of 8/3 of the width; norms.
  constexpr std::int64_t kLayer = 4 * 512 * 512 + 3 * 512 * 1344 + 4 * 512;
  EXPECT_EQ(graph->parameters(), 32000 * 512 + 1024 * 512 + 4 * kLayer + 2 * 512);
}

TEST(MegatronLm, TheVocabularyIsTheTokenizersAndPadded) {
  const std::string line =
      "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 512 --num-attention-heads 8 "
      "--micro-batch-size 1 --seq-length 64 --max-position-embeddings 64 ";
  const auto holds = [&](const std::string& more, const std::string& part) {
    return launched(line + more).job.model.find(part) != std::string::npos;
  };
  EXPECT_TRUE(holds("--tokenizer-type GPT2BPETokenizer", R"("padded_vocab_size": 50304)"));
  EXPECT_TRUE(
      holds("--tokenizer-type GPT2BPETokenizer --tensor-model-parallel-size 8", R"("padded_vocab_size": 51200)"));
  EXPECT_TRUE(holds("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B",
                    R"("padded_vocab_size": 128256)"));
  const LaunchedJob unknown = launched(line + "--tokenizer-type TikTokenizer");
  EXPECT_EQ(unknown.job.model.find("padded_vocab_size"), std::string::npos);
  EXPECT_EQ(unknown.job.missing.size(), 1U);
}

TEST(MegatronLm, AHybridsPatternTellsItsLayers) {
  const LaunchedJob job = launched(
      "torchrun pretrain_mamba.py --hybrid-layer-pattern M-M*|-M/M* --hidden-size 512 --num-attention-heads 8 "
      "--micro-batch-size 1 --seq-length 64 --position-embedding-type none --vocab-size 1000");
  EXPECT_NE(job.job.model.find(R"("num_layers": 6)"), std::string::npos) << job.job.model;
}

TEST(MegatronLm, RecomputesByMethodAndModules) {
  const auto checkpointing = [](const std::string& more) {
    return wanted(launched("torchrun" + kMegatron + more).job, "checkpointing");
  };
  EXPECT_EQ(checkpointing(""), "-");
  EXPECT_EQ(checkpointing(" --recompute-activations"), "selective-attention");
  EXPECT_EQ(checkpointing(" --recompute-granularity selective --recompute-modules mlp layernorm"),
            "selective:mlp+layernorm");
  EXPECT_EQ(checkpointing(" --recompute-granularity full --recompute-method block --recompute-num-layers 3"), "full:3");
  EXPECT_EQ(checkpointing(" --recompute-granularity full --recompute-method uniform --recompute-num-layers 2"),
            "joined:2");
}

TEST(MegatronLm, NamesWhatChangesMemoryAndHasNoOption) {
  const LaunchedJob job = launched("torchrun" + kMegatron +
                                   " --use-megatron-fsdp --data-parallel-sharding-strategy "
                                   "optim_grads --grad-reduce-in-bf16 --no-bias-swiglu-fusion --optimizer sgd");
  expect_wanted(job.job, {{"sharding", "zero-2"}, {"optimizer", "sgd-momentum"}, {"fused", "false"}});
  EXPECT_EQ(job.job.not_modelled, std::vector<std::string>{"no_bias_swiglu_fusion true"});
  EXPECT_NE(job.job.model.find("\"grad_reduce_in_bf16\": true"), std::string::npos) << "the model's source says it";
  expect_wanted(launched("torchrun" + kMegatron + " --optimizer sgd --sgd-momentum 0.0").job, {{"optimizer", "sgd"}});
}

TEST(MegatronBridge, ARecipeIsAJobInMegatronsForm) {
  const LaunchedJob job = launched(
      "torchrun --nproc-per-node=8 scripts/training/run_recipe.py --recipe "
      "qwen3_8b_pretrain_config -mb 2 optimizer.lr=1e-4 logger.log_interval=1");
  EXPECT_EQ(job.job.format, "megatron-bridge");
  EXPECT_EQ(job.gpus, 8);
  EXPECT_EQ(job.job.global_batch, 1024);
  expect_wanted(job.job, {{"loop", "megatron"},
                          {"batch_size", "2"},
                          {"seq_length", "4096"},
                          {"precision", "bf16-mixed"},
                          {"sharding", "distributed-optimizer"},
                          {"loss", "fused-ce"},
                          {"checkpointing", "-"},
                          {"lora", "-"}});
  EXPECT_TRUE(job.job.unknown.empty()) << job.job.unknown.front();
  EXPECT_TRUE(job.job.not_modelled.empty()) << job.job.not_modelled.front();
  for (const char* part : {R"("num_layers": 36)", R"("grad_reduce_in_bf16": true)", R"("qk_layernorm": true)"}) {
    EXPECT_NE(job.job.model.find(part), std::string::npos) << part << " in " << job.job.model;
  }
  const auto graph = session::read_summary(job.job.model);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 8'190'735'360) << "as published";
}

TEST(MegatronBridge, ItsWordsWinOverTheRecipe) {
  const std::string line = "run_recipe.py --recipe llama3_8b_sft_config ";
  expect_wanted(launched("python " + line).job,
                {{"tensor_parallel", "2"}, {"seq_length", "4096"}, {"quantize", "-"}, {"checkpointing", "-"}});
  const LaunchedJob other = launched("torchrun --nproc_per_node 4 " + line +
                                     "-tp 4 -sl 8192 mixed_precision=bf16_with_fp8_delayed_scaling_mixed "
                                     "model.recompute_granularity=selective model.recompute_modules=[mlp,layernorm] "
                                     "ddp.use_distributed_optimizer=false optimizer.optimizer_cpu_offload=true");
  expect_wanted(other.job, {{"tensor_parallel", "4"},
                            {"seq_length", "8192"},
                            {"quantize", "float8-params"},
                            {"checkpointing", "selective:mlp+layernorm"},
                            {"sharding", "ddp"},
                            {"offload", "optimizer"}});
  expect_wanted(launched("python " + line + "dataset.sequence_length=2048").job, {{"seq_length", "2048"}});
}

TEST(MegatronBridge, NamesWhatItDoesNotKnow) {
  const LaunchedJob odd = launched(
      "python run_recipe.py --recipe llama3_8b_sft_config model.oddity=3 sections.field=4 --odd-option 1 "
      "train.micro_batchsize=4 peft.n_adapters=2 train.manual_gc=true optimizer.adam_beta2=0.95");
  EXPECT_EQ(odd.job.unknown, (std::vector<std::string>{"oddity", "odd_option", "sections.field",
                                                       "train.micro_batchsize", "peft.n_adapters"}));
}

TEST(MegatronBridge, FindsARecipeByItsModelOrByItsBenchmark) {
  const LaunchedJob adapted = launched("python run_recipe.py --model qwen3_30b_a3b --mode lora");
  expect_wanted(
      adapted.job,
      {{"lora", "8"}, {"lora_targets", "linear_qkv+linear_proj"}, {"tensor_parallel", "4"}, {"expert_parallel", "4"}});
  EXPECT_EQ(adapted.gpus, 4) << "of the recipe's whole name";
  expect_wanted(launched("python run_recipe.py --model qwen3_30b_a3b --mode dora").job, {{"peft", "dora"}});
  const LaunchedJob benchmark = launched(
      "uv run python scripts/performance/setup_experiment.py -a me -m deepseek -mr deepseek_v3 --num_gpus 256 "
      "--gpus_per_node 4 -g gb300 -c fp8_mx -hf TOKEN");
  EXPECT_EQ(benchmark.gpus, 256);
  EXPECT_EQ(benchmark.job.model, "deepseek-ai/DeepSeek-V3");
  expect_wanted(benchmark.job, {{"quantize", "float8-params"}, {"expert_parallel", "32"}, {"pipeline_parallel", "2"}});
  EXPECT_NE(std::find(benchmark.job.not_modelled.begin(), benchmark.job.not_modelled.end(), "mtp_num_layers 1"),
            benchmark.job.not_modelled.end());
}

TEST(MegatronBridge, HybridsHaveTheSizesOfTheirRecipe) {
  const LaunchedJob job = launched(
      "./scripts/training/train.sh --nodes 2 --gpus-per-node 8 --additional-slurm-params segment=2 --recipe "
      "nemotron_3_5_lightning_pretrain_config "
      "model.moe_router_force_load_balancing=true checkpoint.load=null");
  EXPECT_EQ(job.gpus, 16);
  expect_wanted(
      job.job,
      {{"context_parallel", "2"}, {"expert_parallel", "8"}, {"checkpointing", "selective:moe+layernorm+core_attn"}});
  EXPECT_NE(job.job.model.find("EMEMEMEME/*E/*E"), std::string::npos) << job.job.model;
  EXPECT_TRUE(succeeds(session::read_summary(job.job.model)));
}

TEST(MegatronBridge, ModelsThatSeeAreReadByTheirNames) {
  const LaunchedJob job = launched("./train.sh --nodes 1 --gpus-per-node 8 --recipe gemma4_vl_26b_sft_config");
  EXPECT_EQ(job.job.model, "google/gemma-4-26B-A4B-it");
  EXPECT_NE(job.job.frozen_parts.find("model.vision_tower"), std::string::npos);
  EXPECT_EQ(job.job.missing, std::vector<std::string>{"the size and number of its images"});
  expect_wanted(launched("./train.sh --recipe qwen35_vl_27b_pretrain_16gpu_gb200_bf16_mock_config").job,
                {{"image", "256x256"}, {"images", "1"}, {"tensor_parallel", "2"}});
  const LaunchedJob other = launched("./train.sh --recipe gemma4_vl_26b_sft_config model.hidden_size=64");
  EXPECT_EQ(std::count(other.job.not_modelled.begin(), other.job.not_modelled.end(), "hidden_size 64"), 1);
}

TEST(MegatronBridge, NamesTheNearestRecipe) {
  const auto refused = read_launch_command(shell_words("python run_recipe.py --recipe lama3_8b_sft_config"),
                                           [](const std::string&) { return core::Result<std::string>(std::string()); });
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("did you mean 'llama3_8b_sft_config'"), std::string::npos)
      << refused.error().message;
  const auto cut = read_launch_command(shell_words("python run_recipe.py --recipe qwen3_8b_sft"),
                                       [](const std::string&) { return core::Result<std::string>(std::string()); });
  EXPECT_NE(cut.error().message.find("did you mean 'qwen3_8b_sft_config'"), std::string::npos) << cut.error().message;
}

TEST(MegatronBridge, EveryRecipeIsRead) {
  std::ifstream table(GPUMEM_SOURCE_DIR "/src/trainer_files/megatron_bridge_recipes.inc");
  int recipes = 0;
  for (std::string line; std::getline(table, line);) {
    if (!line.starts_with("{\"") || line.find('/') < line.find("\",")) continue;
    const std::string name = line.substr(2, line.find('"', 2) - 2);
    const LaunchedJob job = launched("python run_recipe.py --recipe " + name + " --mode sft");
    EXPECT_TRUE(job.job.unknown.empty()) << name << ": " << job.job.unknown.front();
    EXPECT_FALSE(job.job.model.empty()) << name;
    ++recipes;
  }
  EXPECT_GT(recipes, 900);
}

TEST(ShellWords, AreTakenApartAsAShellDoes) {
  EXPECT_EQ(shell_words("a  --b='c d' \"e\\\"f\" g\\ h ''"),
            (std::vector<std::string>{"a", "--b=c d", "e\"f", "g h", ""}));
  EXPECT_TRUE(shell_words(" \n").empty());
}

}  // namespace large_jobs_test
}  // namespace
}  // namespace gpumem::trainer_files
