#include "image_trainers.hpp"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "expect.hpp"
#include "launch_command.hpp"
#include "setting.hpp"
#include "trainer_files.hpp"
#include "wanted_options.hpp"

namespace gpumem::trainer_files {
namespace {

using testing::succeeds;
using Files = std::map<std::string, std::string>;

const std::string kExamples = GPUMEM_SOURCE_DIR "/examples/trainers/";

TrainerJob read(const std::string& name) {
  auto job = read_trainer_job(kExamples + name);
  EXPECT_TRUE(succeeds(job)) << name;
  return job ? *std::move(job) : TrainerJob();
}

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

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

TEST(ImageTrainers, ReadsSimpleTuner) {
  const TrainerJob job = read("simpletuner.json");
  EXPECT_EQ(job.format, "simpletuner");
  expect_wanted(job, {{"batch_size", "4"},
                      {"image", "512x512"},
                      {"lora", "16"},
                      {"lora_dtype", "bf16"},
                      {"lora_dropout", "0.1"},
                      {"precision", "amp-bf16"},
                      {"base_dtype", "bf16"},
                      {"quantize", "int8-sdnq"},
                      {"optimizer", "adamw-bf16"},
                      {"checkpointing", "full"},
                      {"zero_grad", "step-end"}});
  EXPECT_EQ(joined(job.unknown) + joined(job.not_modelled), "");
  EXPECT_NE(joined(job.missing).find("data_backend_config"), std::string::npos);
  EXPECT_TRUE(succeeds(find_model(job, kExamples + "simpletuner.json"))) << "a diffusers folder beside the file";
}

TEST(ImageTrainers, SimpleTunersDefaultsAreItsOwn) {
  expect_wanted(parsed(R"({"model_family": "sdxl"})"), {{"lora", "-"},
                                                        {"precision", "bf16"},
                                                        {"base_dtype", "-"},
                                                        {"image", "1024x1024"},
                                                        {"checkpointing", "full"},
                                                        {"batch_size", "4"},
                                                        {"optimizer", "adamw-bf16"}});
  expect_wanted(parsed(R"({"model_family": "flux", "model_type": "lora", "gradient_checkpointing": false,
                           "mixed_precision": "no", "use_dora": true, "optimizer": "bnb-adamw8bit"})"),
                {{"lora", "16"},
                 {"lora_targets", "to_q+to_k+to_v+to_out.0+add_q_proj+add_k_proj+add_v_proj+to_add_out"},
                 {"peft", "dora"},
                 {"base_dtype", "fp32"},
                 {"checkpointing", "-"},
                 {"optimizer", "adamw-8bit"}});
  expect_wanted(parsed(R"({"model_family": "flux", "model_type": "lora", "peft_lora_target_modules": ["to_q", "to_k"],
                           "base_model_precision": "int8-sdnq", "base_model_default_dtype": "fp16"})"),
                {{"lora_targets", "to_q+to_k"}, {"base_dtype", "fp16"}});
}

TEST(ImageTrainers, SimpleTunersAverageLiesOnTheHost) {
  const TrainerJob usual = parsed(R"({"model_family": "sdxl", "use_ema": true})");
  expect_wanted(usual, {{"ema", "-"}});
  EXPECT_NE(joined(usual.not_modelled).find("use_ema"), std::string::npos);
  const TrainerJob host = parsed(R"({"model_family": "sdxl", "use_ema": true, "ema_cpu_only": true})");
  EXPECT_EQ(joined(host.not_modelled), "");
  expect_wanted(parsed(R"({"model_family": "sdxl", "use_ema": true, "ema_device": "accelerator"})"), {{"ema", "true"}});
}

TEST(ImageTrainers, SimpleTunersIntervalsDependOnTheFamily) {
  const auto kind = [](const std::string& family, const std::string& more) {
    const TrainerJob job =
        parsed(R"({"--model_family": ")" + family +
               R"(", "--gradient_checkpointing": true, "--gradient_checkpointing_interval": 2)" + more + "}");
    return job.find("checkpointing")->value;
  };
  EXPECT_EQ(kind("flux", ""), "joined:2");
  EXPECT_EQ(kind("flux", R"(, "gradient_checkpointing_segment_stride": 4)"), "joined-every-other:2");
  EXPECT_EQ(kind("auraflow", ""), "first-of:2");
  EXPECT_EQ(kind("sdxl", ""), "full");
  EXPECT_EQ(kind("wan", R"(, "gradient_checkpointing_offload_attention": true)"), "joined:2+host-attention");
}

