// Events, orders and specs as canonical JSON (sorted keys, shortest numbers) and back. The one
// place that knows the wire and log form. Decoding is bounded and total: any bytes give a value or
// an error that names the field. Unknown fields are ignored, missing ones take their default, an
// unknown kind or a newer version is kNotFound. NaN and infinities travel as words. Pure, any
// thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "ymir/base/result.h"
#include "ymir/core/event.h"
#include "ymir/core/snapshot.h"

namespace ymir {

std::string_view kind_of(const EventBody& body);  // "JobSubmitted"
int version_of(const EventBody& body);            // schema version of that kind

std::string encode_body(const EventBody& body);
Result<EventBody> decode_body(std::string_view kind, int version, std::string_view json);

std::string encode(const JobSpec& spec);
Result<JobSpec> decode_spec(std::string_view json);

// One line each, without the newline: {"body":{..},"kind":"StartRun","v":1}. At most kMaxLine
// bytes: the largest is a ProfileFinished with a task vector (4/3 x 4 bytes a number, base64).
inline constexpr std::size_t kMaxLine = 1 << 20;
std::string encode_line(const Action& action);
Result<Action> decode_action(std::string_view line);
using Report = std::variant<EventBody, StepReport>;
std::string encode_line(const Report& report);
// Takes only what a worker or an agent may report: a line with a plan in it is kNotFound.
Result<Report> decode_report(std::string_view line);

// A whole event, as `ymir events --json` and events.jsonl show it:
// {"actor":..,"at":seconds,"body":{..},"kind":"JobHeld","seq":7,"v":1}.
std::string encode_line(const Event& event);
Result<Event> decode_event(std::string_view line);

// The whole state as canonical JSON: equal bytes, equal states. For checks and for people.
std::string encode(const Snapshot& snapshot);

}  // namespace ymir
