// What print(model) shows of a model that forward() wrote: its modules with their sizes, and nothing of what the code
// computes between them.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"

namespace gpumem::testing {

namespace printed_tree_detail {

struct Step {
  std::string name;
  std::string class_name = "Module";
};

struct Node {
  std::string name;
  std::string text;  ///< of a layer; a container has the class alone
  std::vector<std::unique_ptr<Node>> children = {};

  Node& child(const Step& of) {
    const auto same = [&](const std::unique_ptr<Node>& each) { return each->name == of.name; };
    const auto found = std::find_if(children.begin(), children.end(), same);
    if (found != children.end()) return **found;
    children.push_back(std::make_unique<Node>(Node{of.name, of.class_name}));
    return *children.back();
  }
};

constexpr std::size_t kLongestList = 1024;

inline void write(const Node& node, const std::string& indent, std::string& to) {
  to += node.children.empty() ? node.text + "\n" : node.text + "(\n";
  std::size_t next = 0;
  for (const auto& each : node.children) {
    // Modules of a list that nothing calls.
    const bool numbered = each->name.find_first_not_of("0123456789") == std::string::npos;
    for (; numbered && std::to_string(next) != each->name && next < kLongestList; ++next) {
      to += indent + "  (" + std::to_string(next) + "): Identity()\n";
    }
    ++next;
    to += indent + "  (" + each->name + "): ";
    write(*each, indent + "  ", to);
  }
  if (!node.children.empty()) to += indent + ")\n";
}

inline std::string number(const model::Attributes& attributes, std::string_view name) {
  return std::to_string(attributes.per_axis(name, 0).value_or(0));
}

inline std::string tuple(const model::Attributes& attributes, std::string_view name, bool square) {
  const std::string one = attributes.find(name) == nullptr ? "1" : number(attributes, name);
  return std::string(name) + "=(" + one + (square ? ", " + one : ",") + ")";
}

inline std::string convolution(const model::Attributes& attributes, const std::string& name, bool square) {
  std::string text = name + "(" + number(attributes, "in_channels") + ", " + number(attributes, "out_channels");
  for (const std::string_view field : {"kernel_size", "stride"}) text += ", " + tuple(attributes, field, square);
  if (attributes.find("padding") != nullptr) text += ", " + tuple(attributes, "padding", square);
  if (attributes.find("groups") != nullptr) text += ", groups=" + number(attributes, "groups");
  return text + (attributes.flag("bias", true) ? ")" : ", bias=False)");
}

inline std::string volume(const model::Attributes& attributes, const std::string& name) {
  const auto triple = [&](std::string_view field) {
    std::string all;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      all += (axis == 0 ? "" : ", ") + std::to_string(attributes.per_axis(field, axis).value_or(1));
    }
    return std::string(field) + "=(" + all + ")";
  };
  const std::string text = name + "(" + number(attributes, "in_channels") + ", " + number(attributes, "out_channels") +
                           ", " + triple("kernel_size") + ", " + triple("stride");
  return text + (attributes.flag("bias", true) ? ")" : ", bias=False)");
}

inline std::string norm(const model::Attributes& attributes, const std::string& name, bool rms) {
  const std::string sizes = name + "((" + number(attributes, "normalized_shape") + ",), eps=1e-05";
  // A norm of the model's own without weights prints nothing.
  if (name != "LayerNorm" && !attributes.flag("elementwise_affine", true)) return name + "()";
  if (rms) return sizes + ")";
  return sizes + ", elementwise_affine=" + (attributes.flag("elementwise_affine", true) ? "True)" : "False)");
}

/// A table that the code reads whole, such as "position_embedding.weight", is printed as an Embedding.
inline std::string table_line(const model::Attributes& attributes) {
  const auto* shape = std::get_if<std::vector<std::int64_t>>(attributes.find("shape"));
  if (shape == nullptr || shape->size() < 2) return {};
  return "Embedding(" + std::to_string(shape->end()[-2]) + ", " + std::to_string(shape->back()) + ")";
}

/// Of a norm that the model's code computes itself: the line of its module; empty: it is no such weight.
inline std::string norm_of_weight(const model::ModelGraph& graph, const model::Layer& layer) {
  const auto attributes = graph.attributes(layer);
  const model::AttributeValue* value = attributes.find("shape");
  const auto* shape = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
  const std::string_view module = graph.class_name(graph.scope(layer.scope));
  const bool is_its = graph.op(layer) == model::kParameterOp && graph.name(layer) == "weight" &&
                      module.ends_with("RMSNorm") && shape != nullptr && shape->size() == 1;
  return is_its ? std::string(module) + "((" + std::to_string(shape->front()) + ",), eps=1e-06)" : std::string();
}

/// The line of a layer, as the extra_repr() of its class writes it; empty: it is no module.
inline std::string line_of(const model::ModelGraph& graph, const model::Layer& layer) {
  const std::string_view op = graph.op(layer);
  const std::string name(graph.class_name(layer));
  const model::Attributes attributes = graph.attributes(layer);
  const auto two = [&](const char* first, std::string_view one, const char* second, std::string_view other) {
    return name + "(" + first + number(attributes, one) + ", " + second + number(attributes, other);
  };
  if (op == model::kParameterOp && graph.name(layer).ends_with(".weight")) return table_line(attributes);
  if (name == op) return {};
  if (name == "Conv1D") return two("nf=", "out_features", "nx=", "in_features") + ")";
  if (op == "linear") {
    const std::string bias = attributes.flag("bias", true) ? ", bias=True)" : ", bias=False)";
    return two("in_features=", "in_features", "out_features=", "out_features") + bias;
  }
  // Molmo 2's embedding has two tables of its own, and prints nothing.
  if (op == "embedding" && name == "Molmo2Embedding") return name + "()";
  if (op == "embedding") return two("", "num_embeddings", "", "embedding_dim") + ")";
  if (op == "layer_norm" || op == "rms_norm") return norm(attributes, name, op == "rms_norm");
  if (op == "batch_norm") return name + "(" + number(attributes, "num_features") + ", eps=1e-05, momentum=0.1)";
  if (op == "group_norm") {
    return two("", "num_groups", "", "num_channels") + ", eps=1e-05, affine=True)";
  }
  if (op == "conv3d") return volume(attributes, name);
  if (op == "conv1d" || op == "conv2d") return convolution(attributes, name, op == "conv2d");
  if (op == "causal_conv1d") {
    const std::string channels = number(attributes, "channels");
    const std::string bias = attributes.flag("bias", true) ? ")" : ", bias=False)";
    return name + "(" + channels + ", " + channels + ", kernel_size=(" + number(attributes, "kernel_size") +
           ",), stride=(1,), groups=" + channels + bias;
  }
  if (op == "gated_norm") return name + "()";
  if (op == "dropout") {
    const auto* p = std::get_if<double>(attributes.find("p"));
    return "Dropout(p=" + std::to_string(p == nullptr ? 0.0 : *p) + ", inplace=False)";
  }
  return layer.parameters == 0 && graph.op_traits(layer) != nullptr ? name + "()" : std::string();
}

/// The containers of a layer and its own name. Names with dots are modules within modules.
inline std::vector<Step> path_of(const model::ModelGraph& graph, const model::Layer& layer) {
  std::vector<Step> path;
  const auto prepend = [&](std::string_view name, std::string_view class_name) {
    constexpr std::string_view kWeight = ".weight";
    if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
    for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos; dot = name.rfind('.')) {
      path.insert(path.begin(), {std::string(name.substr(dot + 1)), std::string(class_name)});
      name = name.substr(0, dot);
    }
    path.insert(path.begin(), {std::string(name), std::string(class_name)});
  };
  prepend(graph.name(layer), "Module");
  for (std::uint32_t scope = layer.scope; scope != 0; scope = graph.scope(scope).parent) {
    prepend(graph.scope_name(scope), graph.class_name(graph.scope(scope)));
  }
  return path;
}

}  // namespace printed_tree_detail