TEST(ImageTrainers, ReadsAiToolkit) {
  if (!reads_yaml()) GTEST_SKIP() << "built without yaml-cpp";
  const TrainerJob job = read("ai_toolkit.yaml");
  EXPECT_EQ(job.format, "ai-toolkit");
  expect_wanted(job, {{"batch_size", "2"},
                      {"image", "768x768"},
                      {"lora", "16"},
                      {"lora_dtype", "fp32"},
                      {"precision", "bf16"},
                      {"optimizer", "adamw-8bit"},
                      {"ema", "true"},
                      {"checkpointing", "full"},
                      {"quantize", "-"},
                      {"parts", "text_encoder*"}});
}

TEST(ImageTrainers, AiToolkitsDefaultsAreItsOwn) {
  const auto process = [](const std::string& more) {
    return parsed(R"({"job": "extension", "config": {"process": [{"type": "sd_trainer", "train": {"dtype": "bf16"},
                      "model": {"name_or_path": "m"}, )" +
                  more + "}]}}");
  };
  expect_wanted(process(R"("network": {"linear": 16, "rank": 8}, "datasets": [{"cache_latents": true}, {}])"),
                {{"lora", "8"}, {"image", "512x512"}, {"parts", "vae+text_encoder*"}, {"base_dtype", "bf16"}});
  const TrainerJob whole = process(R"("datasets": [{"cache_latents": true, "cache_text_embeddings": true}])");
  expect_wanted(whole, {{"lora", "-"}, {"parts", "-"}, {"base_dtype", "-"}});
  EXPECT_EQ(joined(whole.missing), "");
}

TEST(ImageTrainers, NamesWhatItDoesNotKnowOfAiToolkit) {
  const TrainerJob job = parsed(R"({"job": "extension", "config": {"process": [{"type": "sd_trainer", "speed": 9,
    "train": {"dtype": "bf16", "steps": 10, "lr": 1e-4, "batch_sise": 4, "do_cfg": true},
    "network": {"linear": 16, "linear_alpha": 16, "all_layers": true, "lienar": 8},
    "model": {"name_or_path": "m", "arch": "flux", "quantise": true}, "datasets": [{"resolution": 512}]}]}})");
  EXPECT_EQ(joined(job.unknown),
            "speed\ntrain.batch_sise (did you mean 'batch_size'?)\nnetwork.lienar (did you mean 'linear'?)\n"
            "model.quantise (did you mean 'quantize'?)\n");
  EXPECT_NE(joined(job.not_modelled).find("train.do_cfg"), std::string::npos);
  expect_wanted(job, {{"lora_targets", "all-linear"}});
}

TEST(ImageTrainers, KnowsFamiliesOfArgumentsByTheProgramsOwnNames) {
  const TrainerJob kohya = parsed(R"({"network_module": "networks.lora", "network_dim": 8, "save_every_n_epochs": 1,
    "save_evry_n_epochs": 1, "vae_batch_size": 2, "vae_bach_size": 2, "deepspeed": true, "zero_stage": 2})");
  EXPECT_EQ(joined(kohya.unknown),
            "save_evry_n_epochs (did you mean 'save_every_n_epochs'?)\n"
            "vae_bach_size (did you mean 'vae_batch_size'?)\n");
  EXPECT_NE(joined(kohya.not_modelled).find("deepspeed"), std::string::npos);
  const TrainerJob finetrainers = parsed(R"({"training_type": "lora", "pretrained_model_name_or_path": "m",
    "validation_steps": 10, "validation_stesp": 10, "dataset_config": "d.json", "dataloader_wokers": 1})");
  EXPECT_EQ(joined(finetrainers.unknown),
            "validation_stesp (did you mean 'validation_steps'?)\n"
            "dataloader_wokers (did you mean 'dataloader_num_workers'?)\n");
}

