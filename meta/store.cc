#include "meta/store.h"

#include <array>

#include "meta/sqlite_store.h"

namespace roost::meta {
namespace {

constexpr std::array<std::string_view, 5> kStatusNames = {"queued", "running", "done", "failed", "cancelled"};

}  // namespace

std::string_view status_name(StatementStatus status) { return kStatusNames[static_cast<size_t>(status)]; }

std::optional<StatementStatus> parse_status(std::string_view name) {
    for (size_t i = 0; i < kStatusNames.size(); ++i) {
        if (kStatusNames[i] == name) return static_cast<StatementStatus>(i);
    }
    return std::nullopt;
}

Result<std::unique_ptr<Store>> Store::open(const std::string &location) {
    constexpr std::string_view sqlite = "sqlite:";
    // The location may hold a password, so it is not repeated.
    if (location.rfind("postgres", 0) == 0) {
        return Status(Code::unimplemented, "a meta store on Postgres is not there yet")
            .with_hint("use --meta sqlite:PATH");
    }
    if (location.rfind(sqlite, 0) != 0) {
        return Status(Code::invalid_argument, "the location of the meta store starts with sqlite:")
            .with_hint("use --meta sqlite:PATH");
    }
    ROOST_ASSIGN_OR_RETURN(auto store, SqliteStore::open(location.substr(sqlite.size())));
    return std::unique_ptr<Store>(std::move(store));
}

}  // namespace roost::meta
