#include "ymir/core/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "ymir/base/base64.h"
#include "ymir/base/json.h"
#include "ymir/core/fields.h"
#include "ymir/core/fields_snapshot.h"

namespace ymir {
namespace {

constexpr std::size_t kMaxBody = 64u << 20;  // a plan of 10,000 jobs takes about 5 MB

// --- names of enumerators, in the order of their declaration ---
template <class T>
struct Names;
template <>
struct Names<Mode> {
  static constexpr std::array<const char*, 3> all{"normal", "temporal", "spatial"};
};
template <>
struct Names<TaskKind> {
  static constexpr std::array<const char*, 4> all{"classify", "multi_label", "regress", "lm"};
};
template <>
struct Names<Outcome> {
  static constexpr std::array<const char*, 3> all{"succeeded", "failed", "cancelled"};
};
template <>
struct Names<StartKind> {
  static constexpr std::array<const char*, 3> all{"cold", "warm", "swap"};
};
template <>
struct Names<Transfer::Verdict> {
  static constexpr std::array<const char*, 3> all{"open", "kept", "split"};
};
template <>
struct Names<JobState> {
  static constexpr std::array<const char*, 10> all{
      "submitted", "validating", "queued",    "profiling", "running",
      "splitting", "preempted",  "succeeded", "failed",    "cancelled"};
};

template <class T>
struct IsId : std::false_type {};
template <class Tag>
struct IsId<Id<Tag>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

std::optional<JobId> parse_id(JobId, const std::string& text) { return parse_job_id(text); }
std::optional<RunId> parse_id(RunId, const std::string& text) { return parse_run_id(text); }
std::optional<PlaceId> parse_id(PlaceId, const std::string& text) { return parse_place_id(text); }

// The numbers of a task vector as little-endian f32, which is what every machine of ours has.
static_assert(std::endian::native == std::endian::little);

// --- encoding ---
// Straight to text, the same bytes as canonical() of the same Json: a simulation writes a hundred
// megabytes of events, and building a tree first costs several times as much.
struct FieldNames;
template <class T>
concept Listed =
    std::is_class_v<T> && !IsId<T>::value && requires(FieldNames& v, T& x) { fields(v, x); };

void write(std::string& out, double value);
void write(std::string& out, std::string_view value);
template <Listed T>
void write(std::string& out, const T& value);
void write(std::string& out, bool value) { out += value ? "true" : "false"; }
template <Integer T>
void write(std::string& out, T value) {
  out += fmt::format_int(value).c_str();
}
template <class T>
  requires std::is_enum_v<T>
void write(std::string& out, T value) {
  out.append("\"").append(Names<T>::all.at(static_cast<std::size_t>(value))).append("\"");
}
template <class Tag>
void write(std::string& out, Id<Tag> id) {
  out.append("\"").append(id ? to_string(id) : "").append("\"");
}
void write(std::string& out, Seconds value) { write(out, value.count()); }
void write(std::string& out, Time value) { write(out, to_seconds(value)); }
void write(std::string& out, const std::vector<float>& values) {
  out += '"';
  out += to_base64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  out += '"';
}
template <class T>
void write(std::string& out, const std::vector<T>& values);
template <class T>
void write(std::string& out, const std::set<T>& values);
template <class T>
void write(std::string& out, const IdSet<T>& values);
template <class T>
void write(std::string& out, const std::map<std::string, T>& values);

// Fields are listed by age and written by name: `order` holds their places sorted by name.
struct FieldNames {
  std::vector<std::string_view> names{};
  template <class T>
  void operator()(const char* name, const T&) {
    names.push_back(name);
  }
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> places(names.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::ranges::sort(places, {}, [this](std::size_t i) { return names[i]; });
    return places;
  }
};
struct FieldWriter {  // of the one at `wanted`
  std::string& out;
  std::size_t wanted = 0, at = 0;
  template <class T>
  void operator()(const char* name, const T& value) {
    if (at++ != wanted) return;
    if constexpr (IsOptional<T>::value) {
      if (value) (*this)(name, *value, 0);
    } else {
      (*this)(name, value, 0);
    }
  }

