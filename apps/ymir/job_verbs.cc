// submit, ls, describe, explain, events, logs, watch, cancel, pause, resume: over the daemon's API.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <memory>
#include <set>
#include <tuple>

#include "apps/ymir/data_check.h"
#include "apps/ymir/job_input.h"
#include "apps/ymir/service.h"
#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/api/views.h"
#include "ymir/base/hash.h"
#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir::cli {
namespace {

constexpr int kPollSeconds = 5;  // of one long poll: an interrupt is noticed at the latest then

std::string clock_text(Time at) {
  const auto seconds = static_cast<std::time_t>(to_seconds(at));
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%H:%M:%S", &parts)};
}

void print_event(const Globals& globals, const Event& event) {
  if (globals.json) {
    print(event_view(event) + "\n");
    return;
  }
  const std::string line = describe(event);
  if (!line.empty()) print(fmt::format("{}  {:>5}  {}\n", clock_text(event.at), event.seq, line));
}

// --- watch ---

struct WatchOptions {
  std::vector<std::string> jobs{};
  std::string until{};
  double timeout = 0;
};

// Follows until every job of `open` has ended (or reached the state asked for). 1: one failed.
int follow(const Globals& globals, const HttpClient& client, std::set<std::string> open,
           const WatchOptions& options) {
  catch_interrupt();
  std::uint64_t after = 0;
  JobsOfRuns runs;
  bool failed = false, first = true;
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    const std::set<std::string> now_open = open;
    for (const std::string& job : now_open) {
      const auto body = body_of(client.get("/v1/jobs/" + url_encode(job)));
      if (!body) return tell_service(globals, body.error());
      const auto json = parse_json(*body, {.max_bytes = 64u << 20});
      const std::string state = json ? json->value("state", "") : "";
      const bool ended = state == "succeeded" || state == "failed" || state == "cancelled";
      if (ended || (!options.until.empty() && state == options.until)) open.erase(job);
      failed = failed || state == "failed" || (state == "cancelled" && options.until != state);
    }
    const auto page = read_events(client, "", after, first || open.empty() ? 0 : kPollSeconds);
    if (interrupted())
      return tell(globals, kInterrupted, "interrupted; the jobs go on",
                  "`ymir watch` follows them again");
    if (!page) return tell_service(globals, page.error());
    for (const Event& event : page->events) {
      runs.see(event);
      for (const std::string& job : options.jobs)
        if (const auto id = parse_job_id(job); id && runs.concern(event, *id)) {
          print_event(globals, event);
          break;
        }
    }
    const bool more = page->next > after && !page->events.empty();
    after = page->next;
    first = first && more;
    if (open.empty() && !more) return failed ? kFailed : kDone;
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin;
    if (options.timeout > 0 && gone.count() > options.timeout)
      return tell(globals, kFailed,
                  fmt::format("{} jobs have not ended after {}", open.size(),
                              format_duration(options.timeout)));
  }
}

int watch(const Globals& globals, WatchOptions options) {
  const auto client = connect(globals, kPollSeconds + globals.timeout);
  if (!client) return tell_service(globals, client.error());
  if (options.jobs.empty()) {
    const auto listed = list_jobs(*client);
    if (!listed) return tell_service(globals, listed.error());
    const auto json = parse_json(*listed, {.max_bytes = 256u << 20});
    for (const Json& job : (*json)["data"]) options.jobs.push_back(job.value("id", ""));
    if (options.jobs.empty()) return kDone;
  }
  return follow(globals, *client, {options.jobs.begin(), options.jobs.end()}, options);
}

// --- submit ---

struct SubmitOptions {
  std::vector<std::string> files{};
  bool wait = false, hold = false, dry_run = false;
};

