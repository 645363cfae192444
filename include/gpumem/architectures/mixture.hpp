// Input: tokens, and the layers of one expert; or the weights of all experts in one tensor.
// Output: the sum of the experts' results, computed as transformers does: in a loop over the experts, or of all at once
// (torch._grouped_mm). How many tokens an expert gets depends on the data; here each gets the same number.
// Source: transformers 4.48, models/mixtral/modeling_mixtral.py; 4.51, models/deepseek_v3/modeling_deepseek_v3.py; 5.0
// to 5.16, integrations/moe.py: grouped_mm_experts_forward, which sums a view of each token's rows. It takes the tokens
// and then puts them in order, since 5.5 (#44832) both at once.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/architectures/forward.hpp"
#include "gpumem/architectures/module_tree.hpp"

namespace gpumem::architectures {

struct Mixture {
  std::int64_t experts = 1;
  std::int64_t per_token = 1;
  std::int64_t inner = 1;  ///< of an expert's feed-forward layer
  std::string expert_class = {};
};

/// Experts whose weights are one tensor each.
struct GroupedExperts {
  std::string_view list_class = {};
  std::int64_t width = 1;
  std::string_view activation = "silu";
  bool transposed = true;  ///< [experts, out, in], as F.linear has it; else [experts, in, out]
  bool bias = false;
  std::optional<When> loops = {};  ///< the releases that take each expert's weights out, one after the other
};

/// The names of an expert's three projections, and whether they have biases.
struct GatedNames {
  std::string_view gate = "gate_proj";
  std::string_view up = "up_proj";
  std::string_view down = "down_proj";
  bool bias = false;
};

/// down(act(gate(x)) * up(x)), in the module that is open.
Tensor gated_layer(Forward& forward, std::int64_t width, std::int64_t inner, std::string_view activation, Tensor input,
                   const GatedNames& names = {});

/// `sum` with what `expert(rows)` makes of each expert's rows, times the rows' weights [N, S, per token].
template <typename Expert>
Tensor add_experts(Forward& f, const Mixture& mixture, Tensor input, Tensor weights, Tensor sum, Expert expert) {
  const InModule list(f, "experts", "ModuleList");
  const auto share = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", mixture.experts}, {"per_token", mixture.per_token}});
  };
  const std::int64_t first = f.calls_one_expert() ? mixture.experts - 1 : 0;
  for (std::int64_t index = first; index < mixture.experts && !f.failed(); ++index) {
    const InModule one(f, std::to_string(index), mixture.expert_class);
    f.part_of_expert(static_cast<std::uint32_t>(index + 1));
    const Tensor made = expert(share(input));
    const Tensor weight = share(f.slice(weights, 2, 0, 1));
    sum = f.call("scatter_tokens", {sum, f.multiply(made, weight)});
    f.part_of_expert(0);
  }
  return sum;
}

/// All rows of a rank's tokens in the order that Megatron's token dispatcher needs next; `sent`: as they come from the
/// other ranks that share the experts, where there are such ranks.
inline Tensor sent_rows(Forward& f, const Mixture& mixture, Tensor input, std::int64_t taken, bool sent) {
  if (sent) f.part_of_expert(1);  // which every rank has
  const Tensor rows =
      f.call("sent_rows", {input}, {{"per_token", mixture.per_token}, {"taken", taken}, {"sent", sent}});
  f.part_of_expert(0);
  return rows;
}

/// The same of all experts at once. `gated(wide)` makes [R, inner] of gates and values [R, 2 inner].
template <typename Gated>
Tensor add_grouped_experts(Forward& f, const Mixture& m, const GroupedExperts& all, Tensor input, Tensor weights,
                           Gated gated) {
  const InModule inside(f, "experts", all.list_class);
  const auto sorted = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", m.experts}, {"per_token", m.per_token}, {"ranks", m.experts}});
  };
  const auto product = [&](std::string_view name, Tensor rows, std::int64_t in, std::int64_t out) {
    const Sizes shape = all.transposed ? Sizes{m.experts, out, in} : Sizes{m.experts, in, out};
    const Tensor all_weights = f.parameter(name, shape);
    const Tensor weight = all.loops ? f.call("taken_experts", {all_weights}, {}, all.loops) : all_weights;
    const Tensor made =
        f.call("grouped_product", {rows, weight}, {{"transposed", all.transposed}, {"of_all_experts", true}});
    if (!all.bias) return made;
    const Tensor bias = f.parameter(std::string(name) + "_bias", {m.experts, out});
    return f.add(made, f.call("expert_biases", {bias, made}));
  };
  const Tensor rows = sorted(input);
  const Tensor row_weights = f.call("ordered_rows", {sorted(f.slice(weights, 2, 0, 1))});
  const Tensor grouped = f.call("ordered_rows", {rows}, {}, When::before_5_5);
  const Tensor wide = product("gate_up_proj", grouped, all.width, 2 * m.inner);
  const Tensor active = gated(wide);
  const Tensor made = f.multiply(product("down_proj", active, m.inner, all.width), row_weights);
  const Tensor restored = f.call("ordered_rows", {made});
  // Before 5.0 index_add_ keeps what it adds, which has the tokens' type.
  const Tensor kept = f.call("kept_rows", {f.as_type_of(restored, input, When::before_5_0)}, {}, When::before_5_0);
  const Tensor sum = f.as_type_of(f.call("summed_rows", {kept, input}), input);
  return f.leave_function(f.leave_function(sum, {rows, wide, active, made}, When::before_5_5),
                          {grouped, restored, row_weights});
}

