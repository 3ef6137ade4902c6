// Names of time zones as PostgreSQL clients write them, checked without the engine, so that SET TIME ZONE fails where
// it stands and not at the next statement. Pure functions, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace roost::service {

// The engine's spelling of a zone: "europe/paris" → "Europe/Paris", "+05" → "Etc/GMT-5". nullopt: unknown, or an offset
// that is no whole number of hours (the engine has no zone for it).
std::optional<std::string> find_time_zone(std::string_view name);

}  // namespace roost::service