/// `body`: the module that is the whole tree, where the class is that of the body; else empty.
inline std::string printed_tree(const model::ModelGraph& graph, std::string_view class_name, std::string_view body) {
  namespace detail = printed_tree_detail;
  detail::Node root{"", std::string(class_name)};
  for (const model::Layer& layer : graph.layers()) {
    const std::string norm = detail::norm_of_weight(graph, layer);
    const std::string text = norm.empty() ? detail::line_of(graph, layer) : norm;
    if (text.empty()) continue;
    std::vector<detail::Step> path = detail::path_of(graph, layer);
    if (!norm.empty()) path.pop_back();
    if (path.front().name == body) path.erase(path.begin());
    detail::Node* at = &root;
    for (const detail::Step& step : path) at = &at->child(step);
    at->text = text;
  }
  std::string text;
  detail::write(root, "", text);
  return text;
}

/// The most that a step of it holds; `tokens`: of a sample, where it reads any.
inline std::int64_t held_by(const model::ModelGraph& graph, std::int64_t tokens, bool sees) {
  TrainingJob job(graph, 1);
  if (tokens > 0) job.sequence_length = tokens;
  job.precision = model::Precision::bf16;
  if (sees) job.image = {640, 480};
  const auto answer = (*make_estimator("replay"))->estimate(job, *find_profile("b200"));
  EXPECT_TRUE(succeeds(answer));
  return answer && answer->allocated ? answer->allocated->count() : 0;
}

/// A config and the tree that print(model) shows of the same model give one answer, with a job's images too.
inline void expect_one_answer(std::string_view config, std::string_view tree, bool takes_images = true,
                              std::int64_t text = 128) {
  const auto from_config = parse_summary(config);
  const auto from_tree = parse_summary(tree);
  ASSERT_TRUE(succeeds(from_config));
  ASSERT_TRUE(succeeds(from_tree)) << tree;
  const std::int64_t tokens = from_config->reads_tokens() ? from_config->picture_tokens() + text : 0;
  for (const bool sees : {false, true}) {
    if (sees && (!takes_images || from_config->config().empty())) continue;
    EXPECT_EQ(held_by(*from_tree, tokens, sees), held_by(*from_config, tokens, sees)) << tree;
  }
}

}  // namespace gpumem::testing
