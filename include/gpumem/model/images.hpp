// Input: what a user says about the pictures that each sample of a vision-language, image or video model brings.
// Output: Images.
// Units: pixels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gpumem::model {

struct PictureSize {
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

/// What is not said is the model's usual.
struct Images {
  std::optional<PictureSize> size = {};
  std::optional<std::int64_t> count = {};        ///< images or videos a sample; 0: samples of text alone
  std::optional<std::int64_t> frames = {};       ///< of each video; nothing: samples bring images
  std::optional<std::int64_t> text_tokens = {};  ///< of the prompt that an image or video model reads
  std::string parts = {};  ///< of a pipeline that lie on the GPU besides its denoiser: "vae+text_encoder", "all"

  [[nodiscard]] bool said() const { return size || count || frames; }

  static constexpr std::int64_t kLargestSide = 1 << 16;
  static constexpr std::int64_t kMostImages = 4096;
};

}  // namespace gpumem::model
