#pragma once

#include "gpumem/model/graph_builder.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace gpumem::model {

namespace graph_builder_detail {

template <typename T>
Slice append_to(std::vector<T>& all, std::span<const T> added) {
  const Slice slice{static_cast<std::uint32_t>(all.size()), static_cast<std::uint32_t>(added.size())};
  all.insert(all.end(), added.begin(), added.end());
  return slice;
}

/// Alike for equal attributes, and mostly different for others.
GPUMEM_INLINE std::uint64_t mix_of(std::span<const Attribute> attributes) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  std::uint64_t mix = attributes.size();
  const auto take = [&mix](std::uint64_t value) { mix = (mix ^ value) * kFactor; };
  for (const Attribute& attribute : attributes) {
    take(attribute.name.size());
    take(attribute.value.index());
    if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) take(static_cast<std::uint64_t>(*number));
    if (const auto* flag = std::get_if<bool>(&attribute.value)) take(*flag ? 1 : 0);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
      for (const std::int64_t element : *list) take(static_cast<std::uint64_t>(element));
    }
  }
  return mix;
}

/// What keeps the shape from being a tensor's, or nothing.
GPUMEM_INLINE std::optional<std::string> fault_of(const core::Shape& shape) {
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const core::Dim dim = shape[axis];
    if (dim.kind != core::Dim::Kind::unknown && dim.size <= 0) {
      return "output shape " + core::to_string(shape) + " has a dimension that is not positive";
    }
  }
  return std::nullopt;
}

}  // namespace graph_builder_detail

GPUMEM_INLINE GraphBuilder::GraphBuilder(std::string_view format, std::string_view file) {
  graph_.format_ = format;
  graph_.file_ = file;
  graph_.scopes_.push_back({});
  graph_.class_names_.emplace_back();
}

GPUMEM_INLINE void GraphBuilder::reserve(std::size_t layers, std::size_t attributes) {
  constexpr std::size_t kNameBytes = 16;
  graph_.layers_.reserve(layers);
  graph_.shapes_.reserve(layers);
  graph_.text_.reserve(layers * kNameBytes);
  graph_.attributes_.reserve(attributes);
}

GPUMEM_INLINE core::Place GraphBuilder::place_of(const LayerSpec& spec) const {
  constexpr std::size_t kLongestName = 200;
  return core::Place{graph_.file_, spec.line, core::shortened(spec.name, kLongestName)};
}

GPUMEM_INLINE void GraphBuilder::fail(core::Error error) {
  if (!error_) error_ = std::move(error).in_file(graph_.file_);
}

GPUMEM_INLINE Slice GraphBuilder::keep_text(std::string_view text) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (graph_.text_.size() + text.size() > kMost) {
    fail({core::ErrorCode::overflow, "the names of all layers together exceed 4 GiB", {}});
    return {};
  }
  const Slice slice{static_cast<std::uint32_t>(graph_.text_.size()), static_cast<std::uint32_t>(text.size())};
  graph_.text_ += text;
  return slice;
}

/// Where the graph holds such attributes: those of an earlier layer, if it had the same, or what `keep` adds.
template <typename Keep>
Slice GraphBuilder::share_attributes(std::span<const Attribute> attributes, Keep keep) {
  if (attributes.empty()) return {};
  constexpr std::size_t kPlacesTried = 4;
  const std::size_t first = graph_builder_detail::mix_of(attributes) >> 32U;
  for (std::size_t tried = 0; tried < kPlacesTried; ++tried) {
    Slice& recent = recent_attributes_[(first + tried) % recent_attributes_.size()];
    if (recent.count == 0) return recent = keep();
    if (std::ranges::equal(ModelGraph::view(graph_.attributes_, recent), attributes)) return recent;
  }
  return recent_attributes_[first % recent_attributes_.size()] = keep();
}

GPUMEM_INLINE std::uint32_t GraphBuilder::intern(std::vector<std::string>& names, NameIndex& index,
                                                 std::string_view name) {
  std::size_t mix = name.size();
  if (!name.empty()) {
    for (const std::size_t at : {std::size_t{0}, name.size() / 2, name.size() - 1}) {
      mix = mix * 37 + static_cast<unsigned char>(name[at]);
    }
  }
  std::uint32_t& recent = index.recent[mix % index.recent.size()];
  if (recent < names.size() && names[recent] == name) return recent;
  if (const auto known = index.all.find(name); known != index.all.end()) return recent = known->second;
  recent = static_cast<std::uint32_t>(names.size());
  index.all.emplace(name, recent);
  names.emplace_back(name);
  return recent;
}

