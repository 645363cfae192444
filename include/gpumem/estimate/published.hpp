// Input: a job and a GPU.
// Output: its memory by estimators that others published, each as it was published, including its mistakes: Horus,
// FakeTensor, the states of the model by formula, DeepSpeed's ZeRO, GPUMemNet. They are the baselines that the replay
// is measured against.
// Units: bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/trained_model.hpp"

namespace gpumem::estimate {

// Input: a job.
// Output: Horus' estimate of its device memory, as published, including its mistakes.
//
// Yeung et al., "Horus: Interference-Aware and Prediction-Based Scheduling in Deep Learning Systems",
// IEEE TPDS 33(1), 2022:
//
//   M = ((B A + P) + B G + d) e
//
//   B  batch size                      A  activations of one sample, elements
//   P  parameters, elements            G  gradients, elements (= P)
//   d  initialisation overhead         e  bytes an element
//
// Its faults: gradients do not grow with the batch, the optimizer's state and workspaces are left out, and the
// allocator's rounding is. It is the baseline that the other estimators are measured against.
//
// What the formula leaves open is set as in the implementation that CARMA evaluated: solving its published
// estimates for VGG-16, ResNet-50 and MobileNetV2 (batch 32 and 128) gives d e = 800 MiB, and A as the
// outputs of all layers that compute (convolution, linear, normalisation, activation, adaptive pooling, ...),
// without dropout, window poolings and changes of shape. That implementation sees the modules that a summary shows. So
// the sums and products that connect/ infers between them (a residual block's sum) are not in A either; an addition
// that a summary shows as a layer of its own is.

class Horus final : public Estimator {
 public:
  static constexpr std::string_view kName = "horus";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
};

// Input: a job.
// Output: the most that its tensors take at once, as PyTorch's FakeTensorMode counts it on a machine without a GPU:
// live storages to the byte, without libraries' workspaces, the allocator's rounding or a context.
// Units: bytes.
// Source: PyTorch 1.13.1, step for step as bench/references/fake_tensor.py measures it.
//
// It says what the tensors need and not what a GPU gives for them: CPU kernels keep more for dropout, less for
// attention. Its worth is that it can be checked anywhere to the byte, against the peaks in tests/golden/fake_tensor.
//
// For a recording it is the peak under the PyTorch that recorded the step, with a GPU's kernels: fused attention, masks
// of bytes. That is how to have the figure of PyTorch 2.x's attention.

class FakeTensor final : public Estimator {
 public:
  static constexpr std::string_view kName = "fake-tensor";
  static constexpr std::string_view kOptimizerName = "fake-tensor-optimizer";

  /// Which step's peak is the estimate.
  enum class Step : std::uint8_t {
    forward_backward,  ///< the first step, of a job without an optimizer
    with_optimizer,    ///< the second step: the optimizer's state exists
  };

  explicit FakeTensor(Step step = Step::forward_backward) : step_(step) {}

  [[nodiscard]] std::string_view name() const override {
    return step_ == Step::with_optimizer ? kOptimizerName : kName;
  }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;

  Step step_;
};

// Input: the bytes of a model's states.
// Output: the estimate of a formula that counts only these: a lower bound.
// Units: bytes on one GPU.

struct StateBytes {
  core::Checked parameters = 0;
  core::Checked gradients = 0;
  core::Checked optimizer = 0;  ///< its state, and master weights in addition to the parameters
};

/// Errors: overflow if the sum does not fit 64 bits.
[[nodiscard]] core::Result<MemoryEstimate> estimate_of(const StateBytes& bytes);

// Input: a job.
// Output: what its model states take on each GPU: weights, gradients and the optimizer's state. This is a lower bound:
// it leaves out activations, workspaces, buffers, the allocator's rounding and the CUDA context.
// Units: bytes.
//
//   M = P w + T w + S w
//
//   P  parameters, elements; each tied one once     T  those of them that are trained
//   S  elements that the optimizer keeps: T times the states of its row in model/optimizers.hpp (sgd 0, adam 2); of a
//      matrix adafactor keeps rows + columns, in float32
//   w  bytes an element: 2 in pure bf16, else 4. Under autocast (amp-fp16, amp-bf16) the parameters are themselves the
//      float32 master weights, and gradients and state are float32 as they are; its 16-bit copies are activations.
//
// Source: torch.optim (PyTorch 2.x) and lion-pytorch, tensor by tensor as plan/step_plan.hpp takes them; left out are
// the counters of 4 bytes that the fused optimizers keep a tensor. For Adam in float32 that is 16 bytes a parameter;
// Accelerate's "estimate-memory" says four times the weights and buffers.
//
// Copies of the model that train in parallel hold all of it each: Layout::data_parallel changes nothing.

class ModelStates final : public Estimator {
 public:
  static constexpr std::string_view kName = "model-states";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] bool takes_data_parallel() const override { return true; }
};

