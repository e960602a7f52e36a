// DataCheck: reads jobs' files in a child program, so that no data, model or tokenizer file is ever
// parsed by ymird itself.
//
// The child reads the JobSpec as JSON from stdin and prints one JSON object: {"facts":{...}} or
// {"faults":["file:line:column: text",...]}. It has limits of time, processor, memory and output;
// a child that prints something else gives a fault that says so, and one that dies without a word
// is tried again before that. A few checks at a time, in the order asked, on threads of their own;
// start() and cancel() from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "ymir/base/result.h"
#include "ymir/base/time.h"
#include "ymir/core/event.h"

namespace ymir {

struct DataCheckOptions {
  std::vector<std::string> command{};  // program and its arguments
  Seconds time{600};
  double cpu_seconds = 600;
  double memory_bytes = 16.0 * (1ULL << 30);  // of address space
  std::size_t most_waiting = 10'000;
  int at_once = 4;   // so that one huge file does not keep the others waiting
  int tries = 3;     // of a check that gave no answer: no process, or one that died
  Seconds pause{2};  // before the second try; more before the next
  Result<> validate() const;
};

class DataCheck {
 public:
  // `done` is called on a check's thread with DataChecked or DataRefused, one call at a time.
  DataCheck(DataCheckOptions options, std::function<void(EventBody)> done);
  ~DataCheck();  // kills a check that is under way
  DataCheck(const DataCheck&) = delete;
  DataCheck& operator=(const DataCheck&) = delete;

  // kExhausted: too many wait. A job that waits already is not queued again.
  Result<> start(const CheckData& order);
  // Nothing more is heard of this job: a check that waits is dropped, one under way is killed.
  void cancel(JobId job);

 private:
  void work(const std::stop_token& leave);

  DataCheckOptions options_;
  std::function<void(EventBody)> done_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<CheckData> waiting_{};
  std::map<JobId, std::stop_source> under_way_{};
  std::mutex telling_;                   // `done` has one caller at a time
  std::vector<std::jthread> threads_{};  // last: they use what stands above
};

// Runs one check; any thread. `stop` ends it early with DataRefused.
EventBody check_data(const DataCheckOptions& options, const CheckData& order,
                     const std::stop_token& stop);

}  // namespace ymir
