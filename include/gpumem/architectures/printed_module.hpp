// Input: a printed module tree, which shows modules and no calls, and whoever wires it (connect/). Or the rows of a
// table that are a module's, in the order of their calls. Output: Module: one module of it as the code of a forward()
// has it, with parts that are called by their names.
//
// Image models are made of modules that any net may use, so an architecture of them is the forward() of each of its
// classes. What a part is (a batch norm, nothing at all, a module with a forward() of its own) is what the tree prints.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/forward.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::architectures {

/// The modules of a tree, and the tensors between them.
class ModuleCalls {
 public:
  ModuleCalls() = default;
  virtual ~ModuleCalls() = default;
  ModuleCalls(const ModuleCalls&) = delete;
  ModuleCalls& operator=(const ModuleCalls&) = delete;

  /// Calls a layer, or a container as its class does.
  virtual Tensor call(Part part, Tensor input) = 0;
  /// An operation that no line shows; its shape follows from its inputs.
  virtual Tensor operation(std::string_view op, std::span<const Tensor> inputs,
                           std::vector<model::Attribute> attributes) = 0;
  [[nodiscard]] virtual const core::Shape& shape(Tensor tensor) const = 0;
  /// Whether the tensor's channels lie after its pixels, as linear layers and layer norms leave them.
  [[nodiscard]] virtual bool channels_last(Tensor tensor) const = 0;
  /// What is inferred and may be wrong.
  virtual void guess(Part where, std::string message) = 0;
  /// A part may keep this many elements a sample less or more than it is called with.
  virtual void bounded(Part where, std::string message, std::int64_t fewer, std::int64_t more) = 0;

  /// Whether parts are rows of a table, one a call, in their order; a tree shows each module once.
  [[nodiscard]] virtual bool rows_are_calls() const = 0;
  /// Whether a row can read this tensor, as its sizes tell.
  [[nodiscard]] virtual bool can_read(Part row, Tensor tensor) const = 0;
  /// What the parts of the containers around the one that is being called have left, the latest first.
  [[nodiscard]] virtual std::vector<Tensor> left_around() const = 0;

  [[nodiscard]] virtual std::span<const Part> parts(Part container) const = 0;
  [[nodiscard]] virtual std::string_view name(Part part) const = 0;
  [[nodiscard]] virtual std::string_view class_name(Part part) const = 0;
  /// The op of the part's first layer; empty: it is not known.
  [[nodiscard]] virtual std::string_view first_op(Part part) const = 0;
  /// An integer of the first layer in the part that prints one of two attributes.
  [[nodiscard]] virtual std::optional<std::int64_t> first_width(Part part, std::string_view attribute,
                                                                std::string_view other) const = 0;
  /// The last of the sizes that a normalisation prints; nothing for another part.
  [[nodiscard]] virtual std::optional<std::int64_t> printed_width(Part part) const = 0;
  /// Whether a container of this class is being called.
  [[nodiscard]] virtual bool stands_in(std::string_view class_name) const = 0;
};

/// Views the tree, which must outlive it. A name may lead through containers ("attn.qkv").
class Module {
 public:
  Module(ModuleCalls& tree, Part part) : tree_(&tree), part_(part) {}

  /// Calls the part of this name. One that is not there hands its input through.
  Tensor operator()(std::string_view name, Tensor input) const {
    const auto part = find(name);
    return part ? part->call(input) : input;
  }
  /// Calls parts one after the other.
  Tensor operator()(std::initializer_list<std::string_view> names, Tensor input) const {
    for (const std::string_view each : names) input = (*this)(each, input);
    return input;
  }
  /// Calls all of its parts in the order in which they are declared.
  [[nodiscard]] Tensor in_order(Tensor input) const {
    for (const Part part : tree_->parts(part_)) input = tree_->call(part, input);
    return input;
  }
  [[nodiscard]] Tensor call(Tensor input) const { return tree_->call(part_, input); }

  [[nodiscard]] bool has(std::string_view name) const { return find(name).has_value(); }
  [[nodiscard]] std::optional<Module> find(std::string_view name) const {
    const std::size_t dot = name.find('.');
    for (const Module& part : parts()) {
      if (part.name() != name.substr(0, dot)) continue;
      return dot == std::string_view::npos ? part : part.find(name.substr(dot + 1));
    }
    return std::nullopt;
  }
  [[nodiscard]] std::vector<Module> parts() const {
    std::vector<Module> all;
    for (const Part part : tree_->parts(part_)) all.emplace_back(*tree_, part);
    return all;
  }
  /// Those of the part of this name.
  [[nodiscard]] std::vector<Module> parts(std::string_view name) const {
    const auto list = find(name);
    return list ? list->parts() : std::vector<Module>();
  }

  [[nodiscard]] bool is_container() const { return part_.container; }
  [[nodiscard]] std::string_view name() const { return tree_->name(part_); }
  [[nodiscard]] std::string_view class_name() const { return tree_->class_name(part_); }
  [[nodiscard]] std::string_view first_op() const { return tree_->first_op(part_); }
  /// The op of a layer; empty for a container.
  [[nodiscard]] std::string_view op() const { return is_container() ? std::string_view() : first_op(); }
  /// An integer of the first layer of it that prints one of two attributes.
  [[nodiscard]] std::optional<std::int64_t> width(std::string_view attribute, std::string_view other = {}) const {
    return tree_->first_width(part_, attribute, other);
  }
  /// The last of the sizes that it prints as a normalisation; nothing if it is none.
  [[nodiscard]] std::optional<std::int64_t> normed_width() const { return tree_->printed_width(part_); }
  [[nodiscard]] bool stands_in(std::string_view class_name) const { return tree_->stands_in(class_name); }
  [[nodiscard]] bool rows_are_calls() const { return tree_->rows_are_calls(); }
  [[nodiscard]] bool can_read(Tensor tensor) const { return tree_->can_read(part_, tensor); }
  [[nodiscard]] std::vector<Tensor> left_around() const { return tree_->left_around(); }
  /// An operation of any number of tensors.
  [[nodiscard]] Tensor operation(std::string_view op, std::span<const Tensor> inputs,
                                 std::vector<model::Attribute> attributes) const {
    return tree_->operation(op, inputs, std::move(attributes));
  }
  /// It may keep this many elements a sample less or more than it is called with.
  void bounded(std::string message, std::int64_t fewer, std::int64_t more) const {
    tree_->bounded(part_, std::move(message), fewer, more);
  }
  /// Something about it that is inferred and may be wrong.
  void guess(std::string message) const {
    Part part = part_;
    while (part.container && !tree_->parts(part).empty()) part = tree_->parts(part).front();
    if (!part.container) tree_->guess(part, std::move(message));
  }

 private:
  ModuleCalls* tree_;
  Part part_;
};

/// The forward() of the modules of some classes.
struct ModuleForward {
  std::span<const std::string_view> classes;
  Tensor (*call)(Forward& forward, const Module& module, Tensor input) = nullptr;
};

/// The forward() of a class; null: no architecture has it (the list is in architecture_list_inl.hpp).
[[nodiscard]] const ModuleForward* module_forward(std::string_view class_name);

}  // namespace gpumem::architectures
