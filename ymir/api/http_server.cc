#include "ymir/api/http_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "ymir/base/file.h"
#include "ymir/base/log.h"
#include "ymir/base/text.h"

namespace ymir {
namespace {

constexpr const char* kUserHeader = "X-Ymir-Peer-User";  // set here only, erased from requests
constexpr uid_t kUnmappedUid = 65534;

// A connected socket as the stream that httplib reads and writes. Times out on a slow peer.
class SocketStream final : public httplib::Stream {
 public:
  explicit SocketStream(int descriptor) : descriptor_(descriptor) {}

  bool is_readable() const override { return ready(POLLIN); }
  bool is_writable() const override { return ready(POLLOUT); }
  ssize_t read(char* bytes, std::size_t size) override {
    return ready(POLLIN) ? ::recv(descriptor_, bytes, size, 0) : -1;
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    return ready(POLLOUT) ? ::send(descriptor_, bytes, size, MSG_NOSIGNAL) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "unix";
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    get_remote_ip_and_port(ip, port);
  }
  socket_t socket() const override { return descriptor_; }

 private:
  static constexpr int kPatience = 10'000;  // milliseconds
  bool ready(short events) const {
    pollfd wish{descriptor_, events, 0};
    return ::poll(&wish, 1, kPatience) == 1;
  }
  int descriptor_ = -1;
};

std::string name_of(uid_t uid) {
  char buffer[4096];
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr)
    return found->pw_name;
  return "uid" + std::to_string(uid);
}

// Who is at the other end of a Unix socket; empty when the kernel does not say.
std::string peer_user(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "";
  return peer.uid == kUnmappedUid ? "" : name_of(peer.uid);
}

// A server that can be stopped at any time: httplib's own stop() does nothing until its accepting
// thread runs.
class StoppableServer : public httplib::Server {
 public:
  void halt() {
    if (const socket_t listening = svr_sock_; listening != INVALID_SOCKET)
      ::shutdown(listening, SHUT_RDWR);  // accept() fails, listen_after_bind() returns
  }
};

// Serves one request on each connection and knows who sent it.
class UnixServer final : public StoppableServer {
 private:
  bool process_and_close_socket(socket_t descriptor) override {
    SocketStream stream(descriptor);
    const std::string user = peer_user(descriptor);
    bool closed = false;
    const bool done = process_request(stream, true, closed, [&](httplib::Request& request) {
      request.headers.erase(kUserHeader);
      request.headers.emplace(kUserHeader, user);
    });
    ::shutdown(descriptor, SHUT_RDWR);
    ::close(descriptor);
    return done;
  }
};

void answer(Api& api, const std::string& user, const httplib::Request& request,
            httplib::Response& response) {
  ApiRequest asked;
  asked.method = request.method;
  asked.path = request.path;
  for (const auto& [key, value] : request.params) asked.query.emplace(key, value);
  asked.body = request.body;
  asked.content_type = request.get_header_value("Content-Type");
  asked.idempotency_key = request.get_header_value("Idempotency-Key");
  asked.user = user;
  const ApiResponse answered = api.handle(asked);
  response.status = answered.status;
  for (const auto& [key, value] : answered.headers) response.set_header(key.c_str(), value);
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_content(answered.body, answered.content_type.c_str());
}

void refuse(httplib::Response& response, int status, const char* code, const char* message) {
  response.status = status;
  response.set_content(fmt::format(R"({{"error":{{"code":"{}","message":"{}"}}}})", code, message),
                       "application/json");
}

void limit(httplib::Server& server, int num_threads) {
  server.new_task_queue = [num_threads] {
    return new httplib::ThreadPool(static_cast<std::size_t>(num_threads));
  };
  server.set_payload_max_length(1 << 20);
  server.set_read_timeout(10);
  server.set_write_timeout(10);
  server.set_keep_alive_max_count(1);
}

using Serve = std::function<void(const httplib::Request&, httplib::Response&)>;
void route_all(httplib::Server& server, const Serve& serve) {
  server.Get(".*", serve);
  server.Post(".*", serve);
  server.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
        refuse(response, 500, "internal", "the request could not be handled");
      });
}

struct Token {
  std::string user{}, text{};
};

