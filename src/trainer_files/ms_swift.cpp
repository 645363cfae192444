#include "ms_swift.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "ms_swift_keys.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace ms_swift_detail {

/// PYTORCH_CUDA_ALLOC_CONF in a script's quotes.
void read_environment(TrainerReading& from) {
  auto settings = from.word("env:PYTORCH_CUDA_ALLOC_CONF");
  if (!settings) return;
  std::erase_if(*settings, [](char letter) { return letter == '\'' || letter == '"'; });
  from.want("alloc_conf", *settings, "env:PYTORCH_CUDA_ALLOC_CONF");
}

bool is_megatron(const Setting& root) {
  return root.field("micro_batch_size") != nullptr && root.field("per_device_train_batch_size") == nullptr;
}

/// A switch that is on unless the file says otherwise.
bool on_unless_off(TrainerReading& from, std::string_view path) { return from.word(path).value_or("true") != "false"; }

/// The parts that stay as they are: joined, each behind the prefix. Source: ms-swift 4, model/model_arch.py
/// (language_model) of models that read images.
std::string frozen_parts(TrainerReading& from, std::string_view before, std::string_view between) {
  const bool towers = on_unless_off(from, "freeze_vit");
  std::string names = posttrain::part_names({towers, on_unless_off(from, "freeze_aligner")}, before, between);
  if (!from.on("freeze_llm")) return names;
  for (const std::string_view name : {"model.language_model", "lm_head", "language_model"}) {
    names.append(names.empty() ? "" : between).append(before).append(name);
  }
  return names;
}

std::string targets_of(TrainerReading& from) {
  std::string targets = from.word("target_modules").value_or("all-linear");
  std::replace(targets.begin(), targets.end(), ' ', '+');
  std::string left_out = frozen_parts(from, "not:", "+");
  if (!targets.starts_with("all-linear")) return targets;
  if (is_megatron(from.root())) left_out += left_out.empty() ? "not:router" : "+not:router";
  return targets + (left_out.empty() ? "" : "+" + left_out) + "+by-name";  // find_all_linears()
}

void read_lora(TrainerReading& from) {
  from.want("lora", from.word("lora_rank").value_or("8"), "lora_rank");
  from.want("lora_dropout", from.word("lora_dropout").value_or("0.05"), "lora_dropout");
  from.want("lora_targets", targets_of(from), "target_modules");
  want_saved_modules(from, "modules_to_save");
  want_target_parameters(from, "target_parameters");
  from.not_modelled("target_regex");
  if (from.on("use_dora")) from.want("peft", "dora", "use_dora");
  if (from.on("use_rslora")) from.want("peft", "rslora", "use_rslora");
  // Other ways to begin leave the adapters as they are; what LoRA-GA's own steps take is not counted.
  const std::string begin = from.word("init_weights").value_or("true");
  if (begin.starts_with("pissa")) from.want("peft", "pissa", "init_weights");
  else if (begin == "lora-ga") from.not_modelled("init_weights");
}

/// PEFT's methods by the names that swift has for them, with what swift asks of each (pipelines/train/tuner.py).
void read_other_tuner(TrainerReading& from, const std::string& tuner) {
  if (tuner == "adalora") {
    from.want("peft", "adalora", "tuner_type");
    from.want("lora", from.word("adalora_init_r").value_or("12"), "adalora_init_r");
    from.want("lora_targets", "all-linear");
  } else if (tuner == "boft") {
    from.want("peft", "boft", "tuner_type");
    from.want("lora_targets", "all-linear");
    from.want("peft_options", "boft_block_size=" + from.word("boft_block_size").value_or("4"), "boft_block_size");
  } else if (tuner == "bone") {
    from.want("peft", "miss", "tuner_type");
    // The rank of a Bone adapter is ReFT's (tuner.py: BoneConfig(r=args.reft_rank)).
    from.want("lora", from.word("reft_rank").value_or("4"), "reft_rank");
    from.want("lora_targets", "all-linear");
  } else if (tuner == "vera") {
    from.want("peft", "vera", "tuner_type");
    from.want("lora", from.word("vera_rank").value_or("256"), "vera_rank");
    from.want("lora_targets", targets_of(from));
  } else if (tuner == "fourierft") {
    from.want("peft", "fourierft", "tuner_type");
    from.want("peft_options", "n_frequency=" + from.word("fourier_n_frequency").value_or("2000"),
              "fourier_n_frequency");
    from.want("lora_targets", targets_of(from));
  } else {
    from.job().unlike = "tuner_type " + tuner;
  }
}

