// Input: an accepted socket.
// Output: a stream for the HTTP library, plain or TLS. No client can hold a thread longer than a deadline, however
// slowly it sends or reads, or send more than it may.
#pragma once

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>

#include "tls.hpp"

namespace gpumem::webhook {

class Connection : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  /// Does not own the socket, and makes it non-blocking. Without a context it is plain.
  Connection(int socket, Tls::Context context);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override;

  /// TLS' handshake; true for a plain connection.
  [[nodiscard]] bool shake_hands(Clock::time_point deadline);
  /// Waits until a byte can be read: the begin of a request.
  [[nodiscard]] bool wait_for_request(Clock::time_point until);
  /// The client went away.
  [[nodiscard]] bool ended() const { return ended_; }
  /// From here on, until `deadline`, the client may send this many bytes.
  void begin_request(Clock::time_point deadline, std::size_t most_bytes);
  /// This many more, because the request's body may come.
  void allow(std::size_t bytes) { allowance_ += bytes; }
  /// The request was not read to its end, or not understood: what follows cannot be told apart.
  void spoil() { spoiled_ = true; }
  [[nodiscard]] bool spoiled() const { return spoiled_; }
  [[nodiscard]] bool late() const { return Clock::now() >= deadline_; }
  /// Says good-bye, so that the client need not wait.
  void finish();

  [[nodiscard]] bool is_readable() const override;
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] int socket() const override { return socket_; }

 private:
  /// What a step without blocking came to.
  enum class Step { done, wants_read, wants_write, failed };

  [[nodiscard]] bool wait(Step step, Clock::time_point until) const;
  [[nodiscard]] Step ssl_step(int result) const;
  Step receive(char* to, std::size_t size, std::size_t& count);
  Step send(const char* from, std::size_t size, std::size_t& count);
  bool fill();

  int socket_;
  Tls::Context context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  Clock::time_point deadline_;
  std::size_t allowance_ = 0;
  bool spoiled_ = false;
  bool ended_ = false;
  std::array<char, 16384> buffer_;  ///< the library reads headers byte by byte
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace gpumem::webhook
