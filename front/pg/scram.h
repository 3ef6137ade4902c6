// The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677) without channel binding. One ScramExchange serves one login;
// not thread-safe. Pure computation: two steps of PBKDF2's result (no PBKDF2 itself: the verifier holds its outcome),
// so a login costs the gateway microseconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace roost::pg {

// What the server keeps of a password: enough to check it, not enough to log in with.
struct ScramVerifier {
    uint32_t iterations = 4096;
    std::string salt;        // raw bytes
    std::string stored_key;  // H(ClientKey), 32 bytes
    std::string server_key;  // 32 bytes
};

// Reads "SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey", the fields base64. nullopt: not of that form.
std::optional<ScramVerifier> parse_scram_verifier(std::string_view text);
// A verifier that no password matches, for a user who does not exist: the same salt each time for the same name and
// secret, so that asking twice does not tell the name is unknown.
ScramVerifier mock_scram_verifier(std::string_view secret, std::string_view user_name, uint32_t iterations = 4096);

class ScramExchange {
public:
    // `server_nonce`: printable, unguessable, used once; make_scram_nonce() but in tests with published vectors.
    ScramExchange(ScramVerifier verifier, std::string server_nonce);

    // client-first-message → server-first-message. Errors: 08P01 (malformed, channel binding wanted), 0A000
    // (authorisation identity or mandatory extension).
    Result<std::string> first(std::string_view client_first);
    // client-final-message → server-final-message. REQUIRES: first() was ok. Errors: 08P01 malformed, 28P01 wrong
    // password.
    Result<std::string> final(std::string_view client_final);

private:
    ScramVerifier verifier_;
    std::string nonce_;         // the server's part, then client and server part together
    std::string gs2_header_;    // "n,," or "y,,"
    std::string auth_message_;  // client-first-message-bare "," server-first-message
};

std::string make_scram_nonce();

// Standard base64 with padding; decoding is strict.
std::string base64_encode(std::string_view bytes);
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace roost::pg
