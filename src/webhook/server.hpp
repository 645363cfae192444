// Input: HTTP or HTTPS connections.
// Output: answers to POST /mutate (admission.hpp), GET /healthz and GET /metrics. Everything is bounded: waiting
// connections, threads, bytes of a request, the time for a request to arrive and its answer to be taken, the time for
// an estimate, the time that a connection may be idle.
#pragma once

#include <httplib.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "admission.hpp"
#include "connection.hpp"
#include "metrics.hpp"
#include "workshop.hpp"

namespace gpumem::webhook {

struct ServerOptions {
  std::string host = "0.0.0.0";
  int port = 8443;                   ///< 0: any that is free
  std::optional<TlsFiles> tls = {};  ///< nothing: plain HTTP
  std::size_t threads = 32;          ///< connections that are served at a time
  std::size_t most_waiting = 256;    ///< connections that wait for a thread; more are turned away
  std::size_t estimates = 2;         ///< that are made at a time
  std::size_t most_body_bytes = std::size_t{4} << 20;
  std::size_t most_requests = 10'000;             ///< on one connection
  std::chrono::milliseconds request_time{5000};   ///< for the whole of a request and its answer
  std::chrono::milliseconds estimate_time{2000};  ///< for what gpumem makes of it
  std::chrono::milliseconds idle_time{60'000};    ///< of a connection without a request
};

class Server : private httplib::Server {
 public:
  /// Errors: unreadable_file for the TLS files.
  [[nodiscard]] static Result<std::unique_ptr<Server>> make(const ServerOptions& options, Admission& admission);

  /// The port that it listens on. Errors: unreadable_file with the system's reason.
  [[nodiscard]] Result<int> bind();
  /// Serves until stop(), and then until every request that had begun is answered. False if that failed.
  bool serve();
  /// From any thread.
  void stop();
  /// True once no estimate is made any more, false if one still is by then.
  [[nodiscard]] bool drained(std::chrono::milliseconds patience) { return workshop_.stop(patience); }

 private:
  class Workers;

  Server(const ServerOptions& options, Admission& admission, std::shared_ptr<Tls> tls);

  bool process_and_close_socket(int socket) override;
  void serve_connection(Connection& connection);
  [[nodiscard]] bool next_request(Connection& connection) const;
  [[nodiscard]] HandlerResponse route(const httplib::Request& request, httplib::Response& response);
  void mutate(httplib::Response& response, const httplib::ContentReader& reader);
  [[nodiscard]] Reply answer(std::string body);
  void turn_away(httplib::Response& response, int status, Turned reason, const char* message);

  ServerOptions options_;
  Admission& admission_;
  std::shared_ptr<Tls> tls_;
  Metrics metrics_;
  Workshop workshop_;
  int listening_ = -1;
  std::atomic<std::size_t> queued_ = 0;  ///< connections that wait for a thread
  std::atomic<bool> stopping_ = false;
};

}  // namespace gpumem::webhook