TEST(ImageTrainers, NamesWhatItDoesNotKnowOfAiToolkitsDataSets) {
  const auto process = [](const std::string& more) {
    return parsed(R"({"job": "extension", "config": {"name": "a", "versoin": 1, "process": [{"type": "sd_trainer",
      "train": {"dtype": "bf16"}, "model": {"name_or_path": "m"}, )" +
                  more + "}, {}]}}");
  };
  const TrainerJob job = process(R"("datasets": [{"folder_path": "x", "resolutoin": 1024, "control_path": "y",
    "cache_latents_to_disk": true}, {"resolution": 768, "num_frames": 33, "chache_latents": true}, "z"])");
  EXPECT_EQ(joined(job.unknown),
            "config.versoin\ndatasets.resolutoin (did you mean 'resolution'?)\n"
            "datasets.chache_latents (did you mean 'cache_latents'?)\ndatasets, an entry that is no data set\n");
  EXPECT_NE(joined(job.not_modelled).find("control_path y"), std::string::npos);
  EXPECT_NE(joined(job.not_modelled).find("config.process, of which the first is read,"), std::string::npos);
  expect_wanted(job, {{"frames", "33"}});
  for (const char* wrong : {R"("datasets": [{"num_frames": "many"}])", R"("datasets": [{"cache_latents": "perhaps"}])",
                            R"("datasets": [], "network": {"all_layers": "tru"})"}) {
    EXPECT_TRUE(process(wrong).wrong) << wrong;
  }
}

TEST(ImageTrainers, ReadsOneTrainer) {
  const TrainerJob job = read("one_trainer.json");
  EXPECT_EQ(job.format, "onetrainer");
  expect_wanted(job, {{"batch_size", "4"},
                      {"image", "768x768"},
                      {"lora", "16"},
                      {"lora_dtype", "fp32"},
                      {"lora_targets", "*attentions*"},
                      {"precision", "amp-bf16"},
                      {"base_dtype", "bf16"},
                      {"checkpointing", "full"},
                      {"optimizer", "adamw-8bit"},
                      {"parts", "-"}});
  EXPECT_EQ(joined(job.unknown) + joined(job.missing), "");
  EXPECT_TRUE(succeeds(find_model(job, kExamples + "one_trainer.json")));
}

TEST(ImageTrainers, SimpleTunerStreamsTheBlocksThatItSwaps) {
  const std::string file = R"({"model_family": "wan", "model_type": "lora", "lora_rank": 4, "musubi_blocks_to_swap": )";
  expect_wanted(parsed(file + "20}"), {{"block_swap", "streamed:20"}});
  expect_wanted(parsed(file + "0}"), {{"block_swap", "-"}});
}

TEST(ImageTrainers, SimpleTunersFlavoursAreNamesOfModels) {
  const auto model = [](const std::string& fields) {
    return parsed("{\"model_type\": \"full\", " + fields + "}").model;
  };
  EXPECT_EQ(model(R"("model_family": "ernie")"), "baidu/ERNIE-Image");
  EXPECT_EQ(model(R"("model_family": "wan", "model_flavour": "ti2v-5b-2.2")"), "Wan-AI/Wan2.2-TI2V-5B-Diffusers");
  EXPECT_EQ(model(R"("model_family": "kandinsky5_image")"), "kandinskylab/Kandinsky-5.0-T2I-Lite-sft-Diffusers");
  EXPECT_EQ(model(R"("model_family": "cosmos2image")"), "nvidia/Cosmos-Predict2-2B-Text2Image");
  EXPECT_EQ(model(R"("model_family": "flux", "model_flavour": "kontext")"), "black-forest-labs/FLUX.1-Kontext-dev");
  EXPECT_EQ(model(R"("model_family": "flux", "pretrained_model_name_or_path": "mine")"), "mine");
}

TEST(ImageTrainers, SimpleTunersFamiliesHaveAdaptersOfTheirOwn) {
  const auto targets = [](const std::string& family) {
    return wanted(parsed(R"({"model_type": "lora", "model_family": ")" + family + "\"}"), "lora_targets");
  };
  EXPECT_EQ(targets("hidream"), "to_q+to_k+to_v") << "to_out.0 is none of its layers";
  EXPECT_EQ(targets("longcat_video"), "qkv+proj+q_linear+kv_linear");
  EXPECT_EQ(targets("kandinsky5-image"), "to_key+to_query+to_value");
  EXPECT_NE(targets("flux2").find("attn.to_qkv_mlp_proj"), std::string::npos);
}

