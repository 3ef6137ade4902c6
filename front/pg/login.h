// The first part of a connection: from the first byte to a session, or to the reason why there is none. One object a
// connection, loop thread only. The deadline of a login is kept by the connection's sweep.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "front/pg/channel.h"
#include "front/pg/message.h"
#include "front/pg/shared.h"
#include "service/session_variables.h"

namespace roost::pg {

class Login {
public:
    struct Outcome {
        std::shared_ptr<service::Session> session;
        service::SessionVariables variables;
    };

    Login(Channel &channel, Shared &shared) : channel_(channel), shared_(shared) {}

    // nullopt: the connection ends here, and what had to be said has been sent. Otherwise the authentication's last
    // messages are in the channel's output, not yet sent.
    net::Task<std::optional<Outcome>> run();

private:
    struct Parameters {
        std::string user, database, options;
        bool has_database = false;
        std::vector<std::pair<std::string, std::string>> variables;  // in the client's order
        std::vector<std::string> unknown_options;                    // _pq_.…
    };

    net::Task<std::optional<StartupPacket>> read_startup();
    net::Task<std::optional<StartupPacket>> read_packet();
    net::Task<Result<std::string>> read_password_message();
    Result<Parameters> read_parameters(const StartupPacket &startup) const;
    Status admit() const;
    net::Task<Result<service::Principal>> authenticate(const std::string &user);
    net::Task<Status> exchange_scram(const std::string &user, const std::string &verifier);
    Result<std::shared_ptr<service::Session>> open_session(const Parameters &parameters, const service::Principal &who);
    net::Task<void> refuse(Status status);

    Channel &channel_;
    Shared &shared_;
};

// "-c a=b --c-d=e" as pairs; a backslash takes the next character as it is. Error: an option of another form.
Result<std::vector<std::pair<std::string, std::string>>> parse_startup_options(std::string_view text);

}  // namespace roost::pg
