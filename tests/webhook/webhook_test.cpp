// The webhook as a Kubernetes API server sees it: over real HTTP and HTTPS, with requests as the API's documentation
// describes them (no cluster was at hand to record them from), under load, and with clients that mean no good.
#include <httplib.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base64.hpp"
#include "golden.hpp"
#include "own_path.hpp"
#include "program.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testing::Program;
using testing::RawClient;
using namespace std::chrono_literals;

const std::vector<std::string> kSummaries = {"--summaries", GPUMEM_SOURCE_DIR "/models/summaries"};

std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.begin(), kSummaries.begin(), kSummaries.end());
  return more;
}

const std::string& example() {
  static const std::string kText = testing::text_of(GPUMEM_SOURCE_DIR "/examples/kubernetes/review.json");
  return kText;
}

std::string review_of(const Json& annotations) {
  Json review = Json::parse(example());
  review["request"]["object"]["metadata"]["annotations"] = annotations;
  return review.dump();
}

Json response_of(const httplib::Result& result) {
  if (!result || result->status != 200) return {{"fault", result ? result->body : httplib::to_string(result.error())}};
  return Json::parse(result->body)["response"];
}

std::string post_of(const std::string& body, const std::string& headers = "") {
  return "POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// The value of a metric's line.
std::int64_t metric(httplib::Client& client, const std::string& line) {
  const auto result = client.Get("/metrics");
  if (!result) return -1;
  const std::size_t at = result->body.find("\n" + line + " ");
  return at == std::string::npos ? -1 : std::atoll(result->body.c_str() + at + line.size() + 2);
}

TEST(Webhook, AnswersTheExampleToTheLetter) {
  const Program program(with({}));
  ASSERT_GT(program.port(), 0) << program.first_line();
  httplib::Client client("127.0.0.1", program.port());
  const auto result = client.Post("/mutate?timeout=10s", example(), "application/json");
  ASSERT_TRUE(result) << httplib::to_string(result.error());
  EXPECT_EQ(result->status, 200);
  EXPECT_EQ(result->get_header_value("Content-Type"), "application/json");
  Json answer = Json::parse(result->body);
  // Shown decoded, so that people can read what is compared.
  answer["response"]["patch"] = Json::parse(testing::decoded(answer["response"]["patch"].get<std::string>()));
  testing::expect_golden(GPUMEM_SOURCE_DIR "/examples/kubernetes/answer.json", answer.dump(2) + "\n");
}

TEST(Webhook, SaysThatItIsWellAndCounts) {
  const Program program(with({}));
  httplib::Client client("127.0.0.1", program.port());
  EXPECT_EQ(client.Get("/healthz")->body, "ok\n");
  EXPECT_EQ(response_of(client.Post("/mutate", example(), "application/json"))["allowed"], true);
  EXPECT_EQ(response_of(client.Post("/mutate", review_of(Json::object()), "application/json"))["allowed"], true);
  const std::string many = review_of({{"gpumem.io/summary", "vgg16.torchsummary.txt"}, {"gpumem.io/batch", "4096"}});
  EXPECT_EQ(response_of(client.Post("/mutate", many, "application/json"))["allowed"], false);
  EXPECT_EQ(metric(client, "gpumem_webhook_requests_total{outcome=\"patched\"}"), 1);
  EXPECT_EQ(metric(client, "gpumem_webhook_requests_total{outcome=\"untouched\"}"), 1);
  EXPECT_EQ(metric(client, "gpumem_webhook_requests_total{outcome=\"does_not_fit\"}"), 1);
  EXPECT_EQ(metric(client, "gpumem_webhook_request_duration_seconds_count"), 3);
  EXPECT_EQ(metric(client, "gpumem_webhook_in_flight_requests"), 0);
}

TEST(Webhook, FailsOpenOrClosedAsItIsTold) {
  const std::string wrong = review_of({{"gpumem.io/summary", "../secret"}, {"gpumem.io/batch", "1"}});
  for (const std::string way : {"allow", "deny"}) {
    const Program program(with({"--on-error", way}));
    httplib::Client client("127.0.0.1", program.port());
    EXPECT_EQ(response_of(client.Post("/mutate", wrong, "application/json"))["allowed"], way == "allow");
  }
}

TEST(Webhook, TurnsAwayWhatItDoesNotServe) {
  const Program program(with({}));
  httplib::Client client("127.0.0.1", program.port());
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Post("/elsewhere", example(), "application/json")->status, 404);
  EXPECT_EQ(client.Get("/mutate")->status, 405);
  EXPECT_EQ(client.Post("/healthz", "", "text/plain")->status, 405);
  EXPECT_EQ(client.Put("/mutate", example(), "application/json")->status, 405);
  EXPECT_EQ(client.Post("/mutate", {{"Content-Encoding", "gzip"}}, example(), "application/json")->status, 415);
  EXPECT_EQ(client.Post("/mutate", example(), "multipart/form-data; boundary=x")->status, 415);
  EXPECT_EQ(client.Get("/healthz")->status, 200);
}

