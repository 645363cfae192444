#pragma once

#include "gpumem/adapt/peft_model.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "gpumem/core/bytes.hpp"

namespace gpumem::adapt {

namespace peft_model_detail {

/// No layer is as wide; the squares of such widths fit 64 bits.
inline constexpr std::int64_t kWidest = std::int64_t{1} << 30;

/// Names that a row of PEFT's tables has; those that a model has are taken.
inline constexpr std::array<std::string_view, 12> kKeys = {"k_proj",   "v_proj", "query_key_value", "c_attn",
                                                           "qkv_proj", "key",    "value",           "down_proj",
                                                           "fc2",      "wo",     "dense_4h_to_h",   "fc_out"};
inline constexpr std::array<std::string_view, 4> kAttention = {"q_proj", "k_proj", "v_proj", "o_proj"};
inline constexpr std::array<std::string_view, 5> kValues = {"v_proj", "value", "v", "v_lin", "value_proj"};

GPUMEM_INLINE std::string those_of(std::span<const std::string_view> names, const std::vector<BaseLinear>& linears) {
  std::string text;
  for (const std::string_view name : names) {
    const auto named = [&](const BaseLinear& linear) { return linear.leaf() == name; };
    if (std::ranges::any_of(linears, named)) text += (text.empty() ? "" : "+") + std::string(name);
  }
  return text;
}

/// Whether what it adds are keys and values, and not tokens.
GPUMEM_INLINE bool keeps_cache(model::PeftMethod method) {
  return method == model::PeftMethod::prefix_tuning || method == model::PeftMethod::cartridge;
}

/// "a+b+c" has three items; an empty text none.
GPUMEM_INLINE std::int64_t items_of(std::string_view list) {
  return list.empty() ? 0 : std::ranges::count(list, '+') + 1;
}

}  // namespace peft_model_detail

GPUMEM_INLINE std::string peft_targets(PeftTargets targets, const std::vector<BaseLinear>& linears) {
  namespace detail = peft_model_detail;
  switch (targets) {
    case PeftTargets::keys: return detail::those_of(detail::kKeys, linears);
    case PeftTargets::values: return detail::those_of(detail::kValues, linears);
    case PeftTargets::attention: return detail::those_of(detail::kAttention, linears);
    case PeftTargets::all_linear: return "all-linear";
    case PeftTargets::usual:
    case PeftTargets::norms:
    case PeftTargets::tokens:
    case PeftTargets::prompts: break;
  }
  return {};
}

GPUMEM_INLINE PeftModel::PeftModel(const connect::WiredGraph& wired, const std::vector<BaseLinear>& linears,
                                   const std::vector<bool>& adapted, std::vector<model::WeightStorage>& storage,
                                   const model::TrainingJob& job, PeftSettings settings)
    : wired_(wired),
      linears_(linears),
      storage_(storage),
      job_(job),
      settings_(std::move(settings)),
      adapted_at_(wired.graph().layers().size(), -1) {
  for (std::size_t at = 0; at < linears.size(); ++at) {
    if (!adapted[at]) continue;
    adapted_at_[linears[at].layer] = static_cast<int>(at);
    shared_.widest_in = std::max(shared_.widest_in, linears[at].in);
    shared_.widest_out = std::max(shared_.widest_out, linears[at].out);
  }
  find_embedding();
  find_cache();
  find_attention();
  const model::PeftMethod method = settings_.row().value;
  const bool in_front = settings_.row().targets == PeftTargets::prompts && !peft_model_detail::keeps_cache(method);
  if (in_front) more_tokens_ = settings_.whole("num_virtual_tokens");
  const auto layers = wired.graph().layers();
  for (std::size_t at = 0; at < layers.size(); ++at) {
    if (is_trained_norm(layers[at])) storage_[at].frozen = 0;
  }
}

GPUMEM_INLINE void PeftModel::find_embedding() {
  const std::vector<BaseEmbedding> tables = base_embeddings(wired_);
  if (tables.empty()) return;
  embedding_ = tables.front();
  has_embedding_ = true;
}

GPUMEM_INLINE void PeftModel::find_cache() {
  if (!peft_model_detail::keeps_cache(settings_.row().value)) return;
  const auto layers = wired_.graph().layers();
  for (std::uint32_t at = 0; at < layers.size(); ++at) {
    // Any layer of a graph's file may say that it is cached.
    if (!wired_.graph().attributes(layers[at]).flag("cache", false)) continue;
    const auto read = wired_.inputs(at);
    if (read.size() != 1 || read[0] < 0 || wired_.outputs(at).empty()) continue;
    const core::Shape shape = wired_.outputs(at)[0];
    if (shape.rank() != 4) continue;
    const std::int64_t width = core::bounded_product({shape[1].size, shape[3].size});
    alike_ = alike_ && (cached_.empty() || width == kept_width_);
    kept_width_ = width;
    cached_.push_back(at);
  }
}

/// Of adaption prompts: the last `adapter_layers` blocks get one each, and how many heads their queries have.
GPUMEM_INLINE void PeftModel::find_attention() {
  if (settings_.row().targets != PeftTargets::attention) return;
  std::int64_t left = settings_.whole("adapter_layers");
  blocks_ = left;
  std::size_t next = peft_model_detail::kAttention.size();  // of the names, from the last one on
  for (std::size_t at = adapted_at_.size(); at-- > 0;) {
    const BaseLinear* linear = adapted_at(static_cast<std::uint32_t>(at));
    if (linear == nullptr) continue;
    if (left == 0) {
      adapted_at_[at] = -1;
      continue;
    }
    alike_ = alike_ && linear->leaf() == peft_model_detail::kAttention[--next];
    if (next > 0) continue;
    next = peft_model_detail::kAttention.size();
    --left;
    if (shared_.heads == 0) shared_.heads = heads_behind(static_cast<std::uint32_t>(at), linear->out);
  }
  blocks_ -= left;
  alike_ = alike_ && next == peft_model_detail::kAttention.size();
}

/// Of queries of this width, as the first tensor that has their heads apart shows them.
GPUMEM_INLINE std::int64_t PeftModel::heads_behind(std::uint32_t layer, std::int64_t width) const {
  for (std::size_t at = layer + std::size_t{1}; at < adapted_at_.size(); ++at) {
    if (wired_.outputs(at).empty()) continue;
    const core::Shape& shape = wired_.outputs(at)[0];
    if (shape.rank() == 4 && core::bounded_product({shape[1].size, shape[3].size}) == width) return shape[1].size;
  }
  return 0;
}

/// Settings that have to divide the widths of what is adapted: PEFT raises otherwise. Source: PEFT 0.19,
/// tuners/{gralora,vblora,c3a,boft}/layer.py: update_layer; gralora/config.py.
GPUMEM_INLINE core::Status PeftModel::check_widths() const {
  using M = model::PeftMethod;
  struct Divides {
    M method;
    std::string_view setting;
    bool in;
    bool out;
  };
  constexpr Divides kAll[] = {{M::gralora, "gralora_k", true, true},
                              {M::vblora, "vector_length", true, true},
                              {M::c3a, "block_size", true, true},
                              {M::boft, "boft_block_size", true, false},
                              {M::boft, "boft_block_num", true, false}};
  for (const Divides& row : kAll) {
    const std::int64_t size = row.method == settings_.row().value ? settings_.whole(row.setting) : 0;
    for (const BaseLinear& linear : linears_) {
      if (size < 1 || adapted_at(linear.layer) == nullptr) continue;
      const bool fits = (!row.in || linear.in % size == 0) && (!row.out || linear.out % size == 0);
      if (fits) continue;
      return core::Error{core::ErrorCode::invalid_argument,
                         "PEFT's " + std::string(model::name_of(model::kPeftMethods, row.method)) + " takes no " +
                             std::string(row.setting) + " " + std::to_string(size) + ", which does not divide the " +
                             std::to_string(linear.in) + " inputs and " + std::to_string(linear.out) + " outputs of " +
                             core::quoted(linear.leaf()),
                         {}};
    }
  }
  const std::int64_t blocks = settings_.row().value == M::gralora ? settings_.whole("gralora_k") : 0;
  for (const BaseLinear& linear : linears_) {
    if (blocks < 1 || adapted_at(linear.layer) == nullptr || settings_.rank_of(linear.leaf()) % blocks == 0) continue;
    return core::Error{core::ErrorCode::invalid_argument,
                       "PEFT's gralora takes no rank that gralora_k " + std::to_string(blocks) + " does not divide",
                       {}};
  }
  return core::Done{};
}

GPUMEM_INLINE core::Status PeftModel::check() const {
  const PeftMethodRow& row = settings_.row();
  const auto missing = [&](std::string_view what) {
    return core::Error{core::ErrorCode::missing_information,
                       "PEFT's " + std::string(model::name_of(model::kPeftMethods, row.value)) + " needs " +
                           std::string(what) + ", which the model does not show",
                       {wired_.graph().file(), 0, {}}};
  };
  const bool tokens = row.targets == PeftTargets::prompts || row.targets == PeftTargets::tokens;
  if (tokens && !has_embedding_) return missing("the embedding of its tokens");
  if (peft_model_detail::keeps_cache(row.value) && (cached_.empty() || kept_width_ < 1 || !alike_)) {
    return missing("a cache of keys and values that are as wide in every layer");
  }
  if (row.targets == PeftTargets::attention) {
    if (core::Status fits = check_attention(); !fits) return fits;
  }
  if (core::Status divides = check_widths(); !divides) return divides;
  for (const BaseLinear& linear : linears_) {
    if (adapted_at(linear.layer) == nullptr || std::max(linear.in, linear.out) <= peft_model_detail::kWidest) continue;
    return core::Error{core::ErrorCode::overflow,
                       "is too wide for an adapter",
                       {wired_.graph().file(), 0, wired_.graph().path(wired_.graph().layers()[linear.layer])}};
  }
  if (changes_shapes() && wired_.graph().shapes_printed()) {
    return missing("shapes for any number of tokens (a config.json does)");
  }
  if (changes_shapes() && settings_.whole("num_virtual_tokens") < 1) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "the number of virtual tokens is not given; say `peft_options=num_virtual_tokens=20`",
                       {}};
  }
  if (row.value == model::PeftMethod::cartridge &&
      settings_.whole("num_frozen_tokens") >= settings_.whole("num_virtual_tokens")) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "num_frozen_tokens must be less than num_virtual_tokens, or nothing is trained",
                       {}};
  }
  const bool quantised = model::holds_in_fewer_bits(job_.quantize);
  const bool computes = row.replaces_base && row.value != model::PeftMethod::oft;
  if (quantised && (computes || row.targets == PeftTargets::tokens)) {
    return core::Error{core::ErrorCode::missing_information,
                       "PEFT's " + std::string(model::name_of(model::kPeftMethods, row.value)) +
                           " on a quantised base is not modelled; leave `quantize` out",
                       {}};
  }
  return core::Done{};
}

