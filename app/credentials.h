// The admin user that the first start of a pool makes: DIR/credentials, JSON, mode 0600:
//   {"user":"admin","password":"…","token":"…"}
// `roost up` writes the file; the gateway puts the user and the token into its meta store when it does not know them
// yet. Blocking, no state.
#pragma once

#include <string>

#include "base/status.h"

namespace roost::app {

struct Credentials {
    std::string user, password, token;
};

// not_found when there is no such file.
Result<Credentials> load_credentials(const std::string &path);
// Loads, or generates and writes when the file is not there.
Result<Credentials> ensure_credentials(const std::string &path);

// DIR/join-token: one line, mode 0600; what a node shows to be let in.
Result<std::string> load_join_token(const std::string &path);
Result<std::string> ensure_join_token(const std::string &path);

// The same password in the form that libpq reads from PGPASSFILE: one line that matches every host, port and database.
std::string passfile_line(const Credentials &credentials);

}  // namespace roost::app