// Input: a job on N GPUs that train in parallel.
// Output: what its model states take on each GPU when ZeRO shares them, by the published formulas, including their
// mistakes. This is a lower bound: it leaves out activations, communication buffers, workspaces, the allocator's
// rounding and the CUDA context.
// Units: bytes.
//
//   P  parameters, elements; each tied one once     L  parameters of the largest layer     N Layout::data_parallel
//
//   zero-1              2 P + 2 P + 12 P / N     optimizer states shared
//   zero-1-offload      2 P + 2 P                they are in the host's memory
//   zero-2              2 P + 18 P / N           gradients shared as well
//   zero-2-offload      2 P                      gradients and optimizer states are in the host's memory
//   zero-3              4 L + 18 P / N           parameters shared as well; the largest layer is gathered
//   zero-3-offload      4 L + 2 P / N            optimizer states are in the host's memory
//   zero-3-offload-all  4 L                      and so are the parameters
//
// Training is DeepSpeed's, whatever the job's own: parameters of 16 bits (2 bytes), gradients of 16 bits (2) that
// become float32 for the optimizer's step (4), float32 master weights (4), Adam's momentum and variance in float32 (8).
// A job of another precision or optimizer is marked (MemoryEstimate::out_of_domain).
//
// Sources. zero-1: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC'20,
// section 5.1 (P_os; 2 + 2 + K bytes, K = 12), where gradients stay at 2 bytes; DeepSpeed publishes no function for it,
// and offloading takes away the shared term. The others: DeepSpeed's estimate_zero2_model_states_mem_needs and
// estimate_zero3_model_states_mem_needs, as of its pull request 5099 (April 2024), with divisions rounded down as
// there; before it, and in the tables of its documentation still, zero-2 was 4 P + 16 P / N.

class ZeroStates final : public Estimator {
 public:
  enum class Kind : std::uint8_t { one, one_offload, two, two_offload, three, three_offload, three_offload_all };

  static constexpr std::string_view kOneName = "zero-1";
  static constexpr std::string_view kOneOffloadName = "zero-1-offload";
  static constexpr std::string_view kTwoName = "zero-2";
  static constexpr std::string_view kTwoOffloadName = "zero-2-offload";
  static constexpr std::string_view kThreeName = "zero-3";
  static constexpr std::string_view kThreeOffloadName = "zero-3-offload";
  static constexpr std::string_view kThreeOffloadAllName = "zero-3-offload-all";

  explicit ZeroStates(Kind kind) : kind_(kind) {}

  [[nodiscard]] std::string_view name() const override;

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] bool takes_data_parallel() const override { return true; }

  Kind kind_;
};

// Input: a training job.
// Output: the memory bin that a trained classifier predicts. The classifiers are ensembles of small perceptrons, or of
// Transformer encoders over the sequence of layers.
// Source: GPUMemNet (itu-rad/GPUMemNet). gpumem trained its own models (models/, each with its card); the published
// ones can be imported (`gpumem model import`).
//
// `lower` and `upper` are the edges of the most likely bin, `expected` is its middle; the probabilities of all bins
// are in MemoryEstimate::bins. A figure of a classifier is of the device (what nvidia-smi shows) on the GPU and with
// the software that its training runs were measured on. A job unlike these, feature by feature, is answered with
// MemoryEstimate::out_of_domain set.

class Gpumemnet final : public Estimator {
 public:
  static constexpr std::string_view kMlpName = "gpumemnet-mlp";
  static constexpr std::string_view kTransformerName = "gpumemnet-transformer";

  /// `name` is kMlpName or kTransformerName. Each job is answered by the first of the models that is for its kind of
  /// net, else by the first at all. Errors: invalid_argument for no models, or one that is no classifier.
  [[nodiscard]] static core::Result<std::unique_ptr<Estimator>> create(std::string_view name,
                                                                       std::vector<ml::TrainedModel> models,
                                                                       device::AllocatorOptions options = {});

  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  struct Classifier {
    ml::TrainedModel model;
    ml::FeatureReader reader;
  };

  Gpumemnet(std::string_view name, device::AllocatorOptions options) : name_(name), options_(options) {}

  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                         const device::GpuProfile& gpu) const override;
  [[nodiscard]] const Classifier& classifier_for(ml::NetKind kind) const;

  std::string_view name_;
  device::AllocatorOptions options_;
  std::vector<Classifier> classifiers_;
};

}  // namespace gpumem::estimate