/// Source: PEFT, tuners/adaption_prompt/model.py, add_adapter(); config.py: both settings have no default.
GPUMEM_INLINE core::Status PeftModel::check_attention() const {
  const std::int64_t asked = settings_.whole("adapter_layers");
  if (settings_.whole("adapter_len") < 1 || asked < 1) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "the length of the prompts and the number of layers that have them are not given; say "
                       "`peft_options=adapter_len=10,adapter_layers=30`",
                       {}};
  }
  if (!alike_ || blocks_ == 0 || shared_.heads < 1) {
    return core::Error{core::ErrorCode::missing_information,
                       "PEFT's adaption-prompt needs attention as Llama has it, with q_proj, k_proj, v_proj and "
                       "o_proj, which the model does not show",
                       {wired_.graph().file(), 0, {}}};
  }
  if (asked <= blocks_) return core::Done{};
  return core::Error{core::ErrorCode::invalid_argument,
                     "adapter_layers is " + std::to_string(asked) + ", and the model has " + std::to_string(blocks_) +
                         " layers of attention; give at most as many",
                     {wired_.graph().file(), 0, {}}};
}

GPUMEM_INLINE const BaseLinear* PeftModel::adapted_at(std::uint32_t layer) const {
  const int at = adapted_at_[layer];
  return at < 0 ? nullptr : &linears_[static_cast<std::size_t>(at)];
}

