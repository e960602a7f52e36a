#include "ymir/optimize/instance_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "ymir/base/json.h"

namespace ymir {
namespace {

constexpr std::array<std::string_view, 4> kModes = {"normal", "temporal_ab", "temporal_ba",
                                                    "spatial"};
constexpr std::array<std::string_view, 3> kProofs = {"optimal", "gap", "deadline"};

using Index = std::unordered_map<std::string, JobIndex>;

template <class... Args>
Error bad(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}

std::uint64_t key_of(std::string_view id) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix_bits(hash, id.size());
}

const Json* find(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at == object.end() ? nullptr : &*at;
}

// An integer in [0, most]; a whole number written as 3.0 passes.
Result<std::int64_t> count(const Json& object, const char* name, std::int64_t most,
                           std::optional<std::int64_t> missing, const std::string& where) {
  const Json* value = find(object, name);
  if (value == nullptr) {
    if (missing) return *missing;
    return bad("{}: {} is missing", where, name);
  }
  std::int64_t number = -1;
  if (value->is_number_integer() || value->is_number_unsigned()) {
    const bool huge = value->is_number_unsigned() &&
                      value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    if (!huge) number = value->get<std::int64_t>();
  } else if (value->is_number_float()) {
    const double given = value->get<double>();
    if (given >= 0 && given < 9e15 && given == std::floor(given)) {
      number = static_cast<std::int64_t>(given);
    }
  } else {
    return bad("{}: {} must be a number", where, name);
  }
  if (number < 0 || number > most) {
    return bad("{}: {} must be a whole number in 0..{}: {}", where, name, most, value->dump());
  }
  return number;
}

Result<const Json*> array(const Json& object, const char* name, bool needed) {
  static const Json nothing = Json::array();
  const Json* value = find(object, name);
  if (value == nullptr) {
    if (needed) return bad("instance: {} is missing", name);
    return &nothing;
  }
  if (!value->is_array()) return bad("instance: {} must be an array", name);
  return value;
}

Result<std::string> text(const Json& object, const char* name, const std::string& where) {
  const Json* value = find(object, name);
  if (value == nullptr || !value->is_string()) return bad("{}: {} must be a string", where, name);
  return value->get<std::string>();
}

Result<std::uint8_t> mode(const Json& object, const std::string& where) {
  const Json* value = find(object, "mode");
  if (value == nullptr) return std::uint8_t{0};
  for (std::size_t m = 0; m < kModes.size(); ++m) {
    if (value->is_string() && value->get_ref<const std::string&>() == kModes[m]) {
      return static_cast<std::uint8_t>(m);
    }
  }
  return bad("{}: mode must be normal, temporal_ab, temporal_ba or spatial: {}", where,
             value->dump());
}

Result<Option> option(const Json& object, const RoundProblem& problem, const std::string& where) {
  if (!object.is_object()) return bad("{}: an option must be an object", where);
  YMIR_TRY_ASSIGN(const std::int64_t utility, count(object, "utility", INT32_MAX, {}, where));
  YMIR_TRY_ASSIGN(const std::int64_t gpus, count(object, "gpus", UINT16_MAX, {}, where));
  YMIR_TRY_ASSIGN(const std::int64_t type,
                  count(object, "type", problem.num_types() - 1, 0, where));
  YMIR_TRY_ASSIGN(const std::uint8_t m, mode(object, where));
  if (gpus == 0) return bad("{}: an option needs at least one GPU", where);
  if (type >= problem.num_types()) return bad("{}: no such type: {}", where, type);
  return Option{static_cast<std::int32_t>(utility), static_cast<std::uint16_t>(gpus),
                static_cast<std::uint8_t>(type), m};
}

Result<> options(const Json& object, const RoundProblem& problem, const std::string& where,
                 std::vector<Option>& out) {
  out.clear();
  const Json* list = find(object, "options");
  if (list == nullptr || !list->is_array()) return bad("{}: options must be an array", where);
  for (const Json& item : *list) {
    YMIR_TRY_ASSIGN(const Option o, option(item, problem, where));
    out.push_back(o);
  }
  return Ok{};
}

// The rows come before the jobs in the problem, so the shares are collected first.
Result<std::unordered_map<std::string, std::vector<RowShare>>> read_rows(
    const Json& list, std::vector<int>& capacities, std::vector<std::string>& names) {
  std::unordered_map<std::string, std::vector<RowShare>> shares;
  for (const Json& row : list) {
    const std::string where = fmt::format("row {}", names.size());
    if (!row.is_object()) return bad("{}: must be an object", where);
    names.push_back(where);
    if (find(row, "name") != nullptr) {
      YMIR_TRY_ASSIGN(names.back(), text(row, "name", where));
    }
    YMIR_TRY_ASSIGN(const std::int64_t capacity, count(row, "capacity", 1 << 24, {}, where));
    capacities.push_back(static_cast<int>(capacity));
    const Json* use = find(row, "use");
    if (use == nullptr) continue;
    if (!use->is_object()) return bad("{}: use must be an object", where);
    for (const auto& [id, share] : use->items()) {
      const double sixteenths = share.is_number() ? 16 * share.get<double>() : -1;
      if (!(sixteenths >= 0 && sixteenths <= 16 && sixteenths == std::floor(sixteenths))) {
        return bad("{}: the share of {} must be a multiple of 1/16 in 0..1: {}", where, id,
                   share.dump());
      }
      shares[id].push_back({static_cast<int>(capacities.size()) - 1, static_cast<int>(sixteenths)});
    }
  }
  return shares;
}

Result<std::vector<Capacity>> read_types(const Json& root) {
  YMIR_TRY_ASSIGN(const Json* capacity, array(root, "capacity", true));
  YMIR_TRY_ASSIGN(const Json* blocks, array(root, "blocks", false));
  const auto whole = [](const Json& value) {
    return value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
           value.get<std::int64_t>() <= 1 << 24;
  };
  std::vector<Capacity> types;
  for (const Json& value : *capacity) {
    if (!whole(value)) return bad("instance: capacity must hold whole numbers: {}", value.dump());
    types.push_back({value.get<int>(), {}});
  }
  if (!blocks->empty() && blocks->size() != types.size()) {
    return bad("instance: blocks must have an entry for each type");
  }
  for (std::size_t t = 0; t < blocks->size(); ++t) {
    if (!(*blocks)[t].is_array()) return bad("instance: blocks must hold arrays");
    for (const Json& value : (*blocks)[t]) {
      if (!whole(value)) return bad("instance: blocks must hold whole numbers: {}", value.dump());
      types[t].blocks.push_back(value.get<int>());
    }
  }
  return types;
}

Result<> read_jobs(const Json& list,
                   const std::unordered_map<std::string, std::vector<RowShare>>& shares,
                   NamedRound& round, Index& index) {
  std::vector<Option> alone;
  for (const Json& job : list) {
    const std::string where = fmt::format("job {}", round.ids.size());
    if (!job.is_object()) return bad("{}: must be an object", where);
    YMIR_TRY_ASSIGN(const std::string id, text(job, "id", where));
    YMIR_TRY(options(job, round.problem, "job " + id, alone));
    const auto own = shares.find(id);
    const JobIndex added = round.problem.add_job(
        key_of(id), alone,
        own == shares.end() ? std::span<const RowShare>{} : std::span(own->second));
    if (!index.emplace(id, added).second) return bad("job id given twice: {}", id);
    round.ids.push_back(id);
  }
  for (const auto& [id, share] : shares) {
    if (!index.contains(id)) return bad("rows: no such job: {}", id);
  }
  return Ok{};
}

Result<> read_pairs(const Json& list, NamedRound& round, const Index& index) {
  std::vector<Option> together;
  for (std::size_t k = 0; k < list.size(); ++k) {
    const Json& pair = list[k];
    const std::string where = fmt::format("pair {}", k);
    if (!pair.is_object()) return bad("{}: must be an object", where);
    std::array<JobIndex, 2> jobs = {kNoJob, kNoJob};
    for (const int side : {0, 1}) {
      YMIR_TRY_ASSIGN(const std::string id, text(pair, side == 0 ? "a" : "b", where));
      const auto found = index.find(id);
      if (found == index.end()) return bad("{}: no such job: {}", where, id);
      jobs[side] = found->second;
    }
    if (jobs[0] == jobs[1]) return bad("{}: a job with itself", where);
    YMIR_TRY(options(pair, round.problem, where, together));
    round.problem.add_pair(jobs[0], jobs[1], together);
  }
  return Ok{};
}

std::string options_text(const RoundProblem& problem, std::span<const KeptOption> candidates) {
  std::string out = "[";
  for (const KeptOption& c : candidates) {
    const Option o = problem.option(c);
    fmt::format_to(std::back_inserter(out),
                   R"({}{{"gpus": {}, "mode": "{}", "type": {}, "utility": {}}})",
                   out.size() > 1 ? ", " : "", o.gpus, mode_name(o.mode), o.type, o.utility);
  }
  return out + "]";
}

std::string quoted(const std::string& id) { return canonical(Json(id)); }

Json certificate_json(const NamedRound& round, const Certificate& certificate) {
  Json jobs = Json::object(), sets = Json::array();
  for (std::size_t j = 0; j < certificate.job_price.size(); ++j) {
    jobs[round.ids[j]] = certificate.job_price[j];
  }
  for (const OddSet& set : certificate.odd_sets) {
    Json ids = Json::array();
    for (const JobIndex j : set.jobs) ids.push_back(round.ids[j]);
    sets.push_back({{"jobs", std::move(ids)}, {"price", set.price}});
  }
  return {{"scale", certificate.scale},
          {"root_bound", certificate.root_bound},
          {"row_price", certificate.row_price},
          {"job_price", std::move(jobs)},
          {"odd_sets", std::move(sets)}};
}

Result<Certificate> read_certificate(const NamedRound& round, const Json& json,
                                     const Index& index) {
  const Json* rows = find(json, "row_price");
  const Json* jobs = find(json, "job_price");
  const Json* sets = find(json, "odd_sets");
  const auto integer = [](const Json* value) {
    return value != nullptr && value->is_number_integer() && !value->is_number_unsigned()
               ? value->get<std::int64_t>() >= 0
               : value != nullptr && value->is_number_unsigned() &&
                     value->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX);
  };
  const Json *scale = find(json, "scale"), *root_bound = find(json, "root_bound");
  if (!integer(scale) || !integer(root_bound) || rows == nullptr || !rows->is_array() ||
      jobs == nullptr || !jobs->is_object() || sets == nullptr || !sets->is_array()) {
    return bad("plan: the certificate is not complete");
  }
  Certificate certificate{scale->get<std::int64_t>(), root_bound->get<std::int64_t>(), {}, {}, {}};
  for (const Json& price : *rows) {
    if (!integer(&price)) return bad("plan: certificate: a price is no whole number");
    certificate.row_price.push_back(price.get<std::int64_t>());
  }
  certificate.job_price.assign(round.ids.size(), 0);
  for (const auto& [id, price] : jobs->items()) {
    const auto job = index.find(id);
    if (job == index.end() || !integer(&price)) return bad("plan: certificate: job {}", id);
    certificate.job_price[job->second] = price.get<std::int64_t>();
  }
  for (const Json& set : *sets) {
    const Json* members = set.is_object() ? find(set, "jobs") : nullptr;
    const Json* price = set.is_object() ? find(set, "price") : nullptr;
    if (members == nullptr || !members->is_array() || !integer(price)) {
      return bad("plan: certificate: an odd set is not complete");
    }
    OddSet odd{{}, price->get<std::int64_t>()};
    for (const Json& id : *members) {
      const auto job = id.is_string() ? index.find(id.get<std::string>()) : index.end();
      if (job == index.end()) return bad("plan: certificate: no such job: {}", id.dump());
      odd.jobs.push_back(job->second);
    }
    std::sort(odd.jobs.begin(), odd.jobs.end());
    certificate.odd_sets.push_back(std::move(odd));
  }
  return certificate;
}

}  // namespace

