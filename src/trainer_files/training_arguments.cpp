#include "training_arguments.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "gpumem/posttrain/launch.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace training_arguments_detail {

constexpr std::string_view kWithoutEffect[] = {"answer_column",
                                               "assistant_only_loss",
                                               "attn_implementation",
                                               "audio_column_name",
                                               "base_learning_rate",
                                               "bnb_4bit_*",
                                               "cache_dir",
                                               "caption_column",
                                               "chars_to_ignore",
                                               "chat_template*",
                                               "checkpointing_steps",
                                               "completion_only_loss",
                                               "config_name",
                                               "context_column",
                                               "data_dir",
                                               "dataset*",
                                               "doc_stride",
                                               "eos_token",
                                               "eval_packing",
                                               "eval_split_name",
                                               "fim_*",
                                               "forced_bos_token",
                                               "freeze_feature_encoder",
                                               "generation_*",
                                               "ignore_mismatched_sizes",
                                               "image_column",
                                               "image_column_name",
                                               "label_column*",
                                               "language",
                                               "line_by_line",
                                               "lora_*",
                                               "low_cpu_mem_usage",
                                               "max_duration_in_seconds",
                                               "max_eval_samples",
                                               "max_prompt_length",
                                               "max_seconds*",
                                               "max_train_samples",
                                               "max_train_steps",
                                               "metric_name",
                                               "min_duration_in_seconds",
                                               "model_code_revision",
                                               "model_init_kwargs",
                                               "model_revision",
                                               "num_beams",
                                               "num_warmup_steps",
                                               "packing",
                                               "packing_strategy",
                                               "pad_to_max_length",
                                               "pad_token",
                                               "per_device_test_batch_size",
                                               "predict_with_generate",
                                               "preprocessing_num_workers",
                                               "project",
                                               "question_column",
                                               "remove_splits",
                                               "report*",
                                               "saving_steps",
                                               "shuffle_buffer_size",
                                               "shuffle_dataset",
                                               "shuffle_train_dataset",
                                               "source_lang",
                                               "source_prefix",
                                               "streaming",
                                               "target_lang",
                                               "target_language",
                                               "task",
                                               "task_name",
                                               "text_column*",
                                               "token",
                                               "tokenizer_name",
                                               "torch_dtype",
                                               "trackio*",
                                               "train_file",
                                               "train_language",
                                               "train_split_name",
                                               "train_val_split",
                                               "truncation_mode",
                                               "use_auth_token",
                                               "use_bnb_nested_quant",
                                               "use_fast_tokenizer",
                                               "use_rslora",
                                               "validation_*",
                                               "version_2_with_negative",
                                               "with_tracking"};

/// transformers' examples, by their names, and how long a sample is where the command does not say. Source:
/// huggingface/transformers @00d481d, examples/pytorch/*/run_*.py.
struct ExampleScript {
  std::string_view name;
  std::string_view length;
  bool blocks = false;        ///< texts are joined and cut, so that nothing is padded; else the length is the most
  bool of_tokenizer = false;  ///< the length is the tokenizer's, of which this is the usual one
};
constexpr ExampleScript kExampleScripts[] = {{"run_clm.py", "1024", true, true},
                                             {"run_clm_no_trainer.py", "1024", true, true},
                                             {"run_fim.py", "1024", true, true},
                                             {"run_fim_no_trainer.py", "1024", true, true},
                                             {"run_mlm.py", "512", true, true},
                                             {"run_mlm_no_trainer.py", "512", true, true},
                                             {"run_plm.py", "512", true},
                                             {"run_glue.py", "128"},
                                             {"run_glue_no_trainer.py", "128"},
                                             {"run_classification.py", "128"},
                                             {"run_xnli.py", "128"},
                                             {"run_qa.py", "384"},
                                             {"run_qa_no_trainer.py", "384"},
                                             {"run_qa_beam_search.py", "384"},
                                             {"run_qa_beam_search_no_trainer.py", "384"},
                                             {"run_seq2seq_qa.py", "384"},
                                             {"run_summarization.py", "1024"},
                                             {"run_summarization_no_trainer.py", "1024"},
                                             {"run_translation.py", "1024"},
                                             {"run_translation_no_trainer.py", "1024"}};

