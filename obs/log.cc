#include "obs/log.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "obs/json_text.h"
#include "obs/log_file.h"

namespace roost::obs {
namespace {

// Lines wait here for the disk. At ~200 bytes a line this is 20,000 lines; more are dropped and counted.
constexpr size_t kQueueMaxBytes = 4U << 20;
// From here the writer no longer waits for company.
constexpr size_t kBatchBytes = 256U << 10;
constexpr size_t kValueMaxBytes = 16U << 10;
// Waking the writer costs a system call, so lines gather this long; errors go at once.
constexpr std::chrono::milliseconds kGather{10};

std::string_view level_name(Level level) {
    switch (level) {
        case Level::debug:
            return "debug";
        case Level::info:
            return "info";
        case Level::warn:
            return "warn";
        case Level::error:
            return "error";
    }
    return "info";
}

void append_two(std::string &out, int value) {
    out += static_cast<char>('0' + value / 10);
    out += static_cast<char>('0' + value % 10);
}

// 2024-05-06T07:08:09.123456Z. The part down to the second is kept, since most lines share it with the one before.
void append_time(std::string &out) {
    thread_local time_t known_second = -1;
    thread_local std::string known_text;
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != known_second) {
        tm parts{};
        gmtime_r(&now.tv_sec, &parts);
        known_text = std::to_string(parts.tm_year + 1900) + "-";
        append_two(known_text, parts.tm_mon + 1);
        known_text += '-';
        append_two(known_text, parts.tm_mday);
        known_text += 'T';
        append_two(known_text, parts.tm_hour);
        known_text += ':';
        append_two(known_text, parts.tm_min);
        known_text += ':';
        append_two(known_text, parts.tm_sec);
        known_text += '.';
        known_second = now.tv_sec;
    }
    out += known_text;
    const auto us = static_cast<int>(now.tv_nsec / 1000);
    append_two(out, us / 10000);
    append_two(out, us / 100 % 100);
    append_two(out, us % 100);
    out += 'Z';
}

template <class Number>
void append_number(std::string &out, Number value) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value);
    out.append(digits, end.ptr);
}

struct AppendValue {
    std::string &out;
    void operator()(const std::string &value) const { append_json_string(out, value, kValueMaxBytes); }
    void operator()(int64_t value) const { append_number(out, value); }
    void operator()(bool value) const { out += value ? "true" : "false"; }
    void operator()(double value) const {
        // JSON has no word for these.
        if (std::isfinite(value)) return append_number(out, value);
        out += std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
    }
};

class NullLog final : public Log {
public:
    bool enabled(Level) const override { return false; }
    void write(Level, std::string_view, std::initializer_list<Field>) override {}
};

class QueuedLog final : public Log {
public:
    QueuedLog(std::string_view component, std::unique_ptr<LogFile> file, Level level)
        : level_(level), file_(std::move(file)) {
        append_json_string(component_, component);
        writer_ = std::thread([this] { run(); });
    }

    ~QueuedLog() override {
        {
            const MutexLock lock(mutex_);
            stopping_ = true;
        }
        hurry_.notify_one();
        writer_.join();
    }

    bool enabled(Level level) const override { return level >= level_; }

    void write(Level level, std::string_view event, std::initializer_list<Field> fields) override {
        if (!enabled(level)) return;
        thread_local std::string line;
        line.clear();
        format(line, level, event, fields);
        bool wake = false;
        {
            const MutexLock lock(mutex_);
            if (queue_.size() + line.size() > kQueueMaxBytes) {
                ++dropped_;
                return;
            }
            const bool was_small = queue_.size() < kBatchBytes;
            wake = queue_.empty() || level == Level::error || (was_small && queue_.size() + line.size() >= kBatchBytes);
            queue_ += line;
            ++queued_lines_;
            urgent_ = urgent_ || level == Level::error;
        }
        if (wake) hurry_.notify_one();
    }

private:
    void format(std::string &line, Level level, std::string_view event, std::initializer_list<Field> fields) const {
        line += "{\"ts\":\"";
        append_time(line);
        line += "\",\"level\":\"";
        line += level_name(level);
        line += "\",\"component\":";
        line += component_;
        line += ",\"event\":";
        append_json_string(line, event, kValueMaxBytes);
        for (const Field &field : fields) {
            line += ',';
            append_json_string(line, field.name, kValueMaxBytes);
            line += ':';
            std::visit(AppendValue{line}, field.value);
        }
        line += "}\n";
    }

    // Waits for lines, then a moment for more of them. False when there is nothing left to write and the log is
    // closing.
    bool next_batch(std::string &batch, uint64_t &lines, uint64_t &dropped) {
        const MutexLock lock(mutex_);
        while (queue_.empty() && !stopping_) hurry_.wait(mutex_);
        const auto until = std::chrono::steady_clock::now() + kGather;
        while (!stopping_ && !urgent_ && queue_.size() < kBatchBytes) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
            if (left.count() <= 0 || !hurry_.wait_for(mutex_, left)) break;
        }
        batch.clear();
        batch.swap(queue_);
        lines = std::exchange(queued_lines_, 0);
        dropped = std::exchange(dropped_, 0);
        urgent_ = false;
        return !batch.empty() || dropped > 0;
    }

    void run() {
        // Signals are the main thread's; a closed stderr is an error to count and not a reason to die.
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        std::string batch;
        uint64_t lines = 0;
        uint64_t dropped = 0;
        uint64_t lost = 0;  // on a disk that refused them
        while (next_batch(batch, lines, dropped)) {
            lost += dropped;
            if (lost > 0) {
                format(batch, Level::warn, "log_lines_dropped", {{"lines", lost}});
            }
            if (file_->append(batch)) {
                lost = 0;
            } else {
                lost += lines;
            }
        }
    }

    const Level level_;
    std::string component_;  // as JSON
    const std::unique_ptr<LogFile> file_;
    Mutex mutex_;
    CondVar hurry_;
    std::string queue_ ROOST_GUARDED_BY(mutex_);
    uint64_t queued_lines_ ROOST_GUARDED_BY(mutex_) = 0;
    uint64_t dropped_ ROOST_GUARDED_BY(mutex_) = 0;
    bool urgent_ ROOST_GUARDED_BY(mutex_) = false;
    bool stopping_ ROOST_GUARDED_BY(mutex_) = false;
    std::thread writer_;
};

}  // namespace

std::unique_ptr<Log> make_log(std::string component, const std::string &path, Level level) {
    std::string problem;
    auto file = path == "-" ? nullptr : LogFile::open(path, LogRotation{}, problem);
    if (!file) file = LogFile::on_stderr();
    auto log = std::make_unique<QueuedLog>(component, std::move(file), level);
    if (!problem.empty()) log->error("log_file_unusable", {{"path", path}, {"reason", problem}});
    return log;
}

std::unique_ptr<Log> make_null_log() { return std::make_unique<NullLog>(); }

Level parse_level(std::string_view name) {
    if (name == "debug") return Level::debug;
    if (name == "warn" || name == "warning") return Level::warn;
    if (name == "error") return Level::error;
    return Level::info;
}

}  // namespace roost::obs
