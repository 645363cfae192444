// Writes what the reader of checkpoints reads: pickles opcode by opcode, zip archives, and small Lightning checkpoints
// such as torch.save makes them. Also wrongly, where a test asks for it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem_datasets/zip_archive.hpp"

namespace gpumem::testing {

inline std::string little_endian(std::uint64_t value, int width) {
  std::string bytes;
  for (int index = 0; index < width; ++index) {
    bytes += static_cast<char>(value);
    value >>= 8U;
  }
  return bytes;
}

/// Opcodes of protocol 2, as text: pickle_text("a") + ... ; see docs.python.org/3/library/pickletools.
inline const std::string kProto = "\x80\x02";
inline std::string pickle_text(std::string_view text) {
  return "X" + little_endian(text.size(), 4) + std::string(text);
}
inline std::string pickle_integer(std::int64_t value) {
  return "J" + little_endian(static_cast<std::uint32_t>(value), 4);
}
inline std::string pickle_global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string pickle_tuple(const std::vector<std::int64_t>& values) {
  std::string tuple = "(";
  for (const std::int64_t value : values) tuple += pickle_integer(value);
  return tuple + "t";
}
inline const std::string kEmptyOrderedDict = pickle_global("collections", "OrderedDict") + ")R";

/// ("storage", type, key, "cpu", elements) as a persistent id.
inline std::string pickle_storage(std::string_view type, std::string_view key, std::int64_t elements) {
  return "(" + pickle_text("storage") + pickle_global("torch", type) + pickle_text(key) + pickle_text("cpu") +
         pickle_integer(elements) + "tQ";
}

/// A call of _rebuild_tensor_v2.
inline std::string pickle_tensor(const std::string& storage, std::int64_t offset,
                                 const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  return pickle_global("torch._utils", "_rebuild_tensor_v2") + "(" + storage + pickle_integer(offset) +
         pickle_tuple(shape) + pickle_tuple(strides) + "\x89" + kEmptyOrderedDict + "tR";
}

struct ZipItem {
  std::string name;
  std::string data;
  std::size_t padding = 0;    ///< bytes of an extra field before the data
  bool sizes_behind = false;  ///< a data descriptor instead of sizes in the local header
  bool zip64 = false;         ///< sizes and offset in zip64 fields
};

/// A zip archive of stored entries; with the end record of zip64, as torch.save's writer leaves it, if asked.
inline std::string zip_of(const std::vector<ZipItem>& items, bool zip64_end = false) {
  constexpr std::uint64_t kElsewhere = 0xFFFFFFFF;
  std::string bytes;
  std::string directory;
  for (const ZipItem& item : items) {
    const std::uint64_t size = item.data.size();
    const std::string crc = little_endian(datasets::crc32(item.data), 4);
    const std::string stated = little_endian(item.zip64 ? kElsewhere : size, 4);
    const std::string kind = little_endian(item.sizes_behind ? 0x0808 : 0, 2) + little_endian(0, 6);
    const std::string wide = little_endian(size, 8) + little_endian(size, 8);
    const std::string offset = little_endian(bytes.size(), 8);
    std::string local_extra = item.zip64 && !item.sizes_behind ? little_endian(1, 2) + little_endian(16, 2) + wide : "";
    if (item.padding >= 4)
      local_extra += "FB" + little_endian(item.padding - 4, 2) + std::string(item.padding - 4, 'Z');
    const std::string extra = item.zip64 ? little_endian(1, 2) + little_endian(24, 2) + wide + offset : "";
    directory += "PK\1\2" + little_endian(0, 4) + kind + crc + stated + stated + little_endian(item.name.size(), 2) +
                 little_endian(extra.size(), 2) + little_endian(0, 10) +
                 (item.zip64 ? little_endian(kElsewhere, 4) : offset.substr(0, 4)) + item.name + extra;
    bytes += "PK\3\4" + little_endian(0, 2) + kind +
             (item.sizes_behind ? little_endian(0, 12) : crc + stated + stated) + little_endian(item.name.size(), 2) +
             little_endian(local_extra.size(), 2) + item.name + local_extra + item.data;
    if (item.sizes_behind) bytes += "PK\7\x8" + crc + (item.zip64 ? wide : stated + stated);
  }
  const std::uint64_t begin = bytes.size();
  const std::string place = little_endian(directory.size(), 4) + little_endian(begin, 4);
  bytes += directory;
  if (zip64_end) {
    const std::string record = little_endian(bytes.size(), 8);
    bytes += "PK\6\6" + little_endian(44, 8) + little_endian(0, 12) + little_endian(items.size(), 8) +
             little_endian(items.size(), 8) + little_endian(directory.size(), 8) + little_endian(begin, 8);
    bytes += "PK\6\7" + little_endian(0, 4) + record + little_endian(1, 4);
  }
  return bytes + "PK\5\6" + little_endian(0, 4) + little_endian(items.size(), 2) + little_endian(items.size(), 2) +
         place + little_endian(0, 2);
}

/// A Lightning checkpoint, tensor by tensor.
class CheckpointWriter {
 public:
  /// Contiguous float32 values in a storage of their own.
  void add(const std::string& name, const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    const std::string key = std::to_string(storages_.size());
    std::string bytes(values.size() * sizeof(float), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    storages_.push_back({"archive/data/" + key, std::move(bytes), 8, true});
    state_ +=
        pickle_text(name) +
        pickle_tensor(pickle_storage("FloatStorage", key, static_cast<std::int64_t>(values.size())), 0, shape, strides);
  }

  /// An int64 scalar, such as a batch norm's num_batches_tracked.
  void add_count(const std::string& name, std::int64_t value) {
    const std::string key = std::to_string(storages_.size());
    storages_.push_back({"archive/data/" + key, little_endian(static_cast<std::uint64_t>(value), 8), 8, true});
    state_ += pickle_text(name) + pickle_tensor(pickle_storage("LongStorage", key, 1), 0, {}, {});
  }

  /// Anything in the state dict: the opcodes of a key and a value.
  void add_raw(const std::string& opcodes) { state_ += opcodes; }
  void add_storage(const std::string& key, std::string bytes) {
    storages_.push_back({"archive/data/" + key, std::move(bytes), 8, true});
  }

  [[nodiscard]] std::string bytes() const {
    const std::string metadata = "}" + pickle_text("_metadata") + kEmptyOrderedDict + "sb";
    const std::string pickle = kProto + "}(" + pickle_text("epoch") + pickle_integer(7) +
                               pickle_text("pytorch-lightning_version") + pickle_text("2.4.0") +
                               pickle_text("state_dict") + kEmptyOrderedDict + "(" + state_ + "u" + metadata + "u.";
    std::vector<ZipItem> items = {{"archive/data.pkl", pickle, 16, true}, {"archive/byteorder", "little", 4, true}};
    items.insert(items.end(), storages_.begin(), storages_.end());
    items.push_back({"archive/version", "3\n", 4, true});
    return zip_of(items, true);
  }

 private:
  std::string state_;
  std::vector<ZipItem> storages_;
};

/// Writes the layers of one of GPUMemNet's networks under the names that PyTorch gives them there, with values that
/// differ from tensor to tensor.
class GpumemnetWriter {
 public:
  /// Members of these depths: hidden widths 8, 4, 4, ...
  void ensemble(const std::string& prefix, const std::vector<int>& depths, std::int64_t in, std::int64_t outputs) {
    for (std::size_t member = 0; member < depths.size(); ++member) {
      const std::string name = prefix + "models." + std::to_string(member) + ".model.";
      std::int64_t width = in;
      for (int layer = 0; layer < depths[member]; ++layer) {
        const std::int64_t hidden = layer == 0 ? 8 : 4;
        linear(name + std::to_string(3 * layer), hidden, width);
        batch_norm(name + std::to_string(3 * layer + 1), hidden);
        width = hidden;
      }
      linear(name + std::to_string(3 * depths[member]), outputs, width);
    }
  }

