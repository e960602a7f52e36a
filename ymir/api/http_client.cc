#include "ymir/api/http_client.h"

#include <fmt/format.h>
#include <httplib.h>

#include <cmath>

#include "ymir/base/json.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr std::string_view kUnix = "unix:";

std::unique_ptr<httplib::Client> connect(const std::string& address, double timeout) {
  std::unique_ptr<httplib::Client> client;
  if (address.starts_with(kUnix)) {
    client = std::make_unique<httplib::Client>(address.substr(kUnix.size()), 80);
    client->set_address_family(AF_UNIX);
  } else {
    const auto colon = address.rfind(':');
    client = std::make_unique<httplib::Client>(
        address.substr(0, colon),
        static_cast<int>(parse_int(address.substr(colon + 1)).value_or(0)));
  }
  const auto seconds = static_cast<time_t>(std::ceil(timeout));
  client->set_connection_timeout(5);
  client->set_read_timeout(seconds);
  client->set_write_timeout(seconds);
  client->set_keep_alive(false);
  return client;
}

Result<HttpAnswer> convert(const httplib::Result& result, const std::string& address) {
  if (!result) {
    // A read that fails is a time-out or a connection that broke: what was asked may be done.
    const bool lost = result.error() == httplib::Error::Read;
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} {} ({})",
                             lost ? "no answer (what was asked may still have been done) from"
                                  : "can't reach ymird at",
                             address, httplib::to_string(result.error()))};
  }
  HttpAnswer answer;
  answer.status = result->status;
  answer.body = result->body;
  for (const auto& [key, value] : result->headers) answer.headers[to_lower(key)] = value;
  return answer;
}

ErrorCode code_of(int status) {
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return ErrorCode::kInvalidArgument;
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kConflict;
    case 401:
    case 403:
      return ErrorCode::kPermission;
    case 503:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

Result<HttpClient> HttpClient::open(const std::string& address, const std::string& token,
                                    double timeout) {
  const bool local = address.starts_with(kUnix);
  const auto colon = address.rfind(':');
  if (!local && (colon == std::string::npos || !parse_int(address.substr(colon + 1))))
    return Error{ErrorCode::kInvalidArgument, "server must be unix:PATH or HOST:PORT: " + address};
  HttpClient client;
  client.address_ = address;
  client.token_ = token;
  client.timeout_ = timeout;
  return client;
}

Result<HttpAnswer> HttpClient::get(const std::string& path) const {
  const auto client = connect(address_, timeout_);
  httplib::Headers headers;
  if (!token_.empty()) headers.emplace("Authorization", "Bearer " + token_);
  return convert(client->Get(path, headers), address_);
}

Result<HttpAnswer> HttpClient::post(const std::string& path, const std::string& body,
                                    const std::string& content_type,
                                    const std::string& idempotency_key) const {
  const auto client = connect(address_, timeout_);
  httplib::Headers headers;
  if (!token_.empty()) headers.emplace("Authorization", "Bearer " + token_);
  if (!idempotency_key.empty()) headers.emplace("Idempotency-Key", idempotency_key);
  return convert(client->Post(path, headers, body, content_type), address_);
}

Result<std::string> body_of(Result<HttpAnswer> answer) {
  if (!answer) return answer.error();
  if (answer->status < 400) return std::move(answer->body);
  const auto json = parse_json(answer->body);
  std::string message = fmt::format("ymird answered {}", answer->status);
  if (json && json->is_object() && json->contains("error") && (*json)["error"].is_object() &&
      (*json)["error"].contains("message") && (*json)["error"]["message"].is_string())
    message = (*json)["error"]["message"];
  return Error{code_of(answer->status), message};
}

std::string url_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace ymir
