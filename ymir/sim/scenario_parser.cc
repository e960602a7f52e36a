#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ymir/base/text.h"
#include "ymir/sim/scenario.h"

namespace ymir {

namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxJobs = 10'000;

Error wrong(const std::string& what) { return {ErrorCode::kInvalidArgument, what}; }

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (const std::string_view piece : split(line, ' '))
    for (const std::string_view word : split(piece, '\t'))
      if (!trim(word).empty()) words.emplace_back(trim(word));
  return words;
}

Result<double> number(const std::string& text) {
  std::string_view digits = text;
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  const auto value = parse_double(digits);
  if (!value) return wrong("not a number: " + text);
  return *value;
}

// 90s, 5m, 2h, 0.25s
Result<double> seconds(const std::string& text) {
  if (text.size() < 2) return wrong("not a duration: " + text);
  const char unit = text.back();
  const double scale = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0;
  const auto value = parse_double(std::string_view(text).substr(0, text.size() - 1));
  if (scale == 0 || !value || *value < 0 || *value * scale > 1e8)
    return wrong("not a duration: " + text);
  return *value * scale;
}

Result<std::int64_t> whole(const std::string& text, std::int64_t least, std::int64_t most) {
  const auto value = parse_int(text);
  if (!value || *value < least || *value > most)
    return wrong(fmt::format("not a number in {}..{}: {}", least, most, text));
  return *value;
}

Result<bool> yes_no(const std::string& text) {
  if (text == "yes" || text == "on") return true;
  if (text == "no" || text == "off") return false;
  return wrong("not yes or no: " + text);
}

// key=value words; each key at most once, and all of them must be asked for.
class Pairs {
 public:
  static Result<Pairs> of(std::span<const std::string> words) {
    Pairs pairs;
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0) return wrong("not key=value: " + word);
      if (!pairs.values_.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
        return wrong("given twice: " + word.substr(0, equals));
    }
    return pairs;
  }
  // The value of `key`, or `fallback`.
  std::string get(const std::string& key, const std::string& fallback) {
    known_.push_back(key);
    const auto found = values_.find(key);
    return found == values_.end() ? fallback : found->second;
  }
  Result<> done() const {
    for (const auto& [key, value] : values_)
      if (!std::ranges::count(known_, key))
        return wrong("unknown key " + key + " (known: " + join(known_, ", ") + ")");
    return Ok{};
  }
  const std::map<std::string, std::string>& all() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> known_;
};

// YMIR_TRY_ASSIGN with a conversion, for the many keys below.
#define READ(target, expr)                                      \
  do {                                                          \
    auto ymir_read = (expr);                                    \
    if (!ymir_read) return Error(std::move(ymir_read).error()); \
    target = *std::move(ymir_read);                             \
  } while (false)

class Parser {
 public:
  explicit Parser(std::string name) { scenario_.name = std::move(name); }

  Result<> line(int number, std::string_view text) {
    line_ = number;
    text = text.substr(0, text.find('#'));
    const std::vector<std::string> words = words_of(text);
    if (words.empty()) return Ok{};
    const std::span<const std::string> rest = std::span(words).subspan(1);
    if (words[0] == "cluster") return cluster(rest);
    if (words[0] == "set") return set(rest);
    if (words[0] == "job") return job(rest);
    if (words[0] == "believe") return pair(rest, true);
    if (words[0] == "truth") return pair(rest, false);
    if (words[0] == "at") return at(rest);
    if (words[0] == "faults") return faults(rest);
    if (words[0] == "expect") return expect(rest);
    return wrong("unknown statement " + words[0] +
                 " (known: cluster, set, job, believe, truth, at, faults, expect)");
  }

  Result<Scenario> take() && {
    if (scenario_.jobs.empty()) return wrong("no job");
    YMIR_TRY(scenario_.cluster.validate());
    YMIR_TRY(scenario_.controller.validate());
    YMIR_TRY(scenario_.faults.validate());
    scenario_.beliefs.start_time = scenario_.cluster.start_time;
    scenario_.beliefs.declared = scenario_.policy == "ymir:no-estimator";
    return std::move(scenario_);
  }

