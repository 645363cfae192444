// Input: bytes of a PyTorch Lightning checkpoint, a zip archive that torch.save wrote (format version 3, PyTorch 1.6
// and newer): PREFIX/data.pkl holds the values, PREFIX/data/KEY the elements of each storage, little-endian.
// Output: LightningCheckpoint: the tensors of its "state_dict" by name, as views of these bytes, and the program that
// wrote it.
//
// No code of the file runs (gpumem_datasets/pickle.hpp), and no element is copied until it is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::datasets {

/// A view of a storage. Every element that shape and strides reach lies within it.
struct StateTensor {
  std::string_view name;
  core::DType dtype = core::DType::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in elements
  std::int64_t offset = 0;            ///< in elements
  std::string_view storage;           ///< its bytes
};

/// Must not outlive the bytes that it was read from.
struct LightningCheckpoint {
  std::string lightning_version;     ///< "2.5.1.post0"
  std::int64_t epoch = 0;            ///< how many were over
  std::vector<StateTensor> tensors;  ///< in the order of the file; no name occurs twice
};

/// Errors: malformed_input, naming the byte, the zip entry or the tensor. `file` is for messages.
[[nodiscard]] core::Result<LightningCheckpoint> read_lightning_checkpoint(std::string_view bytes,
                                                                          std::string_view file = {});

/// The elements of a float32 tensor of read_lightning_checkpoint(), row-major. As many as its shape says: look at that
/// first, for strides of 0 make much of little.
[[nodiscard]] std::vector<float> float32_values(const StateTensor& tensor);

}  // namespace gpumem::datasets
