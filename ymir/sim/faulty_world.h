// FaultyWorld: a wrapper that makes the way between controller and cluster bad, by a seed: requests
// get lost (the controller asks again), reports come late, twice, or out of order between runs, and
// a decision takes time, in which the world goes on.
// Reports of one run keep their order and are never lost for good: an agent numbers them and sends
// them again until they are acknowledged. Deterministic. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>

#include "ymir/base/rng.h"
#include "ymir/control/world.h"

namespace ymir {

struct FaultOptions {
  std::uint64_t seed = 1;
  double lose_request = 0;  // probability
  double delay_report = 0;  // probability that it comes late, and with it all behind it
  Seconds longest_delay{5};
  double double_report = 0;  // probability that it comes once more
  double slow_decision = 0;  // probability that the controller is busy when it asks what happened
  Seconds longest_decision{30};
  Result<> validate() const;
};

class FaultyWorld final : public World {
 public:
  // `inner` outlives this.
  FaultyWorld(World& inner, FaultOptions options)
      : inner_(inner), options_(options), rng_(options.seed) {}

  Time now() const override { return inner_.now(); }
  std::vector<Event> wait(Time deadline) override;
  void acknowledge() override { inner_.acknowledge(); }
  Result<> request(const Action& action) override;
  bool finished() const override { return inner_.finished(); }

  // Nothing is on its way to a controller that is new.
  void controller_restarted() { late_.clear(); }

  std::uint64_t num_lost() const { return lost_; }
  std::uint64_t num_delayed() const { return delayed_; }
  std::uint64_t num_doubled() const { return doubled_; }
  std::uint64_t num_slow() const { return slow_; }

 private:
  struct Late {
    Time due{};
    Event event{};
  };
  void take(Event event);
  Time next_due() const;

  World& inner_;
  FaultOptions options_;
  Rng rng_;
  // Reports on their way, by run (0: about none): each queue in its order.
  std::map<RunId, std::deque<Late>> late_;
  std::uint64_t lost_ = 0, delayed_ = 0, doubled_ = 0, slow_ = 0;
};

}  // namespace ymir