// What the daemon found wrong, where it stands in the files as they were given: it has read the
// resolved ones.
int tell_refusal(const Globals& globals, const std::vector<JobInput>& inputs,
                 const std::string& body) {
  const auto json = parse_json(body);
  std::vector<JobInput> faulty = inputs;
  std::size_t found = 0;
  if (json && json->is_object())
    for (const Json& error : json->value("error", Json::object()).value("errors", Json::array()))
      for (JobInput& input : faulty) {
        if (error.value("file", "") != input.file) continue;
        JobFault fault{1, 1, error.value("param", ""), error.value("message", ""),
                       error.value("code", "")};
        if (const auto place = input.places.find(fault.key); place != input.places.end())
          std::tie(fault.line, fault.column) = std::pair(place->second.line, place->second.column);
        input.faults.push_back(std::move(fault));
        ++found;
        break;
      }
  if (found == 0) return tell(globals, kUsage, "ymird refused the job files: " + body);
  constexpr const char* kMessage = "nothing was submitted";
  if (globals.json) return tell_faults(globals, kUsage, kMessage, faults_json(faulty));
  for (const JobInput& input : faulty) print_faults(input);
  return tell(globals, kUsage, kMessage);
}

int submit(const Globals& globals, const SubmitOptions& options) {
  int exit = kDone;
  const auto inputs = read_good_jobs(globals, options.files, &exit);
  if (!inputs) return exit;
  if (options.dry_run) {
    Json faults = Json::array(), files = Json::array();
    for (const JobInput& input : *inputs) {
      const DataVerdict verdict = check_job_data(input.spec);
      for (const std::string& fault : verdict.faults) {
        faults.push_back({{"file", input.file}, {"message", fault}});
        if (!globals.json) std::fprintf(stderr, "%s\n", placed(input, fault).c_str());
      }
      if (!verdict.faults.empty()) continue;
      const std::string text = write_job_file(input.spec);
      files.push_back({{"file", input.file}, {"job_file", text}});
      if (!globals.json) print(text);
    }
    if (globals.json) print(canonical({{"data", files}, {"has_more", false}}) + "\n");
    if (faults.empty()) return kDone;
    return tell_faults(globals, kUsage, "faults in the data, nothing was submitted",
                       canonical(faults));
  }
  // A daemon elsewhere sees other files.
  const bool is_here = globals.server.empty() || globals.server.starts_with("unix:");
  if (is_here && !files_are_there(globals, *inputs, &exit)) return exit;
  const auto client = connect(globals);
  if (!client) return tell_service(globals, client.error());
  Json jobs = Json::array();
  for (const JobInput& input : *inputs)
    jobs.push_back({{"file", input.file}, {"text", write_job_file(input.spec)}});
  const std::string body = canonical({{"jobs", jobs}, {"hold", options.hold}});
  // The key lets a repeated request (an answer that was lost) submit nothing twice.
  const std::string key =
      sha256(fmt::format("{} {} {}", body, getpid(), to_seconds(wall_clock()))).substr(0, 40);
  auto answer = client->post("/v1/jobs", body, "application/json", key);
  if (!answer) answer = client->post("/v1/jobs", body, "application/json", key);
  if (answer && answer->status == 422) return tell_refusal(globals, *inputs, answer->body);
  const auto created = body_of(std::move(answer));
  if (!created) return tell_service(globals, created.error());
  const auto json = parse_json(*created);
  std::vector<std::string> ids;
  if (json)
    for (const Json& job : json->value("data", Json::array())) ids.push_back(job.value("id", ""));
  if (globals.json)
    print(*created + "\n");
  else
    for (const std::string& id : ids) print(id + "\n");
  if (!options.wait) return kDone;
  WatchOptions follow_options;
  follow_options.jobs = ids;
  const auto patient = connect(globals, kPollSeconds + globals.timeout);
  if (!patient) return tell_service(globals, patient.error());
  return follow(globals, *patient, {ids.begin(), ids.end()}, follow_options);
}

// --- ls ---

struct ListOptions {
  bool mine = false, watch = false;
  std::string state{};
};