GPUMEM_INLINE bool PeftModel::is_trained_norm(const model::Layer& layer) const {
  if (settings_.row().targets != PeftTargets::norms || layer.parameters == 0) return false;
  const ops::Op* op = wired_.op(layer);
  if (op == nullptr || op->traits.family != ops::OpFamily::norm) return false;
  if (job_.lora_targets.empty()) return true;
  const std::string path = wired_.graph().path(layer);
  return names_module(job_.lora_targets, path);
}

GPUMEM_INLINE bool PeftModel::take(connect::GraphCopy& copy, std::uint32_t layer) {
  if (settings_.row().targets == PeftTargets::tokens) return replace_table(copy, layer);
  if (!cached_.empty() && widen_mask(copy, layer)) return true;
  const BaseLinear* base = adapted_at(layer);
  if (base == nullptr || !settings_.row().replaces_base) return false;
  PeftLayer calls(copy, wired_, *base, storage_[layer], job_, settings_, shared_);
  settings_.row().write(calls);
  return true;
}

/// The mask of attention has a column for each key, those of the prefix too.
GPUMEM_INLINE bool PeftModel::widen_mask(connect::GraphCopy& copy, std::uint32_t layer) {
  const model::Layer& mask = wired_.graph().layers()[layer];
  const ops::Op* op = wired_.op(mask);
  if (op == nullptr || op->traits.name != "causal_mask") return false;
  const auto all = wired_.graph().attributes(mask).all();
  connect::ChangedLayer change{{all.begin(), all.end()}, 0};
  change.attributes.push_back({"more_keys", settings_.whole("num_virtual_tokens")});
  (void)copy.copy(storage_[layer], true, change);
  return true;
}

