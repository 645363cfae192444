#include "gpumem_datasets/lightning_checkpoint.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_set>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem_datasets/pickle.hpp"
#include "gpumem_datasets/zip_archive.hpp"

namespace gpumem::datasets {

namespace {

/// Finds the storages of one archive and puts tensors together with them.
class StateReader {
 public:
  StateReader(const ZipArchive& archive, std::string_view prefix, std::string_view file)
      : archive_(archive), prefix_(prefix), file_(file) {}

  [[nodiscard]] core::Error malformed(std::string message) const {
    return {core::ErrorCode::malformed_input, std::move(message), core::Place{std::string(file_), 0, {}}};
  }

  [[nodiscard]] core::Result<StateTensor> tensor(std::string_view name, const PickleTensor& said) const {
    const auto fault = [&](const std::string& what) {
      return malformed("its tensor " + core::quoted(name) + " " + what);
    };
    const std::string entry_name = prefix_ + "/data/" + std::string(said.storage);
    const ZipEntry* entry = archive_.find(entry_name);
    if (entry == nullptr) return fault("lies in the storage " + core::quoted(said.storage) + ", which is not there");
    const auto bytes = (core::Checked(said.storage_elements) * core::element_size(said.dtype)).value();
    if (bytes != static_cast<std::int64_t>(entry->data.size())) {
      return fault("lies in the storage " + core::quoted(said.storage) + ", which is not as long as it should be");
    }
    const std::optional<std::int64_t> end = end_of(said);
    if (!end || *end > said.storage_elements) return fault("reaches beyond its storage");
    return StateTensor{name, said.dtype, said.shape, said.strides, said.offset, entry->data};
  }

 private:
  /// The first element after all that the tensor reaches; nothing if that does not fit 64 bits.
  static std::optional<std::int64_t> end_of(const PickleTensor& tensor) {
    core::Checked last = tensor.offset;
    core::Checked elements = 1;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      if (tensor.shape[axis] == 0) return tensor.offset;
      if (tensor.shape[axis] > 1) last += core::Checked(tensor.shape[axis] - 1) * tensor.strides[axis];
      elements *= tensor.shape[axis];
    }
    if (!elements.valid()) return std::nullopt;
    return (last + 1).value();
  }

  const ZipArchive& archive_;
  std::string prefix_;
  std::string_view file_;
};

/// PREFIX of the archive's one PREFIX/data.pkl; empty if there is none, or several.
std::string_view prefix_of(const ZipArchive& archive) {
  constexpr std::string_view kSuffix = "/data.pkl";
  std::string_view prefix;
  for (const ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(kSuffix)) continue;
    if (!prefix.empty()) return {};
    prefix = entry.name.substr(0, entry.name.size() - kSuffix.size());
  }
  return prefix;
}

/// Goes into files of ours, so it must be plain.
bool is_version(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  constexpr std::string_view kAlphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_";
  return !text.empty() && text.size() <= kLongest && text.find_first_not_of(kAlphabet) == std::string_view::npos;
}

}  // namespace

core::Result<LightningCheckpoint> read_lightning_checkpoint(std::string_view bytes, std::string_view file) {
  const auto archive = ZipArchive::open(bytes, file);
  if (!archive) return archive.error();
  const std::string_view prefix = prefix_of(*archive);
  const StateReader reader(*archive, prefix, file);
  if (prefix.empty()) return reader.malformed("is a zip archive, but not of torch.save: it has not just one data.pkl");
  const ZipEntry* order = archive->find(std::string(prefix) + "/byteorder");
  if (order != nullptr && order->data != "little") return reader.malformed("was written by a big-endian machine");
  const auto pickle = parse_pickle(archive->find(std::string(prefix) + "/data.pkl")->data, file);
  if (!pickle) return pickle.error();

  const PickleValue& root = pickle->at(pickle->root());
  const PickleValue* version = pickle->find(root, "pytorch-lightning_version");
  const PickleValue* epoch = pickle->find(root, "epoch");
  const PickleValue* state = pickle->find(root, "state_dict");
  const bool sound = version != nullptr && version->kind == PickleKind::text && epoch != nullptr &&
                     epoch->kind == PickleKind::integer && state != nullptr && state->kind == PickleKind::dict;
  if (!sound || !is_version(version->text)) {
    return reader.malformed(
        "is not a checkpoint of PyTorch Lightning: it lacks a state_dict, an epoch or pytorch-lightning_version");
  }
  LightningCheckpoint found = {std::string(version->text), epoch->integer, {}};
  std::unordered_set<std::string_view> names;
  for (std::size_t index = 0; index < state->items.size(); index += 2) {
    const PickleValue& name = pickle->at(state->items[index]);
    const PickleValue& value = pickle->at(state->items[index + 1]);
    if (name.kind != PickleKind::text || value.kind != PickleKind::tensor) {
      return reader.malformed("has a state_dict that holds more than tensors by name");
    }
    if (!names.insert(name.text).second) {
      return reader.malformed("has a state_dict with two tensors " + core::quoted(name.text));
    }
    auto tensor = reader.tensor(name.text, pickle->tensor(value));
    if (!tensor) return tensor.error();
    found.tensors.push_back(*std::move(tensor));
  }
  return found;
}

std::vector<float> float32_values(const StateTensor& tensor) {
  // Empty: the other axes may then be of any length.
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return {};
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= size;
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(elements));
  std::vector<std::int64_t> at(tensor.shape.size(), 0);
  std::int64_t position = tensor.offset;
  while (values.size() < static_cast<std::size_t>(elements)) {
    constexpr std::size_t kSize = sizeof(float);
    const std::uint64_t bits = little_endian(tensor.storage, static_cast<std::size_t>(position) * kSize, kSize);
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    // The next index, the last axis first. The stride of an axis of one element means nothing.
    for (std::size_t axis = at.size(); axis-- > 0;) {
      if (tensor.shape[axis] == 1) continue;
      position += tensor.strides[axis];
      if (++at[axis] < tensor.shape[axis]) break;
      position -= tensor.shape[axis] * tensor.strides[axis];
      at[axis] = 0;
    }
  }
  return values;
}

}  // namespace gpumem::datasets