TEST(Webhook, SaysThatABodyIsMalformed) {
  const Program program(with({}));
  httplib::Client client("127.0.0.1", program.port());
  const std::string deep(3'000'000, '[');
  const std::string objects = [] {
    std::string text;
    for (int level = 0; level < 100'000; ++level) text += "{\"a\":";
    return text;
  }();
  for (const std::string& body : {std::string(), std::string("{"), std::string("null"), std::string("\0\1", 2),
                                  example().substr(0, example().size() / 2), deep, objects}) {
    const auto result = client.Post("/mutate", body, "application/json");
    ASSERT_TRUE(result) << httplib::to_string(result.error());
    EXPECT_EQ(result->status, 400);
    EXPECT_LT(result->body.size(), 2000U);
  }
  EXPECT_EQ(metric(client, "gpumem_webhook_requests_total{outcome=\"malformed\"}"), 7);
  EXPECT_EQ(client.Get("/healthz")->status, 200);
}

TEST(Webhook, BoundsTheBody) {
  const Program program(with({"--most-body", "100000"}));
  httplib::Client client("127.0.0.1", program.port());
  const auto announced = client.Post("/mutate", std::string(100'001, ' '), "application/json");
  ASSERT_TRUE(announced) << httplib::to_string(announced.error());
  EXPECT_EQ(announced->status, 413);
  // A liar announces little; an endless body announces nothing.
  RawClient chunked(program.port());
  chunked.send("POST /mutate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(0x1000, ' ') + "\r\n";
  for (int count = 0; count < 100 && chunked.send(chunk); ++count) continue;
  EXPECT_NE(chunked.receive(5s).find(" 413 "), std::string::npos);
  RawClient endless(program.port());
  endless.send("POST /mutate HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int count = 0; count < 100 && endless.send(chunk); ++count) continue;
  EXPECT_TRUE(endless.closed(10s));
  RawClient huge(program.port());
  huge.send("POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n");
  EXPECT_NE(huge.receive(5s).find(" 413 "), std::string::npos);
  EXPECT_EQ(client.Get("/healthz")->status, 200);
}

TEST(Webhook, BoundsTheHeaders) {
  const Program program(with({}));
  httplib::Client client("127.0.0.1", program.port());
  const std::string start = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
  RawClient many(program.port());
  many.send(start);
  for (int count = 0; count < 10'000 && many.send("X-Header: and so on\r\n"); ++count) continue;
  EXPECT_TRUE(many.closed(10s));
  // The library matches ranges by a regular expression, whose recursion must end within the stack.
  std::string ranges = "bytes=0-1";
  while (ranges.size() < 8000) ranges += ",2-3";
  RawClient ranged(program.port());
  ranged.send(start + "Range: " + ranges + "\r\n\r\n");
  (void)ranged.receive(500ms);
  RawClient longest(program.port());
  longest.send(start + "Range: bytes=" + std::string(8000, '1') + "-\r\n\r\n");
  (void)longest.receive(500ms);
  for (const std::string text :
       {"\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"}) {
    RawClient odd(program.port());
    odd.send(text);
    (void)odd.receive(100ms);
  }
  EXPECT_EQ(client.Get("/healthz")->status, 200);
}

TEST(Webhook, ASlowClientHoldsNoThreadForEver) {
  // Two threads, and four clients that send a byte now and then: in the headers and in the body.
  const Program program(with({"--threads", "2", "--request-ms", "500"}));
  std::vector<std::unique_ptr<RawClient>> slow;
  const std::string text = post_of(example());
  const std::size_t body = text.find("\r\n\r\n") + 4;
  for (const std::size_t at : {std::size_t{10}, body + 10, std::size_t{30}, body}) {
    slow.push_back(std::make_unique<RawClient>(program.port()));
    ASSERT_TRUE(slow.back()->send(text.substr(0, at)));
  }
  std::atomic<bool> ended = false;
  std::thread dripping([&] {
    while (!ended) {
      for (const auto& client : slow) client->send("x");
      std::this_thread::sleep_for(50ms);
    }
  });
  httplib::Client client("127.0.0.1", program.port());
  client.set_read_timeout(20s);
  EXPECT_EQ(response_of(client.Post("/mutate", example(), "application/json"))["allowed"], true);
  for (const auto& one : slow) EXPECT_TRUE(one->closed(20s));
  ended = true;
  dripping.join();
  EXPECT_GE(metric(client, "gpumem_webhook_turned_away_total{reason=\"too_slow\"}"), 1);
}

TEST(Webhook, AClientThatReadsNothingHoldsNoThreadForEver) {
  const Program program(with({"--threads", "1", "--request-ms", "500"}));
  RawClient deaf(program.port());
  // Asks again and again and never reads: what it is sent fills its window.
  const std::string ask = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  std::atomic<bool> ended = false;
  std::thread asking([&] {
    while (!ended && deaf.send(ask)) continue;
  });
  httplib::Client client("127.0.0.1", program.port());
  client.set_read_timeout(30s);
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  ended = true;
  (void)deaf.closed(5s);
  asking.join();
}

TEST(Webhook, IdleConnectionsMakeWay) {
  const Program program(with({"--threads", "2"}));
  RawClient first(program.port());
  RawClient second(program.port());
  RawClient third(program.port());
  for (const RawClient* client : {&first, &second, &third}) {
    ASSERT_TRUE(client->send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  // The first two stand idle with a thread each: the third must not wait until they end, a minute from now.
  EXPECT_NE(third.receive(5s).find(" 200 "), std::string::npos);
}

TEST(Webhook, TurnsConnectionsAwayWhenTooManyWait) {
  const Program program(with({"--threads", "1", "--most-waiting", "1", "--request-ms", "3000"}));
  std::vector<std::unique_ptr<RawClient>> crowd;
  int busy = 0;
  for (int count = 0; count < 8; ++count) {
    crowd.push_back(std::make_unique<RawClient>(program.port()));
    crowd.back()->send("POST /mutate HTTP/1.1\r\n");
  }
  for (const auto& client : crowd) busy += client->receive(200ms).find(" 503 ") != std::string::npos ? 1 : 0;
  EXPECT_GE(busy, 5);
}

TEST(Webhook, AnEstimateThatTakesTooLongIsGivenUp) {
  // One estimate at a time, and a millisecond for each of sixteen that come together and are all new.
  const std::string text = testing::text_of(GPUMEM_SOURCE_DIR "/models/graphs/bert_like.json");
  const Program program(with({"--estimates", "1", "--estimate-ms", "1", "--on-error", "allow"}));
  std::atomic<int> given_up = 0;
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&, thread] {
      const std::string review = review_of({{"gpumem.io/summary-text", text + std::string(thread, ' ')},
                                            {"gpumem.io/batch", "32"},
                                            {"gpumem.io/seq", "512"},
                                            {"gpumem.io/estimator", "replay-corrected"}});
      httplib::Client client("127.0.0.1", program.port());
      const Json response = response_of(client.Post("/mutate", review, "application/json"));
      EXPECT_EQ(response["allowed"], true) << response;
      const Json warnings = response.value("warnings", Json::array({""}));
      if (warnings[0] == "gpumem: the estimate was not done within 1 ms") ++given_up;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(given_up, 1);
  httplib::Client client("127.0.0.1", program.port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(metric(client, "gpumem_webhook_requests_total{outcome=\"allowed_unknown\"}"), given_up);
}

TEST(Webhook, ServesManyAtATime) {
  const Program program(with({}));
  std::atomic<int> allowed = 0;
  std::atomic<int> denied = 0;
  const std::string many = review_of({{"gpumem.io/summary", "vgg16.torchsummary.txt"}, {"gpumem.io/batch", "4096"}});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      httplib::Client client("127.0.0.1", program.port());
      client.set_keep_alive(thread % 2 == 0);
      for (int turn = 0; turn < 50; ++turn) {
        const Json response = response_of(client.Post("/mutate", turn % 2 == 0 ? example() : many, "application/json"));
        if (response.value("allowed", false)) ++allowed;
        if (response.contains("status")) ++denied;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 200);
  EXPECT_EQ(denied, 200);
}

TEST(Webhook, EndsOnceItHasAnsweredWhatCame) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Program program(with({}));
    RawClient begun(program.port());
    const std::string text = post_of(example());
    ASSERT_TRUE(begun.send(text.substr(0, 200)));
    RawClient idle(program.port());
    ASSERT_TRUE(idle.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"));
    std::this_thread::sleep_for(200ms);
    program.signal(signal);
    std::this_thread::sleep_for(200ms);
    EXPECT_FALSE(RawClient(program.port()).connected());
    ASSERT_TRUE(begun.send(text.substr(200)));
    const std::string answer = begun.receive(5s);
    EXPECT_NE(answer.find(" 200 "), std::string::npos) << answer;
    EXPECT_EQ(program.wait(), 0);
  }
}

TEST(Webhook, SaysWhatIsWrongAtTheStart) {
  const auto code = [](const std::vector<std::string>& options) { return Program(options).wait(); };
  EXPECT_EQ(code({"--summaries", "/nowhere"}), 2);
  EXPECT_EQ(code({"--on-error", "perhaps"}), 2);
  EXPECT_EQ(code({"--for", "slurm"}), 2);
  EXPECT_EQ(code({"--for", "k8s"}), 2);
  EXPECT_EQ(code({"--gpu", "a1000"}), 2);
  EXPECT_EQ(code({"--margin", "2"}), 2);
  EXPECT_EQ(code({"--threads", "0"}), 2);
  EXPECT_EQ(code({"--tls-cert", "x"}), 2);
  EXPECT_EQ(code({"--tls-cert", "/nowhere", "--tls-key", "/nowhere"}), 3);
  const Program program(with({}));
  EXPECT_EQ(code({"--port", std::to_string(program.port())}), 3);
}

/// A self-signed certificate for the loopback, made again: the tests carry no keys.
class WebhookTls : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::own_path("webhook_tls");
    fs::create_directories(folder_);
    make_certificate();
  }
  void TearDown() override { fs::remove_all(folder_); }

  void make_certificate() const {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
    static long serial = 0;
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("127.0.0.1"), -1, -1,
                               0);
    X509_set_issuer_name(certificate.get(), name);
    ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
    FILE* file = std::fopen(key_path().c_str(), "wb");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    file = std::fopen(certificate_path().c_str(), "wb");
    PEM_write_X509(file, certificate.get());
    std::fclose(file);
  }
  [[nodiscard]] std::string key_path() const { return (folder_ / "tls.key").string(); }
  [[nodiscard]] std::string certificate_path() const { return (folder_ / "tls.crt").string(); }
  [[nodiscard]] std::vector<std::string> options() const {
    return with({"--tls-cert", certificate_path(), "--tls-key", key_path(), "--request-ms", "1000"});
  }
  [[nodiscard]] std::unique_ptr<httplib::SSLClient> client(const Program& program) const {
    auto made = std::make_unique<httplib::SSLClient>("127.0.0.1", program.port());
    made->enable_server_certificate_verification(false);
    return made;
  }

  /// The serial number of the certificate that the server shows.
  static std::string shown(const Program& program) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new_ssl_connect(context.get()), BIO_free_all);
    BIO_set_conn_hostname(bio.get(), ("127.0.0.1:" + std::to_string(program.port())).c_str());
    if (BIO_do_connect(bio.get()) != 1 || BIO_do_handshake(bio.get()) != 1) return "no connection";
    SSL* ssl = nullptr;
    BIO_get_ssl(bio.get(), &ssl);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl), X509_free);
    return std::to_string(ASN1_INTEGER_get(X509_get0_serialNumber(certificate.get())));
  }

  fs::path folder_;
};

TEST_F(WebhookTls, AnswersOverTls) {
  const Program program(options());
  EXPECT_NE(program.first_line().find("https://127.0.0.1:"), std::string::npos);
  const auto secure = client(program);
  secure->set_keep_alive(true);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(response_of(secure->Post("/mutate", example(), "application/json"))["allowed"], true);
  }
  const auto untouched = secure->Post("/mutate", std::string(5'000'000, ' '), "application/json");
  ASSERT_TRUE(untouched) << httplib::to_string(untouched.error());
  EXPECT_EQ(untouched->status, 413);
}