GPUMEM_INLINE void PeftModel::before(connect::GraphCopy& copy, std::uint32_t layer) {
  const auto found = std::ranges::find(cached_, layer);
  if (found == cached_.end() || prefixes_.empty()) return;
  const model::LayerIndex read = wired_.inputs(layer)[0];
  const model::LayerIndex joined =
      copy.insert({.name = "past",
                   .op = "concat",
                   .inputs = {prefixes_[static_cast<std::size_t>(found - cached_.begin())], copy.now(read)},
                   .output = {},
                   .attributes = {{"dim", std::int64_t{2}}}});
  copy.replace(static_cast<std::size_t>(read), joined);
}

GPUMEM_INLINE void PeftModel::behind(connect::GraphCopy& copy, std::uint32_t layer) {
  const BaseLinear* base = adapted_at(layer);
  if (base != nullptr && !settings_.row().replaces_base && settings_.row().write != nullptr) {
    PeftLayer calls(copy, wired_, *base, storage_[layer], job_, settings_, shared_);
    settings_.row().write(calls);
  }
  const model::Layer& copied = wired_.graph().layers()[layer];
  if (is_trained_norm(copied)) {  // the copy that is trained stands beside the norm that it is a copy of
    (void)copy.insert({.name = std::string(wired_.graph().name(copied)) + ".base_layer",
                       .op = model::kParameterOp,
                       .inputs = {},
                       .output = PeftLayer::fixed({copied.parameters}),
                       .attributes = {{"shape", PeftLayer::Sizes{copied.parameters}}},
                       .frozen = true});
  }
  if (!has_embedding_ || layer != embedding_.layer || !changes_shapes()) return;
  if (cached_.empty()) {
    put_prompt(copy);
  } else {
    put_prefixes(copy);
  }
}

/// TrainableTokensLayer: the rows that are trained are written into a copy of the table, in every pass; a tied head
/// makes a copy of its own.
GPUMEM_INLINE bool PeftModel::replace_table(connect::GraphCopy& copy, std::uint32_t layer) {
  const bool is_table = has_embedding_ && layer == embedding_.layer;
  const BaseLinear* head = nullptr;
  for (const BaseLinear& linear : linears_) {
    const model::Layer& at = wired_.graph().layers()[linear.layer];
    if (linear.layer == layer && at.tied_parameters > 0 && at.tied_parameters == at.parameters) head = &linear;
  }
  if (!is_table && (head == nullptr || rows_ == 0)) return false;
  const std::string name(wired_.graph().name(wired_.graph().layers()[layer]));
  const PeftLayer::Sizes sizes = {embedding_.rows, embedding_.width};
  if (is_table) {
    const std::int64_t count = std::max<std::int64_t>(peft_model_detail::items_of(settings_.text("token_indices")), 1);
    table_ = copy.put({.name = name,
                       .op = model::kParameterOp,
                       .inputs = {},
                       .output = PeftLayer::fixed(sizes),
                       .attributes = {{"shape", sizes}},
                       .weights = {.dtype = storage_[layer].dtype},
                       .frozen = true});
    rows_ = copy.insert({.name = name + ".trainable_tokens_delta.default",
                         .op = model::kParameterOp,
                         .inputs = {},
                         .output = PeftLayer::fixed({count, embedding_.width}),
                         .attributes = {{"shape", PeftLayer::Sizes{count, embedding_.width}}},
                         .weights = {.dtype = model::dtype_of(job_.lora_dtype)}});
  }
  const model::LayerIndex whole = copy.insert({.name = name + ".index_copy",
                                               .op = "adapter_function",
                                               .inputs = {table_, rows_},
                                               .output = PeftLayer::fixed(sizes),
                                               .attributes = {{"shape", sizes}, {"typed_as_first", true}}});
  const model::LayerIndex read = copy.now(wired_.inputs(layer)[0]);
  if (is_table) {
    copy.replace(layer, copy.insert({.name = name + ".embedding",
                                     .op = "adapter_lookup",
                                     .inputs = {whole, read},
                                     .output = wired_.outputs(layer)[0]}));
  } else {
    copy.omit(copy.insert({.name = name + ".linear",
                           .op = "linear_function",
                           .inputs = {read, whole},
                           .output = wired_.outputs(layer)[0]}));
  }
  return true;
}

