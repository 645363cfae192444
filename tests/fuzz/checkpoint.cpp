// A checkpoint: as the whole file, and as the pickle of a file that is sound otherwise, for no mutation of a zip
// archive finds the checksum of its data.
#include "checkpoints.hpp"
#include "fuzz.hpp"
#include "gpumem_datasets/gpumemnet_checkpoint.hpp"
#include "gpumem_datasets/lightning_checkpoint.hpp"

namespace {

using namespace gpumem;

bool read_one(std::string_view bytes, std::string_view input) {
  const auto checkpoint = datasets::read_lightning_checkpoint(bytes, "fuzzed.ckpt");
  if (!checkpoint) {
    fuzz::require_readable(checkpoint.error(), input);
    return false;
  }
  for (const datasets::StateTensor& tensor : checkpoint->tensors) {
    if (tensor.dtype != core::DType::float32) continue;
    constexpr std::int64_t kMostElements = 4096;
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape)
      elements = std::min(elements, kMostElements) * std::min(size, kMostElements);
    if (elements > kMostElements) continue;
    fuzz::require(static_cast<std::int64_t>(datasets::float32_values(tensor).size()) == elements,
                  "a tensor has its elements");
  }
  const auto imported = datasets::import_gpumemnet(bytes, "fuzzed.ckpt");
  if (!imported) fuzz::require_readable(imported.error(), input);
  return true;
}

}  // namespace

GPUMEM_FUZZ_TARGET(checkpoint) {
  const bool whole = read_one(input, input);
  const std::string storage(16, '\x3F');
  const std::string around = testing::zip_of({{"archive/data.pkl", std::string(input), 16, true},
                                              {"archive/data/0", storage, 8, true},
                                              {"archive/data/1", storage.substr(0, 8), 8, true}});
  return read_one(around, input) || whole;
}
