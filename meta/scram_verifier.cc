// The verifier that is kept in place of a password: RFC 5802 and 7677, in the form of PostgreSQL's
// pg_authid.rolpassword.
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <cstdlib>

#include "base/ids.h"
#include "meta/store.h"

namespace roost::meta {
namespace {

constexpr int kIterations = 4096;
constexpr size_t kSaltBytes = 16;

const unsigned char *bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char *>(text.data()); }
unsigned char *bytes_of(std::string &text) { return reinterpret_cast<unsigned char *>(text.data()); }

std::string base64(std::string_view raw) {
    std::string out((raw.size() + 2) / 3 * 4 + 1, '\0');
    const int size = EVP_EncodeBlock(bytes_of(out), bytes_of(raw), static_cast<int>(raw.size()));
    out.resize(static_cast<size_t>(size));
    return out;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
    std::string out(SHA256_DIGEST_LENGTH, '\0');
    unsigned size = 0;
    // Fails only when the library itself is broken; a wrong verifier would lock somebody out or, worse, in.
    if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(message), message.size(), bytes_of(out),
             &size) == nullptr) {
        std::abort();
    }
    return out;
}

std::string sha256(std::string_view text) {
    std::string digest(SHA256_DIGEST_LENGTH, '\0');
    SHA256(bytes_of(text), text.size(), bytes_of(digest));
    return digest;
}

}  // namespace

std::string make_scram_verifier(std::string_view password) {
    return make_scram_verifier(password, random_bytes(kSaltBytes));
}

std::string make_scram_verifier(std::string_view password, std::string_view salt) {
    std::string salted(SHA256_DIGEST_LENGTH, '\0');
    if (PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()), bytes_of(salt),
                          static_cast<int>(salt.size()), kIterations, EVP_sha256(), static_cast<int>(salted.size()),
                          bytes_of(salted)) != 1) {
        std::abort();
    }
    const std::string stored_key = sha256(hmac_sha256(salted, "Client Key"));
    const std::string server_key = hmac_sha256(salted, "Server Key");
    return "SCRAM-SHA-256$" + std::to_string(kIterations) + ":" + base64(salt) + "$" + base64(stored_key) + ":" +
           base64(server_key);
}

}  // namespace roost::meta