 private:
  template <class T>
  void operator()(const char* name, const T& value, int) {
    out.append("\"").append(name).append("\":");
    write(out, value);
    out += ',';
  }
};
void close(std::string& out, char bracket) {
  if (out.back() == ',')
    out.back() = bracket;
  else
    out += bracket;
}

template <Listed T>
void write(std::string& out, const T& value) {
  T& x = const_cast<T&>(value);  // one list for both directions; writing only reads
  static const std::vector<std::size_t> order = [&x] {
    FieldNames names;
    fields(names, x);
    return names.order();
  }();
  out += '{';
  for (const std::size_t place : order) {
    FieldWriter writer{out, place};
    fields(writer, x);
  }
  close(out, '}');
}
template <class T>
void write_list(std::string& out, const T& values) {
  out += '[';
  for (const auto& value : values) {
    write(out, value);
    out += ',';
  }
  close(out, ']');
}
template <class T>
void write(std::string& out, const std::vector<T>& values) {
  write_list(out, values);
}
template <class T>
void write(std::string& out, const std::set<T>& values) {
  write_list(out, values);
}
template <class T>
void write(std::string& out, const IdSet<T>& values) {
  write_list(out, values);
}
template <class T>
void write(std::string& out, const std::map<std::string, T>& values) {
  out += '{';
  for (const auto& [key, value] : values) {
    write(out, key);
    out += ':';
    write(out, value);
    out += ',';
  }
  close(out, '}');
}

void write(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "\"nan\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    std::array<char, 64> digits{};  // as canonical() writes them
    out.append(digits.data(), nlohmann::detail::to_chars(digits.data(), digits.data() + 64, value));
  }
}
void write(std::string& out, std::string_view value) {
  const bool plain = std::ranges::all_of(
      value, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (plain)
    out.append("\"").append(value).append("\"");
  else
    out += canonical(Json(value));
}

template <class T>
std::string text_of(const T& value) {
  std::string out;
  write(out, value);
  return out;
}

// --- decoding ---
class Decoder {
 public:
  Decoder(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail(where_, "is not an object");
  }
  template <class T>
  void operator()(const char* name, T& value) {
    if (error_) return;
    const auto found = json_.find(name);
    if (found != json_.end()) read(*found, value, where_ + "." + name);
  }
  std::optional<Error> error() && { return std::move(error_); }

 private:
  void fail(const std::string& where, const std::string& text) {
    if (!error_) error_ = Error{ErrorCode::kInvalidArgument, where + " " + text};
  }
  void read(const Json& json, bool& value, const std::string& where) {
    if (!json.is_boolean()) return fail(where, "is not true or false");
    value = json.get<bool>();
  }
  void read(const Json& json, std::string& value, const std::string& where) {
    if (!json.is_string()) return fail(where, "is not a string");
    value = json.get<std::string>();
  }
  template <std::size_t N>
  void read(const Json& json, ShortText<N>& value, const std::string& where) {
    std::string text;
    read(json, text, where);
    if (text.size() > N) return fail(where, "is too long");
    value = ShortText<N>(text);
  }
  void read(const Json& json, double& value, const std::string& where) {
    if (json.is_number()) {
      value = json.get<double>();
      if (!std::isfinite(value)) fail(where, "is out of range");
    } else if (json == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (json == "inf" || json == "-inf") {
      value = json == "inf" ? std::numeric_limits<double>::infinity()
                            : -std::numeric_limits<double>::infinity();
    } else {
      fail(where, "is not a number");
    }
  }
  template <Integer T>
  void read(const Json& json, T& value, const std::string& where) {
    if (!json.is_number_integer()) return fail(where, "is not a whole number");
    const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                                : std::in_range<T>(json.get<std::int64_t>());
    if (!fits) return fail(where, "is out of range");
    value = json.get<T>();
  }
  template <class T>
    requires std::is_enum_v<T>
  void read(const Json& json, T& value, const std::string& where) {
    for (std::size_t i = 0; i < Names<T>::all.size(); ++i) {
      if (json != Names<T>::all[i]) continue;
      value = static_cast<T>(i);
      return;
    }
    fail(where, "is none of the known words");
  }
  template <class Tag>
  void read(const Json& json, Id<Tag>& value, const std::string& where) {
    if (!json.is_string()) return fail(where, "is not an id");
    const auto& text = json.get_ref<const std::string&>();
    value = {};
    if (text.empty()) return;
    const auto id = parse_id(Id<Tag>{}, text);
    if (!id) return fail(where, "is not an id");
    value = *id;
  }
  void read(const Json& json, Seconds& value, const std::string& where) {
    double seconds = 0;
    read(json, seconds, where);
    value = Seconds(seconds);
  }
  void read(const Json& json, Time& value, const std::string& where) {
    double seconds = 0;
    read(json, seconds, where);
    if (!(std::abs(seconds) < 9e12)) return fail(where, "is out of range");
    value = from_seconds(seconds);
  }
  void read(const Json& json, std::vector<float>& value, const std::string& where) {
    const auto bytes = json.is_string() ? from_base64(json.get_ref<const std::string&>())
                                        : std::optional<std::string>();
    if (!bytes || bytes->size() % sizeof(float) != 0) return fail(where, "is not base64 of f32");
    value.resize(bytes->size() / sizeof(float));
    if (!value.empty()) std::memcpy(value.data(), bytes->data(), bytes->size());
  }
  template <class T>
  void read(const Json& json, std::vector<T>& values, const std::string& where) {
    if (!json.is_array()) return fail(where, "is not a list");
    values.clear();
    values.reserve(json.size());
    for (std::size_t i = 0; i < json.size() && !error_; ++i)
      read(json[i], values.emplace_back(), fmt::format("{}[{}]", where, i));
  }
  template <class T>
  void read(const Json& json, std::map<std::string, T>& values, const std::string& where) {
    if (!json.is_object()) return fail(where, "is not an object");
    values.clear();
    for (const auto& [key, value] : json.items()) read(value, values[key], where + "." + key);
  }
  template <class T>
  void read(const Json& json, std::optional<T>& value, const std::string& where) {
    if (json.is_null()) {
      value.reset();
    } else {
      read(json, value.emplace(), where);
    }
  }
  template <class T>
    requires(std::is_class_v<T> && !IsId<T>::value && requires(Decoder& d, T& x) { fields(d, x); })
  void read(const Json& json, T& value, const std::string& where) {
    Decoder inner(json, where);
    fields(inner, value);
    if (auto error = std::move(inner).error()) error_ = std::move(error);
  }

  const Json& json_;
  std::string where_;
  std::optional<Error> error_{};
};

template <class T>
Result<T> from_json(const Json& json, const std::string& where) {
  T value{};
  Decoder decoder(json, where);
  if (json.is_object()) fields(decoder, value);
  if (auto error = std::move(decoder).error()) return *std::move(error);
  return value;
}

// --- kinds ---
template <class T>
constexpr std::string_view kKind = "";
template <class T>
constexpr int kVersion = 1;
#define YMIR_KIND(T) \
  template <>        \
  constexpr std::string_view kKind<T> = #T
YMIR_KIND(DaemonStarted);
YMIR_KIND(PlaceReady);
YMIR_KIND(PlaceLost);
YMIR_KIND(JobSubmitted);
YMIR_KIND(DataCheckStarted);
YMIR_KIND(DataChecked);
YMIR_KIND(DataRefused);
YMIR_KIND(JobHeld);
YMIR_KIND(JobReleased);
YMIR_KIND(JobFinished);
YMIR_KIND(ProfileFinished);
YMIR_KIND(ProfileFailed);
YMIR_KIND(StepTimed);
YMIR_KIND(TransferSettled);
YMIR_KIND(PlanAdopted);
YMIR_KIND(RoundSkipped);
YMIR_KIND(RunRequested);
YMIR_KIND(RunStarted);
YMIR_KIND(EpochEvaluated);
YMIR_KIND(CheckpointCommitted);
YMIR_KIND(RunKept);
YMIR_KIND(RunSplit);
YMIR_KIND(RunStopped);
YMIR_KIND(RunLost);
YMIR_KIND(FlowAuthorised);
YMIR_KIND(StepReport);
YMIR_KIND(StartRun);
YMIR_KIND(StopRun);
YMIR_KIND(CheckData);
YMIR_KIND(StopCheck);
#undef YMIR_KIND

template <class Variant, std::size_t I = 0>
Result<Variant> decode_kind(std::string_view kind, std::int64_t version, const Json& json) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return Error{ErrorCode::kNotFound, fmt::format("unknown kind: {}", kind.substr(0, 64))};
  } else {
    using T = std::variant_alternative_t<I, Variant>;
    static_assert(!kKind<T>.empty());
    if (kind != kKind<T>) return decode_kind<Variant, I + 1>(kind, version, json);
    if (version < 1 || version > kVersion<T>)
      return Error{ErrorCode::kNotFound,
                   fmt::format("unknown version {} of {} (this program knows {})", version, kind,
                               kVersion<T>)};
    YMIR_TRY_ASSIGN(T value, from_json<T>(json, std::string(kind)));
    return Variant(std::move(value));
  }
}

template <class Variant>
void write_envelope(std::string& out, const Variant& value, std::string_view before_version = "") {
  std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        out += "\"body\":";
        write(out, x);
        out.append(",\"kind\":\"").append(kKind<T>).append("\",").append(before_version);
        out += fmt::format("\"v\":{}}}", kVersion<T>);
      },
      value);
}
template <class Variant>
std::string line_of(const Variant& value) {
  std::string out = "{";
  write_envelope(out, value);
  return out;
}