GPUMEM_INLINE bool GraphBuilder::sound(const LayerSpec& spec) {
  constexpr std::size_t kMostLayers = std::numeric_limits<LayerIndex>::max();
  const auto refuse = [&](core::ErrorCode code, std::string message) {
    fail({code, std::move(message), place_of(spec)});
    return false;
  };
  if (graph_.layers_.size() >= kMostLayers) return refuse(core::ErrorCode::overflow, "has more than 2^31 layers");
  for (const core::Shape& shape : spec.outputs) {
    if (auto fault = graph_builder_detail::fault_of(shape)) {
      return refuse(core::ErrorCode::malformed_input, std::move(*fault));
    }
  }
  for (const LayerIndex input : spec.inputs) {
    const auto inputs = static_cast<LayerIndex>(graph_.graph_inputs_.size());
    if (input >= static_cast<LayerIndex>(graph_.layers_.size()) || input < -inputs) {
      return refuse(core::ErrorCode::malformed_input,
                    "has an input that is neither an earlier layer nor a graph input");
    }
  }
  return true;
}

GPUMEM_INLINE std::optional<std::int64_t> GraphBuilder::count_parameters(const LayerSpec& spec) {
  const auto refuse = [&](core::ErrorCode code, std::string message) -> std::optional<std::int64_t> {
    fail({code, std::move(message), place_of(spec)});
    return std::nullopt;
  };
  if (spec.parameters && *spec.parameters < 0) {
    return refuse(core::ErrorCode::malformed_input, "has a negative parameter count");
  }
  std::optional<core::Checked> counted = core::Checked(0);
  if (spec.op != nullptr && spec.op->parameters != nullptr) counted = spec.op->parameters(Attributes(spec.attributes));
  if (spec.parameters) {
    // A printed count is what the framework counted; ours is a check on both.
    const bool differs = spec.op != nullptr && spec.op->parameters != nullptr && !spec.attributes.empty() && counted &&
                         counted->value() != *spec.parameters;
    if (differs && *spec.parameters != 0) {
      warn("layer " + core::quoted(spec.name) + " prints " + core::with_separators(*spec.parameters) +
               " parameters, its sizes give " +
               (counted->valid() ? core::with_separators(*counted->value()) : std::string("more than 2^63")) +
               "; the printed count is used",
           spec.line);
    }
    return spec.parameters;
  }
  if (!counted) {
    return refuse(core::ErrorCode::missing_information,
                  "neither its parameter count nor the sizes that give it are printed; use a summary with "
                  "parameter counts");
  }
  if (!counted->valid()) {
    return refuse(core::ErrorCode::overflow,
                  "its sizes give a parameter count that is negative or does not fit 64 bits");
  }
  return counted->value();
}

/// The parameters of a layer that may be added.
GPUMEM_INLINE std::optional<std::int64_t> GraphBuilder::accept(const LayerSpec& spec) {
  if (pace_.late()) fail(core::deadline_error());
  if (failed() || !sound(spec)) return std::nullopt;
  return count_parameters(spec);
}

GPUMEM_INLINE LayerIndex GraphBuilder::append(const LayerSpec& spec, std::int64_t parameters, Slice attributes) {
  const std::string_view op = spec.op == nullptr ? kUnknownOp : spec.op->name;
  const auto index = static_cast<LayerIndex>(graph_.layers_.size());
  Layer& layer = graph_.layers_.emplace_back();
  layer.name = keep_text(spec.name);
  layer.scope = scope_;
  layer.class_name = intern(graph_.class_names_, class_index_, spec.class_name.empty() ? op : spec.class_name);
  layer.op = intern(graph_.ops_, op_index_, op);
  if (graph_.op_traits_.size() < graph_.ops_.size()) graph_.op_traits_.push_back(spec.op);
  layer.line = static_cast<std::uint32_t>(spec.line);
  layer.outputs = graph_builder_detail::append_to(graph_.shapes_, spec.outputs);
  layer.inputs = graph_builder_detail::append_to(graph_.edges_, spec.inputs);
  layer.attributes = attributes;
  layer.parameters = parameters;
  layer.tied_parameters = spec.tied_parameters;
  layer.frozen = spec.frozen;
  layer.returned = spec.returned;
  layer.inferred = spec.inferred;
  layer.split = spec.split;
  layer.expert = spec.expert;
  if (spec.op == nullptr) ++graph_.unknown_layers_;
  return index;
}

GPUMEM_INLINE LayerIndex GraphBuilder::add(const LayerSpec& spec) {
  const std::optional<std::int64_t> parameters = accept(spec);
  if (!parameters) return static_cast<LayerIndex>(graph_.layers_.size());
  return append(spec, *parameters, share_attributes(spec.attributes, [&] {
                  return graph_builder_detail::append_to(graph_.attributes_, spec.attributes);
                }));
}

GPUMEM_INLINE LayerIndex GraphBuilder::add(LayerSpec spec, std::vector<Attribute>&& attributes) {
  spec.attributes = attributes;
  const std::optional<std::int64_t> parameters = accept(spec);
  if (!parameters) return static_cast<LayerIndex>(graph_.layers_.size());
  return append(spec, *parameters, share_attributes(attributes, [&] {
                  const Slice slice{static_cast<std::uint32_t>(graph_.attributes_.size()),
                                    static_cast<std::uint32_t>(attributes.size())};
                  std::move(attributes.begin(), attributes.end(), std::back_inserter(graph_.attributes_));
                  return slice;
                }));
}