/// Names of parameters by how they begin, as patterns. They are names of modules, but for what people cut short.
std::string begins(std::string names, std::string_view ending) {
  std::string patterns;
  std::replace(names.begin(), names.end(), '+', ',');
  each_name(names,
            [&](std::string_view name) { patterns.append(patterns.empty() ? "" : ",").append(name).append(ending); });
  return patterns;
}

/// Source: ms-swift 4, utils/transformers_utils.py (freeze_parameters, activate_parameters).
void read_full(TrainerReading& from) {
  from.job().frozen_parts = frozen_parts(from, "", ",");
  const std::string ratio = from.word("freeze_parameters_ratio").value_or("0");
  const bool all_frozen = ratio == "1" || ratio == "1.0" || ratio == "1.";
  if (const auto trained = from.word("trainable_parameters")) {
    from.want("train", begins(*trained, "*"), "trainable_parameters");
    if (!all_frozen) from.not_modelled("trainable_parameters");
  }
  if (const auto frozen = from.word("freeze_parameters")) from.job().frozen_parts += "," + begins(*frozen, "");
  if (!all_frozen) from.not_modelled("freeze_parameters_ratio", "0.0");
  for (const std::string_view path : {"freeze_parameters_regex", "trainable_parameters_regex"}) from.not_modelled(path);
}

void read_tuner(TrainerReading& from, std::string_view usual) {
  const std::string key = from.root().field("tuner_type") == nullptr ? "train_type" : "tuner_type";
  const std::string tuner = from.word(key).value_or(std::string(usual));
  if (tuner == "full") return read_full(from);
  if (tuner == "lora" || tuner == "longlora") read_lora(from);
  else read_other_tuner(from, tuner);
  // Its attention is of shifted groups of tokens.
  if (tuner == "longlora") from.job().not_modelled.push_back(key + " longlora");
}

/// The texts of a sample go through the model together: at most so many, unless they are packed.
void want_texts(TrainerReading& from, std::int64_t texts) {
  if (from.on("packing")) return;
  const WantedOption* const batch = from.job().find("batch_size");
  const std::int64_t samples = core::parse_whole(batch == nullptr ? "1" : batch->value).value_or(1);
  from.want("batch_size", std::to_string(core::bounded_product({samples, texts})), "task_type");
}

/// A count that a variable of the environment names; `usual` where it does not, and where it is below `least`, which is
/// then named as not modelled.
std::int64_t count_of(TrainerReading& from, std::string_view path, std::int64_t usual, std::int64_t least) {
  const std::int64_t count = from.whole(path).value_or(usual);
  if (count >= least) return count;
  from.job().not_modelled.push_back(std::string(path) + " " + std::to_string(count));
  return usual;
}

/// Whether all its data sets hold pairs alone.
bool holds_pairs(TrainerReading& from) {
  std::string names = from.word("dataset").value_or("");
  std::replace(names.begin(), names.end(), '+', ',');
  bool pairs = !names.empty();
  each_name(names, [&](std::string_view name) {
    name = name.substr(0, name.find('#'));  // how many samples are taken
    pairs = pairs && is_among(kPairs, name);
  });
  return pairs;
}

/// An embedding's sample is an anchor, a text that fits, and with infonce those that do not: as many as the data has,
/// of which the loss takes INFONCE_HARD_NEGATIVES. Source: ms-swift 4, template/base.py (_embedding_data_collator),
/// loss/embedding.py (_parse_multi_negative_sentences).
void want_embedded(TrainerReading& from, bool negatives) {
  constexpr std::int64_t kPair = 2;
  constexpr std::string_view kNegatives = "env:INFONCE_HARD_NEGATIVES";
  if (negatives && !from.word(kNegatives) && !holds_pairs(from)) {
    from.job().missing.emplace_back(
        "the number of its negatives (INFONCE_HARD_NEGATIVES; pairs without any are taken)");
  }
  want_texts(from, core::bounded_sum({kPair, negatives ? count_of(from, kNegatives, 0, 0) : 0}));
}

/// A reranker's sample goes through the model once for each text that fits, with those that do not: one and seven at
/// most. Source: ms-swift 4, template/base.py (_reranker_data_collator).
void want_ranked(TrainerReading& from) {
  constexpr std::int64_t kPositives = 1;
  constexpr std::int64_t kNegatives = 7;
  const std::int64_t fit = count_of(from, "env:MAX_POSITIVE_SAMPLES", kPositives, 1);
  const std::int64_t others = count_of(from, "env:MAX_NEGATIVE_SAMPLES", kNegatives, 0);
  want_texts(from, core::bounded_product({fit, core::bounded_sum({1, others})}));
}