int ls(const Globals& globals, const ListOptions& options) {
  const auto client = connect(globals);
  if (!client) return tell_service(globals, client.error());
  std::string query;
  if (options.mine) query += "&owner=" + url_encode(user_name());
  if (!options.state.empty()) query += "&state=" + url_encode(options.state);
  const bool live = options.watch && isatty(STDOUT_FILENO) == 1 && !globals.json;
  if (live) catch_interrupt();
  while (true) {
    const auto listed = list_jobs(*client, query);
    if (!listed) return tell_service(globals, listed.error());
    if (globals.json) {
      print(*listed + "\n");
      return kDone;
    }
    const std::string table = job_table(*listed, globals.no_color);
    print(live ? "\x1b[H\x1b[2J" + table : table);
    if (!live) return kDone;
    ::usleep(1'000'000);
    if (interrupted() || output_gone()) return kDone;
  }
}

// --- one job ---

std::string shown(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Nested values as indented lines: "progress.step  40".
void flatten(const Json& value, const std::string& name, std::string& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items())
      flatten(inner, name.empty() ? key : name + "." + key, out);
  } else if (value.is_array() && !value.empty() && value.front().is_object()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      flatten(value[i], fmt::format("{}[{}]", name, i), out);
  } else {
    out += fmt::format("{:<28} {}\n", name, shown(value));
  }
}

int show(const Globals& globals, const std::string& path) {
  const auto client = connect(globals);
  if (!client) return tell_service(globals, client.error());
  const auto body = body_of(client->get(path));
  if (!body) return tell_service(globals, body.error());
  if (globals.json) {
    print(*body + "\n");
    return kDone;
  }
  auto json = parse_json(*body, {.max_bytes = 64u << 20});
  if (!json) return tell(globals, json.error());
  const std::string job_file = json->value("job_file", "");
  json->erase("spec");
  json->erase("job_file");
  std::string out;
  flatten(*json, "", out);
  if (!job_file.empty()) out += "\n# job file, every default resolved\n" + job_file;
  print(out);
  return kDone;
}

int explain(const Globals& globals, const std::string& job) {
  const auto client = connect(globals);
  if (!client) return tell_service(globals, client.error());
  const auto body = body_of(client->get("/v1/jobs/" + url_encode(job) + "/explain"));
  if (!body) return tell_service(globals, body.error());
  if (globals.json) {
    print(*body + "\n");
    return kDone;
  }
  const auto json = parse_json(*body);
  if (!json) return tell(globals, json.error());
  std::string out = fmt::format("{}  {}: {}", json->value("id", ""), json->value("name", ""),
                                json->value("state", ""));
  if (const std::string why = json->value("waiting_for", ""); !why.empty())
    out += ", waits: " + why;
  out += "\n";
  if (const auto lost = json->value("lost_runs", 0); lost > 0)
    out += fmt::format("   lost     {} run{} since its last progress, the newest: {}\n", lost,
                       lost == 1 ? "" : "s", json->value("lost_why", ""));
  if (const Json& plan = (*json)["plan"]; plan.is_object()) {
    out +=
        fmt::format("   plan     of round {}: value {}, bound {}, proof {}", plan["round"].dump(),
                    plan["value"].dump(), plan["bound"].dump(), plan.value("proof", ""));
    for (const Json& price : plan.value("gpu_price", Json::array()))
      out += fmt::format(", GPU price {:.3g}", price.get<double>());
    out += "\n";
  }
  if (const Json& choice = (*json)["choice"]; choice.is_object())
    out += fmt::format("   chosen   {}, {} GPU, regret of the next best {}\n",
                       choice.value("mode", ""), choice["gpus"].dump(), choice["regret"].dump());
  for (const Json& transfer : json->value("transfers", Json::array())) {
    out += fmt::format("   merge    {} with {}: {}", transfer.value("mode", ""),
                       transfer.value("partner", ""), transfer.value("verdict", ""));
    if (const std::string why = transfer.value("why", ""); !why.empty()) out += ", because " + why;
    out += "\n";
  }
  for (const Json& card : json->value("cards", Json::array()))
    out += "\n" + card.get<std::string>();
  print(out);
  return kDone;
}

