// A pickle, as it is in a checkpoint.
#include "gpumem/ml/pickle.hpp"

#include "fuzz.hpp"

namespace {

using namespace gpumem;

/// Every value once: what it names is there.
void require_sound(const ml::Pickle& pickle) {
  std::vector<ml::PickleIndex> open = {pickle.root()};
  std::vector<bool> seen(ml::kMostPickleValues, false);
  while (!open.empty()) {
    const ml::PickleValue& value = pickle.at(open.back());
    open.pop_back();
    fuzz::require(value.kind != ml::PickleKind::dict || value.items.size() % 2 == 0, "every key has a value");
    if (value.kind == ml::PickleKind::tensor) {
      const ml::PickleTensor& tensor = pickle.tensor(value);
      fuzz::require(tensor.shape.size() == tensor.strides.size(), "each dimension has a stride");
      fuzz::require(tensor.shape.size() <= ml::kMostTensorDimensions, "a shape is short");
    }
    for (const ml::PickleIndex item : value.items) {
      fuzz::require(item < seen.size(), "there are not more values than said");
      if (!seen[item]) open.push_back(item);
      seen[item] = true;
    }
  }
  fuzz::require(!seen[pickle.root()], "no value holds itself");
}

}  // namespace

bool gpumem::fuzz::fuzz_one(std::string_view input) {
  const auto pickle = ml::parse_pickle(input, "fuzzed.ckpt");
  if (!pickle) {
    require_readable(pickle.error(), input);
    return false;
  }
  ::require_sound(*pickle);
  static_cast<void>(pickle->find(pickle->at(pickle->root()), "state_dict"));
  return true;
}