/// Classes and embeddings have a small head, or none, in place of the language model's, and losses whose tensors are
/// small beside a layer's. A reranker's two logits are made of the head's weight. Source: ms-swift 4, model/register.py
/// (AutoModelForSequenceClassification, _patch_generative_reranker), model/patcher.py (patch_output_normalizer).
void read_head(TrainerReading& from) {
  constexpr std::string_view kEmbeddingLosses[] = {"infonce", "contrastive", "online_contrastive", "cosine_similarity"};
  constexpr std::string_view kRerankerLosses[] = {"pointwise_reranker", "listwise_reranker"};
  const std::string task = from.word("task_type").value_or("causal_lm");
  const std::string loss = from.word("loss_type").value_or("");
  const auto is_one_of = [&](const auto& losses) { return std::ranges::find(losses, loss) != std::end(losses); };
  if (task == "seq_cls" && loss.empty()) {
    from.job().head = "ForSequenceClassification";
  } else if (task == "embedding" && is_one_of(kEmbeddingLosses)) {
    from.job().head = "Model";
    want_embedded(from, loss == kEmbeddingLosses[0]);
  } else if (task == "reranker" && is_one_of(kRerankerLosses)) {
    from.job().head = "ForSequenceClassification";
    want_ranked(from);
  } else if (task == "generative_reranker" && is_one_of(kRerankerLosses) && !is_megatron(from.root())) {
    from.want("loss", "fused", "task_type");
    want_ranked(from);
  } else {
    from.not_modelled("task_type", "causal_lm");
    from.not_modelled("loss_type");
  }
}

/// Rewards have losses of their own.
void read_task(TrainerReading& from) {
  read_head(from);
  // Tables have spare rows, and are filled up to a multiple of 128 where those do not suffice (ms-swift 4,
  // model/register.py: resize_token_embeddings).
  from.know("new_special_tokens");
  if (const auto type = from.word("rlhf_type")) from.job().post_training = "rlhf_type " + *type;
  for (const std::string_view path : {"rlhf_type", "enable_dft_loss", "enable_channel_loss"}) from.not_modelled(path);
  // What an evaluation generates has keys and values, and logits of one token (trainers/seq2seq_trainer.py).
  const std::int64_t trained = from.whole("per_device_train_batch_size").value_or(1);
  const bool few = from.whole("per_device_eval_batch_size").value_or(1) <= core::bounded_product({2, trained});
  if (few) from.know("predict_with_generate");
  else from.not_modelled("predict_with_generate");
}

/// Of a model that speaks the whole class is loaded, unless the environment says otherwise. Megatron's form is the
/// thinker alone (posttrain/impl/launch_trainers_inl.hpp: with_speech).
void read_speech(TrainerReading& from) {
  const auto said = from.word("env:ENABLE_AUDIO_OUTPUT");
  const bool whole = !is_megatron(from.root());
  from.job().holds_speech = whole && posttrain::holds_speech(said.value_or("true"));
  if (said && whole) from.job().speech_key = "ENABLE_AUDIO_OUTPUT";
}

/// Packed samples fill the length; all others have at most so many tokens.
void read_lengths(TrainerReading& from) {
  from.take("max_length", "seq_length");
  if (!from.word("max_length")) assume_length(from, "max_length");
  from.job().shorter = !from.on("packing");
}

/// Videos as qwen-vl-utils cuts them: so many frames at most, each of so many pixels at most. Source: qwen-vl-utils
/// 0.0.11, vision_process.py: smart_nframes(), fetch_video(). False: the settings do not say both.
bool read_videos(TrainerReading& from) {
  const auto frames = from.whole("env:FPS_MAX_FRAMES");
  const std::int64_t pixels = from.whole("env:VIDEO_MAX_PIXELS").value_or(0);
  if (!frames || *frames < 2 || pixels < 1) return false;
  want_square_image(from, pixels, "env:VIDEO_MAX_PIXELS");
  from.want("frames", std::to_string(*frames / 2 * 2), "env:FPS_MAX_FRAMES");
  return true;
}

/// As many as fit of the pictures that a model cuts into the most tiles; where none does, of those that it does not
/// cut.
bool fill_with_tiles(TrainerReading& from, std::int64_t length) {
  for (const CutPicture& row : kCutPictures) {
    if (row.tokens > length || !is_named(from, {&row.model, 1})) continue;
    from.want("image", std::string(row.image), "max_length");
    from.want("images", std::to_string(length / row.tokens), "max_length");
    return true;
  }
  return false;
}

