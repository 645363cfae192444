#include "image_trainers.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"

namespace gpumem::trainer_files {

namespace {
namespace image_trainers_detail {

/// How libraries call weights in fewer bits, and the option's word. Quanto's layers and float8 weights under autocast
/// are made whole for each product, as torchao's are.
struct QuantizedName {
  std::string_view name;
  std::string_view quantize;
  bool alike = true;  ///< the option is of this library
};
/// Keys of files of data sets that say nothing of the samples' size, and those that do. Source: sd-scripts 2026-02,
/// library/config_util.py; musubi-tuner 2026-06, dataset/config_utils.py; diffusion-pipe 2026-08, utils/dataset.py;
/// finetrainers 2025-06, trainer/sft_trainer/trainer.py.
constexpr std::string_view kDatasetKeys[] = {"resolution",
                                             "resolutions",
                                             "target_frames",
                                             "max_frames",
                                             "frame_buckets",
                                             "batch_size",
                                             "video_resolution_buckets",
                                             "image_resolution_buckets",
                                             "size_buckets",
                                             "general",
                                             "datasets",
                                             "directory",
                                             "subsets",
                                             "val_datasets",
                                             "keep_tokens",
                                             "keep_tokens_separator",
                                             "secondary_separator",
                                             "enable_wildcard",
                                             "color_aug",
                                             "flip_aug",
                                             "face_crop_aug_range",
                                             "random_crop",
                                             "caption_dropout_every_n_epochs",
                                             "caption_dropout_rate",
                                             "caption_extension",
                                             "caption_extention",
                                             "caption_prefix",
                                             "caption_separator",
                                             "caption_suffix",
                                             "caption_tag_dropout_rate",
                                             "caption_column",
                                             "token_warmup_min",
                                             "token_warmup_step",
                                             "custom_attributes",
                                             "validation_seed",
                                             "validation_split",
                                             "resize_interpolation",
                                             "is_reg",
                                             "class_tokens",
                                             "cache_info",
                                             "cache_directory",
                                             "cache_shuffle_num",
                                             "cache_shuffle_delimiter",
                                             "alpha_mask",
                                             "metadata_file",
                                             "conditioning_data_dir",
                                             "network_multiplier",
                                             "debug_dataset",
                                             "enable_bucket",
                                             "min_bucket_reso",
                                             "max_bucket_reso",
                                             "bucket_no_upscale",
                                             "bucket_reso_steps",
                                             "prior_loss_weight",
                                             "num_repeats",
                                             "image_dir",
                                             "shuffle_caption",
                                             "max_token_length",
                                             "skip_image_resolution",
                                             "architecture",
                                             "control_directory",
                                             "control_resolution",
                                             "control_path",
                                             "flux_kontext_no_resize_control",
                                             "fp_latent_window_size",
                                             "fp_1f_clean_indices",
                                             "fp_1f_target_index",
                                             "fp_1f_no_post",
                                             "frame_extraction",
                                             "frame_sample",
                                             "frame_stride",
                                             "image_directory",
                                             "image_jsonl_file",
                                             "multiple_target",
                                             "no_resize_control",
                                             "num_timestep_buckets",
                                             "qwen_image_edit_control_resolution",
                                             "qwen_image_edit_no_resize_control",
                                             "shared_epoch",
                                             "source_fps",
                                             "video_directory",
                                             "video_jsonl_file",
                                             "ar_buckets",
                                             "enable_ar_bucket",
                                             "min_ar",
                                             "max_ar",
                                             "num_ar_buckets",
                                             "path",
                                             "mask_path",
                                             "default_mask_file",
                                             "online_captions",
                                             "shuffle_metadata",
                                             "shuffle_tags",
                                             "skip_empty_caption",
                                             "subsample_ratio",
                                             "name",
                                             "data_root",
                                             "dataset_file",
                                             "dataset_type",
                                             "id_token",
                                             "reshape_mode",
                                             "remove_common_llm_caption_prefixes",
                                             "video_column",
                                             "image_column"};

constexpr std::string_view kOptimizerArguments[] = {"lr",
                                                    "betas",
                                                    "eps",
                                                    "weight_decay",
                                                    "momentum",
                                                    "dampening",
                                                    "nesterov",
                                                    "maximize",
                                                    "foreach",
                                                    "fused",
                                                    "capturable",
                                                    "differentiable",
                                                    "amsgrad",
                                                    "lr_decay",
                                                    "initial_accumulator_value",
                                                    "centered",
                                                    "alpha",
                                                    "rho",
                                                    "beta1",
                                                    "beta2",
                                                    "beta3",
                                                    "beta1_warmup",
                                                    "beta2_normuon",
                                                    "beta3_ema",
                                                    "eps2",
                                                    "clip_threshold",
                                                    "decay_rate",
                                                    "relative_step",
                                                    "scale_parameter",
                                                    "warmup_init",
                                                    "warmup_steps",
                                                    "d0",
                                                    "d_coef",
                                                    "growth_rate",
                                                    "decouple",
                                                    "use_bias_correction",
                                                    "safeguard_warmup",
                                                    "bias_correction",
                                                    "adam_w_mode",
                                                    "no_prox",
                                                    "slice_p",
                                                    "fsdp_in_use",
                                                    "percentile_clipping",
                                                    "block_wise",
                                                    "min_8bit_size",
                                                    "max_unorm",
                                                    "optim_bits",
                                                    "is_paged",
                                                    "quant_block_size",
                                                    "r",
                                                    "weight_lr_power",
                                                    "log_every",
                                                    "stochastic_rounding",
                                                    "stabilize",
                                                    "kahan_sum",
                                                    "decouple_lr",
                                                    "beta2_half_life",
                                                    "gradient_release",
                                                    "rectify",
                                                    "xi",
                                                    "n_sma_threshold",
                                                    "cautious",
                                                    "use_AdEMAMix",
                                                    "use_adopt",
                                                    "use_atan2",
                                                    "use_cautious",
                                                    "use_grams",
                                                    "use_orthograd",
                                                    "use_schedulefree",
                                                    "use_speed",
                                                    "use_stableadamw",
                                                    "use_triton",
                                                    "prodigy_steps",
                                                    "split_groups",
                                                    "split_groups_mean",
                                                    "factored",
                                                    "factored_fp32",
                                                    "ns_steps",
                                                    "nnmf_factor",
                                                    "orthogonal_gradient",
                                                    "muon_adam_config",
                                                    "muon_adam_lr",
                                                    "muon_adam_regex",
                                                    "muon_hidden_layers",
                                                    "muon_te1_adam_lr",
                                                    "muon_te2_adam_lr",
                                                    "MuonWithAuxAdam",
                                                    "Simplified_AdEMAMix",
                                                    "alpha_grad",
                                                    "cautious_wd",
                                                    "initial_accumulator",
                                                    "fused_back_pass",
                                                    "rms_rescaling",
                                                    "normuon_variant",
                                                    "low_rank_ortho",
                                                    "ortho_rank",
                                                    "accelerated_ns",
                                                    "approx_mars",
                                                    "auto_kappa_p",
                                                    "compile",
                                                    "d_limiter",
                                                    "kourkoutas_beta",
                                                    "min_beta1",
                                                    "schedulefree_c",
                                                    "k",
                                                    "degenerated_to_sgd",
                                                    "fixed_decay",
                                                    "decoupled_decay",
                                                    "weight_decouple",
                                                    "weight_decay_by_lr",
                                                    "ams_bound",
                                                    "adanorm",
                                                    "adam_debias",
                                                    "triton",
                                                    "truncate_quantization",
                                                    "min_lr",
                                                    "max_lr",
                                                    "lr_bump"};

/// Keys that no program has for a data set, also in the tables below.
void note_dataset_keys(const Setting& table, std::vector<std::string>& unknown) {
  for (const Setting& field : table.items) {
    const bool keyed = table.kind == Setting::Kind::object;
    const bool known = !keyed || is_listed(kDatasetKeys, field.key);
    if (!known) unknown.push_back(field.key + " of the data set" + core::did_you_mean(field.key, kDatasetKeys));
    const bool holds = field.kind == Setting::Kind::object || field.kind == Setting::Kind::list;
    if (known && holds && field.key != "custom_attributes" && !field.key.starts_with("caption_")) {
      note_dataset_keys(field, unknown);
    }
  }
}

constexpr std::array<QuantizedName, 16> kQuantized = {{{"int8-sdnq", "int8-sdnq"},
                                                       {"fp8-torchao", "fp8-torchao"},
                                                       {"fp8wo-torchao", "fp8wo-torchao"},
                                                       {"int8-quanto", "fp8wo-torchao", false},
                                                       {"fp8-quanto", "fp8wo-torchao", false},
                                                       {"int8-torchao", "fp8wo-torchao", false},
                                                       {"qfloat8", "fp8wo-torchao", false},
                                                       {"qint8", "fp8wo-torchao", false},
                                                       {"float8", "fp8wo-torchao", false},
                                                       {"float8_e4m3fn", "fp8wo-torchao", false},
                                                       {"fp8", "fp8wo-torchao", false},
                                                       {"nf4-bnb", "nf4"},
                                                       {"int4-quanto", "nf4", false},
                                                       {"qint4", "nf4", false},
                                                       {"uint4", "nf4", false},
                                                       {"nf4", "nf4"}}};

std::optional<std::int64_t> side_of(std::string_view word) {
  constexpr std::int64_t kMost = 1 << 16;
  while (word.starts_with(' ') || word.starts_with('(')) word.remove_prefix(1);
  while (word.ends_with(' ') || word.ends_with(')')) word.remove_suffix(1);
  const auto side = core::parse_whole(word);
  return side && *side > 0 && *side <= kMost ? side : std::nullopt;
}

struct Size {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// "1024", "1024,768", "960x544".
std::optional<Size> size_of(std::string_view word) {
  const std::size_t comma = word.find_first_of(",x");
  const auto first = side_of(word.substr(0, comma));
  if (!first) return std::nullopt;
  if (comma == std::string_view::npos) return Size{*first, *first};
  const auto second = side_of(word.substr(comma + 1));
  return second ? std::optional(Size{*first, *second}) : std::nullopt;
}

void keep_larger(std::optional<Size>& kept, std::optional<Size> other) {
  if (!other) return;
  if (!kept || other->width * other->height > kept->width * kept->height) kept = other;
}

/// A size, a list of sides, or a list of [width, height]. `pairs`: two numbers in a list are one size.
std::optional<Size> largest_size(const Setting& setting, bool pairs) {
  if (setting.kind != Setting::Kind::list) return size_of(setting.word);
  const auto& items = setting.items;
  if (pairs && items.size() == 2 && items[0].kind != Setting::Kind::list) {
    const auto width = side_of(items[0].word);
    const auto height = side_of(items[1].word);
    return width && height ? std::optional(Size{*width, *height}) : std::nullopt;
  }
  std::optional<Size> largest;
  for (const Setting& item : items) keep_larger(largest, largest_size(item, true));
  return largest;
}

std::string worded(const Size& size) { return std::to_string(size.width) + "x" + std::to_string(size.height); }

/// The largest of a number or a list of numbers.
std::optional<std::int64_t> largest_number(const Setting& setting) {
  if (setting.kind != Setting::Kind::list) return core::parse_whole(setting.word);
  std::optional<std::int64_t> largest;
  for (const Setting& item : setting.items) {
    const auto number = core::parse_whole(item.word);
    if (number && number > largest) largest = number;
  }
  return largest;
}

/// What one table of a data set says.
struct Samples {
  std::optional<Size> size;
  std::optional<std::int64_t> frames;
  std::optional<std::int64_t> batch;

