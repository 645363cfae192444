#pragma once

#include "gpumem/estimate/estimators.hpp"

#include <array>
#include <type_traits>

#include "gpumem/estimate/published.hpp"
#include "gpumem/estimate/replay.hpp"
#include "gpumem/ml/trained_model.hpp"

namespace gpumem::estimate {

namespace estimators_detail {

template <typename Kind>
core::Result<std::unique_ptr<Estimator>> create(const EstimatorOptions& options) {
  if constexpr (std::is_constructible_v<Kind, device::AllocatorOptions>) {
    return std::unique_ptr<Estimator>(std::make_unique<Kind>(options.allocator));
  } else {
    return std::unique_ptr<Estimator>(std::make_unique<Kind>());
  }
}

template <FakeTensor::Step Step>
core::Result<std::unique_ptr<Estimator>> create_fake_tensor(const EstimatorOptions& /*options*/) {
  return std::unique_ptr<Estimator>(std::make_unique<FakeTensor>(Step));
}

template <ZeroStates::Kind Kind>
core::Result<std::unique_ptr<Estimator>> create_zero(const EstimatorOptions& /*options*/) {
  return std::unique_ptr<Estimator>(std::make_unique<ZeroStates>(Kind));
}

template <const std::string_view& Name>
core::Result<std::unique_ptr<Estimator>> create_gpumemnet(const EstimatorOptions& options) {
  std::vector<ml::TrainedModel> models;
  if (options.model.empty()) {
    core::Result<std::vector<ml::TrainedModel>> builtin = ml::find_models(std::string(Name) + "-");
    if (!builtin) return builtin.error();
    models = *std::move(builtin);
  } else {
    core::Result<ml::TrainedModel> model = ml::find_model(options.model);
    if (!model) return model.error();
    models.push_back(*std::move(model));
  }
  return Gpumemnet::create(Name, std::move(models), options.allocator);
}

GPUMEM_INLINE core::Result<std::unique_ptr<Estimator>> create_corrected(const EstimatorOptions& options) {
  constexpr std::string_view kBuiltin = "replay-corrector-cnn";
  core::Result<ml::TrainedModel> model = ml::find_model(options.model.empty() ? kBuiltin : options.model);
  if (!model) return model.error();
  return CorrectedReplay::create(*std::move(model), options.allocator);
}

inline constexpr std::array<EstimatorEntry, 15> kAll = {{
    {Replay::kName, "replay of PyTorch's caching allocator over a plan of the training steps", create<Replay>},
    {CorrectedReplay::kName, "the replay, corrected for CNNs by a model trained on measured runs", create_corrected},
    {Horus::kName, "Horus' published formula, with its mistakes: a baseline", create<Horus>},
    {FakeTensor::kName, "peak of live tensors in forward and backward, as FakeTensorMode counts it without a GPU",
     create_fake_tensor<FakeTensor::Step::forward_backward>},
    {FakeTensor::kOptimizerName, "the same in the second step, with the optimizer",
     create_fake_tensor<FakeTensor::Step::with_optimizer>},
    {Gpumemnet::kMlpName,
     "memory bin by ensembles of small perceptrons, trained on measured MLPs and CNNs and simulated Transformers",
     create_gpumemnet<Gpumemnet::kMlpName>},
    {Gpumemnet::kTransformerName,
     "the same by ensembles of Transformer encoders over the layers, trained on the same jobs",
     create_gpumemnet<Gpumemnet::kTransformerName>},
    {ModelStates::kName, "only weights, gradients and optimizer state: a lower bound", create<ModelStates>},
    {ZeroStates::kOneName, "model states on each GPU under ZeRO-1, by the paper: a lower bound",
     create_zero<ZeroStates::Kind::one>},
    {ZeroStates::kOneOffloadName, "the same, optimizer states in the host's memory",
     create_zero<ZeroStates::Kind::one_offload>},
    {ZeroStates::kTwoName, "model states on each GPU under ZeRO-2, by DeepSpeed's formula: a lower bound",
     create_zero<ZeroStates::Kind::two>},
    {ZeroStates::kTwoOffloadName, "the same, gradients and optimizer states in the host's memory",
     create_zero<ZeroStates::Kind::two_offload>},
    {ZeroStates::kThreeName, "model states on each GPU under ZeRO-3, by DeepSpeed's formula: a lower bound",
     create_zero<ZeroStates::Kind::three>},
    {ZeroStates::kThreeOffloadName, "the same, optimizer states in the host's memory",
     create_zero<ZeroStates::Kind::three_offload>},
    {ZeroStates::kThreeOffloadAllName, "the same, the parameters too",
     create_zero<ZeroStates::Kind::three_offload_all>},
}};

}  // namespace estimators_detail

GPUMEM_INLINE std::span<const EstimatorEntry> estimators() { return estimators_detail::kAll; }

GPUMEM_INLINE core::Result<std::unique_ptr<Estimator>> make_estimator(std::string_view name,
                                                                      const EstimatorOptions& options) {
  std::string names;
  for (const EstimatorEntry& entry : estimators()) {
    if (entry.name == name) return entry.create(options);
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no estimator " + core::quoted(name) + "; choose one of " + names,
                     {}};
}

}  // namespace gpumem::estimate
