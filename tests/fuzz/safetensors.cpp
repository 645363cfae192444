// A file of weights.
#include "gpumem/ml/network.hpp"

#include "fuzz.hpp"

namespace {

using gpumem::fuzz::require;

std::size_t elements_of(const gpumem::ml::Tensor& tensor) {
  std::size_t elements = 1;
  for (const std::int64_t size : tensor.shape) {
    require(size >= 0, "no size is negative");
    elements *= static_cast<std::size_t>(size);
  }
  return elements;
}

}  // namespace

GPUMEM_FUZZ_TARGET(safetensors) {
  const auto file = ml::parse_safetensors(input, "fuzzed.safetensors");
  if (!file) {
    require_readable(file.error(), input);
    return false;
  }
  std::size_t data = 0;
  for (const ml::Tensor& tensor : file->tensors) {
    require(!tensor.name.empty(), "a tensor has a name");
    require(tensor.values.size() == elements_of(tensor), "a tensor has the values that its shape says");
    require(file->find(tensor.name) == &tensor, "a tensor is found by its name");
    data += tensor.values.size() * sizeof(float);
  }
  require(data <= input.size(), "values are bytes of the file");
  // Values may be NaN, so that bytes are compared.
  const std::string written = ml::write_safetensors(*file);
  require(written.ends_with(input.substr(input.size() - data)), "the data is written as it was read");
  const auto again = ml::parse_safetensors(written);
  require(again.has_value(), "the reader reads what the writer wrote");
  require(again->metadata == file->metadata, "metadata survives the round trip");
  require(ml::write_safetensors(*again) == written, "a file is written twice alike");
  return true;
}