// --- events, logs ---

struct StreamOptions {
  std::string job{};
  bool follow = false;
  std::int64_t since = 0;
};

int events(const Globals& globals, const StreamOptions& options) {
  const auto client = connect(globals, kPollSeconds + globals.timeout);
  if (!client) return tell_service(globals, client.error());
  catch_interrupt();
  auto after = static_cast<std::uint64_t>(options.since);
  while (true) {
    const auto page = read_events(*client, options.job, after, options.follow ? kPollSeconds : 0);
    if (output_gone()) return kDone;
    if (interrupted()) return kInterrupted;
    if (!page) return tell_service(globals, page.error());
    for (const Event& event : page->events) print_event(globals, event);
    const bool more = page->next > after;
    after = page->next;
    if (!options.follow && !more) return kDone;
  }
}

// A line of metrics.jsonl for people.
std::string log_line(std::string_view line) {
  const auto json = parse_json(line);
  if (!json || !json->is_object()) return std::string(line) + "\n";
  std::string text =
      fmt::format("step {:>6}  epoch {:>6.2f}", json->value("step", 0), json->value("epoch", 0.0));
  if (json->contains("loss"))
    text += fmt::format("  loss {:.4f}  lr {:.2e}  {:>8}", json->value("loss", 0.0),
                        json->value("lr", 0.0), format_duration(json->value("time_s", 0.0)));
  if (json->contains("metric")) {
    text += "  " + json->value("split", "validation") + ":";
    for (const auto& [name, value] : (*json)["metric"].items())
      text += fmt::format(" {} {}", name, value.dump());
  }
  return text + "\n";
}

