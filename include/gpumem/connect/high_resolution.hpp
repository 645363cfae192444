// HRNet: branches of several resolutions side by side, which exchange what they made at the end of each module. What
// flows between modules is a list of tensors, which one walk over the whole model keeps. Source: timm 1.0.9,
// timm.models.hrnet.HighResolutionNet.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace high_resolution_detail {

using Branches = std::vector<Tensor>;

/// Every output is a sum over all branches, each put through its own layers.
inline Branches fused(Wiring& wiring, const Container& module, const Branches& inputs) {
  const auto layers = wiring.child(module, "fuse_layers");
  const Calls calls(wiring, module);
  Branches outputs;
  if (!layers || !layers->container) return inputs;
  for (const Part& row : wiring.container(*layers).parts) {
    if (!row.container) continue;
    std::optional<Tensor> sum;
    const std::vector<Part>& parts = wiring.container(row).parts;
    for (std::size_t from = 0; from < parts.size() && from < inputs.size(); ++from) {
      const Tensor each = wiring.call(parts[from], inputs[from]);
      if (wiring.failed()) return inputs;
      sum = sum ? wiring.add(*sum, each, false) : each;
    }
    if (sum) outputs.push_back(calls("fuse_act", *sum));
  }
  return outputs.empty() ? inputs : outputs;
}

inline Branches call_module(Wiring& wiring, const Container& module, Branches inputs) {
  const auto branches = wiring.child(module, "branches");
  if (!branches || !branches->container) return inputs;
  const std::vector<Part>& parts = wiring.container(*branches).parts;
  for (std::size_t index = 0; index < parts.size() && index < inputs.size(); ++index) {
    inputs[index] = wiring.call(parts[index], inputs[index]);
  }
  return wiring.failed() || parts.size() == 1 ? inputs : fused(wiring, module, inputs);
}

/// A transition makes the branches of the next stage: of the same branch, or of the last one.
inline Branches call_transition(Wiring& wiring, const Container& transition, const Branches& inputs) {
  Branches outputs;
  for (std::size_t index = 0; index < transition.parts.size() && !inputs.empty(); ++index) {
    const Tensor from = index < inputs.size() ? inputs[index] : inputs.back();
    outputs.push_back(wiring.call(transition.parts[index], from));
  }
  return outputs.empty() ? inputs : outputs;
}

/// The classifier's modules: each resolution is widened, and added to the next finer one made smaller.
inline Tensor call_head(Wiring& wiring, const Container& model, const Branches& branches) {
  const auto widen = wiring.child(model, "incre_modules");
  const auto shrink = wiring.child(model, "downsamp_modules");
  if (!widen || !shrink || !widen->container || !shrink->container) return branches.front();
  const std::vector<Part>& wide = wiring.container(*widen).parts;
  const std::vector<Part>& small = wiring.container(*shrink).parts;
  if (wide.empty()) return branches.front();
  Tensor output = wiring.call(wide.front(), branches.front());
  for (std::size_t at = 0; at < small.size() && at + 1 < wide.size() && at + 1 < branches.size(); ++at) {
    const Tensor next = wiring.call(wide[at + 1], branches[at + 1]);
    const Tensor shrunk = wiring.call(small[at], output);
    if (wiring.failed()) return output;
    output = wiring.add(next, shrunk, false);
  }
  return output;
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  if (wiring.called()) return wiring.chain(model.parts, input);
  Branches branches = {input};
  for (const Part& part : model.parts) {
    if (wiring.failed()) return input;
    const std::string_view name = wiring.name(part);
    if (name.starts_with("transition") && part.container) {
      branches = call_transition(wiring, wiring.container(part), branches);
    } else if (name.starts_with("stage") && part.container) {
      for (const Part& module : wiring.container(part).parts) {
        if (module.container) branches = call_module(wiring, wiring.container(module), branches);
      }
    } else if (name == "incre_modules") {
      branches = {call_head(wiring, model, branches)};
    } else if (name != "downsamp_modules") {
      branches[0] = wiring.call(part, branches[0]);
    }
  }
  return branches.front();
}

inline constexpr std::array<std::string_view, 1> kModels = {"HighResolutionNet"};

}  // namespace high_resolution_detail

inline constexpr std::array<BlockRule, 1> kHighResolutionBlocks = {
    {{high_resolution_detail::kModels, high_resolution_detail::wire_model, nullptr}}};

}  // namespace gpumem::connect
