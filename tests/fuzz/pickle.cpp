// A pickle, as it is in a checkpoint.
#include "gpumem_datasets/pickle.hpp"

#include "fuzz.hpp"

namespace {

using namespace gpumem;

/// Every value once: what it names is there.
void require_sound(const datasets::Pickle& pickle) {
  std::vector<datasets::PickleIndex> open = {pickle.root()};
  std::vector<bool> seen(datasets::kMostPickleValues, false);
  while (!open.empty()) {
    const datasets::PickleValue& value = pickle.at(open.back());
    open.pop_back();
    fuzz::require(value.kind != datasets::PickleKind::dict || value.items.size() % 2 == 0, "every key has a value");
    if (value.kind == datasets::PickleKind::tensor) {
      const datasets::PickleTensor& tensor = pickle.tensor(value);
      fuzz::require(tensor.shape.size() == tensor.strides.size(), "each dimension has a stride");
      fuzz::require(tensor.shape.size() <= datasets::kMostTensorDimensions, "a shape is short");
    }
    for (const datasets::PickleIndex item : value.items) {
      fuzz::require(item < seen.size(), "there are not more values than said");
      if (!seen[item]) open.push_back(item);
      seen[item] = true;
    }
  }
  fuzz::require(!seen[pickle.root()], "no value holds itself");
}

}  // namespace

GPUMEM_FUZZ_TARGET(pickle) {
  const auto pickle = datasets::parse_pickle(input, "fuzzed.ckpt");
  if (!pickle) {
    require_readable(pickle.error(), input);
    return false;
  }
  ::require_sound(*pickle);
  static_cast<void>(pickle->find(pickle->at(pickle->root()), "state_dict"));
  return true;
}
