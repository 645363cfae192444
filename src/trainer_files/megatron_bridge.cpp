#include "megatron_bridge.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "command_words.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "megatron_bridge_keys.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace megatron_bridge_detail {

using megatron_bridge_keys::kModelKey;
using megatron_bridge_keys::kOptions;
using megatron_bridge_keys::kQuiet;
using megatron_bridge_keys::kQuietFields;
using megatron_bridge_keys::kQuietOfModel;
using megatron_bridge_keys::kQuietOptions;
using megatron_bridge_keys::kRecipes;
using megatron_bridge_keys::kRenamed;
using megatron_bridge_keys::kTextOnlyKey;
using megatron_bridge_keys::RecipeRow;

/// Whether the list has this name. An entry that ends in '*' means all names that begin so.
bool lists(std::span<const std::string_view> names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view one) {
    return one.ends_with('*') ? name.starts_with(one.substr(0, one.size() - 1)) : name == one;
  });
}

template <std::size_t kCount>
std::string_view renamed(const std::pair<std::string_view, std::string_view> (&names)[kCount], std::string_view name) {
  for (const auto& [one, other] : names) {
    if (one == name) return other;
  }
  return {};
}

/// As the table has it: an alias too, and the sizes of a model.
const RecipeRow* row_named(std::string_view name) {
  const auto* const row =
      std::find_if(std::begin(kRecipes), std::end(kRecipes), [&](const RecipeRow& one) { return one.name == name; });
  return row == std::end(kRecipes) ? nullptr : row;
}

