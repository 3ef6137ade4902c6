// Structured logs: one JSON object a line, {"ts","level","component","event", fields…}. Thread-safe. Values are
// escaped; SQL text and secrets are the caller's to leave out.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/ids.h"

namespace roost::obs {

enum class Level : uint8_t { debug, info, warn, error };

struct Field {
    std::string_view name;
    std::variant<std::string, int64_t, double, bool> value;
    Field(std::string_view n, std::string v) : name(n), value(std::move(v)) {}
    Field(std::string_view n, std::string_view v) : name(n), value(std::string(v)) {}
    Field(std::string_view n, const char *v) : name(n), value(std::string(v)) {}
    Field(std::string_view n, bool v) : name(n), value(v) {}
    Field(std::string_view n, double v) : name(n), value(v) {}
    Field(std::string_view n, const Uuid &v) : name(n), value(v.to_string()) {}
    template <std::integral T>
        requires(!std::same_as<T, bool>)
    Field(std::string_view n, T v) : name(n), value(static_cast<int64_t>(v)) {}
};

class Log {
public:
    virtual ~Log() = default;
    virtual bool enabled(Level level) const = 0;
    virtual void write(Level level, std::string_view event, std::initializer_list<Field> fields) = 0;

    void debug(std::string_view event, std::initializer_list<Field> fields = {}) {
        if (enabled(Level::debug)) write(Level::debug, event, fields);
    }
    void info(std::string_view event, std::initializer_list<Field> fields = {}) { write(Level::info, event, fields); }
    void warn(std::string_view event, std::initializer_list<Field> fields = {}) { write(Level::warn, event, fields); }
    void error(std::string_view event, std::initializer_list<Field> fields = {}) { write(Level::error, event, fields); }
};

// Writes to `path` (appending; "-" is stderr), rotating at 64 MiB, three files kept.
std::unique_ptr<Log> make_log(std::string component, const std::string &path, Level level);
// Drops everything; for tests.
std::unique_ptr<Log> make_null_log();
Level parse_level(std::string_view name);  // unknown: info

}  // namespace roost::obs