struct Envelope {
  std::string kind{};
  std::int64_t version = 0;
  Json body{};
};

Result<Envelope> open_line(const Json& json) {
  if (!json.is_object()) return Error{ErrorCode::kInvalidArgument, "line is not an object"};
  const auto kind = json.find("kind"), version = json.find("v"), body = json.find("body");
  if (kind == json.end() || !kind->is_string())
    return Error{ErrorCode::kInvalidArgument, "line has no kind"};
  if (version == json.end() || !version->is_number_integer())
    return Error{ErrorCode::kInvalidArgument, "line has no version"};
  if (body == json.end()) return Error{ErrorCode::kInvalidArgument, "line has no body"};
  if (version->is_number_unsigned() && !std::in_range<std::int64_t>(version->get<std::uint64_t>()))
    return Error{ErrorCode::kInvalidArgument, "version is out of range"};
  return Envelope{kind->get<std::string>(), version->get<std::int64_t>(), *body};
}

Result<Envelope> parse_line(std::string_view line, std::size_t max_bytes = kMaxLine) {
  YMIR_TRY_ASSIGN(const Json json, parse_json(line, {.max_bytes = max_bytes, .max_depth = 16}));
  return open_line(json);
}

}  // namespace

std::string_view kind_of(const EventBody& body) {
  return std::visit([](const auto& x) { return kKind<std::decay_t<decltype(x)>>; }, body);
}
int version_of(const EventBody& body) {
  return std::visit([](const auto& x) { return kVersion<std::decay_t<decltype(x)>>; }, body);
}