TEST(ImageTrainers, OneTrainersPartsSayTheirTypes) {
  const auto with = [](const std::string& more) {
    return parsed(R"({"base_model_name": "m", "model_type": "QWEN", "train_dtype": "BFLOAT_16")" + more + "}");
  };
  expect_wanted(with(""), {{"precision", "amp-bf16"}, {"lora", "-"}, {"image", "512x512"}, {"optimizer", "adamw"}});
  expect_wanted(with(R"(, "transformer": {"weight_dtype": "BFLOAT_16", "activation_offloading": true},
                        "layer_filter": "transformer_block",
                        "optimizer": {"optimizer": "ADAFACTOR", "fused_back_pass": true})"),
                {{"precision", "bf16"},
                 {"offload", "checkpoints"},
                 {"train", "*transformer_block*"},
                 {"optimizer", "adafactor"},
                 {"optimizer_in_backward", "true"}});
  const TrainerJob adapted = with(R"(, "training_method": "LORA", "transformer": {"weight_dtype": "FLOAT_8",
    "offload_fraction": 0.5, "gradient_checkpointing": false}, "layer_filter": "attn,img_mlp", "new_key": 1)");
  expect_wanted(adapted, {{"quantize", "fp8wo-torchao"},
                          {"base_dtype", "bf16"},
                          {"lora_targets", "*attn*+*img_mlp*"},
                          {"checkpointing", "-"}});
  EXPECT_NE(joined(adapted.not_modelled).find("offload_fraction 0.5"), std::string::npos);
  EXPECT_EQ(joined(adapted.unknown), "new_key\n");
  // Older files have one word for all parts.
  expect_wanted(with(R"(, "weight_dtype": "BFLOAT_16", "gradient_checkpointing": "CPU_OFFLOADED")"),
                {{"precision", "bf16"}, {"checkpointing", "full"}, {"offload", "checkpoints"}});
  EXPECT_EQ(with(R"(, "training_method": "EMBEDDING")").unlike, "training_method EMBEDDING");
}

TEST(ImageTrainers, ReadsDiffusersUnconditionalTraining) {
  const LaunchedJob job = launched(
      "accelerate launch train_unconditional.py --dataset_name=huggan/flowers-102-categories --resolution=64 "
      "--center_crop --random_flip --output_dir=out --train_batch_size=16 --num_epochs=100 "
      "--gradient_accumulation_steps=1 --use_ema --learning_rate=1e-4 --lr_warmup_steps=500 --mixed_precision=no "
      "--ddpm_num_steps=1000 --push_to_hub");
  expect_wanted(job.job, {{"image", "64x64"}, {"batch_size", "16"}, {"precision", "fp32"}, {"ema", "true"}});
  EXPECT_EQ(joined(job.job.unknown) + joined(job.job.not_modelled), "");
  EXPECT_EQ(job.job.usual_model, "google/ddpm-celebahq-256") << "the script makes one of its sizes";
}

TEST(ImageTrainers, ReadsDiffSynth) {
  const std::string line =
      "accelerate launch examples/wanvideo/model_training/train.py --dataset_base_path d "
      "--model_id_with_origin_paths Wan-AI/Wan2.1-T2V-1.3B:d.safetensors,Wan-AI/W:t5.pth "
      "--height 480 --width 832 --num_frames 49 --lora_base_model dit --lora_rank 32 "
      "--lora_target_modules q,k,v,o,ffn.0,ffn.2 --remove_prefix_in_ckpt pipe.dit.";
  const LaunchedJob wan = launched(line);
  EXPECT_EQ(wan.job.format, "diffsynth");
  EXPECT_EQ(wan.job.model, "Wan-AI/Wan2.1-T2V-1.3B");
  expect_wanted(wan.job, {{"image", "832x480"},
                          {"frames", "49"},
                          {"batch_size", "1"},
                          {"lora", "32"},
                          {"lora_targets", "to_q+to_k+to_v+to_out.0+ffn.net.0.proj+ffn.net.2"},
                          {"precision", "bf16"},
                          {"checkpointing", "full"},
                          {"parts", "all"}});
  EXPECT_EQ(joined(wan.job.unknown) + joined(wan.job.not_modelled), "");
  const LaunchedJob flux = launched(
      "accelerate launch train.py --dataset_base_path d --model_id_with_origin_paths black-forest-labs/FLUX.1-dev:f "
      "--max_pixels 262144 --trainable_models dit --task sft:train --use_gradient_checkpointing_offload --extra_inputs "
      "i");
  expect_wanted(flux.job, {{"image", "512x512"}, {"lora", "-"}, {"checkpointing", "-"}, {"parts", "-"}});
  EXPECT_NE(joined(flux.job.not_modelled).find("extra_inputs"), std::string::npos);
  EXPECT_EQ(launched(line + " --task sft:data_process").job.unlike, "task sft:data_process");
}