/// act(gate) * value, of the two halves of what a product made.
inline Tensor gated_halves(Forward& f, std::int64_t inner, std::string_view activation, Tensor wide) {
  const std::vector<Tensor> halves = f.split(wide, 1, {inner, inner});
  return f.multiply(f.activation("act_fn", halves[0], activation), halves[1]);
}

/// The same with halves that are gated so.
inline Tensor add_grouped_experts(Forward& f, const Mixture& m, const GroupedExperts& all, Tensor input,
                                  Tensor weights) {
  const auto gated = [&](Tensor wide) { return gated_halves(f, m.inner, all.activation, wide); };
  return add_grouped_experts(f, m, all, input, weights, gated);
}

/// More experts than any model has, in a layer or in all, or more a token than there are, is a fault of these fields.
inline void check_mixture(ConfigFields& config, const Mixture& mixture, std::int64_t layers,
                          std::string_view experts_field, std::string_view per_token_field) {
  constexpr std::int64_t kMostExperts = 4096;
  constexpr std::int64_t kMostInAll = 1 << 16;  // each is some layers of the graph
  if (mixture.experts > kMostExperts || mixture.experts * layers > kMostInAll)
    config.fail("no model has this many experts", experts_field);
  if (mixture.per_token > mixture.experts) config.fail("is more than there are experts", per_token_field);
}

inline Tensor gated_layer(Forward& forward, std::int64_t width, std::int64_t inner, std::string_view activation,
                          Tensor input, const GatedNames& names) {
  const Linear linear = {.bias = names.bias};
  const Tensor gate = forward.linear(names.gate, input, width, inner, linear);
  const Tensor open = forward.activation("act_fn", gate, activation);
  const Tensor up = forward.linear(names.up, input, width, inner, linear);
  return forward.linear(names.down, forward.multiply(open, up), inner, width, linear);
}

/// The scores of a router that holds its weight itself, as transformers 5 has them.
inline Tensor held_scores(Forward& f, std::string_view name, std::string_view class_name, const Mixture& m,
                          std::int64_t width, Tensor input, bool wide = false) {
  const InModule inside(f, name, class_name);
  const Tensor weight = f.parameter("weight", {m.experts, width});
  return f.call("linear_function", {input, wide ? f.to(weight, "float32") : weight});
}

/// Experts of one tensor each that the softmax of such a router chooses, as transformers 5 has them.
inline Tensor held_softmax_experts(Forward& f, const Mixture& m, const GroupedExperts& all,
                                   std::string_view router_class, Tensor input) {
  const Tensor scores = held_scores(f, "gate", router_class, m, all.width, input);
  const Tensor weights = f.call("softmax", {f.to(scores, "float32")});
  return add_grouped_experts(f, m, all, input, f.as_type_of(f.slice(weights, 2, 0, m.per_token), input));
}

/// Weights of the experts that DeepSeek-V3's router chooses, in float32; the bias of the choice is a buffer.
inline Tensor held_sigmoid_weights(Forward& f, std::string_view router_class, const Mixture& m, std::int64_t width,
                                   Tensor input) {
  const InModule gate(f, "gate", router_class);
  const Tensor weight = f.parameter("weight", {m.experts, width});
  const Tensor scores = f.call("linear_function", {f.to(input, "float32"), f.to(weight, "float32")});
  f.constant("e_score_correction_bias", {m.experts}, "float32");
  return f.scale(f.slice(f.call("sigmoid", {scores}), 2, 0, m.per_token));
}

