// The daemon as the verbs see it: a client, and what its answers mean. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "apps/ymir/verb.h"
#include "ymir/api/http_client.h"
#include "ymir/core/event.h"

namespace ymir::cli {

// The daemon of --server, else the socket of the state folder. `timeout` 0: the global one.
Result<HttpClient> connect(const Globals& globals, double timeout = 0);
// Tells an error of the daemon, with the next thing to try.
int tell_service(const Globals& globals, const Error& error);

struct EventPage {
  std::vector<Event> events{};
  std::uint64_t next = 0;  // read on after this seq
};
// Events with seq > after (of one job when named), waiting up to `wait` seconds for the first.
Result<EventPage> read_events(const HttpClient& client, const std::string& job, std::uint64_t after,
                              int wait);

// An event as one line for people: "j3 started temporal from j1 on slot 0".
// Empty for events that only matter to the machinery.
std::string describe(const Event& event);

// The jobs of GET /v1/jobs as a table, oldest first.
std::string job_table(std::string_view jobs_json, bool no_color);
// All jobs, all pages, as one {"data":[...]} document.
Result<std::string> list_jobs(const HttpClient& client, const std::string& query = "");

// Set by the first SIGINT, SIGTERM or SIGHUP after catch_interrupt(). One that comes later than
// `once` ends the program as usual; before that it is the same wish: `timeout` and some schedulers
// signal the program and then its whole group.
void catch_interrupt(std::chrono::milliseconds once = std::chrono::seconds(1));
bool interrupted();

}  // namespace ymir::cli