  /// What the table leaves to the one around it.
  void inherit(const Samples& outer) {
    if (!size) size = outer.size;
    if (!frames) frames = outer.frames;
    if (!batch) batch = outer.batch;
  }

  /// Pixels of a batch: a double, since a file may say any number.
  [[nodiscard]] double pixels() const {
    const double area = size ? static_cast<double>(size->width) * static_cast<double>(size->height) : 1.0;
    return area * static_cast<double>(frames.value_or(1)) * static_cast<double>(batch.value_or(1));
  }

  void take(const Setting& table) {
    for (const char* key : {"resolution", "resolutions"}) {
      if (const Setting* const found = table.field(key); found != nullptr) {
        keep_larger(size, largest_size(*found, key == std::string_view("resolution")));
      }
    }
    for (const char* key : {"target_frames", "max_frames", "frame_buckets"}) {
      if (const Setting* const found = table.field(key); found != nullptr) {
        const auto number = largest_number(*found);
        if (number && number > frames) frames = number;
      }
    }
    if (const Setting* const found = table.field("batch_size"); found != nullptr) batch = largest_number(*found);
    take_buckets(table);
  }

  /// finetrainers' [frames, height, width], or [height, width]; diffusion-pipe's [width, height, frames].
  void take_buckets(const Setting& table) {
    const auto each = [&](const char* key, std::size_t width, std::size_t height, std::size_t frame) {
      const Setting* const buckets = table.field(key);
      if (buckets == nullptr || buckets->kind != Setting::Kind::list) return;
      for (const Setting& bucket : buckets->items) {
        const auto part = [&](std::size_t at) {
          return at < bucket.items.size() ? side_of(bucket.items[at].word) : std::nullopt;
        };
        if (!part(width) || !part(height)) continue;
        keep_larger(size, Size{*part(width), *part(height)});
        if (part(frame) && part(frame) > frames) frames = part(frame);
      }
    };
    constexpr std::size_t kNone = 3;
    each("video_resolution_buckets", 2, 1, 0);
    each("image_resolution_buckets", 1, 0, kNone);
    each("size_buckets", 0, 1, 2);
  }
};

Samples samples_of(const Setting& table, const Samples& outer) {
  Samples samples;
  samples.take(table);
  for (const Setting& field : table.items) {
    if (field.kind == Setting::Kind::object) samples.take(field);
  }
  samples.inherit(outer);
  return samples;
}

/// Of the data sets the one with the largest batches. Each has what the tables around it say, unless it says otherwise.
Samples largest_samples(const Setting& root) {
  Samples usual;
  if (const Setting* const general = root.field("general"); general != nullptr) usual.take(*general);
  Samples outer;
  outer.take(root);
  usual.inherit(outer);
  std::optional<Samples> largest;
  for (const char* key : {"datasets", "directory"}) {
    const Setting* const found = root.field(key);
    if (found == nullptr || found->kind != Setting::Kind::list) continue;
    for (const Setting& item : found->items) {
      const Samples one = samples_of(item, usual);
      if (!largest || one.pixels() > largest->pixels()) largest = one;
    }
  }
  return largest.value_or(usual);
}

void want_open(TrainerJob& job, std::string_view option, std::string value, std::string_view from) {
  if (job.find(option) == nullptr) job.options.push_back({std::string(option), std::move(value), std::string(from), 0});
}

}  // namespace image_trainers_detail
}  // namespace

void take_image_dataset(const Setting& root, TrainerJob& job) {
  namespace detail = image_trainers_detail;
  const detail::Samples samples = detail::largest_samples(root);
  detail::note_dataset_keys(root, job.unknown);
  if (samples.size) detail::want_open(job, "image", detail::worded(*samples.size), "resolution of the data set");
  if (samples.frames && *samples.frames > 1) {
    detail::want_open(job, "frames", std::to_string(*samples.frames), "frames of the data set");
  }
  if (samples.batch) {
    std::erase_if(job.options, [](const WantedOption& one) { return one.option == "batch_size" && one.from.empty(); });
    detail::want_open(job, "batch_size", std::to_string(*samples.batch), "batch_size of the data set");
  }
}

std::span<const std::string_view> optimizer_arguments() { return image_trainers_detail::kOptimizerArguments; }

std::string short_type(std::string_view type) {
  if (type == "fp16" || type == "float16" || type == "half") return "fp16";
  return type == "bf16" || type == "bfloat16" ? "bf16" : "fp32";
}

void want_image_loop(TrainerReading& from, std::string_view mixed, std::string_view path) {
  from.check(path, mixed, kImageTypes);
  const std::string type = short_type(mixed);
  from.want("loop", "hf-trainer");
  from.want("zero_grad", "step-end");
  from.want("precision", type == "fp32" ? type : "amp-" + type, path);
}

void want_frozen_type(TrainerReading& from, std::string_view type, std::string_view path) {
  from.check(path, type, kImageTypes);
  from.want("base_dtype", short_type(type), path);
}

void want_image_size(TrainerReading& from, std::string_view path) {
  namespace detail = image_trainers_detail;
  const Setting* const setting = from.at(path);
  if (setting == nullptr) return;
  const auto size = detail::largest_size(*setting, false);
  if (size) from.want("image", detail::worded(*size), path);
  else from.not_modelled(path);
}

void want_image_quantization(TrainerReading& from, std::string_view name, std::string_view path) {
  namespace detail = image_trainers_detail;
  const std::string plain = core::lower_case(name.substr(0, name.find('|')));
  if (plain.empty() || plain == "no_change" || plain == "none" || plain == "false") return;
  const auto* const row = std::find_if(detail::kQuantized.begin(), detail::kQuantized.end(),
                                       [&](const detail::QuantizedName& one) { return one.name == plain; });
  if (row == detail::kQuantized.end()) {
    from.want("quantize", plain, path);
    return;
  }
  from.want("quantize", std::string(row->quantize), path);
  if (row->alike) return;
  from.job().not_modelled.push_back(plain + " (" + std::string(path) + "), which is taken for " +
                                    std::string(row->quantize) + " and otherwise");
}

void want_block_swap(TrainerReading& from, std::string_view path, std::string_view how) {
  const std::string count = from.word(path).value_or("0");
  if (core::parse_whole(count).value_or(0) > 0) from.want("block_swap", std::string(how) + ":" + count, path);
}

void miss_image_size(TrainerReading& from) {
  if (from.job().find("image") == nullptr) from.job().missing.emplace_back("the size of its images (--image)");
}

}  // namespace gpumem::trainer_files
