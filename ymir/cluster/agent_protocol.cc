#include "ymir/cluster/agent_protocol.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "ymir/base/json.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxLinkLine = kMaxLine + 1024;  // a report or order and its envelope
constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kMaxRuns = 4096;
constexpr int kMaxSlots = 4096;

Error bad(const std::string& field, const char* what) {
  return {ErrorCode::kInvalidArgument, field + ": " + what};
}

// Reads typed fields of one object; the first fault is kept, later reads give defaults.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  std::uint64_t number(const char* name, std::uint64_t missing = 0) {
    const Json* value = find(name);
    if (value == nullptr) return missing;
    if (!value->is_number_unsigned()) return fail(name, "not a natural number"), missing;
    return value->get<std::uint64_t>();
  }
  int small(const char* name, int max) {
    const std::uint64_t value = number(name);
    if (value > static_cast<std::uint64_t>(max)) return fail(name, "too large"), 0;
    return static_cast<int>(value);
  }
  Seconds seconds(const char* name, Seconds missing) {
    const Json* value = find(name);
    if (value == nullptr) return missing;
    if (!value->is_number()) return fail(name, "not a number"), missing;
    const double seconds = value->get<double>();
    if (!(seconds >= 0 && seconds <= 1e9)) return fail(name, "out of range"), missing;
    return Seconds(seconds);
  }
  std::string text(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(name, "not a text"), std::string();
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() > kMaxText) return fail(name, "too long"), std::string();
    return text;
  }
  std::vector<RunId> runs(const char* name) {
    const Json* value = find(name);
    std::vector<RunId> runs;
    if (value == nullptr) return runs;
    if (!value->is_array() || value->size() > kMaxRuns) return fail(name, "not a list"), runs;
    for (const Json& entry : *value) {
      if (!entry.is_number_unsigned()) return fail(name, "not a natural number"), runs;
      runs.push_back(RunId{entry.get<std::uint64_t>()});
    }
    return runs;
  }
  // The nested object as a line of its own, for core's codec.
  std::string nested(const char* name) {
    const Json* value = find(name);
    if (value == nullptr || !value->is_object()) return fail(name, "not an object"), std::string();
    return canonical(*value);
  }
  template <class T>
  Result<AgentMessage> done(T message) const {
    if (error_) return *error_;
    return AgentMessage(std::move(message));
  }

 private:
  const Json* find(const char* name) const {
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }
  void fail(const char* name, const char* what) {
    if (!error_) error_ = bad(name, what);
  }

  const Json& object_;
  std::optional<Error> error_{};
};

Json numbers(const std::vector<RunId>& runs) {
  Json list = Json::array();
  for (const RunId run : runs) list.push_back(run.value);
  return list;
}

Json nested(const std::string& line) {
  auto parsed = parse_json(line, {.max_bytes = kMaxLinkLine});
  YMIR_CHECK(static_cast<bool>(parsed), "core's codec wrote what is no JSON");
  return *std::move(parsed);
}

std::pair<const char*, Json> to_json(const Hello& m) {
  return {"hello",
          {{"protocol_min", m.protocol_min},
           {"protocol_max", m.protocol_max},
           {"build", m.build},
           {"place", m.place.value},
           {"secret", m.secret},
           {"key", m.key},
           {"node", m.node},
           {"boot_id", m.boot_id},
           {"hardware", m.hardware},
           {"slots", m.num_slots},
           {"runs", numbers(m.runs)},
           {"first_number", m.first_number}}};
}
std::pair<const char*, Json> to_json(const Welcome& m) {
  return {"welcome",
          {{"protocol", m.protocol},
           {"place", m.place.value},
           {"key", m.key},
           {"lease_s", m.lease.count()},
           {"beat_s", m.beat.count()}}};
}
std::pair<const char*, Json> to_json(const HelloRefused& m) {
  return {"refused", {{"code", m.code}, {"text", m.text}}};
}
std::pair<const char*, Json> to_json(const Beat& m) {
  return {"beat", {{"n", m.n}, {"runs", numbers(m.runs)}, {"free_disk", m.free_disk}}};
}
std::pair<const char*, Json> to_json(const BeatOk& m) { return {"beat_ok", {{"n", m.n}}}; }
std::pair<const char*, Json> to_json(const Numbered& m) {
  return {"event", {{"number", m.number}, {"report", nested(encode_line(Report(m.body)))}}};
}
std::pair<const char*, Json> to_json(const StepProgress& m) {
  return {"step", {{"report", nested(encode_line(Report(m.step)))}}};
}
std::pair<const char*, Json> to_json(const Ack& m) { return {"ack", {{"up_to", m.up_to}}}; }
std::pair<const char*, Json> to_json(const StartOrder& m) {
  return {"start", {{"id", m.id}, {"order", nested(encode_line(Action(m.start)))}}};
}
std::pair<const char*, Json> to_json(const StopOrder& m) {
  return {"stop", {{"id", m.id}, {"order", nested(encode_line(Action(m.stop)))}}};
}
std::pair<const char*, Json> to_json(const Answer& m) {
  return {"answer", {{"id", m.id}, {"code", m.code}, {"text", m.text}, {"runs", numbers(m.runs)}}};
}
std::pair<const char*, Json> to_json(const ListRuns& m) { return {"list", {{"id", m.id}}}; }
std::pair<const char*, Json> to_json(const Dismiss& m) {
  return {"dismiss", {{"within_s", m.within.count()}}};
}

