#include "app/kept_process.h"

#include <signal.h>

#include <nlohmann/json.hpp>
#include <set>

#include "app/files.h"

namespace roost::app {
namespace {

constexpr size_t kLastLines = 8;

}  // namespace

Status KeptProcess::start(int64_t now_ms, int pipe_fd) {
    due_ms_.reset();
    started_ms_ = now_ms;
    log_from_ = file_size(spec_.log_path);
    spec_.pipe_fd = pipe_fd;
    const Result<pid_t> started = spawn(spec_);
    if (!started.ok()) {
        exited(now_ms);
        return started.status();
    }
    pid_ = *started;
    return {};
}

void KeptProcess::exited(int64_t now_ms) {
    pid_ = -1;
    ++exits_;
    due_ms_ = now_ms + backoff_.pause_ms(now_ms - started_ms_);
}

void KeptProcess::signal(int number) const {
    // Fails only when it has exited and was not reaped yet, which the loop will notice.
    if (pid_ > 0) ::kill(pid_, number);
}

std::string KeptProcess::last_words() const {
    std::string lines = last_lines(spec_.log_path, kLastLines, log_from_);
    std::string out;
    while (!lines.empty()) {
        const size_t end = std::min(lines.find('\n'), lines.size());
        out += "    " + readable_log_line(std::string_view(lines).substr(0, end)) + "\n";
        lines.erase(0, end + 1);
    }
    return out;
}

std::string readable_log_line(std::string_view line) {
    const nlohmann::ordered_json parsed = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("event")) return std::string(line);
    static const std::set<std::string, std::less<>> kShownElsewhere{"ts", "level", "component", "event"};
    const auto text = [](const nlohmann::ordered_json &value) {
        return value.is_string() ? value.get<std::string>() : value.dump();
    };
    std::string out = parsed.value("level", "info") + " " + text(parsed["event"]);
    for (const auto &[name, value] : parsed.items()) {
        if (!kShownElsewhere.contains(name)) out += " " + name + "=" + text(value);
    }
    return out;
}

}  // namespace roost::app