std::string encode_body(const EventBody& body) {
  return std::visit([](const auto& x) { return text_of(x); }, body);
}
Result<EventBody> decode_body(std::string_view kind, int version, std::string_view json) {
  YMIR_TRY_ASSIGN(const Json parsed, parse_json(json, {.max_bytes = kMaxBody, .max_depth = 16}));
  return decode_kind<EventBody>(kind, version, parsed);
}

std::string encode(const JobSpec& spec) { return text_of(spec); }
Result<JobSpec> decode_spec(std::string_view json) {
  YMIR_TRY_ASSIGN(const Json parsed, parse_json(json, {.max_bytes = kMaxLine, .max_depth = 16}));
  return from_json<JobSpec>(parsed, "job");
}

std::string encode_line(const Action& action) { return line_of(action); }
Result<Action> decode_action(std::string_view line) {
  YMIR_TRY_ASSIGN(const Envelope envelope, parse_line(line));
  return decode_kind<Action>(envelope.kind, envelope.version, envelope.body);
}

std::string encode_line(const Report& report) {
  if (const auto* body = std::get_if<EventBody>(&report)) return line_of(*body);
  return line_of(std::variant<StepReport>(std::get<StepReport>(report)));
}
Result<Report> decode_report(std::string_view line) {
  using Reports = std::variant<StepReport, RunStarted, EpochEvaluated, CheckpointCommitted,
                               StepTimed, ProfileFinished, ProfileFailed, RunStopped, RunLost,
                               JobFinished, DataChecked, DataRefused>;
  YMIR_TRY_ASSIGN(const Envelope envelope, parse_line(line));
  YMIR_TRY_ASSIGN(Reports report,
                  decode_kind<Reports>(envelope.kind, envelope.version, envelope.body));
  return std::visit(
      [](auto&& x) -> Report {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, StepReport>)
          return x;
        else
          return EventBody(std::forward<decltype(x)>(x));
      },
      std::move(report));
}

std::string encode_line(const Event& event) {
  std::string out = "{\"actor\":";
  write(out, event.actor);
  out += ",\"at\":";
  write(out, event.at);
  out += ',';
  write_envelope(out, event.body, fmt::format("\"seq\":{},", event.seq));
  return out;
}
Result<Event> decode_event(std::string_view line) {
  YMIR_TRY_ASSIGN(const Json json, parse_json(line, {.max_bytes = kMaxBody, .max_depth = 16}));
  YMIR_TRY_ASSIGN(const Envelope envelope, open_line(json));
  YMIR_TRY_ASSIGN(EventBody body,
                  decode_kind<EventBody>(envelope.kind, envelope.version, envelope.body));
  Event event{.body = std::move(body)};
  Decoder decoder(json, "event");
  decoder("seq", event.seq);
  decoder("at", event.at);
  decoder("actor", event.actor);
  if (auto error = std::move(decoder).error()) return *std::move(error);
  return event;
}

std::string encode(const Snapshot& snapshot) { return text_of(snapshot); }

}  // namespace ymir
