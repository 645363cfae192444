#include "connection.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace gpumem::webhook {

namespace {

void address(int socket, int (*name)(int, sockaddr*, socklen_t*), std::string& ip, int& port) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (name(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return;
  if (storage.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &storage, sizeof four);
    inet_ntop(AF_INET, &four.sin_addr, text.data(), text.size());
    port = ntohs(four.sin_port);
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &storage, sizeof six);
    inet_ntop(AF_INET6, &six.sin6_addr, text.data(), text.size());
    port = ntohs(six.sin6_port);
  }
  ip = text.data();
}

int remote_name(int socket, sockaddr* to, socklen_t* size) { return getpeername(socket, to, size); }
int local_name(int socket, sockaddr* to, socklen_t* size) { return getsockname(socket, to, size); }

}  // namespace

Connection::Connection(int socket, Tls::Context context)
    : socket_(socket), context_(std::move(context)), ssl_(nullptr, SSL_free) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  if (context_ == nullptr) return;
  ssl_.reset(SSL_new(context_.get()));
  if (ssl_ != nullptr) SSL_set_fd(ssl_.get(), socket);
}

Connection::~Connection() { ERR_clear_error(); }

bool Connection::shake_hands(Clock::time_point deadline) {
  if (context_ == nullptr) return true;
  if (ssl_ == nullptr) return false;
  while (true) {
    ERR_clear_error();
    const Step step = ssl_step(SSL_accept(ssl_.get()));
    if (step == Step::done) return true;
    if (!wait(step, deadline)) return false;
  }
}

bool Connection::wait_for_request(Clock::time_point until) {
  if (begin_ < end_) return true;
  while (true) {
    std::size_t count = 0;
    const Step step = receive(buffer_.data(), buffer_.size(), count);
    begin_ = 0;
    end_ = count;
    if (step == Step::done) return count > 0;
    ended_ = step == Step::failed;
    if (!wait(step, until)) return false;
  }
}

void Connection::begin_request(Clock::time_point deadline, std::size_t most_bytes) {
  deadline_ = deadline;
  allowance_ = most_bytes;
}

void Connection::finish() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_.get()) == 1) SSL_shutdown(ssl_.get());
}

bool Connection::is_readable() const { return begin_ < end_ || wait(Step::wants_read, deadline_); }
bool Connection::is_writable() const { return wait(Step::wants_write, deadline_); }

ssize_t Connection::read(char* to, std::size_t size) {
  if (allowance_ == 0 || (begin_ == end_ && !fill())) {
    spoil();
    return -1;
  }
  const std::size_t count = std::min({size, end_ - begin_, allowance_});
  std::copy_n(buffer_.data() + begin_, count, to);
  begin_ += count;
  allowance_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, std::size_t size) {
  if (size == 0) return 0;
  while (true) {
    std::size_t count = 0;
    const Step step = send(from, size, count);
    if (step == Step::done) return static_cast<ssize_t>(count);
    if (!wait(step, deadline_)) {
      spoil();
      return -1;
    }
  }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const { address(socket_, remote_name, ip, port); }
void Connection::get_local_ip_and_port(std::string& ip, int& port) const { address(socket_, local_name, ip, port); }

/// True once the socket is ready for the step.
bool Connection::wait(Step step, Clock::time_point until) const {
  if (step == Step::failed) return false;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waited = {socket_, static_cast<short>(step == Step::wants_read ? POLLIN : POLLOUT), 0};
    const int ready = poll(&waited, 1, static_cast<int>(std::min<decltype(left)>(left, INT_MAX)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

Connection::Step Connection::ssl_step(int result) const {
  if (result > 0) return Step::done;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return Step::wants_read;
    case SSL_ERROR_WANT_WRITE: return Step::wants_write;
    default: return Step::failed;
  }
}

Connection::Step Connection::receive(char* to, std::size_t size, std::size_t& count) {
  if (context_ != nullptr) {
    ERR_clear_error();
    return ssl_step(SSL_read_ex(ssl_.get(), to, size, &count));
  }
  const ssize_t received = recv(socket_, to, size, 0);
  count = received > 0 ? static_cast<std::size_t>(received) : 0;
  if (received > 0) return Step::done;
  const bool later = received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return later ? Step::wants_read : Step::failed;
}

Connection::Step Connection::send(const char* from, std::size_t size, std::size_t& count) {
  if (context_ != nullptr) {
    ERR_clear_error();
    return ssl_step(SSL_write_ex(ssl_.get(), from, size, &count));
  }
  const ssize_t sent = ::send(socket_, from, size, MSG_NOSIGNAL);
  count = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  if (sent >= 0) return Step::done;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Step::wants_write : Step::failed;
}

bool Connection::fill() { return wait_for_request(deadline_); }

}  // namespace gpumem::webhook