/// Experts that the softmax of a linear layer chooses, in the module that is open. `list_class`: of experts whose
/// weights are one tensor each; empty: they are modules.
inline Tensor softmax_experts(Forward& f, const Mixture& m, std::int64_t width, std::string_view activation,
                              std::string_view router, Tensor input, const GatedNames& names = {},
                              std::string_view list_class = {}) {
  const Tensor scores = f.linear(router, input, width, m.experts, {.bias = false});
  const Tensor weights = f.call("softmax", {f.to(scores, "float32")});
  const Tensor chosen = f.as_type_of(f.slice(weights, 2, 0, m.per_token), input);
  if (!list_class.empty()) {
    return add_grouped_experts(f, m, {.list_class = list_class, .width = width, .activation = activation}, input,
                               chosen);
  }
  const auto expert = [&](Tensor rows) { return gated_layer(f, width, m.inner, activation, rows, names); };
  return add_experts(f, m, input, chosen, f.call("token_zeros", {input}), expert);
}

/// The experts of a published model of these sizes, as its config.json has them.
struct PublishedExperts {
  std::string_view model_type;
  std::int64_t width = 0;  ///< hidden_size
  std::int64_t layers = 0;
  std::int64_t experts = 0;
  std::int64_t inner = 0;
  std::int64_t chosen = 0;   ///< a token
  std::int64_t queries = 0;  ///< elements of all heads' queries, where they tell two models apart; 0: any
};
inline constexpr auto kPublishedExperts = std::to_array<PublishedExperts>({
    {"mixtral", 4096, 32, 8, 14336, 2},              // mistralai/Mixtral-8x7B-v0.1
    {"mixtral", 6144, 56, 8, 16384, 2},              // mistralai/Mixtral-8x22B-v0.1
    {"qwen2_moe", 2048, 24, 60, 1408, 4},            // Qwen/Qwen1.5-MoE-A2.7B
    {"qwen2_moe", 3584, 28, 64, 2560, 8},            // Qwen/Qwen2-57B-A14B
    {"qwen3_moe", 2048, 48, 128, 768, 8},            // Qwen/Qwen3-30B-A3B
    {"qwen3_moe", 4096, 94, 128, 1536, 8},           // Qwen/Qwen3-235B-A22B
    {"qwen3_moe", 6144, 62, 160, 2560, 8},           // Qwen/Qwen3-Coder-480B-A35B-Instruct
    {"olmoe", 2048, 16, 64, 1024, 8},                // allenai/OLMoE-1B-7B-0924
    {"phimoe", 4096, 32, 16, 6400, 2, 4096},         // microsoft/Phi-3.5-MoE-instruct
    {"glm4_moe", 4096, 46, 128, 1408, 8},            // zai-org/GLM-4.5-Air
    {"glm4_moe", 5120, 92, 160, 1536, 8},            // zai-org/GLM-4.5
    {"bailing_moe", 2048, 28, 64, 1408, 6},          // inclusionAI/Ling-lite
    {"bailing_moe", 5376, 88, 64, 3072, 4},          // inclusionAI/Ling-plus
    {"bailing_moe_v2", 2048, 20, 256, 512, 8},       // inclusionAI/Ling-mini-2.0
    {"bailing_moe_v2", 4096, 32, 256, 1024, 8},      // inclusionAI/Ling-flash-2.0
    {"bailing_moe_v2", 8192, 80, 256, 2048, 8},      // inclusionAI/Ling-1T
    {"ernie4_5_moe", 2560, 28, 64, 1536, 6},         // baidu/ERNIE-4.5-21B-A3B-PT
    {"ernie4_5_moe", 8192, 54, 64, 3584, 8},         // baidu/ERNIE-4.5-300B-A47B-PT
    {"hunyuan_v1_moe", 4096, 32, 64, 3072, 8},       // tencent/Hunyuan-A13B-Instruct
    {"dots1", 4096, 62, 128, 1408, 6},               // rednote-hilab/dots.llm1.base
    {"minimax_m2", 3072, 62, 256, 1536, 8},          // MiniMaxAI/MiniMax-M2
    {"solar_open", 4096, 48, 128, 1280, 8},          // upstage/Solar-Open-100B
    {"hy_v3", 4096, 80, 192, 1536, 8},               // tencent/Hy3-preview
    {"mellum", 2304, 28, 64, 896, 8},                // the defaults of its class, transformers 5.16
    {"lfm2_moe", 2048, 24, 32, 1792, 4},             // LiquidAI/LFM2-8B-A1B
    {"deepseek_v2", 2048, 27, 64, 1408, 6},          // deepseek-ai/DeepSeek-V2-Lite
    {"deepseek_v2", 5120, 60, 160, 1536, 6},         // deepseek-ai/DeepSeek-V2
    {"deepseek_v3", 2048, 27, 64, 1408, 6},          // moonshotai/Moonlight-16B-A3B
    {"deepseek_v3", 7168, 61, 256, 2048, 8, 24576},  // deepseek-ai/DeepSeek-V3
    {"deepseek_v3", 7168, 61, 384, 2048, 8, 12288},  // moonshotai/Kimi-K2-Instruct
    {"axk1", 7168, 61, 192, 2048, 8},                // skt/A.X-K1
    {"deepseek_v32", 7168, 61, 256, 2048, 8},        // deepseek-ai/DeepSeek-V3.2
    {"deepseek_v4", 4096, 43, 256, 2048, 6},         // deepseek-ai/DeepSeek-V4-Flash
    {"minimax_m3", 6144, 60, 128, 3072, 4},          // MiniMaxAI/MiniMax-M3
    {"glm_moe_dsa", 6144, 78, 256, 2048, 8},         // zai-org/GLM-5
    {"glm4_moe_lite", 2048, 47, 64, 1536, 4},        // zai-org/GLM-4.7-Flash
    {"qwen3_next", 2048, 48, 512, 512, 10},          // Qwen/Qwen3-Next-80B-A3B-Instruct
    {"qwen3_5_moe_text", 2048, 40, 256, 512, 8},     // Qwen/Qwen3.5-35B-A3B
    {"qwen3_5_moe_text", 3072, 48, 256, 1024, 8},    // Qwen/Qwen3.5-122B-A10B
    {"qwen3_5_moe_text", 4096, 60, 512, 1024, 10},   // Qwen/Qwen3.5-397B-A17B
    {"granitemoe", 1024, 24, 32, 512, 8},            // ibm-granite/granite-3.1-1b-a400m-base
    {"granitemoe", 1536, 32, 40, 512, 8},            // ibm-granite/granite-3.1-3b-a800m-base
    {"granitemoehybrid", 1536, 40, 64, 512, 6},      // ibm-granite/granite-4.0-h-tiny
    {"granitemoehybrid", 4096, 40, 72, 768, 10},     // ibm-granite/granite-4.0-h-small
    {"flex_olmo", 4096, 32, 7, 11008, 5},            // allenai/FlexOlmo-7x7B-1T
    {"afmoe", 1024, 56, 128, 256, 8},                // arcee-ai/Trinity-Nano-Preview
    {"afmoe", 2048, 32, 128, 1024, 8},               // arcee-ai/Trinity-Mini
    {"exaone_moe", 6144, 48, 128, 2048, 8},          // LGAI-EXAONE/K-EXAONE-236B-A23B
    {"mistral4", 4096, 36, 128, 2048, 4},            // mistralai/Mistral-Small-4-119B-2603
    {"laguna", 2048, 40, 256, 512, 8},               // poolside/laguna-XS.2
    {"gpt_oss", 2880, 24, 32, 2880, 4},              // openai/gpt-oss-20b
    {"gpt_oss", 2880, 36, 128, 2880, 4},             // openai/gpt-oss-120b
});

