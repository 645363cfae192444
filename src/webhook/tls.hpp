// Input: the paths of a certificate and its key (PEM).
// Output: the TLS context for new connections. It is made again whenever the files have changed, because certificates
// are renewed while the webhook runs.
#pragma once

#include <openssl/ssl.h>

#include <ctime>
#include <memory>
#include <mutex>
#include <string>

#include "gpumem/core/result.hpp"

namespace gpumem::webhook {

struct TlsFiles {
  std::string certificate;  ///< with its chain
  std::string key;
  std::string client_ca;  ///< empty: clients need no certificate
};

class Tls {
 public:
  using Context = std::shared_ptr<SSL_CTX>;

  /// Errors: unreadable_file, with OpenSSL's reason.
  [[nodiscard]] static core::Result<std::shared_ptr<Tls>> load(const TlsFiles& files);

  Tls(TlsFiles files, Context context, std::time_t changed)
      : files_(std::move(files)), context_(std::move(context)), changed_(changed) {}

  /// The context for one more connection. Where changed files cannot be loaded the former context stays.
  [[nodiscard]] Context context();

 private:
  TlsFiles files_;
  std::mutex mutex_;
  Context context_;
  std::time_t changed_;  ///< the newer of the files' times when they were loaded
};

}  // namespace gpumem::webhook