TEST(ImageTrainers, ReadsTomlOfSdScripts) {
  const TrainerJob job = read("sd_scripts.toml");
  EXPECT_EQ(job.format, "sd-scripts");
  expect_wanted(job, {{"batch_size", "2"},
                      {"image", "768x512"},
                      {"lora", "16"},
                      {"lora_targets", "*attentions.*"},
                      {"optimizer", "adamw-8bit"},
                      {"precision", "amp-bf16"},
                      {"base_dtype", "bf16"},
                      {"parts", "text_encoder*"}});
  EXPECT_EQ(joined(job.unknown) + joined(job.not_modelled) + joined(job.missing), "");
}

TEST(ImageTrainers, SdScriptsSayWhatLiesOnTheGpu) {
  const auto with = [](const std::string& more) {
    return parsed("network_module = 'networks.lora'\nnetwork_dim = 8\npretrained_model_name_or_path = 'm'\n" + more)
        .options;
  };
  const auto value = [](const std::vector<WantedOption>& options, std::string_view name) {
    for (const WantedOption& one : options) {
      if (one.option == name) return one.value;
    }
    return std::string("-");
  };
  EXPECT_EQ(value(with(""), "parts"), "vae+text_encoder*");
  EXPECT_EQ(value(with("cache_text_encoder_outputs = true\n"), "parts"), "vae");
  EXPECT_EQ(value(with("cache_text_encoder_outputs = true\ncache_latents_to_disk = true\n"), "parts"), "-");
  EXPECT_EQ(value(with("use_lion_optimizer = true\n"), "optimizer"), "lion");
  EXPECT_EQ(value(with("fp8_base_unet = true\n"), "quantize"), "fp8wo-torchao");
  EXPECT_EQ(value(with("mixed_precision = 'bf16'\nfull_bf16 = true\n"), "lora_dtype"), "bf16");
}

TEST(ImageTrainers, ReadsDiffusionPipe) {
  const TrainerJob job = read("diffusion_pipe.toml");
  EXPECT_EQ(job.format, "diffusion-pipe");
  expect_wanted(job, {{"batch_size", "2"},
                      {"image", "768x512"},
                      {"lora", "32"},
                      {"lora_dtype", "bf16"},
                      {"optimizer", "adamw-bf16"},
                      {"checkpointing", "full"}});
  EXPECT_EQ(joined(job.unknown) + joined(job.not_modelled) + joined(job.missing), "");
  const std::string whole = "micro_batch_size_per_gpu = 1\n[model]\ntype = 'wan'\ndtype = 'bfloat16'\n";
  expect_wanted(parsed(whole), {{"precision", "bf16"}, {"base_dtype", "-"}, {"quantize", "-"}});
  expect_wanted(parsed(whole + "diffusion_model_dtype = 'float8'\n[adapter]\ntype = 'lora'\nrank = 4\n"),
                {{"precision", "amp-bf16"}, {"base_dtype", "bf16"}, {"quantize", "fp8wo-torchao"}});
  expect_wanted(parsed("blocks_to_swap = 32\npipeline_stages = 1\n[model]\ntype = 'wan'\n"),
                {{"block_swap", "exchanged:32"}});
}

TEST(ImageTrainers, DiffusersScriptsAreToldByTheirNames) {
  const LaunchedJob lora = launched(
      "accelerate launch --mixed_precision=fp16 examples/dreambooth/train_dreambooth_lora_flux.py "
      "--pretrained_model_name_or_path=m --resolution=768 --rank=8 --train_batch_size=1 --with_prior_preservation "
      "--use_8bit_adam --gradient_checkpointing --max_sequence_length=256 --output_dir=o");
  EXPECT_TRUE(lora.known);
  EXPECT_EQ(lora.job.model, "m");
  expect_wanted(lora.job, {{"batch_size", "2"},
                           {"image", "768x768"},
                           {"seq_length", "256"},
                           {"lora", "8"},
                           {"lora_dtype", "fp32"},
                           {"precision", "amp-fp16"},
                           {"base_dtype", "fp16"},
                           {"optimizer", "adamw-8bit"},
                           {"parts", "vae"},
                           {"checkpointing", "full"}});
  const LaunchedJob full = launched(
      "accelerate launch train_text_to_image.py --pretrained_model_name_or_path=m --use_ema --mixed_precision=bf16");
  expect_wanted(full.job,
                {{"batch_size", "16"}, {"image", "512x512"}, {"lora", "-"}, {"ema", "true"}, {"parts", "all"}});
  for (const char* other : {"train_t2i_adapter_sdxl.py", "textual_inversion.py", "train_text_to_image_flax.py"}) {
    EXPECT_FALSE(launched("accelerate launch " + std::string(other) + " --pretrained_model_name_or_path=m").known)
        << other;
  }
}