/// The sizes of the experts of a tree.
struct ExpertSizes {
  std::int64_t width = 0;
  std::int64_t experts = 0;
  std::int64_t inner = 0;
};

/// The published model of the width and the layers that the tree shows; null: there is none. `queries`: elements of all
/// heads' queries, where the tree shows them.
inline const PublishedExperts* published_experts(const TreeFields& t, std::string_view model_type,
                                                 std::int64_t queries = 0) {
  const std::int64_t width = t.value("embed_tokens", "embedding_dim").value_or(0);
  const auto is_it = [&](const PublishedExperts& row) {
    const bool sizes = row.model_type == model_type && row.width == width && row.layers == t.count_of("layers");
    return sizes && (row.queries == 0 || row.queries == queries);
  };
  const auto* const row = std::find_if(kPublishedExperts.begin(), kPublishedExperts.end(), is_it);
  return row == kPublishedExperts.end() ? nullptr : row;
}

/// Experts a token, which no tree prints: of the published model of these sizes, else of the model of the type that has
/// nearly as many experts. Writes the field.
inline void choose_experts(TreeFields& t, std::string_view model_type, const ExpertSizes& of, std::string_view field) {
  constexpr std::int64_t kUsual = 8;
  const auto apart = [&](const PublishedExperts& row) {
    return row.experts < of.experts ? of.experts - row.experts : row.experts - of.experts;
  };
  const PublishedExperts* nearest = nullptr;
  for (const PublishedExperts& row : kPublishedExperts) {
    if (row.model_type != model_type) continue;
    const bool same = row.width == of.width && row.experts == of.experts && row.inner == of.inner;
    if (same || nearest == nullptr || apart(row) < apart(*nearest)) nearest = &row;
    if (same) break;
  }
  const std::int64_t most = std::max<std::int64_t>(of.experts, 1);
  const std::int64_t chosen = std::min(nearest == nullptr ? kUsual : nearest->chosen, most);
  t.set(field, chosen);
  t.assume(std::to_string(chosen) + " experts a token, as published models have");
}

