#include "engine/register_files.h"

namespace roost {

namespace {

constexpr size_t kFixed = 4;  // commit, flags, schema, table
constexpr char kMissing = 'm', kExtra = 'e', kSkip = 's', kHive = 'h', kNoHive = 'n';

Param text(std::string value) {
    Param param;
    param.value = std::move(value);
    return param;
}

}  // namespace

std::vector<Param> parameters_of(const RegisterFiles &request) {
    std::string flags;
    if (request.allow_missing) flags += kMissing;
    if (request.ignore_extra) flags += kExtra;
    if (request.skip_registered) flags += kSkip;
    if (request.hive_partitioning) flags += *request.hive_partitioning ? kHive : kNoHive;
    std::vector<Param> parameters = {text(request.commit.to_string()), text(flags), text(request.schema),
                                     text(request.table)};
    for (const std::string &pattern : request.patterns) parameters.push_back(text(pattern));
    return parameters;
}

Result<RegisterFiles> register_files_of(const std::vector<Param> &parameters) {
    std::vector<std::string> values;
    for (const Param &parameter : parameters) values.push_back(parameter.value.value_or(""));
    const auto commit = values.size() > kFixed ? Uuid::parse(values[0]) : std::nullopt;
    if (!commit || values[2].empty() || values[3].empty()) {
        return Status(Code::internal, "a registration of files came without them");
    }
    RegisterFiles request;
    request.commit = *commit;
    request.schema = values[2];
    request.table = values[3];
    const auto has = [&](char flag) { return values[1].find(flag) != std::string::npos; };
    request.allow_missing = has(kMissing);
    request.ignore_extra = has(kExtra);
    request.skip_registered = has(kSkip);
    if (has(kHive) || has(kNoHive)) request.hive_partitioning = has(kHive);
    request.patterns.assign(values.begin() + kFixed, values.end());
    return request;
}

}  // namespace roost
