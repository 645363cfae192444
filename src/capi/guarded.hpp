// Input: the body of an entry point, and the buffer for its message.
// Output: a status and a message, whatever happens in the body. What fails is remembered for gpumem_last_failure().
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/gpumem.h"
#include "held.hpp"
#include "message.hpp"
#include "sized.hpp"

namespace gpumem::capi {

/// How long a question may watch the GPUs, in milliseconds.
inline constexpr std::int64_t kLongestWindow = 3'600'000;

[[nodiscard]] inline gpumem_status status_of(core::ErrorCode code) {
  switch (code) {
    case core::ErrorCode::invalid_argument: return GPUMEM_INVALID_ARGUMENT;
    case core::ErrorCode::unknown_gpu: return GPUMEM_UNKNOWN_GPU;
    case core::ErrorCode::unreadable_file: return GPUMEM_UNREADABLE_FILE;
    case core::ErrorCode::unknown_format: return GPUMEM_UNKNOWN_FORMAT;
    case core::ErrorCode::malformed_input: return GPUMEM_MALFORMED_INPUT;
    case core::ErrorCode::unknown_layer: return GPUMEM_UNKNOWN_LAYER;
    case core::ErrorCode::missing_information: return GPUMEM_MISSING_INFORMATION;
    case core::ErrorCode::overflow: return GPUMEM_OVERFLOW;
    case core::ErrorCode::deadline_exceeded: return GPUMEM_DEADLINE_EXCEEDED;
  }
  return GPUMEM_INTERNAL_ERROR;
}

/// Where the words of a call go.
struct Message {
  char* buffer;
  std::size_t size;

  void write(std::string_view text) const noexcept { write_text(text, buffer, size); }
};

inline constexpr const char* kNoMemory = "there is not enough memory for the answer";

inline gpumem_status failed(const Message& message, gpumem_status status, const char* words) noexcept {
  message.write(words);
  remember(status, words);
  return status;
}

/// Runs the body of an entry point, which gives a core::Status; nothing gets past it.
template <typename Body>
gpumem_status guarded(const Message& message, Body body) noexcept {
  try {
    message.write({});
    const core::Status done = body();
    if (done) return GPUMEM_OK;
    message.write(core::to_string(done.error()));
    const gpumem_status status = status_of(done.error().code);
    remember(status, done.error());
    return status;
  } catch (const std::bad_alloc&) {
    return failed(message, GPUMEM_OUT_OF_MEMORY, kNoMemory);
  } catch (const std::length_error&) {  // a container beyond what could ever be allocated
    return failed(message, GPUMEM_OUT_OF_MEMORY, kNoMemory);
  } catch (const std::exception& error) {
    return failed(message, GPUMEM_INTERNAL_ERROR, error.what());
  } catch (...) {
    return failed(message, GPUMEM_INTERNAL_ERROR, "something other than a C++ exception was thrown");
  }
}

[[nodiscard]] inline core::Error null_pointer(const char* name) {
  return refused(std::string(name) + " is a null pointer");
}

}  // namespace gpumem::capi