/// Images whose tokens fill a sample: one large square of Qwen's models; of InternVL tiles of 256 tokens, as the frames
/// of a video are; pictures in tiles. A sample that is longer is left out, unless truncation_strategy says otherwise,
/// so that no images of one take more. False: that is not said, no picture fits, or the model is another one. Source:
/// ms-swift 4, docs/source_en/Instruction/Command-line-parameters.md: max_length, truncation_strategy.
bool fill_samples(TrainerReading& from) {
  constexpr std::int64_t kTokensOfTile = 256;
  const auto of_token = posttrain::side_of_qwen(from.job().model);
  const std::int64_t length = from.whole("max_length").value_or(0);
  const bool bounded = !from.on("packing") && from.word("truncation_strategy").value_or("delete") == "delete";
  if (!bounded || length < kTokensOfTile) return false;
  const auto tokens = static_cast<std::int64_t>(std::sqrt(static_cast<double>(length)));
  const std::int64_t side = tokens * of_token.value_or(1);
  if (of_token) want_square_image(from, core::bounded_product({side, side}), "max_length");
  else if (is_named(from, kInternVl)) from.want("frames", std::to_string(length / kTokensOfTile), "max_length");
  else return fill_with_tiles(from, length);
  return true;
}

/// The largest square that the processor leaves as it is.
void read_images(TrainerReading& from) {
  std::int64_t pixels = 0;
  for (const std::string_view path : {"max_pixels", "env:MAX_PIXELS"}) pixels = from.whole(path).value_or(pixels);
  if (const auto tokens = from.whole("env:IMAGE_MAX_TOKEN_NUM")) {
    const std::int64_t side = posttrain::side_of_token(from.job().model, true);
    // Fewer than one is no size: the option does not take it, so it is named as not modelled.
    if (*tokens < 1) from.want("image", std::to_string(*tokens) + " tokens", "env:IMAGE_MAX_TOKEN_NUM");
    else pixels = core::bounded_product({*tokens, side, side});
  }
  for (const std::string_view path :
       {"env:VIDEO_MAX_TOKEN_NUM", "env:VIDEO_MAX_PIXELS", "env:VIDEO_MIN_PIXELS", "env:FPS_MAX_FRAMES", "env:FPS"}) {
    from.know(path);
  }
  // What a model that reads images is given otherwise depends on the data.
  const auto asks = [&](std::string_view path) { return from.root().field(path) != nullptr; };
  const bool seen = asks("env:FPS_MAX_FRAMES") || asks("env:VIDEO_MAX_PIXELS") || asks("freeze_vit");
  if (pixels == 0 && read_videos(from)) return;
  if (pixels == 0 && seen && fill_samples(from)) return;
  if (pixels == 0 && seen) from.job().missing.emplace_back("the size and number of its images");
  want_square_image(from, pixels, "max_pixels");
}

/// Source: ms-swift 4, arguments/base_args/quant_args.py (two levels of scales unless it is told otherwise).
void read_held_bits(TrainerReading& from) {
  const std::string bits = from.word("quant_bits").value_or("");
  const std::string method = from.word("quant_method").value_or("");
  if (bits.empty() && method.empty()) return;
  const bool doubled = on_unless_off(from, "bnb_4bit_use_double_quant");
  from.not_modelled("bnb_4bit_quant_type", "nf4");
  for (const std::string_view key : {"bnb_4bit_compute_dtype", "bnb_4bit_quant_storage"}) from.know(key);
  const bool known = method.empty() || method == "bnb";
  if (known && bits == "4") from.want("quantize", doubled ? "nf4-double" : "nf4", "quant_bits");
  else if (known && bits == "8") from.want("quantize", "int8", "quant_bits");
  else from.not_modelled(known ? "quant_bits" : "quant_method");
}

