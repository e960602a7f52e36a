// serve: the daemon in the foreground. doctor: what works here. fetch: a model and tasks to try.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "apps/ymir/service.h"
#include "apps/ymir/terminal.h"
#include "apps/ymir/verb.h"
#include "ymir/base/file.h"
#include "ymir/base/json.h"
#include "ymir/base/machine.h"
#include "ymir/base/text.h"
#include "ymir/store/artifacts.h"
#include "ymir/tune/data/fetch.h"

namespace ymir::cli {
namespace {

// --- serve ---

struct ServeOptions {
  std::string listen{};
  std::string slots{};
  std::string round{};
  std::string policy{};
  std::vector<std::string> settings{};
};

// Becomes ymird: signals and exit code are its own.
int serve(const Globals& globals, const ServeOptions& options) {
  const std::string program = program_folder() + "/ymird";
  std::vector<std::string> words{program, "--state", globals.state};
  const auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(flag);
    words.push_back(value);
  };
  add("--listen", options.listen);
  add("--slots", options.slots);
  add("--round", options.round);
  add("--policy", options.policy);
  for (const std::string& setting : options.settings) add("--set", setting);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  return tell(globals, kUnreachable, fmt::format("can't run {}: {}", program, std::strerror(errno)),
              "build the target ymir_programs");
}

// --- doctor ---

enum class Health { kOk, kNote, kFault };
struct Finding {
  Health health = Health::kOk;
  std::string what{}, text{}, remedy{};
};

Finding check_program(const std::string& name) {
  const std::string path = program_folder() + "/" + name;
  if (::access(path.c_str(), X_OK) == 0) return {Health::kOk, name, path, ""};
  return {Health::kFault, name, "not beside ymir", "build it: cmake --build --preset release"};
}

Finding check_state(const std::string& state) {
  std::error_code failed;
  if (!std::filesystem::exists(state, failed))
    return {Health::kNote, "state folder", state + " does not exist yet", "`ymir serve` makes it"};
  if (::access(state.c_str(), W_OK) != 0)
    return {Health::kFault, "state folder", state + " is not writable", "choose one with --state"};
  const auto space = disk_space(state);
  if (!space) return {Health::kFault, "state folder", space.error().message, ""};
  const std::string text =
      fmt::format("{}, {} free of {}", state, format_bytes(static_cast<double>(space->free)),
                  format_bytes(static_cast<double>(space->total)));
  if (space->low())
    return {Health::kFault, "state folder", text, "free some space: no new work is taken"};
  return {Health::kOk, "state folder", text, ""};
}

Finding check_daemon(const Globals& globals) {
  const auto client = connect(globals, 3);
  if (!client) return {Health::kFault, "daemon", client.error().message, ""};
  const auto answer = client->get("/readyz");
  if (!answer)
    return {Health::kNote, "daemon", "not running (" + answer.error().message + ")",
            "`ymir serve` starts it; train, validate, demo and optimize need none"};
  const auto json = parse_json(answer->body);
  const std::string status = json ? json->value("status", "") : "";
  if (answer->status == 200)
    return {Health::kOk, "daemon", fmt::format("ready, {} slots", json->value("slots", 0)), ""};
  return {Health::kFault, "daemon", status, "see its own log; `ymir events` shows places lost"};
}

Finding check_cpu() {
  const Cpu here = cpu();
  return {Health::kOk, "processor",
          fmt::format("{} cores, {}{}", std::thread::hardware_concurrency(), here.model,
                      here.bf16 ? ", bf16 in hardware" : ", bf16 only by emulation"),
          ""};
}

Finding check_memory() {
  const long pages = ::sysconf(_SC_AVPHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  const double free = static_cast<double>(pages) * static_cast<double>(size);
  if (free < 512e6)
    return {Health::kNote, "memory", format_bytes(free) + " free", "a worker needs about 500 MiB"};
  return {Health::kOk, "memory", format_bytes(free) + " free", ""};
}

int doctor(const Globals& globals) {
  const std::vector<Finding> findings{check_program("ymird"),
                                      check_program("ymir-agent"),
                                      check_program("ymir-worker"),
                                      check_state(globals.state),
                                      check_daemon(globals),
                                      check_cpu(),
                                      check_memory()};
  static constexpr const char* kNames[] = {"ok", "note", "fault"};
  static constexpr Color kColors[] = {Color::kGreen, Color::kYellow, Color::kRed};
  bool good = true;
  Json data = Json::array();
  Table table(
      {{"", false, false}, {"what", false, false}, {"", false, true}, {"remedy", false, true}});
  for (const Finding& finding : findings) {
    const auto health = static_cast<std::size_t>(finding.health);
    good = good && finding.health != Health::kFault;
    data.push_back({{"health", kNames[health]},
                    {"what", finding.what},
                    {"text", finding.text},
                    {"remedy", finding.remedy}});
    table.row({{kNames[health], kColors[health]},
               {finding.what, Color::kNone},
               {finding.text, Color::kNone},
               {finding.remedy, Color::kDim}});
  }
  print(globals.json ? canonical({{"data", data}, {"has_more", false}}) + "\n"
                     : table.lines(Terminal::detect(globals.no_color)));
  return good ? kDone : kFailed;
}

}  // namespace

Run serve_verb(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  app.add_option("--listen", options->listen, "also serve on this loopback HOST:PORT");
  app.add_option("--slots", options->slots, "slots to make of this machine's cores");
  app.add_option("--round", options->round, "seconds between rounds");
  app.add_option("--policy", options->policy, "scheduling policy");
  app.add_option("--set", options->settings, "KEY=VALUE of the policy");
  return [options](const Globals& globals) { return serve(globals, *options); };
}

Run doctor_verb(CLI::App&) { return doctor; }

Run fetch_verb(CLI::App& app) {
  auto request = std::make_shared<FetchRequest>();
  app.add_option("what", request->what, "minilm or demo")
      ->required()
      ->check(CLI::IsMember(kFetchable));
  app.add_option("--out", request->out, "folder")->required();
  return [request](const Globals& globals) {
    request->cache = cache_folder();
    const auto done = fetch(*request);
    if (!done)
      return tell(globals, done.error(),
                  done.error().code == ErrorCode::kUnavailable
                      ? "the packages come from the registries; check the network and try again"
                      : "");
    if (!globals.quiet)
      std::fprintf(stderr, "%s is in %s\n", request->what.c_str(), request->out.c_str());
    return static_cast<int>(kDone);
  };
}

}  // namespace ymir::cli