TEST(ImageTrainers, OtherScriptsAreNoTrainersOfHuggingFace) {
  const std::string words = " --output_dir=o --learning_rate=1e-4 --train_batch_size=4";
  for (const char* other : {"train_lcm_distill_sd_wds.py --resolution=64",
                            "train_textual_inversion.py --pretrained_model_name_or_path=m"}) {
    EXPECT_FALSE(launched("accelerate launch " + std::string(other) + words).known) << other;
  }
}

TEST(ImageTrainers, AControlNetIsMadeOfItsModelOrNamed) {
  const std::string script = "accelerate launch train_controlnet.py --pretrained_model_name_or_path=m";
  const LaunchedJob made = launched(script);
  EXPECT_EQ(made.job.model, "m");
  EXPECT_EQ(made.job.changed_fields, R"({"_class_name": "ControlNetModel"})");
  const LaunchedJob named = launched(script + " --controlnet_model_name_or_path=c");
  EXPECT_EQ(named.job.model, "c");
  EXPECT_EQ(named.job.changed_fields, "");
}

TEST(ImageTrainers, SimpleTunersControlNetStandsForTheModel) {
  const auto job = parse_trainer_job(R"({"model_family": "pixart_sigma", "controlnet": true, "train_batch_size": 2})");
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(job->model, "");
  expect_wanted(*job, {{"parts", "all"}});
  const auto model = find_model(*job, "config.json");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("ControlNet's config.json"), std::string::npos);
  const auto made = parse_trainer_job(R"({"model_family": "sdxl", "controlnet": true, "train_batch_size": 2})");
  ASSERT_TRUE(succeeds(made));
  EXPECT_EQ(made->changed_fields, R"({"_class_name": "ControlNetModel"})");
}

TEST(ImageTrainers, WrongWordsAndKeysOfTheirSectionsAreNamed) {
  const std::string pipe =
      "micro_batch_size_per_gpu = 1\n[model]\ntype = 'sdxl'\ndtype = 'bfloat16'\nfoo = 1\n[adapter]\ntype = 'lora'\n"
      "alfa = 1\n[optimizer]\ntype = 'adamw'\nlr = 1\nbar = 2\n";
  const auto job = parse_trainer_job(pipe);
  ASSERT_TRUE(succeeds(job));
  EXPECT_EQ(job->unknown, (std::vector<std::string>{"model.foo", "adapter.alfa", "optimizer.bar"}));
  EXPECT_FALSE(job->wrong);
  const auto other = parse_trainer_job("micro_batch_size_per_gpu = 1\n[model]\ntype = 'nosuch'\n");
  ASSERT_TRUE(succeeds(other));
  ASSERT_TRUE(other->wrong);
  EXPECT_TRUE(other->wrong->message.starts_with("model.type: 'nosuch' is none of flux, "));
  EXPECT_EQ(other->wrong->place.line, 3);
  const LaunchedJob kohya = launched(
      "accelerate launch train_network.py --pretrained_model_name_or_path m --network_module networks.lora "
      "--optimizer_args weight_decay=0.1 foo=2 --network_args conv_dim=4 bar=1 --dataset_config data.toml",
      {{"data.toml", "[general]\nresolution = 512\nbach_size = 2\n[[datasets]]\n[[datasets.subsets]]\nquux = 3\n"}});
  EXPECT_EQ(kohya.job.unknown, (std::vector<std::string>{"network_args bar", "optimizer_args foo",
                                                         "bach_size of the data set (did you mean 'batch_size'?)",
                                                         "quux of the data set"}));
  EXPECT_TRUE(launched("accelerate launch train_network.py --network_module networks.foo").job.wrong);
}