/// Its own copy of GaLore, on attention and MLP where no modules are named. An optimizer for each parameter steps when
/// all gradients are there. Source: ms-swift 4, optimizers/galore/utils.py, trainers/arguments.py;
/// docs/source_en/Instruction/Command-line-parameters.md.
void read_galore(TrainerReading& from) {
  const std::string base = from.word("optim").value_or("adamw_torch_fused");
  std::string name = base == "adafactor" ? "galore-adafactor" : "galore-adamw";
  if (base.ends_with("8bit")) name += "-8bit";
  name += ":" + from.word("galore_rank").value_or("128");
  if (const auto targets = from.word("galore_target_modules"); targets && !targets->empty()) name += "+" + *targets;
  for (const std::string_view path : {"galore_with_embedding", "galore_quantization"}) from.not_modelled(path);
  from.not_modelled("galore_proj_type", "std");
  from.know("galore_optim_per_parameter");
  from.want("fused", "false", "use_galore");
  from.want("optimizer", std::move(name), "use_galore");
}

/// Muon with AdamW for what is no matrix. Source: ms-swift 4, optimizers/mapping.py, callbacks/lisa.py.
void read_optimizer(TrainerReading& from) {
  const std::string optimizer = from.word("optimizer").value_or("");
  if (optimizer == "muon" || optimizer == "muonclip") from.want("optimizer", "muon", "optimizer");
  else from.not_modelled("optimizer", "multimodal");
  // The loss goes piece by piece.
  from.not_modelled("env:CELOSS_PARALLEL_SIZE");
  if (from.on("use_galore")) read_galore(from);
  // LISA: some blocks are trained, drawn anew every few steps, with all that is in no block. The optimizer only has
  // those that were drawn first. Backward goes furthest where the first ones are drawn.
  const std::int64_t layers = from.whole("lisa_activated_layers").value_or(0);
  if (layers < 1) return;
  from.job().trained_blocks.count = -layers;
  from.job().trained_blocks.and_rest = true;
}

void read_transformers(TrainerReading& from) {
  read_training_arguments(from);
  from.want("batch_size", from.word("per_device_train_batch_size").value_or("1"), "per_device_train_batch_size");
  // A script may leave the number to its shell.
  const bool shell = from.word("gradient_accumulation_steps").value_or("").starts_with('$');
  if (shell) from.want("accumulate", "1", "gradient_accumulation_steps");
  if (!from.word("gradient_accumulation_steps")) from.job().global_batch = 16;
  from.job().one_process = from.root().field("env:NPROC_PER_NODE") == nullptr;
  if (!from.word("weight_decay")) from.want("weight_decay", "true");
  read_tuner(from, "lora");
  const std::string type = from.word("torch_dtype").value_or("bfloat16");
  const bool adapts = from.job().find("lora") != nullptr || from.job().find("peft") != nullptr;
  if (type == "bfloat16") from.want("precision", adapts ? "amp-bf16" : "bf16", "torch_dtype");
  else if (type == "float16") from.want("precision", "amp-fp16", "torch_dtype");
  else from.not_modelled("torch_dtype");
  if (adapts) from.want("base_dtype", type == "bfloat16" ? "bf16" : "fp16", "torch_dtype");
  if (on_unless_off(from, "gradient_checkpointing")) from.want("checkpointing", "full", "gradient_checkpointing");
  settle_checkpoints(from, "full+reentrant");  // trainers/mixin.py: _fix_gradient_checkpointing
  const std::string attention = from.word("attn_impl").value_or(is_named(from, kWithoutSdpa) ? "eager" : "sdpa");
  if (attention.starts_with("flash")) from.want("attention", "flash", "attn_impl");
  else from.want("attention", attention, "attn_impl");
  // Without padding, a batch is one sequence, and there is no mask.
  if (from.on("padding_free") || from.on("packing")) from.want("padding", "false", "padding_free");
  if (const auto zero = from.word("deepspeed"); zero && zero->starts_with("zero")) {
    from.job().deepspeed.clear();
    want_zero(from, *zero, "deepspeed");
    from.want("precision", "bf16-mixed", "deepspeed");
    if (*zero == "zero2" || *zero == "zero2_offload") from.want("zero_reduce_bucket", "200000000", "deepspeed");
  }
  // Ulysses' and rings' ranks hold as many tokens of each sample.
  from.take("sequence_parallel_size", "context_parallel");
  read_held_bits(from);
  read_optimizer(from);
  // Transformers 5 multiplies the rows of all experts at once unless it is told otherwise.
  from.not_modelled("experts_impl", "grouped_mm");
  from.not_modelled("tuner_backend", "peft");
}

void read_recomputation(TrainerReading& from) {
  const std::string kind = from.word("recompute_granularity").value_or("selective");
  if (kind == "selective") {
    from.not_modelled("recompute_modules", "core_attn");
    from.want("checkpointing", "selective-attention", "recompute_granularity");
  } else if (kind == "full") {
    from.not_modelled("recompute_method", "uniform");
    const std::string layers = from.word("recompute_num_layers").value_or("1");
    from.want("checkpointing", layers == "1" ? "full" : "full:" + layers, "recompute_num_layers");
  }
}

