// HttpClient: requests to ymird over its Unix socket or a loopback port. One request a connection;
// errors of the service come back as Errors with its message. Thread-compatible.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ymir/base/result.h"

namespace ymir {

struct HttpAnswer {
  int status = 0;
  std::string body{};
  std::map<std::string, std::string> headers{};  // names in lower case
};

class HttpClient {
 public:
  // "unix:/path/to/ymir.sock" or "127.0.0.1:7420" (with a token). `timeout` in seconds.
  static Result<HttpClient> open(const std::string& address, const std::string& token = "",
                                 double timeout = 10);

  // kUnavailable when nobody answers. The answer may have any status.
  Result<HttpAnswer> get(const std::string& path) const;
  Result<HttpAnswer> post(const std::string& path, const std::string& body,
                          const std::string& content_type,
                          const std::string& idempotency_key = "") const;

 private:
  std::string address_{}, token_{};
  double timeout_ = 10;
};

// The answer's body, or the Error that its status and {"error": ...} say.
Result<std::string> body_of(Result<HttpAnswer> answer);
// "a b/c" as a part of a path or query.
std::string url_encode(std::string_view text);

}  // namespace ymir
