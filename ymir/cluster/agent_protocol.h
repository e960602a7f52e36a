// The lines between an agent and ymird, one JSON object each:
// {"kind":"beat","v":1,...}.
//
// Agent to ymird: hello, beat, event, step, answer. ymird to agent: welcome, refused, beat_ok, ack,
// start, stop, list, dismiss. Orders carry an id that their answer repeats, and are idempotent by
// RunId; events carry a number that grows by one for each place, and are kept by the agent until an
// ack covers them. Decoding is bounded and total: any bytes give a message or an error that names
// the field; an unknown kind is kNotFound, unknown fields are ignored. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ymir/base/line_channel.h"
#include "ymir/base/result.h"
#include "ymir/base/time.h"
#include "ymir/core/codec.h"

namespace ymir {

inline constexpr int kAgentProtocol = 1;

struct Hello {
  int protocol_min = kAgentProtocol, protocol_max = kAgentProtocol;
  std::string build{};
  PlaceId place{};
  std::string secret{};  // of the join file, at the first hello only
  std::string key{};     // of welcome, at every later one
  std::string node{};
  std::string boot_id{};
  std::string hardware{};
  int num_slots = 0;
  std::vector<RunId> runs{};       // running, or ended and not yet acknowledged
  std::uint64_t first_number = 1;  // of the oldest event not acknowledged
};
struct Welcome {
  int protocol = kAgentProtocol;
  PlaceId place{};
  std::string key{};  // to reconnect with
  Seconds lease{10};
  Seconds beat{2};
};
struct HelloRefused {
  std::string code{};  // bad_secret unknown_place superseded wrong_version not_allowed
  std::string text{};
};
struct Beat {
  std::uint64_t n = 0;
  std::vector<RunId> runs{};   // running now
  std::int64_t free_disk = 0;  // bytes
};
struct BeatOk {
  std::uint64_t n = 0;
};
struct Numbered {  // kind "event"
  std::uint64_t number = 0;
  EventBody body{};
};
struct StepProgress {  // kind "step": not numbered, newest wins
  StepReport step{};
};
struct Ack {
  std::uint64_t up_to = 0;
};
struct StartOrder {
  std::uint64_t id = 0;
  StartRun start{};
};
struct StopOrder {
  std::uint64_t id = 0;
  StopRun stop{};
};
struct Answer {
  std::uint64_t id = 0;
  std::string code{};  // ok conflict stale_run unknown_run no_such_slot unsupported
  std::string text{};
  std::vector<RunId> runs{};  // to list
};
struct ListRuns {
  std::uint64_t id = 0;
};
struct Dismiss {
  Seconds within{10};  // runs get a checkpoint and this long to leave
};

using AgentMessage =
    std::variant<Hello, Welcome, HelloRefused, Beat, BeatOk, Numbered, StepProgress, Ack,
                 StartOrder, StopOrder, Answer, ListRuns, Dismiss>;

std::string encode_message(const AgentMessage& message);
Result<AgentMessage> decode_message(std::string_view line);

// The bounds of such a link: the longest line of core/codec.h and its envelope fit into one line.
LineChannel::Options agent_link_options();

// The run that an event speaks of, when its kind is one that a worker reports; else nothing.
std::optional<RunId> reported_run(const EventBody& body);
// True for the reports after which the run is over: RunStopped and RunLost.
bool ends_run(const EventBody& body);

}  // namespace ymir
