#include "tls.hpp"

#include <openssl/err.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

namespace gpumem::webhook {

namespace {

core::Error failure(const std::string& file, const char* what) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  return {core::ErrorCode::unreadable_file, std::string(what) + ": " + reason.data(), {file, 0, {}}};
}

core::Result<Tls::Context> context_of(const TlsFiles& files) {
  Tls::Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr) return failure({}, "TLS cannot be set up");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // Clients can cost the server much by asking for new handshakes.
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return failure(files.certificate, "is not a certificate chain");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return failure(files.key, "is not the certificate's key");
  }
  if (files.client_ca.empty()) return context;
  if (SSL_CTX_load_verify_locations(context.get(), files.client_ca.c_str(), nullptr) != 1) {
    return failure(files.client_ca, "holds no certificates");
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

std::time_t changed(const TlsFiles& files) {
  std::time_t newest = 0;
  for (const std::string& file : {files.certificate, files.key, files.client_ca}) {
    struct stat facts {};
    if (!file.empty() && stat(file.c_str(), &facts) == 0) newest = std::max(newest, facts.st_mtime);
  }
  return newest;
}

}  // namespace

core::Result<std::shared_ptr<Tls>> Tls::load(const TlsFiles& files) {
  const std::time_t when = changed(files);
  core::Result<Context> context = context_of(files);
  if (!context) return context.error();
  return std::make_shared<Tls>(files, *std::move(context), when);
}

Tls::Context Tls::context() {
  const std::lock_guard lock(mutex_);
  const std::time_t when = changed(files_);
  if (when == changed_) return context_;
  // Certificate and key are two files: what does not fit together yet is tried again at the next connection.
  core::Result<Context> context = context_of(files_);
  if (!context) return context_;
  context_ = *std::move(context);
  changed_ = when;
  return context_;
}

}  // namespace gpumem::webhook