  void encoder(const std::string& prefix, std::int64_t positions, std::int64_t columns, std::int64_t width,
               int layers) {
    std::vector<float> encoding;
    for (std::int64_t position = 0; position < positions; ++position) {
      for (std::int64_t column = 0; column < width; ++column) {
        const double exponent = static_cast<double>(column / 2 * 2) / static_cast<double>(width);
        const double angle = static_cast<double>(position) / std::pow(10'000.0, exponent);
        encoding.push_back(static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle)));
      }
    }
    if (wrong_encoding) encoding[5] += 0.01F;
    checkpoint.add(prefix + "positional_encoding", {1, positions, width}, encoding);
    linear(prefix + "embedding.0", width, columns);
    batch_norm(prefix + "embedding.1", positions);
    linear(prefix + "embedding.3", width, width);
    batch_norm(prefix + "embedding.4", positions);
    for (int layer = 0; layer < layers; ++layer) {
      const std::string name = prefix + "transformer_encoder.layers." + std::to_string(layer) + ".";
      add(name + "self_attn.in_proj_weight", {3 * width, width});
      add(name + "self_attn.in_proj_bias", {3 * width});
      linear(name + "self_attn.out_proj", width, width);
      linear(name + "linear1", 4, width);
      linear(name + "linear2", width, 4);
      for (const char* norm : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"}) add(name + norm, {width});
    }
  }

  void linear(const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  }
  void batch_norm(const std::string& name, std::int64_t channels) {
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) add(name + part, {channels});
    checkpoint.add_count(name + ".num_batches_tracked", 100);
  }
  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    std::vector<float> values;
    for (std::int64_t index = 0; index < elements; ++index) {
      values.push_back(0.05F + static_cast<float>((7 * tensors_ + 3 * index) % 11) / 8.0F);
    }
    if (tensors_ == 0 && first_value) values[0] = *first_value;
    ++tensors_;
    checkpoint.add(name, shape, values);
  }

  CheckpointWriter checkpoint;
  bool wrong_encoding = false;
  std::optional<float> first_value = {};

 private:
  std::int64_t tensors_ = 0;
};

inline const std::vector<int> kThirteenDepths = {1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6};

/// A checkpoint of the shape of mlp4mlp: 8 figures in, 5 classes out, or others.
inline std::string mlp4mlp_checkpoint(std::int64_t features = 8, std::int64_t outputs = 5) {
  GpumemnetWriter writer;
  writer.ensemble("", kThirteenDepths, features, outputs);
  return writer.checkpoint.bytes();
}

/// One of the shape of transformer4mlp.
inline std::string transformer4mlp_checkpoint(bool wrong_encoding = false) {
  GpumemnetWriter writer;
  writer.wrong_encoding = wrong_encoding;
  writer.encoder("models.0.", 46, 4, 6, 3);
  writer.ensemble("models.0.fc_out.", kThirteenDepths, 6 + 4, 5);
  writer.encoder("models.1.", 46, 4, 4, 2);
  writer.ensemble("models.1.fc_out.", kThirteenDepths, 4 + 4, 5);
  return writer.checkpoint.bytes();
}

}  // namespace gpumem::testing