Result<AgentMessage> read_hello(Fields fields) {
  Hello m;
  m.protocol_min = fields.small("protocol_min", 1'000'000);
  m.protocol_max = fields.small("protocol_max", 1'000'000);
  m.build = fields.text("build");
  m.place = PlaceId{fields.number("place")};
  m.secret = fields.text("secret");
  m.key = fields.text("key");
  m.node = fields.text("node");
  m.boot_id = fields.text("boot_id");
  m.hardware = fields.text("hardware");
  m.num_slots = fields.small("slots", kMaxSlots);
  m.runs = fields.runs("runs");
  m.first_number = fields.number("first_number", 1);
  return fields.done(std::move(m));
}

Result<AgentMessage> read_event(Fields fields) {
  const std::uint64_t number = fields.number("number");
  const std::string line = fields.nested("report");
  YMIR_TRY(fields.done(Ack{}));
  YMIR_TRY_ASSIGN(Report report, decode_report(line));
  if (!std::holds_alternative<EventBody>(report)) return bad("report", "not an event");
  return AgentMessage(Numbered{number, std::get<EventBody>(std::move(report))});
}

Result<AgentMessage> read_step(Fields fields) {
  const std::string line = fields.nested("report");
  YMIR_TRY(fields.done(Ack{}));
  YMIR_TRY_ASSIGN(const Report report, decode_report(line));
  if (!std::holds_alternative<StepReport>(report)) return bad("report", "not a step");
  return AgentMessage(StepProgress{std::get<StepReport>(report)});
}

template <class Order, class Body>
Result<AgentMessage> read_order(Fields fields) {
  const std::uint64_t id = fields.number("id");
  const std::string line = fields.nested("order");
  YMIR_TRY(fields.done(Ack{}));
  YMIR_TRY_ASSIGN(Action action, decode_action(line));
  if (!std::holds_alternative<Body>(action)) return bad("order", "not what the kind says");
  return AgentMessage(Order{id, std::get<Body>(std::move(action))});
}

Result<AgentMessage> read_other(const std::string& kind, Fields f) {
  if (kind == "welcome")
    return f.done(Welcome{f.small("protocol", 1'000'000), PlaceId{f.number("place")}, f.text("key"),
                          f.seconds("lease_s", Seconds(10)), f.seconds("beat_s", Seconds(2))});
  if (kind == "refused") return f.done(HelloRefused{f.text("code"), f.text("text")});
  if (kind == "beat") {
    Beat beat{f.number("n"), f.runs("runs"), 0};
    const auto disk = f.number("free_disk");
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    beat.free_disk =
        disk > static_cast<std::uint64_t>(most) ? most : static_cast<std::int64_t>(disk);
    return f.done(std::move(beat));
  }
  if (kind == "beat_ok") return f.done(BeatOk{f.number("n")});
  if (kind == "ack") return f.done(Ack{f.number("up_to")});
  if (kind == "answer")
    return f.done(Answer{f.number("id"), f.text("code"), f.text("text"), f.runs("runs")});
  if (kind == "list") return f.done(ListRuns{f.number("id")});
  if (kind == "dismiss") return f.done(Dismiss{f.seconds("within_s", Seconds(10))});
  return Error{ErrorCode::kNotFound, "unknown kind of line: " + kind.substr(0, 40)};
}

}  // namespace

std::string encode_message(const AgentMessage& message) {
  auto [kind, json] = std::visit([](const auto& m) { return to_json(m); }, message);
  json["kind"] = kind;
  json["v"] = kAgentProtocol;
  return canonical(json);
}

Result<AgentMessage> decode_message(std::string_view line) {
  YMIR_TRY_ASSIGN(const Json json, parse_json(line, {.max_bytes = kMaxLinkLine}));
  if (!json.is_object()) return bad("line", "not an object");
  const auto kind_at = json.find("kind");
  if (kind_at == json.end() || !kind_at->is_string()) return bad("kind", "missing");
  const std::string kind = kind_at->get<std::string>();
  const Fields fields(json);
  if (kind == "hello") return read_hello(fields);
  if (kind == "event") return read_event(fields);
  if (kind == "step") return read_step(fields);
  if (kind == "start") return read_order<StartOrder, StartRun>(fields);
  if (kind == "stop") return read_order<StopOrder, StopRun>(fields);
  return read_other(kind, fields);
}

LineChannel::Options agent_link_options() { return {.max_line = kMaxLinkLine}; }

std::optional<RunId> reported_run(const EventBody& body) {
  return std::visit(
      [](const auto& event) -> std::optional<RunId> {
        using T = std::decay_t<decltype(event)>;
        if constexpr (std::is_same_v<T, RunStarted> || std::is_same_v<T, RunStopped> ||
                      std::is_same_v<T, RunLost> || std::is_same_v<T, EpochEvaluated> ||
                      std::is_same_v<T, CheckpointCommitted> || std::is_same_v<T, StepTimed> ||
                      std::is_same_v<T, ProfileFinished> || std::is_same_v<T, ProfileFailed> ||
                      std::is_same_v<T, JobFinished>)
          return event.run;
        else
          return std::nullopt;
      },
      body);
}

bool ends_run(const EventBody& body) {
  return std::holds_alternative<RunStopped>(body) || std::holds_alternative<RunLost>(body);
}

}  // namespace ymir
