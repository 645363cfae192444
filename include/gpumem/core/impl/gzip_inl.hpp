#pragma once

#include "gpumem/core/gzip.hpp"

#if !defined(GPUMEM_NO_ZLIB)
#include <zlib.h>
#endif

#include <algorithm>
#include <limits>

#include "gpumem/core/bytes.hpp"

namespace gpumem::core {

#if defined(GPUMEM_NO_ZLIB)

/// In a browser: the page has unpacked what it hands over.
GPUMEM_INLINE Result<std::string> unpack_gzip(std::string_view /*bytes*/, std::size_t /*most*/) {
  return malformed("is packed with gzip, which this build does not read; unpack it with gunzip first");
}

#else

namespace gzip_detail {

/// zlib's stream, which must be ended.
class Stream {
 public:
  Stream() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    ready_ = inflateInit2(&stream_, kGzipOnly) == Z_OK;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (ready_) inflateEnd(&stream_);
  }
  [[nodiscard]] bool ready() const { return ready_; }
  z_stream& get() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace gzip_detail

GPUMEM_INLINE Result<std::string> unpack_gzip(std::string_view bytes, std::size_t most) {
  if (bytes.size() > std::numeric_limits<uInt>::max()) return malformed("is a gzip file that is too large");
  gzip_detail::Stream stream;
  if (!stream.ready()) return malformed("could not be unpacked: there is not enough memory");
  z_stream& state = stream.get();
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // NOLINT: zlib only reads it
  state.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  constexpr std::size_t kStep = std::size_t{1} << 18;
  int result = Z_OK;
  while (result == Z_OK) {
    const std::size_t done = text.size();
    const std::size_t room = std::min(std::max(kStep, done), most + 1 - done);
    text.resize(done + room);
    state.next_out = reinterpret_cast<Bytef*>(text.data() + done);
    state.avail_out = static_cast<uInt>(room);
    result = inflate(&state, Z_NO_FLUSH);
    text.resize(done + room - state.avail_out);
    if (text.size() > most) {
      return malformed("unpacks to more than " + to_string(Bytes(static_cast<std::int64_t>(most))));
    }
    if (result == Z_BUF_ERROR || (result == Z_OK && state.avail_in == 0 && state.avail_out > 0)) break;
  }
  if (result != Z_STREAM_END) return malformed("is a damaged gzip file, or one that is cut off");
  return text;
}

#endif

}  // namespace gpumem::core
