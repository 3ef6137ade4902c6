#include "app/endpoints.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/files.h"

namespace roost::app {

std::string endpoints_to_json(const Endpoints &endpoints) {
    return nlohmann::json{{"http", endpoints.http}, {"pg", endpoints.pg}, {"internal", endpoints.internal}}.dump();
}

Result<Endpoints> endpoints_from_json(std::string_view line) {
    const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
    Endpoints out;
    for (auto [name, target] : {std::pair{"http", &out.http}, {"pg", &out.pg}, {"internal", &out.internal}}) {
        if (!parsed.is_object() || !parsed.contains(name) || !parsed[name].is_string()) {
            return Status(Code::invalid_argument,
                          "the gateway reported no \"" + std::string(name) + "\" endpoint: " + std::string(line));
        }
        *target = parsed[name].get<std::string>();
    }
    return out;
}

Status report_endpoints(const Endpoints &endpoints) {
    const char *value = std::getenv(kEndpointsVariable);
    if (value == nullptr) return {};
    const std::string text = value;
    ::unsetenv(kEndpointsVariable);
    int fd = -1;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), fd);
    if (failed != std::errc() || end != text.data() + text.size() || fd < 0) {
        return Status(Code::invalid_argument, std::string(kEndpointsVariable) + " is no descriptor: " + text);
    }
    // Shorter than PIPE_BUF: the pipe takes it whole.
    const std::string line = endpoints_to_json(endpoints) + "\n";
    const ssize_t n = ::write(fd, line.data(), line.size());
    const int error = errno;
    ::close(fd);
    if (n != static_cast<ssize_t>(line.size())) return errno_status("report to", "roost up", error);
    return {};
}

}  // namespace roost::app