const RecipeRow* recipe_named(std::string_view name) {
  const RecipeRow* const row = name.find('/') == std::string_view::npos ? row_named(name) : nullptr;
  return row != nullptr && row->words.empty() ? row_named(row->model) : row;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// A word without its quotes; types as Megatron-LM's arguments have them.
std::string plain(std::string_view word) {
  if (word.size() > 1 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front()) {
    word = word.substr(1, word.size() - 2);
  }
  if (word.starts_with("torch.")) word.remove_prefix(std::string_view("torch.").size());
  if (word == "bfloat16") return "bf16";
  if (word == "float16" || word == "half") return "fp16";
  return word == "float32" || word == "float" ? "fp32" : std::string(word);
}

/// "[a,b]" is a list.
Setting value_of(std::string_view word) {
  if (!word.starts_with('[') || !word.ends_with(']')) return setting_of_word({}, plain(word));
  Setting list{Setting::Kind::list, {}, {}, {}, 0};
  each_name(word.substr(1, word.size() - 2), [&](std::string_view item) {
    while (item.starts_with(' ')) item.remove_prefix(1);
    list.items.push_back(setting_of_word({}, plain(item)));
  });
  return list;
}

/// The number before "gpu_" in a recipe's name.
std::int64_t gpus_of(std::string_view recipe) {
  const std::size_t end = recipe.find("gpu_");
  if (end == std::string_view::npos) return 0;
  const std::size_t begin = recipe.rfind('_', end) + 1;
  return core::parse_whole(recipe.substr(begin, end - begin)).value_or(0);
}

class BridgeReader {
 public:
  explicit BridgeReader(std::span<const std::string> words) : words_(words) {}

  core::Result<BridgeCommand> read() {
    made_.settings.kind = Setting::Kind::object;
    Setting given{Setting::Kind::object, {}, {}, {}, 0};
    take(words_, given);
    const auto row = find_recipe();
    if (!row) return row.error();
    if (const RecipeRow* const sizes = row_named((*row)->model); sizes != nullptr) {
      take(words_of(sizes->words), made_.settings);
    }
    take(words_of((*row)->words), made_.settings);
    if (!(*row)->model.empty()) put_setting(made_.settings, kModelKey, setting_of_word({}, (*row)->model));
    lay_over(made_.settings, given);
    count_gpus((*row)->name);
    settle((*row)->name);
    return std::move(made_);
  }

 private:
  // --- Words --------------------------------------------------------------------------------------------------------

  void take(std::span<const std::string> words, Setting& root) {
    for (const auto& [key, values] : posttrain::read_program(without_slurms(words)).settings) {
      const std::string path(key.starts_with('~') ? key.substr(1) : key);
      const std::string_view option = renamed(kOptions, path);
      take_one(option.empty() ? path : std::string(option), values.empty() ? "true" : values.front(), root);
    }
  }

  /// What goes to Slurm or into the container looks like an override: "--additional-slurm-params segment=2".
  static std::vector<std::string> without_slurms(std::span<const std::string> words) {
    constexpr std::string_view kWithPairs[] = {"--additional-slurm-params", "--additional_slurm_params", "--srun-arg",
                                               "--custom_env_vars", "-ce"};
    std::vector<std::string> left;
    for (std::size_t at = 0; at < words.size(); ++at) {
      if (is_among(kWithPairs, words[at])) ++at;
      else left.push_back(words[at]);
    }
    return left;
  }

  void take_one(const std::string& path, const std::string& word, Setting& root) {
    if (path == "mixed_precision") return take_precision(word, root);
    const std::size_t dot = path.find('.');
    const std::string_view renamed_to = renamed(kRenamed, path);
    if (!renamed_to.empty()) return put_setting(root, renamed_to, value_of(word));
    if (dot == std::string::npos) return take_option(path, word, root);
    const std::string_view section = std::string_view(path).substr(0, dot);
    const std::string_view field = std::string_view(path).substr(dot + 1);
    if (section == "model") {
      if (!lists(kQuietOfModel, field)) put_setting(root, field, value_of(word));
    } else if (!is_among(kQuiet, section) && !lists(kQuietFields, path)) {
      made_.unknown.push_back(path);
    }
  }

  /// What chooses the recipe, and the number of GPUs; what is none of these has a name that nobody knows.
  void take_option(const std::string& name, const std::string& word, Setting& root) {
    constexpr std::string_view kChoosing[] = {
        "recipe",        "model",          "mode",  "task",          "model_recipe_name", "gpu",
        "compute_dtype", "config_variant", "nodes", "gpus_per_node", "num_gpus"};
    if (is_among(kChoosing, name)) put_setting(chosen_, name, setting_of_word({}, word));
    else if (name == "deterministic") put_setting(root, "deterministic_mode", setting_of_word({}, "true"));
    else if (!lists(kQuietOptions, name)) put_setting(root, name, value_of(word));
  }

  /// A MixedPrecisionConfig by its name. Source: training/mixed_precision.py.
  void take_precision(const std::string& name, Setting& root) const {
    std::string plain_name = name;
    std::replace(plain_name.begin(), plain_name.end(), '-', '_');
    const auto has = [&](std::string_view part) { return plain_name.find(part) != std::string::npos; };
    const auto put = [&](std::string_view key, std::string_view word) {
      put_setting(root, key, setting_of_word({}, word));
    };
    const bool half = plain_name.starts_with("fp16");
    put("fp16", half ? "true" : "false");
    put("bf16", half ? "false" : "true");
    put("grad_reduce_in_fp32", half ? "false" : "true");
    if (has("fp8")) put("fp8_format", has("mxfp8") ? "e4m3" : "hybrid");
    if (has("mxfp8")) put("fp8_recipe", "mxfp8");
    else if (has("delayed")) put("fp8_recipe", "delayed");
    else if (has("subchannel") || has("nanov2")) put("fp8_recipe", "blockwise");
    else put("fp8_recipe", "tensorwise");
    put("fp8_param_gather", has("fp8") && !has("subchannel") ? "true" : "false");
    put("first_last_layers_bf16", has("current_scaling") ? "true" : "false");
    if (has("nvfp4")) put("fp4_format", "e2m1");
  }

  // --- The recipe ---------------------------------------------------------------------------------------------------

  [[nodiscard]] std::string chosen(std::string_view name, std::string_view usual = {}) const {
    const Setting* const found = chosen_.field(name);
    return found == nullptr ? std::string(usual) : found->word;
  }

  [[nodiscard]] core::Result<const RecipeRow*> find_recipe() const {
    const std::string family = chosen("model_recipe_name");
    std::string name = chosen("recipe");
    if (name.empty() && !family.empty()) name = of_performance(family);
    if (name.empty() && !chosen("model").empty()) {
      const std::string mode = chosen("mode", "pretrain");
      name = chosen("model") + "_" + (mode == "lora" || mode == "dora" ? "peft" : mode) + "_config";
    }
    if (name.empty()) {
      return core::Error{
          core::ErrorCode::missing_information, "the command names no recipe of Megatron-Bridge (`--recipe`)", {}};
    }
    if (const RecipeRow* const row = recipe_named(name); row != nullptr) return row;
    std::vector<std::string_view> names;
    for (const RecipeRow& one : kRecipes) names.push_back(one.name);
    std::string meant = core::did_you_mean(name, names);
    if (meant.empty()) meant = core::did_you_mean(name + "_config", names);
    return core::Error{
        core::ErrorCode::invalid_argument,
        "the recipe " + core::quoted(core::shortened(name, 80)) + " of Megatron-Bridge is not known" + meant,
        {}};
  }

  /// The exact number of GPUs, or else whatever number there is. Source: scripts/performance/utils/utils.py:
  /// _recipe_function_name, _first_matching_perf_recipe_name.
  [[nodiscard]] std::string of_performance(const std::string& family) const {
    std::string precision = core::lower_case(chosen("compute_dtype", "bf16"));
    std::erase(precision, '_');
    const std::string variant = chosen("config_variant");
    const bool plain_variant = variant.empty() || variant == "v1" || variant == "v2";
    const std::string before = family + "_" + chosen("task", "pretrain") + "_";
    const std::string behind = "gpu_" + core::lower_case(chosen("gpu")) + "_" + precision +
                               (plain_variant ? std::string() : "_" + core::lower_case(variant)) + "_config";
    std::string exact = before + chosen("num_gpus") + behind;
    if (recipe_named(exact) != nullptr) return exact;
    const auto matches = [&](const RecipeRow& row) {
      if (!row.name.starts_with(before) || !row.name.ends_with(behind)) return false;
      std::string_view number = row.name.substr(before.size());
      number.remove_suffix(std::min(behind.size(), number.size()));
      return core::parse_whole(number).has_value();
    };
    const auto* const found = std::find_if(std::begin(kRecipes), std::end(kRecipes), matches);
    return found == std::end(kRecipes) ? exact : std::string(found->name);
  }

  void count_gpus(std::string_view recipe) {
    const auto number = [&](std::string_view name) { return core::parse_whole(chosen(name)).value_or(0); };
    made_.gpus = number("num_gpus");
    made_.gpus_from = "num_gpus";
    if (made_.gpus == 0) {
      made_.gpus = core::bounded_product({number("gpus_per_node"), std::max<std::int64_t>(number("nodes"), 1)});
      made_.gpus_from = "nodes, gpus_per_node";
    }
    if (made_.gpus > 0) return;
    made_.gpus = gpus_of(recipe);
    made_.gpus_from = "the recipe's name";
  }

  // --- What Megatron-Bridge does with them --------------------------------------------------------------------------

  void put(std::string_view key, std::string_view word) { put_setting(made_.settings, key, setting_of_word({}, word)); }
  [[nodiscard]] std::string_view said(std::string_view key) const {
    const Setting* const found = made_.settings.field(key);
    return found == nullptr ? std::string_view() : std::string_view(found->word);
  }
  [[nodiscard]] bool says(std::string_view key) const { return made_.settings.field(key) != nullptr; }

  void settle(std::string_view recipe) {
    if (said("fp16") != "true") put("bf16", "true");
    if (!says("use_distributed_optimizer")) put("use_distributed_optimizer", "true");
    if (said("grad_reduce_in_fp32") == "false" && said("bf16") == "true") put("grad_reduce_in_bf16", "true");
    // The providers' default (models/gpt_provider.py).
    if (!says("cross_entropy_loss_fusion")) put("cross_entropy_loss_fusion", "true");
    if (says("offload_modules")) put("fine_grained_activation_offloading", "true");
    const std::string mode = chosen("mode");
    if (mode == "dora") put("peft.scheme", "dora");
    std::erase_if(made_.settings.items, [](const Setting& item) { return item.key == "grad_reduce_in_fp32"; });
    if (says("hybrid_layer_pattern")) settle_hybrid();
    else settle_named(recipe);
  }

  /// Source: models/hybrid/hybrid_provider.py; recipes/nemotronh: activation_func is squared_relu in all of them.
  /// Tokenizers of NVIDIA's hybrids have 131,072 words.
  void settle_hybrid() {
    constexpr std::pair<std::string_view, std::string_view> kUsual[] = {
        {"is_hybrid_model", "true"},         {"normalization", "RMSNorm"},
        {"add_bias_linear", "false"},        {"squared_relu", "true"},
        {"position_embedding_type", "none"}, {"untie_embeddings_and_output_weights", "true"},
        {"hidden_dropout", "0.0"},           {"attention_dropout", "0.0"},
        {"group_query_attention", "true"},   {"moe_grouped_gemm", "true"},
        {"moe_router_dtype", "fp32"},        {"vocab_size", "131072"}};
    for (const auto& [key, word] : kUsual) {
      if (!says(key)) put(key, word);
    }
    const std::int64_t further = core::parse_whole(said("mtp_num_layers")).value_or(0);
    std::string pattern(said("hybrid_layer_pattern"));
    const std::string each(said("mtp_hybrid_override_pattern"));
    constexpr std::int64_t kMost = 64;
    for (std::int64_t at = 0; at < std::min(further, kMost) && !each.empty(); ++at) pattern += "/" + each;
    put("hybrid_layer_pattern", pattern);
    drop("mtp_hybrid_override_pattern");
    if (further == 0) drop("mtp_num_layers");
    drop(kModelKey);
  }

  void drop(std::string_view key) {
    std::erase_if(made_.settings.items, [&](const Setting& item) { return item.key == key; });
  }

  /// Megatron's form of a published model, where it is known and reads no images.
  void settle_named(std::string_view recipe) {
    const auto published = summary::published_model(said(kModelKey));
    if (!published) return;
    const bool sees = published->config.find("vision_config") != std::string::npos;
    constexpr std::string_view kSeeing[] = {"_vl_", "gemma4_vl", "glm_45v", "omni_", "ministral3", "step37"};
    const bool shown = std::any_of(std::begin(kSeeing), std::end(kSeeing),
                                   [&](std::string_view part) { return recipe.find(part) != std::string_view::npos; });
    if (sees && !shown) put(kTextOnlyKey, "true");
    if (sees) return;
    const auto arguments = posttrain::megatron_arguments_of(published->config);
    if (!arguments) return;
    auto converted = parse_json_settings(*arguments);
    if (!converted) return;
    lay_over(*converted, made_.settings);
    made_.settings = *std::move(converted);
    if (said("mtp_num_layers") == "0") drop("mtp_num_layers");
    drop(kModelKey);
  }

  std::span<const std::string> words_;
  Setting chosen_{Setting::Kind::object, {}, {}, {}, 0};
  BridgeCommand made_;
};

/// The names that transformers has for Megatron's layers.
std::string named_as_transformers(std::string_view targets) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {{"linear_qkv", "q_proj+k_proj+v_proj"},
                                                                      {"linear_proj", "o_proj"},
                                                                      {"linear_fc1", "gate_proj+up_proj"},
                                                                      {"linear_fc2", "down_proj"}};
  std::string names;
  while (!targets.empty()) {
    const std::size_t end = std::min(targets.find('+'), targets.size());
    const std::string_view target = targets.substr(0, end);
    const std::string_view other = renamed(kNames, target);
    names.append(names.empty() ? "" : "+").append(other.empty() ? target : other);
    targets.remove_prefix(std::min(end + 1, targets.size()));
  }
  return names;
}

