// Agent: the program on a node that starts workers and speaks with ymird for them.
//
// It dials in, proves itself with the join file's secret and later with the key it was given, and
// keeps every event until ymird has said that it is durable; what was sent on a connection that
// broke is sent again. Orders are idempotent by RunId. Its lease grows with each answered beat:
// some seconds before its end the runs are asked for a checkpoint, at its end they are killed, so
// that nothing trains which ymird has given to another place. Without ymird for `linger` it ends.
// One thread, the program's main one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ymir/base/line_channel.h"
#include "ymir/base/result.h"
#include "ymir/base/time.h"
#include "ymir/cluster/agent_protocol.h"
#include "ymir/cluster/join_file.h"
#include "ymir/cluster/worker_pool.h"

namespace ymir {

struct AgentOptions {
  std::string join_file{};  // read, then removed
  int num_slots = 0;        // 0: default_slots()
  Seconds save_before{4};   // of the lease's end: runs are asked for a checkpoint
  Seconds unanswered{4};    // a beat without answer for so long: dial again
  Seconds linger{60};       // without ymird
  Seconds redial_first{0.2}, redial_most{5};
  Seconds leave_within{10};          // SIGTERM: runs get a checkpoint and this long
  std::size_t most_events = 50'000;  // unacknowledged; more: workers are not read
  WorkerPoolOptions workers{};
  Result<> validate() const;
};

class Agent {
 public:
  // `signals`: a descriptor that becomes readable when the program should leave (signalfd), or -1.
  static Result<std::unique_ptr<Agent>> create(AgentOptions options, int signals);

  // Until dismissed, asked to leave, refused (kPermission) or alone for too long (kTimeout).
  Result<> run();

 private:
  enum class Link { kDown, kGreeting, kUp };
  struct Record {             // of a RunId, for idempotence
    std::string body_hash{};  // of its start; empty: stopped before it was started
    bool ended = false;
    std::uint64_t last_number = 0;  // of its newest event
  };

  Agent(AgentOptions options, JoinFile join, std::vector<Slot> slots, int signals);
  Seconds now() const;  // CLOCK_BOOTTIME: goes on while a virtual machine sleeps
  void wait_for_something();
  void dial();
  void hang_up(const std::string& why);
  void say(const AgentMessage& message);
  void greet();
  void hear_everything();
  Result<> hear(const AgentMessage& message);
  void obey(const StartOrder& order);
  void obey(const StopOrder& order);
  void answer(std::uint64_t id, std::string code, std::string text = {});
  void remember(EventBody body);
  void collect_reports();
  void send_events();
  void send_progress();
  void beat();
  void keep_lease();
  void leave(Seconds within, const std::string& why);
  void forget_old_records();
  std::vector<RunId> runs_to_tell() const;

  AgentOptions options_;
  JoinFile join_;
  std::string socket_{};
  int signals_ = -1;
  WorkerPool pool_;

  Link link_ = Link::kDown;
  LineChannel channel_{};
  std::string key_{};
  Seconds lease_{10}, beat_every_{2};
  Seconds redial_at_{0}, redial_after_{0};
  Seconds greeted_{0};
  std::map<std::uint64_t, Seconds> beats_{};  // sent and unanswered, with their send times
  std::uint64_t next_beat_ = 1;
  Seconds beat_at_{0};
  Seconds answered_{0};  // send time of the newest answered beat (or of the greeting)
  bool saving_ = false;  // runs were asked for a checkpoint because the lease is short
  std::optional<Seconds> leave_by_{};

  std::deque<Numbered> events_{};  // not acknowledged
  std::uint64_t next_number_ = 1;
  std::uint64_t sent_ = 0;  // up to this number on the present connection
  std::map<JobId, StepReport> progress_{};
  std::map<RunId, Record> records_{};
  std::map<JobId, RunId> newest_run_{};
};

}  // namespace ymir
