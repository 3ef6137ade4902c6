#include "front/pg/scram.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <charconv>

#include "base/ids.h"
#include "front/pg/message.h"

namespace roost::pg {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kSaltBytes = 16;
constexpr size_t kNonceMaxBytes = 1024;

std::string hmac_sha256(std::string_view key, std::string_view data) {
    std::array<unsigned char, kKeyBytes> out{};
    unsigned int size = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char *>(data.data()),
         data.size(), out.data(), &size);
    return {reinterpret_cast<const char *>(out.data()), out.size()};
}

std::string sha256(std::string_view data) {
    std::array<unsigned char, kKeyBytes> out{};
    EVP_Digest(data.data(), data.size(), out.data(), nullptr, EVP_sha256(), nullptr);
    return {reinterpret_cast<const char *>(out.data()), out.size()};
}

Status malformed(std::string detail) {
    return protocol_violation("malformed SCRAM message").with_detail(std::move(detail));
}

// Takes "k=value" off the front, up to the next comma or the end.
std::optional<std::string_view> take_attribute(std::string_view &rest, char name) {
    if (rest.size() < 2 || rest[0] != name || rest[1] != '=') return std::nullopt;
    const size_t comma = rest.find(',');
    const std::string_view value = rest.substr(2, comma == std::string_view::npos ? comma : comma - 2);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    return value;
}

bool is_nonce(std::string_view text) {
    if (text.empty() || text.size() > kNonceMaxBytes) return false;
    for (const char c : text) {
        if (c < 0x21 || c > 0x7e || c == ',') return false;
    }
    return true;
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
    std::string out(4 * ((bytes.size() + 2) / 3) + 1, '\0');
    const int size =
        EVP_EncodeBlock(reinterpret_cast<unsigned char *>(out.data()),
                        reinterpret_cast<const unsigned char *>(bytes.data()), static_cast<int>(bytes.size()));
    out.resize(static_cast<size_t>(size));
    return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
    if (text.size() % 4 != 0) return std::nullopt;
    std::string out(text.size() / 4 * 3, '\0');
    const int size =
        EVP_DecodeBlock(reinterpret_cast<unsigned char *>(out.data()),
                        reinterpret_cast<const unsigned char *>(text.data()), static_cast<int>(text.size()));
    if (size < 0) return std::nullopt;
    size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') padding++;
    out.resize(static_cast<size_t>(size) - padding);
    // OpenSSL skips blanks and forgives stray padding; only the one canonical spelling is taken here.
    if (base64_encode(out) != text) return std::nullopt;
    return out;
}

std::optional<ScramVerifier> parse_scram_verifier(std::string_view text) {
    constexpr std::string_view kPrefix = "SCRAM-SHA-256$";
    if (!text.starts_with(kPrefix)) return std::nullopt;
    text.remove_prefix(kPrefix.size());
    const size_t colon = text.find(':');
    const size_t dollar = text.find('$');
    const size_t second = text.find(':', dollar == std::string_view::npos ? text.size() : dollar);
    if (colon == std::string_view::npos || dollar == std::string_view::npos || second == std::string_view::npos ||
        colon > dollar) {
        return std::nullopt;
    }
    ScramVerifier verifier;
    const auto [end, error] = std::from_chars(text.data(), text.data() + colon, verifier.iterations);
    if (error != std::errc() || end != text.data() + colon || verifier.iterations == 0) return std::nullopt;
    auto salt = base64_decode(text.substr(colon + 1, dollar - colon - 1));
    auto stored = base64_decode(text.substr(dollar + 1, second - dollar - 1));
    auto server = base64_decode(text.substr(second + 1));
    if (!salt || salt->empty() || !stored || stored->size() != kKeyBytes || !server || server->size() != kKeyBytes) {
        return std::nullopt;
    }
    verifier.salt = std::move(*salt);
    verifier.stored_key = std::move(*stored);
    verifier.server_key = std::move(*server);
    return verifier;
}

