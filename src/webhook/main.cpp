// gpumem-webhook: a mutating admission webhook for Kubernetes. Reads the words, serves until SIGTERM or SIGINT, and
// returns 0; 2 wrong usage, 3 a file or a port that cannot be had.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gpumem/request/targets.hpp"
#include "server.hpp"

namespace {

using namespace gpumem;
using namespace gpumem::webhook;

struct Options {
  ServerOptions server;
  TlsFiles tls;
  PodJob defaults;
  std::string margin = "upper";
  std::string on_error = "deny";
  std::string summaries;
  std::size_t most_summary_bytes = std::size_t{4} << 20;
  std::size_t request_ms = 5000;
  std::size_t estimate_ms = 2000;
  std::size_t idle_ms = 60'000;
};

std::string kubernetes_targets() {
  std::string names;
  for (const auto& entry : request::targets()) {
    if (entry.kubernetes) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return names;
}

void add_serving(CLI::App& app, Options& options) {
  app.add_option("--host", options.server.host, "the address to listen on")->capture_default_str();
  app.add_option("--port", options.server.port, "the port to listen on; 0: any that is free")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  auto* certificate = app.add_option("--tls-cert", options.tls.certificate, "certificate chain (PEM); without: HTTP");
  auto* key = app.add_option("--tls-key", options.tls.key, "its key (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  app.add_option("--client-ca", options.tls.client_ca, "clients must show a certificate that one of these signed (PEM)")
      ->needs(certificate);
  const auto number = [&](const char* name, std::size_t& value, const char* help, std::size_t most) {
    app.add_option(name, value, help)->capture_default_str()->check(CLI::Range(std::size_t{1}, most));
  };
  number("--threads", options.server.threads, "connections that are served at a time", 4096);
  number("--most-waiting", options.server.most_waiting, "connections that wait for a thread", 65536);
  number("--estimates", options.server.estimates, "estimates that are made at a time", 1024);
  number("--most-body", options.server.most_body_bytes, "bytes of a request", std::size_t{1} << 30);
  number("--most-summary", options.most_summary_bytes, "bytes of a summary's file", std::size_t{1} << 30);
  constexpr std::size_t kMostMs = 86'400'000;
  number("--request-ms", options.request_ms, "for a request to arrive and its answer to be taken", kMostMs);
  number("--estimate-ms", options.estimate_ms, "for an estimate", kMostMs);
  number("--idle-ms", options.idle_ms, "that a connection may be idle", kMostMs);
}

void add_estimating(CLI::App& app, Options& options) {
  app.add_option("--summaries", options.summaries, "folder with the summaries that pods name")
      ->check(CLI::ExistingDirectory);
  app.add_option("--on-error", options.on_error, "a pod that asks and cannot be estimated: allow or deny")
      ->capture_default_str()
      ->check(CLI::IsMember({"allow", "deny"}));
  app.add_option("--for", options.defaults.target, "target of pods without one: " + kubernetes_targets())
      ->capture_default_str();
  app.add_option("--gpu", options.defaults.request.gpu, "GPU of pods without one: a name, or a path to a profile")
      ->capture_default_str();
  app.add_option("--margin", options.margin,
                 "upper (the estimate's upper bound), or bytes beyond what is expected, such as 2GiB")
      ->capture_default_str();
  app.add_option("--estimator", options.defaults.request.estimator, "estimator of pods without one")
      ->capture_default_str();
}

int fail(const Error& error) {
  std::fprintf(stderr, "gpumem-webhook: error: %s\n", core::to_string(error).c_str());
  return core::exit_code(error.code);
}

/// What is wrong with the defaults is said at the start, not to every pod.
std::optional<Error> finish(Options& options) {
  const auto margin = place::parse_margin(options.margin);
  if (!margin) return margin.error();
  options.defaults.margin = *margin;
  const auto target = request::find_target(options.defaults.target);
  if (!target) return target.error();
  if (!(*target)->kubernetes) {
    return Error{ErrorCode::invalid_argument, "the target " + options.defaults.target + " is not for pods", {}};
  }
  const auto gpu = find_profile(options.defaults.request.gpu);
  if (!gpu) return gpu.error();
  const auto estimator = make_estimator(options.defaults.request.estimator);
  if (!estimator) return estimator.error();
  if (!options.tls.certificate.empty()) options.server.tls = options.tls;
  options.server.request_time = std::chrono::milliseconds(options.request_ms);
  options.server.estimate_time = std::chrono::milliseconds(options.estimate_ms);
  options.server.idle_time = std::chrono::milliseconds(options.idle_ms);
  return std::nullopt;
}

int serve(const Options& options) {
  // Blocked in every thread, so that one waits for them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  Admission admission({options.defaults, options.on_error == "allow" ? OnError::allow : OnError::deny},
                      Folder(options.summaries, options.most_summary_bytes));
  auto server = Server::make(options.server, admission);
  if (!server) return fail(server.error());
  const Result<int> port = (*server)->bind();
  if (!port) return fail(port.error());
  std::printf("gpumem-webhook: listening on %s://%s:%d\n", options.server.tls ? "https" : "http",
              options.server.host.c_str(), *port);
  std::fflush(stdout);

  std::thread serving([&] { (*server)->serve(); });
  int signal = 0;
  sigwait(&ends, &signal);
  (*server)->stop();
  serving.join();
  std::printf("gpumem-webhook: stopped\n");
  std::fflush(stdout);
  // An estimate that nobody waits for any more cannot be broken off.
  constexpr std::chrono::milliseconds kPatience{500};
  if (!(*server)->drained(kPatience)) std::_Exit(EXIT_SUCCESS);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "A mutating admission webhook for Kubernetes: pods ask for the GPU memory that their training job needs.",
      "gpumem-webhook");
  app.set_version_flag("--version", "gpumem-webhook " GPUMEM_VERSION_STRING);
  Options options;
  options.defaults.target = "hami";
  add_serving(app, options);
  add_estimating(app, options);
  app.footer(
      "POST /mutate answers an AdmissionReview, GET /healthz says ok, GET /metrics counts for Prometheus.\n"
      "examples/kubernetes has the manifests. SIGTERM ends it after the requests so far are answered.\n"
      "Exit codes: 0 stopped, 2 wrong usage, 3 a file or a port that cannot be opened.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "gpumem-webhook: error: %s; see gpumem-webhook --help\n", wrong.what());
    return core::exit_code(ErrorCode::invalid_argument);
  }
  if (const auto fault = finish(options)) return fail(*fault);
  return serve(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // gpumem throws nothing by design; memory may run out
    std::fprintf(stderr, "gpumem-webhook: error: %s\n", error.what());
    return core::exit_code(ErrorCode::overflow);
  }
}
