// What a statement reaches: the catalogs it names, with views expanded, and whether its caller may. Names are resolved
// by the gateway's mirrors as the engine would; one that no mirror knows is left to the node, which judges the bound
// plan by the same rights. Pure but for the mirrors' states that it is given.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "lake/lake_state.h"
#include "lake/rights.h"
#include "sql/statement.h"

namespace roost::service {

struct Reach {
    std::vector<std::string> catalogs;  // beside the active one
    std::string write_catalog;          // empty: the active one, or nothing is written
    std::optional<Rights> rights;       // of the caller; nothing: everything
};

struct ReachScope {
    std::string catalog;                   // active
    std::vector<std::string> search_path;  // schemas in it
    std::vector<std::string> catalogs;     // all that may be named
    const Rights *rights = nullptr;        // null: everything
};

class ReachFinder {
public:
    using States = std::map<std::string, std::shared_ptr<const LakeState>>;
    // Parses the text of a view.
    using Parse = std::function<Result<std::vector<sql::Statement>>(const std::string &)>;

    ReachFinder(const ReachScope &scope, const States &states, Parse parse)
        : scope_(scope), states_(states), parse_(std::move(parse)) {}

    // ok, permission_denied (42501), not_found (42P01: what may not be seen is not there). When it is ok and missing()
    // is not empty, the verdict waits for the states of those catalogs.
    Status find(const sql::Statement &statement);

    const std::set<std::string> &missing() const { return missing_; }
    Reach reach() const;

private:
    struct Found {
        std::string catalog, schema, name;
        const LakeView *view = nullptr;
        bool known = false;  // by a mirror
    };
    enum class Need : uint8_t { metadata, read, change, make };

    Found resolve(const sql::TableName &name, const ReachScope &scope);
    bool look_in(const std::string &catalog, const std::string &schema, const std::string &name, Found &found);
    Status read(const sql::TableName &name, const ReachScope &scope, Need need, unsigned depth);
    Status write(const sql::TableName &name, sql::Kind kind);
    Status judge(const Found &found, Need need) const;
    const std::string *catalog_named(const std::string &name) const;

    const ReachScope &scope_;
    const States &states_;
    const Parse parse_;
    std::set<std::string> catalogs_, missing_;
    std::string write_catalog_;
};

}  // namespace roost::service
