#include "sql/guard_session.h"

#include <string>

#include "sql/guard_names.h"
#include "sql/session_variables.h"

namespace roost::sql {
namespace {

Status refuse_setting(const std::string &name, const char *verb) {
    return refuse("setting:" + name, "the setting \"" + name + "\" may not be " + verb,
                  "SHOW ALL lists what a session can set");
}

// Names that are no variables: SET TRANSACTION and the like.
bool is_command_name(const SessionCommand &command) {
    return command.name == "transaction" || command.name == "session characteristics" ||
           (command.name == "all" && command.options.count("all") != 0);
}

Status check_settable(const SessionCommand &command) {
    const std::string &name = command.name;
    const SettingRule rule = setting_rule(name);
    if (is_command_name(command)) return Status();
    // PostgreSQL's names first: a name that both know is roost's to keep.
    const bool known = is_postgres_variable(name) || rule == SettingRule::allowed;
    if (known && command.options.count("scope") == 0) return Status();
    if (known) {
        return refuse("setting:global", "a setting may be changed for the session only", "leave out GLOBAL");
    }
    if (rule != SettingRule::unknown) return refuse_setting(name, "changed");
    if (name.find('.') != std::string::npos) return Status();
    return Status(Code::not_found, "unrecognized configuration parameter \"" + name + "\"")
        .with_rule("setting:" + name)
        .with_hint("SHOW ALL lists what a session can set");
}

Status check_set(const Statement &statement, const GuardPolicy &policy) {
    const SessionCommand &command = statement.command;
    ROOST_RETURN_IF_ERROR(check_settable(command));
    if (command.options.count("expression") != 0) {
        return refuse("setting_value:" + command.name, "the value of \"" + command.name + "\" must be a literal",
                      "write the value itself");
    }
    if (command.name != "search_path" && command.name != "schema") return Status();
    for (const std::string &value : command.values) ROOST_RETURN_IF_ERROR(check_search_path(value, policy));
    return Status();
}

Status check_show(const Statement &statement) {
    const SessionCommand &command = statement.command;
    if (is_command_name(command) || is_postgres_variable(command.name)) return Status();
    const SettingRule rule = setting_rule(command.name);
    if (rule == SettingRule::forbidden) return refuse_setting(command.name, "read");
    return Status();
}

Status check_use(const Statement &statement, const GuardPolicy &policy) {
    const auto &parts = statement.command.values;
    std::string path;
    for (const std::string &part : parts) path += (path.empty() ? "\"" : ".\"") + part + '"';
    return check_search_path(path, policy);
}

}  // namespace

Status check_session_command(const Statement &statement, const GuardPolicy &policy) {
    switch (statement.kind) {
        case Kind::set:
            return check_set(statement, policy);
        case Kind::reset:
            return check_settable(statement.command);
        case Kind::show:
            return check_show(statement);
        case Kind::use:
            return check_use(statement, policy);
        case Kind::lock_table:
            for (const TableName &name : statement.reads) {
                ROOST_RETURN_IF_ERROR(check_qualifiers(name, false, policy));
            }
            return Status();
        default:
            return Status();
    }
}

}  // namespace roost::sql