void read_megatron_layout(TrainerReading& from) {
  from.take("tensor_model_parallel_size", "tensor_parallel");
  from.take("pipeline_model_parallel_size", "pipeline_parallel");
  from.take("context_parallel_size", "context_parallel");
  from.take("expert_model_parallel_size", "expert_parallel");
  from.take("virtual_pipeline_model_parallel_size", "virtual_stages");
  from.take("decoder_first_pipeline_num_layers", "first_stage_layers");
  from.take("decoder_last_pipeline_num_layers", "last_stage_layers");
  if (from.on("sequence_parallel") && from.whole("tensor_model_parallel_size").value_or(1) > 1) {
    from.want("sequence_parallel", "true", "sequence_parallel");
  }
  from.not_modelled("expert_tensor_parallel_size", "1");
  from.want("sharding", on_unless_off(from, "use_distributed_optimizer") ? "distributed-optimizer" : "ddp",
            "use_distributed_optimizer");
}

void read_megatron(TrainerReading& from) {
  from.want("loop", "megatron");
  from.take("micro_batch_size", "batch_size");
  from.job().global_batch = from.whole("global_batch_size").value_or(16);
  from.want("precision", "bf16-mixed");
  from.not_modelled("torch_dtype", "bfloat16");
  read_megatron_layout(from);
  read_megatron_optimizer(from);
  read_recomputation(from);
  read_tuner(from, "full");
  const std::string attention = from.word("attention_backend").value_or("flash");
  from.want("attention", attention == "unfused" || attention == "local" ? "eager" : "flash", "attention_backend");
  if (on_unless_off(from, "cross_entropy_loss_fusion")) from.want("loss", "fused-ce", "cross_entropy_loss_fusion");
  read_megatron_float8(from);
  want_megatron_options(from);
  for (const std::string_view path : {"fp4_format", "use_megatron_fsdp", "language_model_only"}) {
    from.not_modelled(path);
  }
  // It limits experts that many tokens choose; here all experts are chosen alike.
  from.know("moe_expert_capacity_factor");
  from.without_effect(kMegatronSwiftWithoutEffect);
}

bool sniff(const Setting& root) {
  const bool named = root.field("tuner_type") != nullptr || root.field("train_type") != nullptr;
  return root.field("model") != nullptr && (named || (is_megatron(root) && root.field("global_batch_size") != nullptr));
}

/// The settings with what `model_kwargs` puts into the environment, over what is there. Nothing: it is not there, or no
/// object. Source: ms-swift 4, arguments/base_args/base_args.py (_init_model_kwargs).
std::optional<Setting> with_model_kwargs(const Setting& root) {
  const Setting* const given = root.field("model_kwargs");
  if (given == nullptr) return std::nullopt;
  std::string text = given->word;  // of a shell, with its quotes
  if (text.size() > 2 && text.front() == '\'' && text.back() == '\'') text = text.substr(1, text.size() - 2);
  auto said = given->kind == Setting::Kind::text ? parse_json_settings(text) : core::Result<Setting>(*given);
  if (!said || said->kind != Setting::Kind::object) return std::nullopt;
  Setting made = root;
  std::erase_if(made.items, [](const Setting& item) { return item.key == "model_kwargs"; });
  for (Setting& variable : said->items) {
    std::string name = "env:";
    for (const char letter : variable.key) name += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    std::erase_if(made.items, [&](const Setting& item) { return item.key == name; });
    variable.key = std::move(name);
    made.items.push_back(std::move(variable));
  }
  return made;
}

void read(TrainerReading& from) {
  if (const auto made = with_model_kwargs(from.root())) return read_made(from, *made, &read);
  from.not_modelled("model_kwargs");
  from.job().model = from.word("model").value_or("");
  if (is_megatron(from.root())) read_megatron(from);
  else read_transformers(from);
  read_task(from);
  if (is_megatron(from.root())) want_megatron_form(from);
  read_lengths(from);
  read_speech(from);
  read_images(from);
  read_environment(from);
  from.without_effect(kSwiftWithoutEffect);
}

}  // namespace ms_swift_detail
}  // namespace

const TrainerFormat& ms_swift() {
  static constexpr TrainerFormat kFormat = {"ms-swift", "ms-swift's arguments", &ms_swift_detail::sniff,
                                            &ms_swift_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
