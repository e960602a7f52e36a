// World: the outside as the controller sees it. Time passes and things happen only in wait().
//
// Real: cluster/live_world (a queue with a time-out). Simulated: sim/sim_world (a heap, one instant
// a call, so that the controller reacts to each instant before the next one happens). Faulty:
// sim/faulty_world (drops, delays, doubles and reorders by a seed). The controller's thread calls
// it; an implementation may have threads of its own behind a bounded queue.
#pragma once

#include <vector>

#include "ymir/base/result.h"
#include "ymir/base/time.h"
#include "ymir/core/event.h"

namespace ymir {

class World {
 public:
  virtual ~World() = default;

  virtual Time now() const = 0;

  // Blocks until something happened or `deadline` passed; returns it in the order it happened.
  // The events carry no seq yet. What the log refuses or already has is dropped by the controller.
  virtual std::vector<Event> wait(Time deadline) = 0;

  // Tells the outside that the events handed out by wait() are durable: an agent may forget them.
  virtual void acknowledge() {}

  // Asks for an effect. Idempotent by RunId; the outcome comes back through wait(). A run is over
  // with its RunStopped or RunLost, or with the JobFinished of its last job: from then on its slots
  // may be ordered again. When one job of a pair finishes, the run commits the other's checkpoint
  // and ends with RunStopped{partner_finished}.
  virtual Result<> request(const Action& action) = 0;

  // Ends a wait() that is under way, from any thread: a command is waiting for the controller.
  virtual void wake() {}

  // Newest progress of each running job, for people; from any thread.
  virtual std::vector<StepReport> progress() const { return {}; }

  // True when nothing can happen any more: a simulation ends, a cluster never does.
  virtual bool finished() const = 0;
};

}  // namespace ymir