std::string_view mode_name(std::uint8_t mode) { return kModes[mode & 3]; }
std::string_view proof_name(Proof proof) { return kProofs[static_cast<std::size_t>(proof)]; }

Result<NamedRound> parse_instance(std::string_view json, std::size_t max_bytes) {
  YMIR_TRY_ASSIGN(const Json root, parse_json(json, {max_bytes, 16}));
  if (!root.is_object()) return bad("instance: must be an object");
  NamedRound round;
  YMIR_TRY_ASSIGN(const std::vector<Capacity> types, read_types(root));
  YMIR_TRY_ASSIGN(const Json* rows, array(root, "rows", false));
  std::vector<int> capacities;
  YMIR_TRY_ASSIGN(const auto shares, read_rows(*rows, capacities, round.row_names));
  round.problem.reset(types, capacities);
  YMIR_TRY(round.problem.validate());
  YMIR_TRY_ASSIGN(const Json* jobs, array(root, "jobs", true));
  YMIR_TRY_ASSIGN(const Json* pairs, array(root, "pairs", false));
  Index index;
  YMIR_TRY(read_jobs(*jobs, shares, round, index));
  YMIR_TRY(read_pairs(*pairs, round, index));
  YMIR_TRY(round.problem.validate());
  return round;
}

std::string write_instance(const NamedRound& round) {
  const RoundProblem& problem = round.problem;
  Json capacity = Json::array(), blocks = Json::array(), rows = Json::array();
  bool any_blocks = false;
  for (const Capacity& type : problem.types()) {
    capacity.push_back(type.gpus);
    blocks.push_back(type.blocks);
    any_blocks = any_blocks || !type.blocks.empty();
  }
  for (std::size_t x = 0; x < round.row_names.size(); ++x) {
    Json use = Json::object();
    for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
      for (const RowShare& share : problem.shares(j)) {
        if (share.row == static_cast<int>(x)) use[round.ids[j]] = share.sixteenths / 16.0;
      }
    }
    rows.push_back({{"name", round.row_names[x]},
                    {"capacity", problem.extra_rows()[x]},
                    {"use", std::move(use)}});
  }
  std::string out = fmt::format("{{\"capacity\": {},\n", canonical(capacity));
  if (any_blocks) out += fmt::format("\"blocks\": {},\n", canonical(blocks));
  if (!rows.empty()) out += fmt::format("\"rows\": {},\n", canonical(rows));
  out += "\"jobs\": [";
  for (JobIndex j = 0; j < problem.num_jobs(); ++j) {
    fmt::format_to(std::back_inserter(out), "{}\n{{\"id\": {}, \"options\": {}}}", j > 0 ? "," : "",
                   quoted(round.ids[j]), options_text(problem, problem.alone(j)));
  }
  out += "],\n\"pairs\": [";
  for (std::size_t k = 0; k < problem.pairs().size(); ++k) {
    const PairEdge& pair = problem.pairs()[k];
    fmt::format_to(std::back_inserter(out), "{}\n{{\"a\": {}, \"b\": {}, \"options\": {}}}",
                   k > 0 ? "," : "", quoted(round.ids[pair.first]), quoted(round.ids[pair.second]),
                   options_text(problem, problem.together(pair)));
  }
  return out + "]}\n";
}