/// Source: peft/lora.py: dim is 32, and the targets are these four, unless the recipe says otherwise.
void read_adapters(TrainerReading& from, bool named) {
  const std::string scheme = from.word("peft.scheme").value_or("");
  const std::string rank = from.word("peft.dim").value_or("32");
  const std::string targets = from.word("peft.target_modules").value_or("linear_qkv+linear_proj+linear_fc1+linear_fc2");
  if (scheme.empty() || scheme == "none") return;
  from.want("lora", rank, "peft.dim");
  from.want("lora_targets", named ? named_as_transformers(targets) : targets, "peft.target_modules");
  if (scheme == "dora") from.want("peft", "dora", "peft.scheme");
  else if (scheme != "lora") from.job().unlike = "peft " + scheme;
}

void read_frozen_parts(TrainerReading& from) {
  const bool towers = from.on("freeze_vision_model");
  std::string names = posttrain::part_names({towers, from.on("freeze_vision_projection")}, "", ",");
  if (from.on("freeze_language_model")) {
    for (const std::string_view name : {"model.language_model", "lm_head", "language_model"}) {
      names.append(names.empty() ? "" : ",").append(name);
    }
  }
  from.job().frozen_parts = std::move(names);
}

/// Of mock images the size is known; others are as the data has them.
void read_images(TrainerReading& from, bool text_alone) {
  const Setting* const size = from.at("image_size");
  if (size != nullptr && size->items.size() == 2) {
    from.want("image", size->items[0].word + "x" + size->items[1].word, "image_size");
    from.want("images", from.word("num_images").value_or("1"), "num_images");
    return;
  }
  const auto published = summary::published_model(from.job().model);
  const bool sees = published && published->config.find("vision_config") != std::string::npos;
  if (text_alone) from.job().not_modelled.emplace_back("the model without the towers of its config");
  else if (sees) from.job().missing.emplace_back("the size and number of its images");
}

}  // namespace megatron_bridge_detail
}  // namespace