const ExampleScript* example_of(const Setting& root) {
  const Setting* const script = root.field(kScriptKey);
  if (script == nullptr) return nullptr;
  const auto* const found = std::ranges::find(kExampleScripts, script->word, &ExampleScript::name);
  return found == std::end(kExampleScripts) ? nullptr : found;
}

void read_example(TrainerReading& from) {
  from.know(kScriptKey);
  const ExampleScript* const script = example_of(from.root());
  if (script == nullptr) return;
  from.want("seq_length", std::string(script->length));
  if (script->blocks && !from.on("line_by_line")) from.want("padding", "false");
  const bool given = from.word("block_size") || from.word("max_seq_length");
  if (script->of_tokenizer && !given) {
    from.job().missing.emplace_back("its tokenizer's longest sequence, for which " + std::string(script->length) +
                                    " tokens are taken");
  }
}

/// trl's ModelConfig.
void read_model_config(TrainerReading& from) {
  if (const auto kernel = from.word("attn_implementation"); kernel && kernel->find('/') == std::string::npos) {
    from.check("attn_implementation", *kernel,
               "eager sdpa flash_attention_2 flash_attention_3 flash_attention_4 flex_attention");
  }
  from.take("attn_implementation", "attention");
  if (const auto attention = from.word("attn_implementation"); attention && attention->starts_with("flash_attention")) {
    from.want("attention", "flash", "attn_implementation");
  }
  if (from.on("use_peft")) {
    from.want("lora", from.word("lora_r").value_or("16"), "lora_r");
    want_lora_targets(from, "lora_target_modules");
    want_target_parameters(from, "lora_target_parameters");
    from.take("lora_dropout", "lora_dropout");
    want_saved_modules(from, "lora_modules_to_save");
    from.not_modelled("use_dora");
  }
  if (from.on("load_in_8bit")) from.want("quantize", "int8", "load_in_8bit");
  if (from.on("load_in_4bit")) {
    from.not_modelled("bnb_4bit_quant_type", "nf4");
    from.want("quantize", from.on("use_bnb_nested_quant") ? "nf4-double" : "nf4", "load_in_4bit");
  }
}

/// The head and the loss of 256 tokens at a time, under autocast. Adapters of a model in bfloat16 are float32 there.
/// Source: TRL 1.4 to 1.9, trainer/sft_config.py: loss_type (chunked_nll unless it is given since 1.7);
/// trainer/sft_trainer.py: _CHUNKED_LM_HEAD_CHUNK_SIZE.
void read_loss_of_trl(TrainerReading& from, bool casts_bf16) {
  const std::string type = from.word("loss_type").value_or("nll");
  if (type == "chunked_nll") from.want("loss", "checkpointed:256", "loss_type");
  else if (type != "nll") from.not_modelled("loss_type");
  if (type != "chunked_nll" || !casts_bf16 || !from.on("use_peft")) return;
  from.want("precision", "amp-bf16", "bf16");
  from.want("base_dtype", "bf16", "dtype");
}

/// Whether they are of TRL's SFT. Its releases that have `max_seq_length` checkpoint as the Trainer does.
bool is_of_trl(const Setting& root) {
  constexpr std::string_view kOwn[] = {
      "max_length",         "packing",  "padding_free",      "completion_only_loss", "assistant_only_loss",
      "dataset_text_field", "use_peft", "chat_template_path"};
  const auto says = [&](std::string_view key) { return root.field(key) != nullptr; };
  return example_of(root) == nullptr && !says("max_seq_length") && std::ranges::any_of(kOwn, says);
}

