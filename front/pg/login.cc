#include "front/pg/login.h"

#include <algorithm>

#include "front/pg/connection.h"
#include "front/pg/scram.h"

namespace roost::pg {
namespace {

// One more word of the options string; nullopt at its end.
std::optional<std::string> next_word(std::string_view &rest) {
    const size_t from = rest.find_first_not_of(" \t\r\n");
    if (from == std::string_view::npos) return std::nullopt;
    std::string word;
    size_t at = from;
    for (; at < rest.size() && std::string_view(" \t\r\n").find(rest[at]) == std::string_view::npos; at++) {
        if (rest[at] == '\\' && at + 1 < rest.size()) at++;
        word.push_back(rest[at]);
    }
    rest.remove_prefix(at);
    return word;
}

std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

bool is_off(std::string_view value) { return value == "false" || value == "off" || value == "no" || value == "0"; }

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> parse_startup_options(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> out;
    while (auto word = next_word(text)) {
        std::string setting;
        if (*word == "-c") {
            setting = next_word(text).value_or("");
        } else if (word->starts_with("--")) {
            setting = word->substr(2);
        } else if (word->starts_with("-c")) {
            setting = word->substr(2);
        } else {
            return Status(Code::syntax_error, "invalid command-line argument in startup options: " + *word);
        }
        const size_t equals = setting.find('=');
        if (equals == std::string::npos || equals == 0) {
            return Status(Code::syntax_error, "startup option " + quoted(setting) + " requires a value");
        }
        std::string name = setting.substr(0, equals);
        std::replace(name.begin(), name.end(), '-', '_');
        out.emplace_back(std::move(name), setting.substr(equals + 1));
    }
    return out;
}

net::Task<void> Login::refuse(Status status) {
    put_error(channel_.out(), status, Severity::fatal);
    co_await channel_.flush();
}

net::Task<std::optional<StartupPacket>> Login::read_packet() {
    while (true) {
        const Result<std::optional<uint32_t>> size = startup_bytes(channel_.input());
        // Not a client of ours: nothing it would understand can be said.
        if (!size.ok()) co_return std::nullopt;
        if (size->has_value() && channel_.input().size() >= **size) {
            Result<StartupPacket> packet = decode_startup(channel_.input().substr(0, **size));
            channel_.consume(**size);
            if (packet.ok()) co_return std::move(packet).value();
            co_await refuse(packet.status());
            co_return std::nullopt;
        }
        if (!co_await channel_.fill(size->value_or(0))) co_return std::nullopt;
    }
}

net::Task<std::optional<StartupPacket>> Login::read_startup() {
    // Encryption may be asked for once in each way before the real packet.
    bool asked_ssl = false, asked_gss = false;
    while (true) {
        std::optional<StartupPacket> packet = co_await read_packet();
        if (!packet) co_return std::nullopt;
        if (packet->code == kCancelRequest) {
            Connection *target = shared_.cancels.find({packet->cancel_pid, packet->cancel_secret});
            if (target != nullptr) target->cancel_running();
            co_return std::nullopt;
        }
        if ((packet->code == kSslRequest && !asked_ssl) || (packet->code == kGssEncRequest && !asked_gss)) {
            (packet->code == kSslRequest ? asked_ssl : asked_gss) = true;
            channel_.out().push_back('N');
            if (!co_await channel_.flush()) co_return std::nullopt;
            continue;
        }
        if (packet->code >> 16 == 3) co_return packet;
        if (packet->code == kProtocol20) {
            // The form that a client of that age reads.
            channel_.out() += "Eunsupported frontend protocol 2.0: server supports 3.0\n";
            channel_.out().push_back('\0');
            co_await channel_.flush();
        }
        co_return std::nullopt;
    }
}

Result<Login::Parameters> Login::read_parameters(const StartupPacket &startup) const {
    Parameters parameters;
    for (const auto &[name, value] : startup.parameters) {
        if (name == "user") {
            parameters.user = value;
        } else if (name == "database") {
            parameters.database = value;
            parameters.has_database = !value.empty();
        } else if (name == "options") {
            parameters.options = value;
        } else if (name == "replication") {
            if (!is_off(value)) return Status(Code::unimplemented, "replication connections are not supported");
        } else if (name.starts_with("_pq_.")) {
            parameters.unknown_options.push_back(name);
        } else {
            parameters.variables.emplace_back(name, value);
        }
    }
    if (parameters.user.empty()) {
        return Status(Code::unauthenticated, "no PostgreSQL user name specified in startup packet")
            .with_sqlstate("28000");
    }
    ROOST_ASSIGN_OR_RETURN(auto from_options, parse_startup_options(parameters.options));
    parameters.variables.insert(parameters.variables.begin(), from_options.begin(), from_options.end());
    return parameters;
}

Status Login::admit() const {
    if (shared_.draining || shared_.service.draining()) {
        return Status(Code::unavailable, "the gateway is shutting down").with_sqlstate("57P03");
    }
    if (shared_.connections.size() > shared_.options.connections_max) {
        return Status(Code::resource_exhausted, "sorry, too many clients already").with_sqlstate("53300");
    }
    return {};
}

net::Task<Result<std::string>> Login::read_password_message() {
    while (true) {
        const Result<std::optional<MessageSize>> size = password_message_size(channel_.input());
        if (!size.ok()) co_return size.status();
        if (size->has_value() && channel_.input().size() >= (*size)->total_bytes) {
            std::string body(channel_.input().substr(5, (*size)->total_bytes - 5));
            channel_.consume((*size)->total_bytes);
            co_return body;
        }
        if (!co_await channel_.fill(size->has_value() ? (*size)->total_bytes : 0)) {
            co_return Status(Code::cancelled, "the client left");
        }
    }
}

net::Task<Status> Login::exchange_scram(const std::string &user, const std::string &verifier_text) {
    std::optional<ScramVerifier> verifier = parse_scram_verifier(verifier_text);
    if (!verifier) verifier = mock_scram_verifier(shared_.options.mock_secret, user);
    ScramExchange exchange(std::move(*verifier), make_scram_nonce());

    put_auth_sasl(channel_.out());
    if (!co_await channel_.flush()) co_return Status(Code::cancelled, "the client left");
    Result<std::string> body = co_await read_password_message();
    if (!body.ok()) co_return body.status();
    const Result<SaslInitial> initial = decode_sasl_initial(*body);
    if (!initial.ok()) co_return initial.status();
    if (initial->mechanism != "SCRAM-SHA-256") {
        co_return protocol_violation("client selected an invalid SASL authentication mechanism");
    }
    const Result<std::string> server_first = exchange.first(initial->data);
    if (!server_first.ok()) co_return server_first.status();

    put_auth_sasl_continue(channel_.out(), *server_first);
    if (!co_await channel_.flush()) co_return Status(Code::cancelled, "the client left");
    body = co_await read_password_message();
    if (!body.ok()) co_return body.status();
    const Result<std::string> server_final = exchange.final(*body);
    if (!server_final.ok()) co_return server_final.status();
    put_auth_sasl_final(channel_.out(), *server_final);
    co_return Status();
}

net::Task<Result<service::Principal>> Login::authenticate(const std::string &user) {
    const Result<std::optional<meta::User>> found = shared_.service.find_user(user);
    if (!found.ok()) co_return found.status();
    const std::string verifier = *found ? (*found)->scram_verifier : std::string();
    const Status status = co_await exchange_scram(user, verifier);
    if (status.ok() && *found) {
        put_auth_ok(channel_.out());
        co_return service::Principal{(*found)->id, (*found)->name, (*found)->role};
    }
    if (!status.ok() && status.code() != Code::unauthenticated) co_return status;
    shared_.service.auth_failed("pg", user, channel_.peer());
    co_return Status(Code::unauthenticated, "password authentication failed for user " + quoted(user));
}

Result<std::shared_ptr<service::Session>> Login::open_session(const Parameters &parameters,
                                                              const service::Principal &who) {
    service::OpenSession request{
        .principal = who, .workspace = {}, .catalog = {}, .front = "pg", .client_name = {}, .peer = channel_.peer()};
    const std::string &database = parameters.database;
    if (!parameters.has_database) return shared_.service.open_session(request);
    // A database is a catalog, or a workspace (its default catalog).
    request.catalog = database;
    Result<std::shared_ptr<service::Session>> session = shared_.service.open_session(request);
    if (session.ok() || session.status().code() != Code::not_found) return session;
    request.catalog.clear();
    ROOST_ASSIGN_OR_RETURN(const std::vector<meta::Workspace> workspaces, shared_.service.workspaces(who));
    for (const meta::Workspace &workspace : workspaces) {
        if (workspace.slug != database) continue;
        request.workspace = database;
        return shared_.service.open_session(request);
    }
    // Clients that are told no database send the user's name.
    if (database == parameters.user) return shared_.service.open_session(request);
    return Status(Code::not_found, "database " + quoted(database) + " does not exist")
        .with_sqlstate("3D000")
        .with_hint("A database is the name of a catalog or of a workspace.");
}

net::Task<std::optional<Login::Outcome>> Login::run() {
    const std::optional<StartupPacket> startup = co_await read_startup();
    if (!startup) co_return std::nullopt;
    Status status = admit();
    Result<Parameters> parameters = read_parameters(*startup);
    if (status.ok()) status = parameters.status();
    if (!status.ok()) {
        co_await refuse(std::move(status));
        co_return std::nullopt;
    }
    if ((startup->code & 0xffff) != 0 || !parameters->unknown_options.empty()) {
        put_negotiate_version(channel_.out(), parameters->unknown_options);
    }
    const Result<service::Principal> principal = co_await authenticate(parameters->user);
    if (!principal.ok()) {
        co_await refuse(principal.status());
        co_return std::nullopt;
    }
    service::SessionVariables variables({parameters->user, shared_.options.server_version});
    for (const auto &[name, value] : parameters->variables) {
        if (status.ok()) status = variables.set_default(name, value);
    }
    if (!status.ok()) {
        co_await refuse(std::move(status));
        co_return std::nullopt;
    }
    Result<std::shared_ptr<service::Session>> session = open_session(*parameters, *principal);
    if (!session.ok()) {
        co_await refuse(session.status());
        co_return std::nullopt;
    }
    variables.apply_to(**session);
    co_return Outcome{std::move(session).value(), std::move(variables)};
}

}  // namespace roost::pg
