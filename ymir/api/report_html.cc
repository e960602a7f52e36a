#include "ymir/api/report_html.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>

#include "assets.h"
#include "ymir/api/report_data.h"
#include "ymir/store/event_log.h"

namespace ymir {
namespace {

// For text and attribute values alike.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// JSON inside a script element: "</script" and "<!--" must not appear, so no '<' does.
std::string inside_script(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

// As a Content-Security-Policy names a script or style: base64 of its sha256.
std::string source_hash(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  unsigned char base64[4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1];
  const int size = EVP_EncodeBlock(base64, digest, SHA256_DIGEST_LENGTH);
  return "'sha256-" + std::string(reinterpret_cast<char*>(base64), static_cast<std::size_t>(size)) +
         "'";
}

}  // namespace

std::string write_report(const ReportInput& input) {
  // style-src needs 'unsafe-inline' only for the colour of a swatch; a style can't load anything
  // under default-src 'none'.
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\" data-theme=\"light\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<header class=\"top\">"
      "</header>\n<noscript>This report is drawn by its own script; the data is in the page's "
      "source.</noscript>\n</main>\n<script type=\"application/json\" id=\"data\">{}</script>\n"
      "<script>{}</script>\n</body>\n</html>\n",
      source_hash(kReportJs), escape(input.title), kReportCss, inside_script(report_data(input)),
      kReportJs);
}

std::vector<Completion> completions(const Snapshot& state) {
  std::vector<Completion> list;
  for (const auto& [id, job] : state.jobs)
    if (job.finished)
      list.push_back({.job = id,
                      .name = job.spec.name,
                      .seconds = (*job.finished - job.submitted).count(),
                      .steps = job.result ? job.result->step : job.steps_done,
                      .learnt = !job.transfers.empty()});
  return list;
}

ReportComparison::Sums sums_of(const Snapshot& state) {
  ReportComparison::Sums sums;
  const auto list = completions(state);
  if (list.empty()) return sums;
  Time first = kNever, last{};
  for (const Completion& one : list) {
    const JobView& job = state.jobs.at(one.job);
    first = std::min(first, job.submitted);
    last = std::max(last, *job.finished);
    sums.mean += one.seconds / static_cast<double>(list.size());
    sums.worst = std::max(sums.worst, one.seconds);
  }
  sums.makespan = (last - first).count();
  return sums;
}

Result<ReportInput> report_from_log(const std::string& log_path) {
  constexpr std::size_t kPage = 10'000, kMost = 2'000'000;
  YMIR_TRY_ASSIGN(const auto log, open_log_for_reading(log_path));
  ReportInput input;
  while (true) {
    YMIR_TRY_ASSIGN(std::vector<Event> page, log->read(input.events.size() + 1, kPage));
    for (Event& event : page) {
      YMIR_TRY(input.state.allows(event.body));
      input.state.apply(event);
      input.events.push_back(std::move(event));
    }
    if (page.size() < kPage) break;
    if (input.events.size() > kMost)
      return Error{ErrorCode::kExhausted, fmt::format("over {} events for one page", kMost)};
  }
  input.generated = wall_clock();
  return input;
}

}  // namespace ymir
