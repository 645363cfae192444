#include "server.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace gpumem::webhook {

namespace {

using Clock = Connection::Clock;
using namespace std::chrono_literals;

constexpr const char* kMutate = "/mutate";
constexpr const char* kHealth = "/healthz";
constexpr const char* kMetrics = "/metrics";
/// A request's line and headers.
constexpr std::size_t kMostHeaderBytes = std::size_t{32} << 10;

enum Status {
  kOk = 200,
  kBadRequest = 400,
  kNotFound = 404,
  kNotAllowed = 405,
  kTimeout = 408,
  kTooLarge = 413,
  kUnsupported = 415
};

/// The connection that this thread serves: handlers of the library are not told.
thread_local Connection* t_connection = nullptr;
/// Set while the thread that accepts turns a connection away.
thread_local bool t_busy = false;

/// Closes its socket in the end, so that an answer is not lost: bytes that nobody read would reset the connection.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    shutdown(descriptor_, SHUT_WR);
    if (linger_) drain();
    close(descriptor_);
  }
  void linger() { linger_ = true; }

 private:
  void drain() const {
    constexpr auto kPatience = 200ms;
    std::array<char, 4096> rest{};
    const auto until = Clock::now() + kPatience;
    timeval wait = {0, std::chrono::microseconds(kPatience).count()};
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    while (Clock::now() < until) {
      const ssize_t count = recv(descriptor_, rest.data(), rest.size(), MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN)) return;
      if (count < 0) std::this_thread::sleep_for(5ms);
    }
  }

  int descriptor_;
  bool linger_ = false;
};

}  // namespace

/// This many threads, and this many connections that wait for one.
class Server::Workers : public httplib::TaskQueue {
 public:
  explicit Workers(Server& server) : server_(server) {
    for (std::size_t thread = 0; thread < server.options_.threads; ++thread) threads_.emplace_back([this] { work(); });
  }

