#pragma once

#include <array>

#include "gpumem/connect/forward.hpp"
#include "gpumem/connect/vit.hpp"

namespace gpumem::connect {

namespace vit_detail {

inline constexpr std::array<std::string_view, 2> kModels = {"ViTForImageClassification", "ViTModel"};

GPUMEM_INLINE std::int64_t head_width(std::int64_t width) {
  constexpr std::int64_t kHuge = 1280;
  return width == kHuge ? 80 : 64;
}

GPUMEM_INLINE Tensor attention(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  const std::int64_t width = wiring.required(module, "query", "out_features");
  const std::int64_t each = head_width(width);
  const auto parted = [&](std::string_view name) {
    return wiring.split_heads(wiring.layer(module, name, {input}), width / each, each);
  };
  const Tensor key = parted("key");
  const Tensor value = parted("value");
  const Tensor query = parted("query");
  const Tensor attended =
      wiring.fused_attention({query, key, value}, ForwardWiring::kNoMask, wiring.probability(module, "dropout"),
                             !calls_kernel_on_views(module.class_name()));
  return wiring.merge_heads(attended, width);
}

GPUMEM_INLINE Tensor projected(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  return wiring.optional_layer(module, "dropout", {wiring.layer(module, "dense", {input})});
}

GPUMEM_INLINE Tensor block(ForwardWiring& wiring, const Module& module, Tensor input) {
  const InModule inside(wiring, module);
  const Tensor normed = wiring.layer(module, "layernorm_before", {input});
  Tensor attended = 0;
  {
    const Module outer = module.child("attention");
    const InModule within(wiring, outer);
    attended = projected(wiring, outer.child("output"), attention(wiring, outer.child("attention"), normed));
  }
  const Tensor sum = wiring.add(attended, input);
  const Tensor again = wiring.layer(module, "layernorm_after", {sum});
  Tensor hidden = 0;
  {
    const Module dense = module.child("intermediate");
    const InModule within(wiring, dense);
    hidden = wiring.layer(dense, "intermediate_act_fn", {wiring.layer(dense, "dense", {again})});
  }
  return wiring.add(projected(wiring, module.child("output"), hidden), sum);
}

/// Patches in rows, the class token before them, and the positions.
GPUMEM_INLINE Tensor embeddings(ForwardWiring& wiring, const Module& module, const model::TrainingJob& job) {
  const InModule inside(wiring, module);
  const Module patches = module.child("patch_embeddings");
  Tensor rows = 0;
  std::int64_t width = 1;
  std::int64_t count = 1;
  {
    const InModule within(wiring, patches);
    width = wiring.required(patches, "projection", "out_channels");
    const std::int64_t side = wiring.required(patches, "projection", "kernel_size");
    const Tensor image = wiring.image_input("pixel_values");
    if (job.input_shape.size() == 3) count = job.input_shape[1] / side * (job.input_shape[2] / side);
    rows = wiring.node("flatten", {wiring.layer(patches, "projection", {image})}, {{"start_dim", std::int64_t{2}}});
    rows = wiring.permute(rows, {0, 2, 1});
  }
  wiring.own_parameters_taken(module);
  const Tensor token = wiring.parameter("cls_token", {1, 1, width});
  const std::vector<core::Dim> shape = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor tokens = wiring.node("expand", {token}, {{"shape", shape}});
  const Tensor joined = wiring.node("concat", {tokens, rows}, {{"dim", std::int64_t{1}}});
  const Tensor positions = wiring.parameter("position_embeddings", {1, count + 1, width});
  return wiring.optional_layer(module, "dropout", {wiring.add(joined, positions)});
}

GPUMEM_INLINE Tensor first_token(ForwardWiring& wiring, Tensor hidden) {
  return wiring.node("select", {hidden}, {{"dim", std::int64_t{1}}, {"index", std::int64_t{0}}});
}

GPUMEM_INLINE Tensor body(ForwardWiring& wiring, const Module& model, const model::TrainingJob& job) {
  const InModule inside(wiring, model);
  Tensor hidden = embeddings(wiring, model.child("embeddings"), job);
  {
    const Module encoder = model.child("encoder");
    const InModule within(wiring, encoder);
    for (const Module& layer : encoder.child("layer").children()) hidden = block(wiring, layer, hidden);
  }
  hidden = wiring.layer(model, "layernorm", {hidden});
  if (!model.has_child("pooler")) return hidden;
  const Module pooler = model.child("pooler");
  const InModule within(wiring, pooler);
  wiring.returned(hidden);
  return wiring.layer(pooler, "activation", {wiring.layer(pooler, "dense", {first_token(wiring, hidden)})});
}

GPUMEM_INLINE bool recognises(const model::ModelGraph& graph) { return holds_class(graph, kModels); }

GPUMEM_INLINE core::Result<model::ModelGraph> connect_model(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const ModuleIndex index(*job.graph);
  const Module model = *find_model(index, kModels);
  ForwardWiring wiring(job, ops);
  if (model.class_name() == "ViTModel") {
    body(wiring, model, job);
  } else {
    const InModule inside(wiring, model);
    const Tensor hidden = body(wiring, model.child("vit"), job);
    wiring.layer(model, "classifier", {first_token(wiring, hidden)});
  }
  return std::move(wiring).finish();
}

}  // namespace vit_detail

GPUMEM_INLINE const Family& vit() {
  static constexpr Family kFamily = {"vit", vit_detail::recognises, vit_detail::connect_model};
  return kFamily;
}

}  // namespace gpumem::connect