Result<std::vector<Token>> read_tokens(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return Error{ErrorCode::kNotFound, "no token file: " + path};
  if ((info.st_mode & 077) != 0)
    return Error{ErrorCode::kPermission, "the token file is readable by others: " + path};
  YMIR_TRY_ASSIGN(const std::string text, read_file(path, 256 * 1024));
  std::vector<Token> tokens;
  for (const std::string_view line : split(text, '\n')) {
    const auto clean = trim(line);
    if (clean.empty() || clean.front() == '#') continue;
    const auto words = split(clean, ' ');
    if (words.size() != 2 || words[1].size() < 32)
      return Error{
          ErrorCode::kInvalidArgument,
          "a line of the token file is not USER TOKEN (of 32 characters or more): " + path};
    tokens.push_back({std::string(words[0]), std::string(words[1])});
  }
  return tokens;
}

// The user of the bearer token; compares with every token in constant time.
std::string user_of(const std::vector<Token>& tokens, const std::string& authorization) {
  constexpr std::string_view kBearer = "Bearer ";
  if (!authorization.starts_with(kBearer)) return "";
  const std::string_view given = std::string_view(authorization).substr(kBearer.size());
  std::string user;
  for (const Token& token : tokens)
    if (token.text.size() == given.size() &&
        CRYPTO_memcmp(token.text.data(), given.data(), given.size()) == 0)
      user = token.user;
  return user;
}

struct HostPort {
  std::string host{};
  int port = 0;
};

Result<HostPort> parse_listen(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : parse_int(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535)
    return Error{ErrorCode::kInvalidArgument, "listen must be HOST:PORT: " + text};
  const std::string host = text.substr(0, colon);
  if (host != "127.0.0.1" && host != "localhost")
    return Error{ErrorCode::kInvalidArgument,
                 "only the loopback address 127.0.0.1 is served without TLS: " + text};
  return HostPort{"127.0.0.1", static_cast<int>(*port)};
}

}  // namespace

Result<> HttpServerOptions::validate() const {
  if (socket.empty()) return Error{ErrorCode::kInvalidArgument, "socket is empty"};
  if (socket.size() >= sizeof(sockaddr_un::sun_path))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("socket path over {} bytes (choose a shorter state folder): {}",
                             sizeof(sockaddr_un::sun_path) - 1, socket)};
  if (num_threads < 1 || num_threads > 1024)
    return Error{ErrorCode::kInvalidArgument, "num_threads must be 1 to 1024"};
  if (listen.empty()) return Ok{};
  YMIR_TRY(parse_listen(listen));
  if (token_file.empty()) return Error{ErrorCode::kInvalidArgument, "listen needs a token_file"};
  return Ok{};
}

struct HttpServer::State {
  UnixServer local;
  StoppableServer tcp;
  std::vector<Token> tokens;
  std::string socket;
  std::thread local_thread, tcp_thread;

  ~State() {
    local.halt();
    tcp.halt();
    if (local_thread.joinable()) local_thread.join();
    if (tcp_thread.joinable()) tcp_thread.join();
    ::unlink(socket.c_str());
  }
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options, Api& api) {
  YMIR_TRY(options.validate());
  auto state = std::make_unique<State>();
  state->socket = options.socket;
  if (!options.listen.empty()) {
    YMIR_TRY_ASSIGN(state->tokens, read_tokens(options.token_file));
  }

  limit(state->local, options.num_threads);
  route_all(state->local, [&api](const httplib::Request& request, httplib::Response& response) {
    const std::string user = request.get_header_value(kUserHeader);
    if (user.empty()) return refuse(response, 403, "not_permitted", "your user is not known here");
    answer(api, user, request, response);
  });
  ::unlink(options.socket.c_str());
  state->local.set_address_family(AF_UNIX);
  if (!state->local.bind_to_port(options.socket, 80))
    return Error{ErrorCode::kUnavailable, "can't listen on " + options.socket};
  if (chmod(options.socket.c_str(), 0660) != 0)
    return Error{ErrorCode::kUnavailable, "can't set the mode of " + options.socket};
  State* shared = state.get();
  state->local_thread = std::thread([shared] { shared->local.listen_after_bind(); });

  if (!options.listen.empty()) {
    YMIR_TRY_ASSIGN(const HostPort address, parse_listen(options.listen));
    limit(state->tcp, options.num_threads);
    route_all(state->tcp, [&api, shared](const httplib::Request& request,
                                         httplib::Response& response) {
      const std::string user = user_of(shared->tokens, request.get_header_value("Authorization"));
      if (user.empty()) return refuse(response, 401, "unauthorized", "a token is needed");
      answer(api, user, request, response);
    });
    if (!state->tcp.bind_to_port(address.host, address.port))
      return Error{ErrorCode::kUnavailable, "can't listen on " + options.listen};
    state->tcp_thread = std::thread([shared] { shared->tcp.listen_after_bind(); });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

HttpServer::~HttpServer() = default;

}  // namespace ymir