GPUMEM_INLINE LayerIndex GraphBuilder::add_like(LayerIndex other, std::string_view name,
                                                std::span<const core::Shape> outputs,
                                                std::span<const LayerIndex> inputs, std::int64_t line) {
  const auto index = static_cast<LayerIndex>(graph_.layers_.size());
  if (pace_.late()) fail(core::deadline_error());
  if (failed() || !sound({.name = name, .outputs = outputs, .inputs = inputs, .line = line})) return index;
  Layer layer = graph_.layers_[static_cast<std::size_t>(other)];
  layer.name = keep_text(name);
  layer.scope = scope_;
  layer.line = static_cast<std::uint32_t>(line);
  layer.outputs = graph_builder_detail::append_to(graph_.shapes_, outputs);
  layer.inputs = graph_builder_detail::append_to(graph_.edges_, inputs);
  if (graph_.op_traits(layer) == nullptr) ++graph_.unknown_layers_;
  graph_.layers_.push_back(layer);
  return index;
}

GPUMEM_INLINE void GraphBuilder::open_scope(std::string_view name, std::string_view class_name) {
  const Scope scope{
      .parent = scope_, .name = keep_text(name), .class_name = intern(graph_.class_names_, class_index_, class_name)};
  scope_ = static_cast<std::uint32_t>(graph_.scopes_.size());
  graph_.scopes_.push_back(scope);
}

GPUMEM_INLINE void GraphBuilder::close_scope() {
  Scope& scope = graph_.scopes_[scope_];
  if (scope_ != 0) scope.last = static_cast<std::uint32_t>(graph_.scopes_.size() - 1);
  scope_ = scope.parent;
}

GPUMEM_INLINE void GraphBuilder::mark_block(std::string_view class_name, const core::Shape& output) {
  graph_.block_marks_.push_back({.class_name = intern(graph_.class_names_, class_index_, class_name),
                                 .layers = static_cast<std::uint32_t>(graph_.layers_.size()),
                                 .output = output});
}

GPUMEM_INLINE void GraphBuilder::add_input(GraphInput input) { graph_.graph_inputs_.push_back(std::move(input)); }

GPUMEM_INLINE void GraphBuilder::tie(LayerIndex layer, std::int64_t parameters) {
  if (failed()) return;
  graph_.layers_[static_cast<std::size_t>(layer)].tied_parameters = parameters;
}

GPUMEM_INLINE void GraphBuilder::printed_total(std::int64_t parameters, std::int64_t line) {
  printed_total_ = {parameters, line};
}

GPUMEM_INLINE void GraphBuilder::warn(std::string message, std::int64_t line) {
  // A module that is repeated ("12 x") says the same of each copy.
  const auto same = [&](const Warning& known) { return known.place.line == line && known.message == message; };
  if (std::any_of(graph_.warnings_.begin(), graph_.warnings_.end(), same)) return;
  if (graph_.warnings_.size() >= kMostWarnings) {
    ++more_warnings_;
    return;
  }
  graph_.warnings_.push_back({std::move(message), core::Place{graph_.file_, line, {}}});
}

GPUMEM_INLINE void GraphBuilder::doubt(Doubt doubt) {
  warn(doubt.text, 0);
  graph_.doubts_.push_back(std::move(doubt));
}

GPUMEM_INLINE core::Result<ModelGraph> GraphBuilder::build() && {
  if (graph_.layers_.empty()) {
    fail({core::ErrorCode::malformed_input, "holds no layers", core::Place{graph_.file_, 1, {}}});
  }
  core::Checked all = 0;
  core::Checked trainable = 0;
  for (const Layer& layer : graph_.layers_) {
    if (layer.tied_parameters < 0 || layer.tied_parameters > layer.parameters) {
      fail({core::ErrorCode::malformed_input, "ties more parameters than it holds",
            core::Place{graph_.file_, layer.line, graph_.path(layer)}});
      break;
    }
    const std::int64_t own = layer.parameters - layer.tied_parameters;
    all += own;
    if (!layer.frozen) trainable += own;
  }
  if (!all.valid()) {
    fail({core::ErrorCode::overflow, "the parameters of all layers together do not fit 64 bits", {}});
  }
  if (error_) return std::move(*error_);

  graph_.parameters_ = *all.value();
  graph_.trainable_parameters_ = *trainable.value();
  if (printed_total_ && printed_total_->first != graph_.parameters_) {
    // Put first: of all that a reader may want to know, this one changes the estimate most.
    graph_.warnings_.insert(
        graph_.warnings_.begin(),
        {"the summary prints a total of " + core::with_separators(printed_total_->first) +
             " parameters; its layers hold " + core::with_separators(graph_.parameters_) + ", which is used",
         core::Place{graph_.file_, printed_total_->second, {}}});
  }
  if (more_warnings_ > 0) {
    graph_.warnings_.push_back(
        {"and " + core::with_separators(more_warnings_) + " more warnings", core::Place{graph_.file_, 0, {}}});
  }
  return std::move(graph_);
}

}  // namespace gpumem::model