/// Scripts for image models spell some settings alike and are no Trainer's.
bool sniff(const Setting& root) {
  if (root.field("per_device_train_batch_size") != nullptr) return true;
  const bool images = root.field("pretrained_model_name_or_path") != nullptr || root.field("resolution") != nullptr;
  return !images && root.field("output_dir") != nullptr && root.field("learning_rate") != nullptr;
}

/// Which of TRL's trainers a file is for, unless it is the one of supervised samples.
void tell_post_training(TrainerReading& from) {
  std::vector<posttrain::LaunchSetting> keys;
  for (const Setting& field : from.root().items) keys.push_back({field.key, field.word});
  const posttrain::DecidingKey decides = posttrain::trainer_of_keys(keys);
  const std::string named = from.word("trainer").value_or("");
  const bool others = !named.empty() && named != "SFTTrainer" && named != "sft";
  if (others) from.job().post_training = "trainer " + named;
  else if (!decides.trainer.empty() && decides.trainer != "SFTTrainer") {
    from.job().post_training = decides.key + " (of TRL's " + std::string(decides.trainer) + ")";
  }
}

void read(TrainerReading& from) {
  tell_post_training(from);
  from.job().model = from.word("model_name_or_path").value_or("");
  read_training_arguments(from);
  read_model_config(from);
  read_example(from);
  for (const std::string_view path :
       {"max_seq_length", "max_length", "block_size", "max_source_length", "model_max_length"}) {
    from.take(path, "seq_length");
  }
  // Samples in one row have no mask.
  if (from.on("packing") || from.on("padding_free")) from.want("padding", "false", "packing");
  if (from.on("activation_offloading")) from.want("offload", "activations", "activation_offloading");
  if (from.on("gradient_checkpointing")) from.want("checkpointing", "full", "gradient_checkpointing");
  settle_checkpoints(from);
  // TRL 0.28 to 1.9, trainer/sft_trainer.py: __init__, with transformers before 5.0. Accelerate, read later, may shard.
  const WantedOption* const again = from.job().find("checkpointing");
  const bool open = again != nullptr && again->value == "full";
  if (open && is_of_trl(from.root())) from.want("checkpointing", "full+non-reentrant", "gradient_checkpointing");
  constexpr std::string_view kTypes =
      "bfloat16 float16 float32 auto torch.bfloat16 torch.float16 torch.float32 bf16 fp16 fp32";
  const std::string dtype = from.choice("torch_dtype", kTypes, from.choice("dtype", kTypes, ""));
  for (const std::string_view path : {"bf16", "fp16", "gradient_checkpointing", "use_peft", "load_in_4bit",
                                      "load_in_8bit", "packing", "padding_free"}) {
    from.choice(path, "true false yes no True False 1 0", "false");
  }
  // "auto" is the type of the checkpoint, which of models that train in bfloat16 is bfloat16.
  const bool bf16_weights = dtype == "bfloat16" || dtype == "bf16" || dtype == "torch.bfloat16" ||
                            (from.is_auto("torch_dtype") && from.on("bf16"));
  // Accelerate's launcher may say it too.
  const std::string mixed = from.word("mixed_precision").value_or("");
  const bool fp16 = from.on("fp16") || mixed == "fp16";
  const bool bf16 = from.on("bf16") || mixed == "bf16";
  want_precision(from, bf16_weights, bf16, fp16, fp16 ? "fp16" : "bf16");
  read_loss_of_trl(from, bf16_weights && bf16);
  from.without_effect(kWithoutEffect);
}

}  // namespace training_arguments_detail
}  // namespace

bool is_example_script(const Setting& root) { return training_arguments_detail::example_of(root) != nullptr; }

const TrainerFormat& training_arguments() {
  static constexpr TrainerFormat kFormat = {"hf-training-arguments", "HuggingFace's TrainingArguments as JSON",
                                            &training_arguments_detail::sniff, &training_arguments_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
