#include <mutex>

#include "ymir/api/api.h"
#include "ymir/control/controller.h"
#include "ymir/store/event_log.h"

namespace ymir {

Result<ApiBackend> bind(Controller& controller, const std::string& log_path,
                        const std::string& artifacts) {
  YMIR_TRY_ASSIGN(auto opened, open_log_for_reading(log_path));
  struct Reader {
    std::unique_ptr<EventLog> log{};
    std::mutex mutex{};
  };
  auto reader = std::make_shared<Reader>();
  reader->log = std::move(opened);
  ApiBackend backend;
  backend.snapshot = [&controller] { return controller.snapshot(); };
  backend.progress = [&controller] { return controller.progress(); };
  backend.submit = [&controller](std::vector<JobSpec> specs, bool held) {
    return controller.submit(std::move(specs), held);
  };
  backend.cancel = [&controller](JobId job, const std::string& user) {
    return controller.cancel(job, user);
  };
  backend.pause = [&controller](JobId job, const std::string& user) {
    return controller.hold(job, user);
  };
  backend.resume = [&controller](JobId job, const std::string& user) {
    return controller.release(job, user);
  };
  backend.events = [reader](std::uint64_t from, std::size_t limit) {
    const std::lock_guard lock(reader->mutex);
    return reader->log->read(from, limit);
  };
  backend.artifacts = artifacts;
  return backend;
}

}  // namespace ymir