TEST(ImageTrainers, ScriptsReadTheirDataSets) {
  const LaunchedJob job = launched(
      "accelerate launch --mixed_precision bf16 src/musubi_tuner/wan_train_network.py --dit d.safetensors "
      "--dataset_config data.toml --fp8_base --network_module networks.lora_wan --network_dim 32 --sdpa "
      "--gradient_checkpointing --optimizer_type adamw8bit",
      {{"data.toml",
        "[general]\nresolution = [960, 544]\nbatch_size = 3\n[[datasets]]\ntarget_frames = [1, 25, 45]\n"}});
  expect_wanted(job.job, {{"batch_size", "3"},
                          {"image", "960x544"},
                          {"frames", "45"},
                          {"base_dtype", "bf16"},
                          {"parts", "-"},
                          {"quantize", "fp8wo-torchao"}});
  EXPECT_EQ(job.files, std::vector<std::string>{"data.toml"});
  const LaunchedJob swapping = launched(
      "accelerate launch flux_train_network.py --network_module networks.lora_flux --network_dim 4 --blocks_to_swap 18 "
      "--block_swap_h2d_only");
  expect_wanted(swapping.job, {{"block_swap", "exchanged:18"}});
  EXPECT_NE(joined(swapping.job.not_modelled).find("block_swap_h2d_only"), std::string::npos);
  const LaunchedJob without = launched("accelerate launch flux_train_network.py --dataset_config other.toml");
  EXPECT_NE(joined(without.job.missing).find("other.toml"), std::string::npos);
}

TEST(ImageTrainers, ADataSetsOwnSizesCountBeforeTheGeneralOnes) {
  const auto read_set = [](const std::string& text) {
    TrainerJob job;
    const auto root = parse_settings(text);
    EXPECT_TRUE(succeeds(root)) << text;
    if (root) take_image_dataset(*root, job);
    return job;
  };
  expect_wanted(
      read_set("[general]\nresolution = 1024\nbatch_size = 8\n[[datasets]]\nresolution = 512\nbatch_size = 2\n"
               "[[datasets]]\nresolution = [768, 512]\nbatch_size = 1\n"),
      {{"image", "512x512"}, {"batch_size", "2"}, {"frames", "-"}});
  expect_wanted(read_set("resolutions = [512]\nframe_buckets = [1, 33]\n[[directory]]\npath = 'p'\n"
                         "[[directory]]\nsize_buckets = [[640, 480, 9]]\n"),
                {{"image", "512x512"}, {"frames", "33"}, {"batch_size", "-"}});
  expect_wanted(read_set("[general]\nresolution = 99999999\nbatch_size = 9223372036854775807\n[[datasets]]\n"
                         "target_frames = [9223372036854775807]\n"),
                {{"image", "-"}, {"batch_size", "9223372036854775807"}});
}

TEST(ImageTrainers, ReadsFinetrainersWords) {
  const LaunchedJob job = launched(
      "torchrun --nproc_per_node=2 train.py --training_type lora --pretrained_model_name_or_path w --rank 32 "
      "--target_modules blocks.*(to_q|to_k) --dataset_config t.json --dp_degree 2 --batch_size 1 --enable_slicing "
      "--enable_tiling",
      {{"t.json", R"({"datasets": [{"video_resolution_buckets": [[49, 480, 832]]}]})"}});
  EXPECT_EQ(job.job.format, "finetrainers");
  expect_wanted(job.job, {{"image", "832x480"},
                          {"frames", "49"},
                          {"lora", "32"},
                          {"lora_targets", "blocks*to_q+blocks*to_k"},
                          {"parts", "all:sliced:tiled"},
                          {"sharding", "ddp"}});
}

TEST(ImageTrainers, DreamBoothTrainsTextEncodersToo) {
  const auto job_of = [](const std::string& script) {
    const std::vector<std::string> words = {"accelerate", "launch", script, "--train_text_encoder",
                                            "--pretrained_model_name_or_path=somebody/model"};
    const auto launched = read_launch_command(words);
    EXPECT_TRUE(launched) << launched.error().message;
    return launched ? launched->job : TrainerJob();
  };
  const TrainerJob whole = job_of("train_dreambooth_sd3.py");
  EXPECT_EQ(whole.trained_parts, "text_encoder");
  EXPECT_EQ(whole.find("parts")->value, "all") << "they run in each step";
  EXPECT_EQ(job_of("train_dreambooth_lora_flux.py").trained_parts, "text_encoder.:lora") << "CLIP alone";
}

}  // namespace
}  // namespace gpumem::trainer_files