std::string write_certificate(const NamedRound& round, const Certificate& certificate) {
  return canonical(certificate_json(round, certificate)) + "\n";
}

std::string write_solution(const NamedRound& round, const Solution& solution,
                           std::int64_t microseconds) {
  std::vector<Choice> chosen = solution.chosen;
  std::sort(chosen.begin(), chosen.end(),
            [](const Choice& a, const Choice& b) { return a.first < b.first; });
  Json choices = Json::array();
  for (const Choice& choice : chosen) {
    Json jobs = {round.ids[choice.first]};
    if (choice.second != kNoJob) jobs.push_back(round.ids[choice.second]);
    choices.push_back({{"jobs", std::move(jobs)},
                       {"mode", mode_name(choice.option.mode)},
                       {"gpus", choice.option.gpus},
                       {"type", choice.option.type},
                       {"utility", choice.option.utility}});
  }
  const Certificate& certificate = solution.certificate;
  const auto scale = static_cast<double>(certificate.scale);
  Json gpu_price = Json::array(), row_price = Json::object(), job_price = Json::object();
  const std::vector<Row> rows = round.problem.rows();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const double price = static_cast<double>(certificate.row_price[r]) / scale;
    if (rows[r].min_gpus == 1) gpu_price.push_back(price);
    if (rows[r].extra >= 0) row_price[round.row_names[rows[r].extra]] = 32 * price;  // per GPU
  }
  for (std::size_t j = 0; j < round.ids.size(); ++j) {
    job_price[round.ids[j]] = static_cast<double>(certificate.job_price[j]) / scale;
  }
  const Effort& effort = solution.effort;
  Json answer = {{"value", solution.value},
                 {"bound", solution.bound},
                 {"proof", proof_name(solution.proof)},
                 {"canonical", solution.canonical},
                 {"chosen", std::move(choices)},
                 {"gpu_price", std::move(gpu_price)},
                 {"job_price", std::move(job_price)},
                 {"certificate", certificate_json(round, certificate)},
                 {"effort",
                  {{"matchings", effort.matchings},
                   {"pricing_passes", effort.pricing_passes},
                   {"active_edges", effort.active_edges},
                   {"core_runs", effort.core_runs},
                   {"states", effort.states}}},
                 {"solve_ms", static_cast<double>(microseconds) / 1000}};
  if (!row_price.empty()) answer["row_price"] = std::move(row_price);
  return canonical(answer) + "\n";
}