ScramVerifier mock_scram_verifier(std::string_view secret, std::string_view user_name, uint32_t iterations) {
    ScramVerifier verifier;
    verifier.iterations = iterations;
    verifier.salt = hmac_sha256(secret, user_name).substr(0, kSaltBytes);
    verifier.stored_key = random_bytes(kKeyBytes);  // no ClientKey hashes to it
    verifier.server_key = random_bytes(kKeyBytes);
    return verifier;
}

std::string make_scram_nonce() { return base64_encode(random_bytes(18)); }

ScramExchange::ScramExchange(ScramVerifier verifier, std::string server_nonce)
    : verifier_(std::move(verifier)), nonce_(std::move(server_nonce)) {}

Result<std::string> ScramExchange::first(std::string_view client_first) {
    if (client_first.empty()) return malformed("The message is empty.");
    switch (client_first[0]) {
        case 'n':  // the client knows no channel binding
        case 'y':  // it does, and sees that this server offers none
            break;
        case 'p':
            return protocol_violation("client requires SCRAM channel binding, but it is not supported");
        default:
            return malformed("Unexpected channel-binding flag.");
    }
    if (client_first.size() < 3 || client_first[1] != ',') return malformed("Comma expected after the flag.");
    if (client_first[2] == 'a') {
        return Status(Code::unimplemented, "client uses authorization identity, but it is not supported");
    }
    if (client_first[2] != ',') return malformed("Unexpected attribute in client-first-message.");
    gs2_header_ = std::string(client_first.substr(0, 3));
    const std::string_view bare = client_first.substr(3);
    if (bare.starts_with("m=")) return Status(Code::unimplemented, "client requires an unsupported SCRAM extension");
    std::string_view rest = bare;
    // The name is that of the startup packet; what stands here is ignored, as PostgreSQL does.
    if (!take_attribute(rest, 'n')) return malformed("Attribute \"n\" expected.");
    const auto client_nonce = take_attribute(rest, 'r');
    if (!client_nonce || !is_nonce(*client_nonce)) return malformed("A printable nonce expected.");
    nonce_ = std::string(*client_nonce) + nonce_;
    std::string server_first =
        "r=" + nonce_ + ",s=" + base64_encode(verifier_.salt) + ",i=" + std::to_string(verifier_.iterations);
    auth_message_ = std::string(bare) + "," + server_first;
    return server_first;
}

Result<std::string> ScramExchange::final(std::string_view client_final) {
    const size_t proof_at = client_final.rfind(",p=");
    if (proof_at == std::string_view::npos) return malformed("Attribute \"p\" expected.");
    const std::string_view without_proof = client_final.substr(0, proof_at);
    const auto proof = base64_decode(client_final.substr(proof_at + 3));
    if (!proof || proof->size() != kKeyBytes) return malformed("Invalid client proof.");
    std::string_view rest = without_proof;
    const auto binding = take_attribute(rest, 'c');
    if (!binding || *binding != base64_encode(gs2_header_)) {
        return protocol_violation("unexpected SCRAM channel-binding attribute in client-final-message");
    }
    const auto nonce = take_attribute(rest, 'r');
    if (!nonce || *nonce != nonce_)
        return protocol_violation("invalid SCRAM response").with_detail("Nonce does not match.");

    const std::string auth_message = auth_message_ + "," + std::string(without_proof);
    std::string client_key = hmac_sha256(verifier_.stored_key, auth_message);  // ClientSignature so far
    for (size_t i = 0; i < kKeyBytes; i++) client_key[i] = static_cast<char>(client_key[i] ^ (*proof)[i]);
    const std::string stored_key = sha256(client_key);
    if (CRYPTO_memcmp(stored_key.data(), verifier_.stored_key.data(), kKeyBytes) != 0) {
        return Status(Code::unauthenticated, "wrong password");
    }
    return "v=" + base64_encode(hmac_sha256(verifier_.server_key, auth_message));
}

}  // namespace roost::pg
