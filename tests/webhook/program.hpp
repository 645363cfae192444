// The webhook as a process on a free port of the loopback, and clients that misbehave on purpose.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

namespace gpumem::testing {

class Program {
 public:
  /// Starts it with these options and waits until it listens.
  explicit Program(const std::vector<std::string>& options) {
    // Servers that turn a client away close the connection on it.
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> out{};
    if (pipe(out.data()) != 0) return;
    process_ = fork();
    if (process_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left over where a test is ended from without
      std::vector<std::string> words = {GPUMEM_WEBHOOK, "--host", "127.0.0.1"};
      if (std::find(options.begin(), options.end(), "--port") == options.end()) {
        words.insert(words.end(), {"--port", "0"});
      }
      words.insert(words.end(), options.begin(), options.end());
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(out[1]);
    output_ = out[0];
    first_line_ = read_line();
    const std::size_t colon = first_line_.rfind(':');
    if (colon != std::string::npos) port_ = std::atoi(first_line_.c_str() + colon + 1);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    close(output_);
  }

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] const std::string& first_line() const { return first_line_; }
  void signal(int number) const { kill(process_, number); }
  /// Its exit code; waits for the end.
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  std::string read_line() const {
    std::string line;
    char byte = 0;
    while (read(output_, &byte, 1) == 1 && byte != '\n') line += byte;
    return line;
  }

  pid_t process_ = -1;
  int output_ = -1;
  int port_ = 0;
  std::string first_line_;
};

/// A connection without a library, which sends what it is told.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { close(socket_); }

  [[nodiscard]] bool connected() const { return connected_; }
  /// False once the server has closed the connection.
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  /// What comes until the server closes, or so long.
  [[nodiscard]] std::string receive(std::chrono::milliseconds patience) const {
    std::string text;
    std::array<char, 4096> chunk{};
    pollfd waited = {socket_, POLLIN, 0};
    while (poll(&waited, 1, static_cast<int>(patience.count())) > 0) {
      const ssize_t count = recv(socket_, chunk.data(), chunk.size(), 0);
      if (count <= 0) break;
      text.append(chunk.data(), static_cast<std::size_t>(count));
    }
    return text;
  }
  /// Whether the server has closed it, within so long; what it says before is dropped.
  [[nodiscard]] bool closed(std::chrono::milliseconds patience) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    std::array<char, 4096> chunk{};
    while (std::chrono::steady_clock::now() < until) {
      pollfd waited = {socket_, POLLIN, 0};
      if (poll(&waited, 1, 50) <= 0) continue;
      if (recv(socket_, chunk.data(), chunk.size(), 0) <= 0) return true;
    }
    return false;
  }

 private:
  int socket_;
  bool connected_ = false;
};

}  // namespace gpumem::testing