int logs(const Globals& globals, const StreamOptions& options) {
  const auto client = connect(globals);
  if (!client) return tell_service(globals, client.error());
  catch_interrupt();
  std::int64_t offset = options.since;
  std::string waiting;  // a line whose end has not come yet
  while (!interrupted() && !output_gone()) {
    const auto answer =
        client->get(fmt::format("/v1/jobs/{}/logs?offset={}", url_encode(options.job), offset));
    const auto body = body_of(answer);
    if (!body) return tell_service(globals, body.error());
    waiting += *body;
    for (auto end = waiting.find('\n'); end != std::string::npos; end = waiting.find('\n')) {
      const std::string line = waiting.substr(0, end);
      print(globals.json ? line + "\n" : log_line(line));
      waiting.erase(0, end + 1);
    }
    const auto next = answer->headers.find("x-ymir-next-offset");
    const auto there = next == answer->headers.end() ? std::nullopt : parse_int(next->second);
    const bool more = there && *there > offset;
    if (there) offset = *there;
    if (!more && !options.follow) return kDone;
    if (!more) ::usleep(300'000);
  }
  return kInterrupted;
}

// --- commands ---

bool confirmed(const Globals& globals, const std::vector<std::string>& jobs) {
  if (globals.yes || isatty(STDIN_FILENO) != 1) return true;
  std::fprintf(stderr, "end %s? [y/N] ", join(jobs, ", ").c_str());
  const int answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

int command_all(const Globals& globals, const std::vector<std::string>& jobs, const char* command,
                const char* done) {
  const auto client = connect(globals);
  if (!client) return tell_service(globals, client.error());
  int exit = kDone;
  for (const std::string& job : jobs) {
    const auto body = body_of(
        client->post(fmt::format("/v1/jobs/{}:{}", url_encode(job), command), "", "text/plain"));
    if (!body)
      exit = std::max(exit, tell_service(globals, body.error()));
    else if (!globals.json)
      print(fmt::format("{} {}\n", job, done));
    else
      print(*body + "\n");
  }
  return exit;
}

// What is no id is told at once; a name that is none may be of any length.
std::string id_fault(const std::string& text) {
  if (parse_job_id(text)) return "";
  return "no job id: " + fit(text, 40) + " (ids look like j3; `ymir ls` lists them)";
}

// The option `job` or `jobs` of most verbs; CLI11 turns the fault into bad usage.
template <class Value>
CLI::Option* job_option(CLI::App& app, Value& value, const std::string& help) {
  const char* name = std::is_same_v<Value, std::string> ? "job" : "jobs";
  return app.add_option(name, value, help)->check(CLI::Validator(id_fault, "ID"));
}

Run command_verb(CLI::App& app, const char* command, const char* done, bool ask) {
  auto jobs = std::make_shared<std::vector<std::string>>();
  job_option(app, *jobs, "job ids")->required();
  return [=](const Globals& globals) {
    if (ask && !confirmed(globals, *jobs)) return tell(globals, kFailed, "nothing was done");
    return command_all(globals, *jobs, command, done);
  };
}

}  // namespace

Run submit_verb(CLI::App& app) {
  auto options = std::make_shared<SubmitOptions>();
  app.add_option("files", options->files, "job files; - is stdin")->required();
  app.add_flag("--wait", options->wait, "follow the jobs until they end");
  app.add_flag("--hold", options->hold, "do not start before `ymir resume`");
  app.add_flag("--dry-run", options->dry_run, "check everything, submit nothing");
  return [options](const Globals& globals) { return submit(globals, *options); };
}

Run ls_verb(CLI::App& app) {
  auto options = std::make_shared<ListOptions>();
  app.add_flag("--mine", options->mine, "only my jobs");
  app.add_flag("--watch", options->watch, "draw again every second");
  app.add_option("--in", options->state, "only jobs in this state, e.g. running")
      ->check(CLI::IsMember(job_state_names()));
  return [options](const Globals& globals) { return ls(globals, *options); };
}

Run describe_verb(CLI::App& app) {
  auto job = std::make_shared<std::string>();
  job_option(app, *job, "job id, e.g. j3")->required();
  return [job](const Globals& globals) { return show(globals, "/v1/jobs/" + *job); };
}

Run explain_verb(CLI::App& app) {
  auto job = std::make_shared<std::string>();
  job_option(app, *job, "job id, e.g. j3")->required();
  return [job](const Globals& globals) { return explain(globals, *job); };
}

Run events_verb(CLI::App& app) {
  auto options = std::make_shared<StreamOptions>();
  job_option(app, options->job, "job id; none: all events");
  app.add_flag("-f,--follow", options->follow, "go on as events come");
  app.add_option("--since", options->since, "only after this seq")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60));
  return [options](const Globals& globals) { return events(globals, *options); };
}

Run logs_verb(CLI::App& app) {
  auto options = std::make_shared<StreamOptions>();
  job_option(app, options->job, "job id, e.g. j3")->required();
  app.add_flag("-f,--follow", options->follow, "go on as lines come");
  return [options](const Globals& globals) { return logs(globals, *options); };
}

Run watch_verb(CLI::App& app) {
  auto options = std::make_shared<WatchOptions>();
  job_option(app, options->jobs, "job ids; none: all jobs");
  app.add_option("--until", options->until, "stop following a job in this state")
      ->check(CLI::IsMember(job_state_names()));
  app.add_option("--give-up", options->timeout, "seconds after which to stop (exit code 1)");
  return [options](const Globals& globals) { return watch(globals, *options); };
}

Run cancel_verb(CLI::App& app) { return command_verb(app, "cancel", "cancelled", true); }
Run pause_verb(CLI::App& app) { return command_verb(app, "pause", "held", false); }
Run resume_verb(CLI::App& app) { return command_verb(app, "resume", "released", false); }

}  // namespace ymir::cli
