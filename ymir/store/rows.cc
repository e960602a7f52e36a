#include "ymir/store/rows.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "ymir/base/hash.h"
#include "ymir/core/codec.h"

namespace ymir {

LogRow to_row(const Event& event, std::uint64_t era) {
  const std::vector<JobId> jobs = jobs_of(event.body);
  const RunId run = run_of(event.body);
  return LogRow{.seq = event.seq,
                .at = event.at.time_since_epoch().count(),
                .era = era,
                .kind = std::string(kind_of(event.body)),
                .version = version_of(event.body),
                .job = jobs.empty() || !jobs.front() ? "" : to_string(jobs.front()),
                .run = run ? to_string(run) : "",
                .actor = event.actor,
                .body = encode_body(event.body)};
}

Result<Event> to_event(const LogRow& row) {
  Result<EventBody> body = decode_body(row.kind, row.version, row.body);
  if (!body) return annotate(std::move(body).error(), fmt::format("event {}", row.seq));
  return Event{.seq = row.seq,
               .at = Time(Time::duration(row.at)),
               .actor = row.actor,
               .body = *std::move(body)};
}

std::string hash_of(const LogRow& row, const std::string& previous) {
  Sha256 sha;
  const auto add = [&](std::string_view field) {  // with its length: no two rows give one text
    sha.update(fmt::format("{}:", field.size()));
    sha.update(field);
  };
  add(previous);
  add(fmt::format("{} {} {} {}", row.seq, row.at, row.era, row.version));
  for (const std::string* field : {&row.kind, &row.job, &row.run, &row.actor, &row.body})
    add(*field);
  return sha.hex();
}

}  // namespace ymir