/// The embeddings of the tokens behind those of the prompt. The shapes are those of all tokens, so the embedding's
/// output is cut.
GPUMEM_INLINE void PeftModel::put_prompt(connect::GraphCopy& copy) {
  const model::LayerIndex embedded = copy.now(static_cast<model::LayerIndex>(embedding_.layer));
  const model::PeftMethod method = settings_.row().value;
  model::LayerIndex prompts = lookup(copy, {.name = "embedding",
                                            .rows = more_tokens_,
                                            .width = embedding_.width,
                                            .frozen = method == model::PeftMethod::cpt});
  if (method == model::PeftMethod::p_tuning) prompts = encoder(copy, prompts, embedding_.width);
  if (method == model::PeftMethod::multitask_prompt_tuning) prompts = of_task(copy, prompts);
  if (method == model::PeftMethod::cpt) prompts = with_delta(copy, prompts);
  const model::LayerIndex typed =
      copy.insert({.name = "prompts.to", .op = "cast", .inputs = {prompts, embedded}, .output = {}});
  const model::LayerIndex tokens = copy.insert({.name = "tokens",
                                                .op = "slice",
                                                .inputs = {embedded},
                                                .output = {},
                                                .attributes = {{"dim", std::int64_t{1}}, {"length", -more_tokens_}}});
  copy.replace(embedding_.layer, copy.insert({.name = "inputs_embeds",
                                              .op = "concat",
                                              .inputs = {typed, tokens},
                                              .output = {},
                                              .attributes = {{"dim", std::int64_t{1}}}}));
}

/// Keys and values of all layers in one tensor, in the base's type, of which each layer has its part.
GPUMEM_INLINE void PeftModel::put_prefixes(connect::GraphCopy& copy) {
  const std::int64_t rows = settings_.whole("num_virtual_tokens");
  const model::LayerIndex embedded = copy.now(static_cast<model::LayerIndex>(embedding_.layer));
  const auto parts = static_cast<std::int64_t>(cached_.size());
  const std::int64_t width = core::bounded_product({parts, kept_width_});
  model::LayerIndex all = 0;
  if (settings_.row().value == model::PeftMethod::cartridge) all = cartridge(copy, rows, width);
  else if (settings_.flag("prefix_projection")) all = projected(copy, rows, width);
  else all = lookup(copy, {.name = "embedding", .rows = rows, .width = width});
  const model::LayerIndex typed =
      copy.insert({.name = "past.to", .op = "cast", .inputs = {all, embedded}, .output = {}});
  const model::LayerIndex split =
      copy.insert({.name = "past.split",
                   .op = "split",
                   .inputs = {typed},
                   .output = {},
                   .attributes = {{"dim", std::int64_t{2}}, {"sizes", PeftLayer::Sizes(cached_.size(), kept_width_)}}});
  for (std::size_t at = 0; at < cached_.size(); ++at) {
    const core::Shape kept = wired_.outputs(cached_[at])[0];
    const model::LayerIndex item =
        copy.insert({.name = "past.item",
                     .op = "item",
                     .inputs = {split},
                     .output = {},
                     .attributes = {{"dim", std::int64_t{2}},
                                    {"start", core::bounded_product({static_cast<std::int64_t>(at), kept_width_})},
                                    {"length", kept_width_}}});
    const model::LayerIndex heads = copy.insert(
        {.name = "past.heads",
         .op = "unflatten",
         .inputs = {item},
         .output = {},
         .attributes = {{"dim", std::int64_t{2}}, {"sizes", PeftLayer::Sizes{kept[1].size, kept[3].size}}}});
    prefixes_.push_back(copy.insert({.name = "past.permute",
                                     .op = "permute",
                                     .inputs = {heads},
                                     .output = {},
                                     .attributes = {{"dims", PeftLayer::Sizes{0, 2, 1, 3}}}}));
  }
}

}  // namespace gpumem::adapt
