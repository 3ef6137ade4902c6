#include "config/groups_file.h"

#include <set>

#include "config/settings_file.h"
#include "config/values.h"

namespace roost::config {
namespace {

constexpr size_t kGroupsMax = 90;
constexpr int64_t kPriorityMax = 1'000;

Status bad(const std::string &file, uint32_t line, const std::string &message) {
    return Status(Code::invalid_argument, file + ":" + std::to_string(line) + ": " + message);
}

std::vector<std::string> names_of(std::string_view list) {
    constexpr std::string_view kBlanks = " \t";
    std::vector<std::string> names;
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        std::string_view name = list.substr(0, comma);
        list.remove_prefix(std::min(comma + 1, list.size()));
        name.remove_prefix(std::min(name.find_first_not_of(kBlanks), name.size()));
        name = name.substr(0, name.find_last_not_of(kBlanks) + 1);
        if (!name.empty()) names.emplace_back(name);
    }
    return names;
}

template <class Member, class Value>
Status take(Result<Value> value, Member &member) {
    if (value.ok()) member = static_cast<Member>(*value);
    return value.status();
}

Status take_entry(const FileEntry &entry, WorkloadGroup &group) {
    if (entry.key == "priority") return take(parse_integer(entry.text, -kPriorityMax, kPriorityMax), group.priority);
    if (entry.key == "running_max") return take(parse_integer(entry.text, 1, 1'000'000), group.running_max);
    if (entry.key == "memory_max") return take(parse_bytes(entry.text), group.memory_max_bytes);
    if (entry.key == "users") {
        group.users = names_of(entry.text);
        return {};
    }
    if (entry.key != "weight") {
        return Status(Code::invalid_argument, "a group may have users, weight, priority, running_max and memory_max");
    }
    ROOST_RETURN_IF_ERROR(take(parse_number(entry.text), group.weight));
    if (group.weight > 0 && group.weight <= 1e6) return {};
    return Status(Code::invalid_argument, "a weight is above 0, and at most a million");
}

Result<WorkloadGroup> group_of(const FileSection &section, const std::string &file) {
    WorkloadGroup group;
    const bool is_default = section.name == kDefaultGroup;
    if (section.name.empty() || section.name.size() > 63) {
        return bad(file, section.line, "a group's name has 1 to 63 characters");
    }
    if (!is_default) group.name = section.name;
    for (const FileEntry &entry : section.entries) {
        const Status status = take_entry(entry, group);
        if (!status.ok()) return bad(file, entry.line, entry.key.substr(0, 80) + ": " + status.message());
    }
    if (is_default && !group.users.empty()) {
        return bad(file, section.line, "[default] is of all who are in no other group; it names no users");
    }
    return group;
}

}  // namespace

Result<std::vector<WorkloadGroup>> parse_groups(std::string_view text, const std::string &file) {
    ROOST_ASSIGN_OR_RETURN(const auto sections, parse_sections_text(text, file));
    if (sections.size() > kGroupsMax) {
        return Status(Code::invalid_argument, file + ": more than " + std::to_string(kGroupsMax) + " groups");
    }
    std::vector<WorkloadGroup> groups;
    std::set<std::string> users;
    for (const FileSection &section : sections) {
        ROOST_ASSIGN_OR_RETURN(WorkloadGroup group, group_of(section, file));
        for (const std::string &user : group.users) {
            if (!users.insert(user).second) return bad(file, section.line, user.substr(0, 80) + " is in two groups");
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

Status read_groups(Settings &settings) {
    if (settings.is_default("admission_groups") && !settings_file_exists(settings.admission_groups)) return {};
    ROOST_ASSIGN_OR_RETURN(const std::string text, read_text_file(settings.admission_groups));
    ROOST_ASSIGN_OR_RETURN(settings.groups, parse_groups(text, settings.admission_groups));
    return {};
}

}  // namespace roost::config
