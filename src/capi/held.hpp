// Input: what went wrong in a call.
// Output: the session that all calls of the process ask; the last failure of each thread as JSON.
#pragma once

#include "gpumem/core/result.hpp"
#include "gpumem/gpumem.h"
#include "gpumem/session/session.hpp"

namespace gpumem::capi {

[[nodiscard]] session::Session& process_session();

/// In a child process. A thread of the parent, which the child does not have, may have been within the session: it is
/// left alone, and the child gets one of its own.
void renew_process_session();

/// Keeps what last_failure() tells this thread.
void remember(gpumem_status status, const core::Error& error) noexcept;
/// The same where only words are known.
void remember(gpumem_status status, const char* message) noexcept;

/// {"code", "message", "file", "line", "element", "text", "exit_code"}, without what is unknown; "{}": nothing failed.
/// Lives until the thread's next failure.
[[nodiscard]] const char* last_failure() noexcept;

}  // namespace gpumem::capi