  void enqueue(std::function<void()> connection) override {
    std::unique_lock lock(mutex_);
    if (waiting_.size() < server_.options_.most_waiting) {
      waiting_.push_back(std::move(connection));
      server_.queued_ = waiting_.size();
      lock.unlock();
      wanted_.notify_one();
      return;
    }
    lock.unlock();
    t_busy = true;
    connection();
    t_busy = false;
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void work() {
    while (true) {
      std::unique_lock lock(mutex_);
      wanted_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::function<void()> connection = std::move(waiting_.front());
      waiting_.pop_front();
      server_.queued_ = waiting_.size();
      lock.unlock();
      connection();
    }
  }

  Server& server_;
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::deque<std::function<void()>> waiting_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

Result<std::unique_ptr<Server>> Server::make(const ServerOptions& options, Admission& admission) {
  std::shared_ptr<Tls> tls;
  if (options.tls) {
    auto loaded = Tls::load(*options.tls);
    if (!loaded) return loaded.error();
    tls = *std::move(loaded);
  }
  return std::unique_ptr<Server>(new Server(options, admission, std::move(tls)));
}

Server::Server(const ServerOptions& options, Admission& admission, std::shared_ptr<Tls> tls)
    : options_(options),
      admission_(admission),
      tls_(std::move(tls)),
      workshop_(options.estimates, options.threads + options.most_waiting) {
  new_task_queue = [this] { return new Workers(*this); };
  // Two webhooks on one port would share its connections unnoticed.
  set_socket_options([this](int socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    listening_ = socket;
  });
  set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(options_.idle_time).count());
  set_payload_max_length(options_.most_body_bytes);
  set_pre_routing_handler([this](const auto& request, auto& response) { return route(request, response); });
  Post(kMutate, [this](const httplib::Request&, httplib::Response& response, const httplib::ContentReader& reader) {
    mutate(response, reader);
  });
  set_exception_handler([](const auto&, auto& response, const std::exception_ptr&) { response.status = 500; });
  // What was not understood may have been read half.
  set_error_handler([](const httplib::Request&, httplib::Response& response) {
    t_connection->spoil();
    response.set_header("Connection", "close");
  });
}

Result<int> Server::bind() {
  const bool any = options_.port == 0;
  const int port =
      any ? bind_to_any_port(options_.host) : (bind_to_port(options_.host, options_.port) ? options_.port : -1);
  if (port < 0) {
    return Error{
        ErrorCode::unreadable_file,
        "cannot listen on " + options_.host + ":" + std::to_string(options_.port) + ": " + std::strerror(errno),
        {}};
  }
  // The library lets five connections wait for accept(); the kernel has the others wait for a second.
  ::listen(listening_, SOMAXCONN);
  return port;
}

bool Server::serve() { return listen_after_bind(); }

void Server::stop() {
  stopping_ = true;
  httplib::Server::stop();
}

bool Server::process_and_close_socket(int descriptor) {
  Socket socket(descriptor);
  if (t_busy) {
    constexpr std::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    metrics_.count(Turned::busy);
    if (tls_ == nullptr) send(descriptor, kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return false;
  }
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Connection connection(descriptor, tls_ == nullptr ? nullptr : tls_->context());
  t_connection = &connection;
  serve_connection(connection);
  t_connection = nullptr;
  if (connection.spoiled()) socket.linger();
  return true;
}

void Server::serve_connection(Connection& connection) {
  if (!connection.shake_hands(Clock::now() + options_.request_time)) {
    metrics_.count(Turned::other);
    return;
  }
  for (std::size_t left = options_.most_requests; left > 0 && next_request(connection); --left) {
    connection.begin_request(Clock::now() + options_.request_time, kMostHeaderBytes);
    bool closed = false;
    const bool last = left == 1 || stopping_;
    const bool served = process_request(connection, last, closed, nullptr);
    if (!served && connection.late()) metrics_.count(Turned::too_slow);
    if (!served || closed || last || connection.spoiled()) break;
  }
  connection.finish();
}

/// Waits for the next request as long as the connection may be idle, nobody else waits, and the server serves.
bool Server::next_request(Connection& connection) const {
  constexpr auto kSlice = 50ms;
  const auto until = Clock::now() + options_.idle_time;
  // A connection that is new has its request on the way: it gets one slice, whoever waits.
  while (!connection.wait_for_request(Clock::now() + kSlice)) {
    if (connection.ended() || stopping_ || queued_ > 0 || Clock::now() >= until) return false;
  }
  return true;
}

httplib::Server::HandlerResponse Server::route(const httplib::Request& request, httplib::Response& response) {
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (request.path == kHealth && get) {
    response.set_content("ok\n", "text/plain");
    return HandlerResponse::Handled;
  }
  if (request.path == kMetrics && get) {
    response.set_content(metrics_.text(admission_.summaries()), "text/plain; version=0.0.4");
    return HandlerResponse::Handled;
  }
  const bool known = request.path == kMutate || request.path == kHealth || request.path == kMetrics;
  if (!known) {
    turn_away(response, kNotFound, Turned::not_found, "there are POST /mutate, GET /healthz and GET /metrics");
  } else if (request.method != "POST" || request.path != kMutate) {
    turn_away(response, kNotAllowed, Turned::not_found, "there are POST /mutate, GET /healthz and GET /metrics");
  } else if (request.has_header("Content-Encoding") || request.is_multipart_form_data()) {
    turn_away(response, kUnsupported, Turned::other, "the body must be plain JSON");
  } else if (request.get_header_value<std::uint64_t>("Content-Length") > options_.most_body_bytes) {
    turn_away(response, kTooLarge, Turned::too_large, "the body is too large");
  } else {
    // Chunks have heads of their own.
    t_connection->allow(2 * options_.most_body_bytes);
    return HandlerResponse::Unhandled;
  }
  return HandlerResponse::Handled;
}

void Server::turn_away(httplib::Response& response, int status, Turned reason, const char* message) {
  metrics_.count(reason);
  response.status = status;
  response.set_content(std::string(message) + "\n", "text/plain");
}

void Server::mutate(httplib::Response& response, const httplib::ContentReader& reader) {
  const Metrics::InFlight in_flight(metrics_);
  std::string body;
  bool too_large = false;
  const bool whole = reader([&](const char* data, std::size_t size) {
    too_large = body.size() + size > options_.most_body_bytes;
    if (!too_large) body.append(data, size);
    return !too_large;
  });
  if (too_large) return turn_away(response, kTooLarge, Turned::too_large, "the body is too large");
  if (!whole && t_connection->late()) {
    return turn_away(response, kTimeout, Turned::too_slow, "the body came too slowly");
  }
  if (!whole) return turn_away(response, kBadRequest, Turned::other, "the body is not whole");
  const auto begin = Clock::now();
  const Reply reply = answer(std::move(body));
  metrics_.count(reply.outcome, Clock::now() - begin);
  const bool understood = reply.outcome != Outcome::malformed;
  response.status = understood ? kOk : kBadRequest;
  response.set_content(reply.body, understood ? "application/json" : "text/plain");
}

Reply Server::answer(std::string body) {
  const auto shared = std::make_shared<const std::string>(std::move(body));
  auto reply = workshop_.run([this, shared] { return admission_.review(*shared); }, options_.estimate_time);
  if (reply) return *std::move(reply);
  return admission_.give_up(
      *shared, "the estimate was not done within " + std::to_string(options_.estimate_time.count()) + " ms");
}

}  // namespace gpumem::webhook