/// Where a tree has experts whose weights are one tensor each, and the fields of a config that they are.
struct FusedExperts {
  std::string_view model_type;
  std::string router;  ///< path of the module that chooses
  std::string list;    ///< path of the experts
  std::string_view number = "num_local_experts";
  std::string_view per_token = "num_experts_per_tok";
  std::string_view inner = "intermediate_size";
  std::string_view query = {};  ///< path of the layer that makes the queries
  bool biases = false;          ///< of the router and the experts
};

/// What the parameters of a router and its experts tell: a row of the router an expert; of an expert two matrices in
/// one and a third. Nothing where they are no such modules'.
inline std::optional<ExpertSizes> counted_experts(std::int64_t width, std::int64_t router, std::int64_t held,
                                                  bool biases) {
  const std::int64_t row = width + (biases ? 1 : 0);
  if (width < 1 || router < row || router % row != 0) return std::nullopt;
  const std::int64_t experts = router / row;
  if (held % experts != 0) return std::nullopt;
  const std::int64_t matrices = held / experts - (biases ? width : 0);
  const std::int64_t of_inner = 3 * width + (biases ? 2 : 0);  // elements that an expert has for each of its inner ones
  if (matrices < of_inner || matrices % of_inner != 0) return std::nullopt;
  return ExpertSizes{width, experts, matrices / of_inner};
}

/// How many layers of a tree come before the first that has this part of experts; all of them, where none has it.
inline std::int64_t layers_before_experts(const TreeFields& t, std::string_view experts = ".mlp.experts") {
  const std::int64_t layers = std::min(t.count_of("layers"), ConfigFields::kMostLayers);
  std::int64_t before = 0;
  while (before < layers && !t.has("layers." + std::to_string(before) + std::string(experts))) ++before;
  return before;
}

/// Writes the fields of such experts: of the parameters that the tree counts at router and experts, else of the
/// published model of these sizes. print(model) shows neither; the reader then names the fields that are missing.
/// Returns an expert's inner size; 0: nothing tells.
inline std::int64_t fused_experts(TreeFields& t, const FusedExperts& of) {
  t.fuse_experts();
  const std::int64_t width = t.value("embed_tokens", "embedding_dim").value_or(0);
  const auto rows = t.value(of.router, "out_features");  // a router that is a linear layer shows the experts
  const std::int64_t router = rows ? *rows * width : t.held(of.router);
  const std::int64_t held = t.held(of.list);
  if ((router > 0 && !rows) || held > 0) {
    const auto counted = counted_experts(width, router, held, of.biases);
    if (!counted) return 0;
    t.set(of.number, counted->experts);
    t.set(of.inner, counted->inner);
    choose_experts(t, of.model_type, *counted, of.per_token);
    return counted->inner;
  }
  const std::int64_t queries = of.query.empty() ? 0 : t.value(of.query, "out_features").value_or(0);
  const PublishedExperts* const row = published_experts(t, of.model_type, queries);
  if (row == nullptr) return 0;
  t.set(of.number, row->experts);
  t.set(of.inner, row->inner);
  t.set(of.per_token, row->chosen);
  t.assume(std::to_string(row->experts) + " experts " + std::to_string(row->inner) + " wide and " +
           std::to_string(row->chosen) + " of them a token, as the published model of these sizes has");
  return row->inner;
}

/// That the routing is taken to be even.
inline void warn_of_routing(Forward& forward) {
  forward.warn("tokens are assumed to be spread evenly over the experts; in fact it depends on the data");
}

}  // namespace gpumem::architectures
