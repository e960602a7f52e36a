// HttpServer: the Api over HTTP on a Unix socket and, if asked, on a loopback TCP port.
//
// On the socket the kernel says who asks (SO_PEERCRED); over TCP a bearer token from the token file
// is needed, and other than loopback addresses are refused. One request a connection; bounded
// header, body, threads and waiting time. start() returns when requests are served; the destructor
// stops. The threads are its own.
#pragma once

#include <memory>
#include <string>

#include "ymir/api/api.h"
#include "ymir/base/result.h"

namespace ymir {

struct HttpServerOptions {
  std::string socket{};      // path; its folder must exist and belong to the service
  std::string listen{};      // "127.0.0.1:7420"; empty: no TCP
  std::string token_file{};  // lines "USER TOKEN", mode 0600; needed with `listen`
  int num_threads = 64;      // connections served at a time
  Result<> validate() const;
};

class HttpServer {
 public:
  // `api` outlives the server.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options, Api& api);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ymir