TEST_F(WebhookTls, AHandshakeHasADeadlineToo) {
  const Program program(options());
  RawClient silent(program.port());
  RawClient plain(program.port());
  plain.send("GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(silent.closed(10s));
  EXPECT_TRUE(plain.closed(10s));
  EXPECT_EQ(client(program)->Get("/healthz")->status, 200);
}

TEST_F(WebhookTls, TakesARenewedCertificate) {
  const Program program(options());
  const std::string first = shown(program);
  EXPECT_EQ(shown(program), first);
  make_certificate();
  // Times of files are compared by the second.
  fs::last_write_time(certificate_path(), fs::file_time_type::clock::now() + 5s);
  const std::string second = shown(program);
  EXPECT_NE(second, first);
  // Half written, the former one stays.
  std::ofstream(certificate_path()) << "-----BEGIN";
  fs::last_write_time(certificate_path(), fs::file_time_type::clock::now() + 10s);
  EXPECT_EQ(shown(program), second);
}

TEST_F(WebhookTls, AsksForACertificateWhereItIsTold) {
  auto words = options();
  words.insert(words.end(), {"--client-ca", certificate_path()});
  const Program program(words);
  EXPECT_FALSE(client(program)->Get("/healthz"));
  httplib::SSLClient known("127.0.0.1", program.port(), certificate_path(), key_path());
  known.enable_server_certificate_verification(false);
  const auto result = known.Get("/healthz");
  ASSERT_TRUE(result) << httplib::to_string(result.error());
  EXPECT_EQ(result->status, 200);
}

}  // namespace
}  // namespace gpumem