 private:
  Result<> cluster(std::span<const std::string> words) {
    YMIR_TRY_ASSIGN(Pairs pairs, Pairs::of(words));
    std::int64_t nodes = 1;
    READ(nodes, whole(pairs.get("nodes", "1"), 1, 10'000));
    std::vector<int> gpus;
    const std::string widths = pairs.get("gpus", "4");  // outlives the views into it
    for (const std::string_view each : split(widths, ',')) {
      YMIR_TRY_ASSIGN(const std::int64_t slots, whole(std::string(each), 1, 1024));
      gpus.push_back(static_cast<int>(slots));
    }
    if (gpus.size() == 1) gpus.resize(static_cast<std::size_t>(nodes), gpus.front());
    if (std::ssize(gpus) != nodes) return wrong("gpus= names another number of nodes than nodes=");
    scenario_.cluster.nodes = gpus;
    READ(scenario_.cluster.one_place, yes_no(pairs.get("span", "no")));
    scenario_.policy = pairs.get("policy", "ymir");
    double value = 0;
    READ(value, seconds(pairs.get("round", "120s")));
    scenario_.controller.round = Seconds(value);
    READ(value, seconds(pairs.get("start", "2s")));
    scenario_.cluster.start_time = Seconds(value);
    READ(value, seconds(pairs.get("check", "0s")));
    scenario_.cluster.check_time = Seconds(value);
    READ(value, seconds(pairs.get("horizon", "100h")));
    scenario_.cluster.horizon = from_seconds(value);
    READ(scenario_.controller.profiling.enabled, yes_no(pairs.get("profile", "on")));
    std::int64_t count = 0;
    READ(count, whole(pairs.get("profile_steps", "10"), 1, 10'000));
    scenario_.controller.profiling.min_steps = scenario_.controller.profiling.max_steps = count;
    READ(count, whole(pairs.get("max_faults", "3"), 1, 100));
    scenario_.controller.max_faults = static_cast<int>(count);
    const std::string beliefs = pairs.get("beliefs", "oracle");
    if (beliefs != "oracle" && beliefs != "estimator")
      return wrong("beliefs are oracle or estimator, not " + beliefs);
    scenario_.real_estimator = beliefs == "estimator";
    return pairs.done();
  }

  Result<> set(std::span<const std::string> words) {
    YMIR_TRY_ASSIGN(Pairs pairs, Pairs::of(words));
    for (const auto& [key, value] : pairs.all()) scenario_.settings[key] = value;
    return Ok{};
  }

  Result<> job(std::span<const std::string> words) {
    if (words.empty()) return wrong("job without a name");
    if (scenario_.jobs.size() >= kMaxJobs) return wrong("too many jobs");
    YMIR_TRY_ASSIGN(Pairs pairs, Pairs::of(words.subspan(1)));
    ScenarioJob made;
    made.name = words[0];
    if (ids_.contains(made.name)) return wrong("job given twice: " + made.name);
    YMIR_TRY(read_times(pairs, made));
    YMIR_TRY(read_work(pairs, made));
    YMIR_TRY(read_sharing(pairs, made));
    YMIR_TRY(pairs.done());
    ids_[made.name] = JobId{scenario_.jobs.size() + 1};
    scenario_.jobs.push_back(std::move(made));
    return Ok{};
  }

  Result<> read_times(Pairs& pairs, ScenarioJob& made) {
    double value = 0;
    READ(value, seconds(pairs.get("at", "0s")));
    made.at = from_seconds(value);
    if (const std::string deadline = pairs.get("deadline", ""); !deadline.empty()) {
      READ(value, seconds(deadline));
      made.spec.deadline = from_seconds(value);
    }
    READ(value, seconds(pairs.get("checkpoint", "10m")));
    made.spec.checkpoint_every = Seconds(value);
    return Ok{};
  }

  Result<> read_work(Pairs& pairs, ScenarioJob& made) {
    JobSpec& spec = made.spec;
    JobTruth& truth = made.truth;
    spec.name = made.name;
    spec.model = pairs.get("backbone", "model");
    spec.method.targets = {"query", "value"};
    READ(truth.steps, whole(pairs.get("steps", "100"), 1, 100'000'000));
    const std::int64_t epoch = std::max<std::int64_t>(1, truth.steps / 10);
    READ(truth.steps_per_epoch, whole(pairs.get("epoch", std::to_string(epoch)), 1, 100'000'000));
    READ(truth.max_steps,
         whole(pairs.get("max", std::to_string(truth.steps * 4)), 1, 1'000'000'000));
    double value = 0;
    READ(value, seconds(pairs.get("step", "1s")));
    if (value <= 0) return wrong("a step takes some time");
    truth.step_time = Seconds(value);
    READ(truth.scaling, number(pairs.get("scaling", "0.95")));
    if (!(truth.scaling > 0.1 && truth.scaling <= 2)) return wrong("scaling is in 0.1..2");
    READ(truth.noise, number(pairs.get("noise", "0")));
    truth.family = pairs.get("family", made.name);
    truth.bad_data = pairs.get("data", "good") == "bad";
    truth.no_profile = pairs.get("profile", "works") == "fails";
    READ(truth.diverges_at, whole(pairs.get("diverges_at", "0"), 0, 1'000'000'000));
    spec.target = {"accuracy", truth.target_metric};
    if (pairs.get("target", "yes") == "never") spec.target.value = 2;
    READ(spec.stop.require_target, yes_no(pairs.get("require", "no")));
    spec.stop.max_epochs = 0;
    spec.stop.max_steps = truth.max_steps;
    return read_gpus(pairs.get("gpus", "1"), spec);
  }

  // 2, 1..4 or 1,2,4
  static Result<> read_gpus(const std::string& text, JobSpec& spec) {
    const std::size_t range = text.find("..");
    std::vector<std::int64_t> counts;
    if (range != std::string::npos) {
      YMIR_TRY_ASSIGN(const std::int64_t least, whole(text.substr(0, range), 1, 1024));
      YMIR_TRY_ASSIGN(const std::int64_t most, whole(text.substr(range + 2), least, 1024));
      counts = {least, most};
    } else {
      for (const std::string_view each : split(text, ',')) {
        YMIR_TRY_ASSIGN(const std::int64_t count, whole(std::string(each), 1, 1024));
        counts.push_back(count);
        spec.sizes.push_back(static_cast<int>(count));
      }
      std::ranges::sort(spec.sizes);
    }
    spec.min_gpus = static_cast<int>(std::ranges::min(counts));
    spec.max_gpus = static_cast<int>(std::ranges::max(counts));
    return Ok{};
  }

  Result<> read_sharing(Pairs& pairs, ScenarioJob& made) {
    SharingSpec& sharing = made.spec.sharing;
    READ(sharing.allow, yes_no(pairs.get("share", "yes")));
    READ(sharing.give, yes_no(pairs.get("give", "yes")));
    READ(sharing.take, yes_no(pairs.get("take", "yes")));
    READ(sharing.explore, yes_no(pairs.get("explore", "no")));
    sharing.trust_domain = pairs.get("domain", "team");
    const std::string modes = pairs.get("modes", "temporal,spatial");
    sharing.temporal = modes.find("temporal") != std::string::npos;
    sharing.spatial = modes.find("spatial") != std::string::npos;
    double value = 0;
    READ(value, seconds(pairs.get("wait", "120s")));
    sharing.max_wait_for_partner = Seconds(value);
    return Ok{};
  }

  Result<JobId> id_of(const std::string& name) const {
    const auto found = ids_.find(name);
    if (found == ids_.end()) return wrong("no job of that name before this line: " + name);
    return found->second;
  }

  Result<> pair(std::span<const std::string> words, bool believed) {
    if (words.empty()) return wrong("which pair?");
    YMIR_TRY_ASSIGN(Pairs pairs, Pairs::of(words.subspan(1)));
    const std::string gains = pairs.get("gain", "0");
    const std::size_t arrow = words[0].find("->"), plus = words[0].find('+');
    if (arrow != std::string::npos) {
      YMIR_TRY_ASSIGN(const JobId source, id_of(words[0].substr(0, arrow)));
      YMIR_TRY_ASSIGN(const JobId target, id_of(words[0].substr(arrow + 2)));
      YMIR_TRY_ASSIGN(const double gain, number(gains));
      if (!(gain > -0.9 && gain < 100)) return wrong("gain is in -0.9..100: " + gains);
      (believed ? scenario_.beliefs.temporal : scenario_.temporal)[{source, target}] = gain;
      return pairs.done();
    }
    if (plus == std::string::npos) return wrong("write a->b or a+b, not " + words[0]);
    YMIR_TRY_ASSIGN(const JobId first, id_of(words[0].substr(0, plus)));
    YMIR_TRY_ASSIGN(const JobId second, id_of(words[0].substr(plus + 1)));
    if (!(first < second)) return wrong("name the job that stands first in the file first");
    const auto sides = split(gains, ',');
    SpatialTruth truth;
    READ(truth.gain_first, number(std::string(sides.front())));
    READ(truth.gain_second, number(std::string(sides.back())));
    READ(truth.joint, number(pairs.get("joint", "2")));
    if (!(truth.joint > 0 && truth.gain_first > -0.9 && truth.gain_second > -0.9))
      return wrong("joint > 0 and gains > -0.9");
    (believed ? scenario_.beliefs.spatial : scenario_.spatial)[{first, second}] = truth;
    return pairs.done();
  }

  Result<> at(std::span<const std::string> words) {
    if (words.size() < 2) return wrong("at TIME ACTION ...");
    YMIR_TRY_ASSIGN(const double when, seconds(words[0]));
    ScenarioAction action{.at = from_seconds(when)};
    const std::string& verb = words[1];
    using Kind = ScenarioAction::Kind;
    const std::map<std::string, Kind> on_jobs{{"cancel", Kind::kCancel},
                                              {"hold", Kind::kHold},
                                              {"release", Kind::kRelease},
                                              {"kill", Kind::kKill}};
    if (verb == "restart" && words.size() == 2) {
      action.kind = Kind::kRestart;
    } else if (verb == "lose" && (words.size() == 3 || words.size() == 5) &&
               words[2].starts_with("node")) {
      action.kind = Kind::kLose;
      YMIR_TRY_ASSIGN(const std::int64_t node, whole(words[2].substr(4), 0, 9'999));
      if (node >= std::ssize(scenario_.cluster.nodes)) return wrong("no such node: " + words[2]);
      action.node = static_cast<int>(node);
      if (words.size() == 5) {
        YMIR_TRY_ASSIGN(const double back, seconds(words[4]));
        if (words[3] != "until" || back <= when) return wrong("lose nodeN until LATER");
        action.until = from_seconds(back);
      }
    } else if (const auto found = on_jobs.find(verb); found != on_jobs.end() && words.size() == 3) {
      action.kind = found->second;
      READ(action.job, id_of(words[2]));
    } else {
      return wrong("at TIME cancel|hold|release|kill JOB, lose nodeN [until TIME], or restart");
    }
    scenario_.actions.push_back(action);
    return Ok{};
  }

  Result<> faults(std::span<const std::string> words) {
    YMIR_TRY_ASSIGN(Pairs pairs, Pairs::of(words));
    std::int64_t seed = 1;
    READ(seed, whole(pairs.get("seed", "1"), 0, 1'000'000'000));
    scenario_.faults.seed = static_cast<std::uint64_t>(seed);
    READ(scenario_.faults.lose_request, number(pairs.get("lose", "0")));
    READ(scenario_.faults.delay_report, number(pairs.get("delay", "0")));
    READ(scenario_.faults.double_report, number(pairs.get("double", "0")));
    double longest = 0;
    READ(longest, seconds(pairs.get("longest", "5s")));
    scenario_.faults.longest_delay = Seconds(longest);
    READ(scenario_.faults.slow_decision, number(pairs.get("slow", "0")));
    READ(longest, seconds(pairs.get("decision", "30s")));
    scenario_.faults.longest_decision = Seconds(longest);
    scenario_.faulty = true;
    return pairs.done();
  }

  Result<> expect(std::span<const std::string> words) {
    if (!words.empty() && words[0].ends_with(':')) {
      Expectation trail{.line = line_, .text = join(words, " ")};
      trail.subject = words[0].substr(0, words[0].size() - 1);
      YMIR_TRY(id_of(trail.subject));
      trail.trail.assign(words.begin() + 1, words.end());
      if (trail.trail.empty()) return wrong("expects nothing of " + trail.subject);
      scenario_.expectations.push_back(std::move(trail));
      return Ok{};
    }
    static const std::set<std::string> kOps{"==", "!=", "<", "<=", ">", ">=", "before", "after"};
    for (std::size_t i = 0; i < words.size(); ++i) {
      Expectation one{.line = line_, .text = words[i]};
      const std::size_t dot = words[i].rfind('.');
      if (dot == std::string::npos) return wrong("write JOB.FIELD, not " + words[i]);
      one.subject = words[i].substr(0, dot);
      one.field = words[i].substr(dot + 1);
      if (one.subject != "log" && one.subject != "rounds") YMIR_TRY(id_of(one.subject));
      if (i + 2 < words.size() && kOps.contains(words[i + 1])) {
        one.op = words[i + 1];
        one.value = words[i + 2];
        one.text += " " + one.op + " " + one.value;
        i += 2;
      }
      scenario_.expectations.push_back(std::move(one));
    }
    return Ok{};
  }

  Scenario scenario_;
  std::map<std::string, JobId> ids_;
  int line_ = 0;
};

#undef READ

}  // namespace

Result<Scenario> parse_scenario(const std::string& name, const std::string& text) {
  if (text.size() > kMaxBytes)
    return Error{ErrorCode::kExhausted, name + ": a scenario has at most 1 MiB"};
  Parser parser(name);
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (auto parsed = parser.line(number, line); !parsed)
      return annotate(parsed.error(), fmt::format("{}:{}", name, number));
  }
  auto scenario = std::move(parser).take();
  if (!scenario) return annotate(scenario.error(), name);
  return scenario;
}

}  // namespace ymir