Result<ParsedSolution> parse_solution(const NamedRound& round, std::string_view json) {
  YMIR_TRY_ASSIGN(const Json root, parse_json(json, {kMaxInstanceBytes, 16}));
  if (!root.is_object()) return bad("plan: must be an object");
  Index index;
  for (std::size_t j = 0; j < round.ids.size(); ++j) {
    index.emplace(round.ids[j], static_cast<JobIndex>(j));
  }
  ParsedSolution parsed;
  constexpr std::int64_t kMost = INT64_MAX / 4;
  YMIR_TRY_ASSIGN(parsed.solution.value, count(root, "value", kMost, {}, "plan"));
  YMIR_TRY_ASSIGN(parsed.solution.bound, count(root, "bound", kMost, {}, "plan"));
  YMIR_TRY_ASSIGN(const std::string proof, text(root, "proof", "plan"));
  const auto name = std::find(kProofs.begin(), kProofs.end(), proof);
  if (name == kProofs.end()) return bad("plan: proof must be optimal, gap or deadline: {}", proof);
  parsed.solution.proof = static_cast<Proof>(name - kProofs.begin());
  const Json* chosen = find(root, "chosen");
  if (chosen == nullptr || !chosen->is_array()) return bad("plan: chosen must be an array");
  for (const Json& item : *chosen) {
    const Json* jobs = item.is_object() ? find(item, "jobs") : nullptr;
    if (jobs == nullptr || !jobs->is_array() || jobs->empty() || jobs->size() > 2) {
      return bad("plan: a choice needs one or two jobs");
    }
    Choice choice;
    for (std::size_t k = 0; k < jobs->size(); ++k) {
      const Json& id = (*jobs)[k];
      const auto job = id.is_string() ? index.find(id.get<std::string>()) : index.end();
      if (job == index.end()) return bad("plan: no such job: {}", id.dump());
      (k == 0 ? choice.first : choice.second) = job->second;
    }
    YMIR_TRY_ASSIGN(choice.option, option(item, round.problem, "plan"));
    parsed.solution.chosen.push_back(choice);
  }
  if (const Json* certificate = find(root, "certificate"); certificate != nullptr) {
    if (!certificate->is_object()) return bad("plan: certificate must be an object");
    YMIR_TRY_ASSIGN(parsed.solution.certificate, read_certificate(round, *certificate, index));
    parsed.has_certificate = true;
  }
  return parsed;
}

}  // namespace ymir
