#include "apps/ymir/service.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"
#include "ymir/core/codec.h"

namespace ymir::cli {
namespace {

// What the signal handler can reach.
volatile std::sig_atomic_t g_interrupted = 0;
std::chrono::steady_clock::time_point g_first{};
std::chrono::milliseconds g_once{};

void interrupt(int number) {
  const auto now = std::chrono::steady_clock::now();
  if (g_interrupted == 0) {
    g_first = now;
    g_interrupted = 1;
  } else if (now - g_first >= g_once) {
    std::signal(number, SIG_DFL);
    std::raise(number);  // ends the program when this handler returns
  }
}

// From YMIR_TOKEN, else the file YMIR_TOKEN_FILE; never from a flag, which others could see.
std::string token() {
  if (const char* direct = std::getenv("YMIR_TOKEN")) return direct;
  if (const char* path = std::getenv("YMIR_TOKEN_FILE"))
    if (const auto text = read_file(path, 4096)) return std::string(trim(*text));
  return "";
}

}  // namespace

Result<HttpClient> connect(const Globals& globals, double timeout) {
  const std::string address =
      globals.server.empty() ? "unix:" + globals.state + "/run/ymir.sock" : globals.server;
  return HttpClient::open(address, token(), timeout > 0 ? timeout : globals.timeout);
}

int tell_service(const Globals& globals, const Error& error) {
  std::string hint;
  if (error.message.starts_with("read_only"))
    hint = "free some space and submit again; what was submitted goes on";
  else if (error.code == ErrorCode::kUnavailable)
    hint = "is the daemon running? `ymir serve` starts it; --state or --server say where it is";
  if (error.code == ErrorCode::kNotFound) hint = "`ymir ls` lists the jobs";
  return tell(globals, error, hint);
}

Result<EventPage> read_events(const HttpClient& client, const std::string& job, std::uint64_t after,
                              int wait) {
  std::string path = fmt::format("/v1/events?after={}&limit=1000&wait={}", after, wait);
  if (!job.empty()) path += "&job=" + url_encode(job);
  YMIR_TRY_ASSIGN(const std::string body, body_of(client.get(path)));
  YMIR_TRY_ASSIGN(const Json json, parse_json(body, {.max_bytes = 256u << 20}));
  EventPage page;
  page.next = json.value("next", after);
  for (const Json& row : json.value("data", Json::array())) {
    Event event;
    event.seq = row.value("seq", std::uint64_t{0});
    event.at = from_seconds(row.value("at", 0.0));
    event.actor = row.value("actor", "");
    auto decoded = decode_body(row.value("kind", ""), row.value("v", 1), canonical(row["body"]));
    if (!decoded) continue;  // of a newer daemon
    event.body = *std::move(decoded);
    page.events.push_back(std::move(event));
  }
  return page;
}

Result<std::string> list_jobs(const HttpClient& client, const std::string& query) {
  Json all = Json::array();
  std::string after;
  while (true) {
    YMIR_TRY_ASSIGN(const std::string body,
                    body_of(client.get("/v1/jobs?limit=100" + query + after)));
    YMIR_TRY_ASSIGN(const Json page, parse_json(body, {.max_bytes = 64u << 20}));
    const Json data = page.value("data", Json::array());
    for (const Json& job : data) all.push_back(job);
    if (!page.value("has_more", false) || data.empty()) break;
    after = "&after=" + data.back().value("id", "");
  }
  return canonical({{"object", "list"}, {"data", all}, {"has_more", false}});
}

void catch_interrupt(std::chrono::milliseconds once) {
  g_once = once;
  struct sigaction action{};
  action.sa_handler = interrupt;
  // A terminal that closes and a scheduler that ends its step ask for the same as Ctrl-C.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);  // nohup stays so
  }
}

bool interrupted() { return g_interrupted != 0; }

}  // namespace ymir::cli