bool is_bridge_command(std::string_view program, std::span<const std::string> words) {
  constexpr std::string_view kPrograms[] = {"run_recipe.py", "train.sh", "setup_experiment.py"};
  if (!is_among(kPrograms, base_name(program))) return false;
  constexpr std::string_view kChoosing[] = {"--recipe", "--model", "-mr", "--model_recipe_name"};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return is_among(kChoosing, word.substr(0, word.find('='))); });
}

core::Result<BridgeCommand> read_bridge_command(std::span<const std::string> words) {
  return megatron_bridge_detail::BridgeReader(words).read();
}

std::string bridge_model(const Setting& root) {
  const Setting* const model = root.field(megatron_bridge_detail::kModelKey);
  return model == nullptr ? std::string() : model->word;
}

void read_bridge_parts(TrainerReading& from) {
  namespace detail = megatron_bridge_detail;
  const std::string model = bridge_model(from.root());
  from.know(detail::kModelKey);
  detail::read_adapters(from, !model.empty());
  detail::read_frozen_parts(from);
  from.job().shorter = from.word("pad_to_max_length").value_or("true") == "false";
  const bool text_alone = from.on(detail::kTextOnlyKey);
  for (const std::string_view path : {"cpu_offloading", "moe_paged_stash", "offload_optimizer_states"}) {
    from.not_modelled(path);
  }
  if (model.empty()) return;
  from.job().model = model;
  detail::read_images(from, text_alone);
  want_megatron_options(from);
  from.not_modelled("offload_modules");  // which transformers' form of a model does not have
  // The sizes are those of its config, whatever an override says.
  for (const std::string_view path :
       {"num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
        "num_experts", "moe_ffn_hidden_size", "moe_router_topk", "moe_shared_expert_intermediate_size"}) {
    from.not_modelled(path);
  }
  from.not_modelled("expert_tensor_parallel_size", "1");
  from.take("decoder_first_pipeline_num_layers", "first_stage_layers");
  from.take("decoder_last_pipeline_num_layers", "last_stage_layers");
  from.take("pipeline_model_parallel_layout", "pipeline_layers");
  for (const std::string_view end : {"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"}) {
    from.not_modelled(end);
  }
}

}  // namespace gpumem::trainer_files
