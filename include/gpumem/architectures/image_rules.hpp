// Input: the size of a picture, and a processor's figures.
// Output: what the image processors of vision-language models make of it: the size that they resize to, how many tiles
// they cut, how many tokens of text these take.
// Units: pixels, tiles, patches, tokens.
// Source: transformers 4.57, models/*/image_processing_*.py, processing_*.py; each function names its own.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "gpumem/model/training_job.hpp"

namespace gpumem::architectures {

using model::PictureSize;

/// Rows and columns of tiles.
struct TileGrid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;

  [[nodiscard]] std::int64_t tiles() const { return rows * columns; }
  /// With the whole picture as one more tile, where there are several.
  [[nodiscard]] std::int64_t with_thumbnail() const { return tiles() == 1 ? 1 : tiles() + 1; }
  friend bool operator==(const TileGrid&, const TileGrid&) = default;
};

namespace image_rules_detail {

inline double real(std::int64_t value) { return static_cast<double>(value); }
inline std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }
/// Python's round(): halves go to the even number.
inline std::int64_t rounded(double value) { return whole(std::nearbyint(value)); }
/// int(round(value, 7)).
inline std::int64_t cut(double value) { return whole(std::floor(std::nearbyint(value * 1e7) / 1e7)); }
inline std::int64_t ceil_div(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace image_rules_detail

/// What Qwen's processors keep pictures to.
struct PixelBounds {
  std::int64_t factor = 28;  ///< of which both sides are multiples
  std::int64_t least = 1;
  std::int64_t most = 1;
  std::int64_t frames = 1;  ///< that the bounds are for together
};

/// smart_resize of qwen2_vl/image_processing_qwen2_vl.py; with several frames that of
/// qwen3_vl/video_processing_qwen3_vl.py. Nothing: a side is more than 200 times the other, which they refuse.
inline std::optional<PictureSize> smart_resize(const PictureSize& size, const PixelBounds& bounds) {
  namespace d = image_rules_detail;
  if (std::max(size.width, size.height) > 200 * std::min(size.width, size.height)) return std::nullopt;
  const double factor = d::real(bounds.factor);
  const auto side = [&](double length) { return d::rounded(length / factor) * bounds.factor; };
  PictureSize made = {side(d::real(size.width)), side(d::real(size.height))};
  const double frames = d::real(bounds.frames);
  const double area = frames * d::real(size.width) * d::real(size.height);
  const double resized = frames * d::real(made.width) * d::real(made.height);
  if (resized > d::real(bounds.most)) {
    const double beta = std::sqrt(area / d::real(bounds.most));
    const auto shrunk = [&](std::int64_t length) {
      return std::max(bounds.factor, d::whole(std::floor(d::real(length) / beta / factor)) * bounds.factor);
    };
    made = {shrunk(size.width), shrunk(size.height)};
  } else if (resized < d::real(bounds.least)) {
    const double beta = std::sqrt(d::real(bounds.least) / area);
    const auto grown = [&](std::int64_t length) {
      return d::whole(std::ceil(d::real(length) * beta / factor)) * bounds.factor;
    };
    made = {grown(size.width), grown(size.height)};
  }
  return made;
}

/// select_best_resolution of image_processing_utils.py: of the possible canvases the one that keeps most of the
/// picture, then the one that wastes least. The first where there is none.
inline PictureSize best_resolution(const PictureSize& size, std::span<const PictureSize> canvases) {
  namespace d = image_rules_detail;
  PictureSize best = canvases.empty() ? size : canvases.front();
  std::int64_t kept_most = 0;
  std::int64_t wasted_least = INT64_MAX;
  for (const PictureSize& canvas : canvases) {
    const double scale =
        std::min(d::real(canvas.width) / d::real(size.width), d::real(canvas.height) / d::real(size.height));
    const std::int64_t scaled = d::whole(d::real(size.width) * scale) * d::whole(d::real(size.height) * scale);
    const std::int64_t kept = std::min(scaled, size.width * size.height);
    const std::int64_t wasted = canvas.width * canvas.height - kept;
    if (kept < kept_most || (kept == kept_most && wasted >= wasted_least)) continue;
    best = canvas;
    kept_most = kept;
    wasted_least = wasted;
  }
  return best;
}

/// Features of a picture on a grid of tiles once the padding is cut off, rows and columns; then, of LLaVA-OneVision,
/// made smaller where they are more than `most_tiles` tiles hold (0: never).
/// unpad_image and pack_image_features of llava_next, llava_onevision.
inline TileGrid unpadded_features(const PictureSize& size, const TileGrid& grid, std::int64_t side,
                                  std::int64_t most_tiles) {
  namespace d = image_rules_detail;
  TileGrid left = {grid.rows * side, grid.columns * side};
  const double width = d::real(size.width);
  const double height = d::real(size.height);
  if (width / height > d::real(left.columns) / d::real(left.rows)) {
    left.rows -= (left.rows - d::cut(height * (d::real(left.columns) / width))) / 2 * 2;
  } else {
    left.columns -= (left.columns - d::cut(width * (d::real(left.rows) / height))) / 2 * 2;
  }
  if (most_tiles == 0) return left;
  const double ratio = std::sqrt(d::real(left.tiles()) / d::real(most_tiles * side * side));
  if (!(ratio > 1.1)) return left;
  return {d::whole(d::real(left.rows) / ratio), d::whole(d::real(left.columns) / ratio)};
}

/// get_optimal_tiled_canvas of got_ocr2/image_processing_got_ocr2.py (InternVL): the grid of so many tiles whose shape
/// is most like the picture's; of two alike the larger one, if the picture fills half of it.
inline TileGrid closest_grid(const PictureSize& size, std::int64_t tile, std::int64_t most_tiles,
                             std::int64_t least_tiles = 1) {
  namespace d = image_rules_detail;
  const double shape = d::real(size.width) / d::real(size.height);
  const double area = d::real(size.width) * d::real(size.height);
  TileGrid best;
  double least = HUGE_VAL;
  for (std::int64_t tiles = least_tiles; tiles <= most_tiles; ++tiles) {
    for (std::int64_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const TileGrid grid = {tiles / columns, columns};
      const double apart = std::abs(shape - d::real(columns) / d::real(grid.rows));
      const bool fills = area > 0.5 * d::real(tile) * d::real(tile) * d::real(tiles);
      if (apart < least || (apart == least && fills)) best = grid;
      least = std::min(least, apart);
    }
  }
  return best;
}

/// get_number_of_image_patches of idefics3/image_processing_idefics3.py: the longer side is made `longest`, then tiles
/// cover the picture.
inline TileGrid covering_grid(const PictureSize& size, std::int64_t longest, std::int64_t tile) {
  namespace d = image_rules_detail;
  const double shape = d::real(size.width) / d::real(size.height);
  const bool wide = size.width >= size.height;
  std::int64_t other = std::max<std::int64_t>(d::whole(wide ? d::real(longest) / shape : d::real(longest) * shape), 1);
  other += other % 2;
  const PictureSize scaled = wide ? PictureSize{longest, other} : PictureSize{other, longest};
  return {d::ceil_div(scaled.height, tile), d::ceil_div(scaled.width, tile)};
}

/// get_resize_output_image_size of pixtral/image_processing_pixtral.py: no side longer than `longest`, both a whole
/// number of patches.
inline PictureSize patched_size(const PictureSize& size, std::int64_t longest, std::int64_t patch) {
  namespace d = image_rules_detail;
  const double ratio = d::real(std::max(size.width, size.height)) / d::real(longest);
  const auto side = [&](std::int64_t length) {
    const std::int64_t scaled = ratio > 1.0 ? d::whole(std::floor(d::real(length) / ratio)) : length;
    return d::ceil_div(std::max<std::int64_t>(scaled, 1), patch) * patch;
  };
  return {side(size.width), side(size.height)};
}

/// get_best_fit of llama4/image_processing_llama4_fast.py: of all grids of at most so many tiles the one that needs the
/// least enlargement, else the one that shrinks the picture least; of those alike the smallest.
inline TileGrid least_scaled_grid(const PictureSize& size, std::int64_t tile, std::int64_t most_tiles) {
  namespace d = image_rules_detail;
  TileGrid best;
  double chosen = -1.0;
  for (std::int64_t tiles = 1; tiles <= most_tiles; ++tiles) {
    for (std::int64_t columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const TileGrid grid = {tiles / columns, columns};
      const double scale =
          std::min(d::real(columns * tile) / d::real(size.width), d::real(grid.rows * tile) / d::real(size.height));
      const bool better = chosen >= 1.0 ? scale >= 1.0 && scale < chosen : scale > chosen;
      if (!better) continue;
      best = grid;
      chosen = scale;
    }
  }
  return best;
}

/// What MiniCPM-V's processors make of a picture: as a whole of about 448 x 448 pixels and, where it is larger, as many
/// slices of that size as it fills, nine at most. Each side is a multiple of `step`.
/// find_best_resize(), get_sliced_grid() and get_refine_size() of image_processing_minicpmv.py.
struct SlicedPicture {
  PictureSize whole = {};
  PictureSize slice = {};
  std::int64_t slices = 0;
};
inline SlicedPicture sliced_picture(const PictureSize& size, std::int64_t step, std::int64_t most_slices = 9) {
  namespace d = image_rules_detail;
  constexpr std::int64_t kSide = 448;
  const auto resized = [&](double width, double height, bool grows) {
    if (grows || width * height > d::real(kSide * kSide)) {
      const double shape = width / height;
      height = d::real(d::whole(d::real(kSide) / std::sqrt(shape)));
      width = d::real(d::whole(height * shape));
    }
    const auto whole = [&](double length) { return std::max(d::rounded(length / d::real(step)) * step, step); };
    return PictureSize{whole(width), whole(height)};
  };
  const double width = d::real(size.width);
  const double height = d::real(size.height);
  const auto filled = d::whole(std::ceil(width * height / d::real(kSide * kSide)));
  const std::int64_t many = std::min(filled, most_slices);
  if (many <= 1) return {.whole = resized(width, height, true)};
  // The grid whose shape is most like the picture's, the first of those alike.
  TileGrid grid;
  double least = HUGE_VAL;
  for (const std::int64_t slices : {many - 1, many, many + 1}) {
    if (slices == 1 || slices > most_slices) continue;
    for (std::int64_t columns = 1; columns <= slices; ++columns) {
      if (slices % columns != 0) continue;
      const double apart = std::abs(std::log(width / height) - std::log(d::real(columns) / d::real(slices / columns)));
      if (apart >= least) continue;
      least = apart;
      grid = {slices / columns, columns};
    }
  }
  const auto part = [](std::int64_t length, std::int64_t by) {
    return d::real(std::max(d::rounded(d::real(length) / d::real(by)) * by, by)) / d::real(by);
  };
  return {.whole = resized(width, height, false),
          .slice = resized(part(size.width, grid.columns), part(size.height, grid.rows), true),
          .slices = grid.tiles()};
}

}  // namespace gpumem::architectures
