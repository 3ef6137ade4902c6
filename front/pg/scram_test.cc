#include "front/pg/scram.h"

#include <gtest/gtest.h>

#include "front/pg/test_client.h"

namespace roost::pg {
namespace {

// The example of RFC 7677, section 3: user "user", password "pencil".
constexpr std::string_view kClientFirst = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
constexpr std::string_view kServerNonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
constexpr std::string_view kServerFirst =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
constexpr std::string_view kClientFinal =
    "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
constexpr std::string_view kServerFinal = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

ScramVerifier rfc_verifier() {
    return *parse_scram_verifier(test::scram_verifier("pencil", *base64_decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096));
}

TEST(PgScram, TheExampleOfTheRfc) {
    ScramExchange exchange(rfc_verifier(), std::string(kServerNonce));
    EXPECT_EQ(*exchange.first(kClientFirst), kServerFirst);
    EXPECT_EQ(*exchange.final(kClientFinal), kServerFinal);
}

TEST(PgScram, AWrongProofIsAWrongPassword) {
    ScramExchange exchange(rfc_verifier(), std::string(kServerNonce));
    ASSERT_TRUE(exchange.first(kClientFirst).ok());
    std::string final(kClientFinal);
    final[final.size() - 10] = 'A';
    EXPECT_EQ(exchange.final(final).status().sqlstate(), "28P01");
}

TEST(PgScram, ChannelBindingFlags) {
    EXPECT_TRUE(ScramExchange(rfc_verifier(), "x").first("y,,n=,r=abc").ok());
    EXPECT_EQ(ScramExchange(rfc_verifier(), "x").first("p=tls-server-end-point,,n=,r=abc").status().sqlstate(),
              "08P01");
    // "y" in the first message must come back as "y": a man in the middle could have changed it.
    ScramExchange exchange(rfc_verifier(), std::string(kServerNonce));
    ASSERT_TRUE(exchange.first("y" + std::string(kClientFirst.substr(1))).ok());
    EXPECT_EQ(exchange.final(kClientFinal).status().sqlstate(), "08P01");
}

TEST(PgScram, MalformedFirstMessages) {
    for (const char *message : {"", "n", "n,", "n,,", "n,,r=abc", "n,,n=user", "n,,n=user,r=", "n,,n=user,r=a\tb",
                                "z,,n=,r=a", "n;,n=,r=a", "n,x,n=,r=a"}) {
        EXPECT_EQ(ScramExchange(rfc_verifier(), "x").first(message).status().sqlstate(), "08P01") << message;
    }
    EXPECT_EQ(ScramExchange(rfc_verifier(), "x").first("n,a=other,n=,r=a").status().sqlstate(), "0A000");
    EXPECT_EQ(ScramExchange(rfc_verifier(), "x").first("n,,m=ext,n=,r=a").status().sqlstate(), "0A000");
    EXPECT_FALSE(ScramExchange(rfc_verifier(), "x").first("n,,n=,r=" + std::string(2000, 'a')).ok());
}

TEST(PgScram, MalformedFinalMessages) {
    for (const char *message :
         {"", "c=biws", "c=biws,r=wrong,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
          "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=short",
          "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
          "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="}) {
        ScramExchange exchange(rfc_verifier(), std::string(kServerNonce));
        ASSERT_TRUE(exchange.first(kClientFirst).ok());
        EXPECT_EQ(exchange.final(message).status().sqlstate(), "08P01") << message;
    }
}

TEST(PgScram, VerifiersOfAnotherFormAreRefused) {
    EXPECT_TRUE(parse_scram_verifier(test::scram_verifier("a", "salt", 1000)).has_value());
    for (const char *text : {"", "md5abc", "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:c2FsdA==",
                             "SCRAM-SHA-256$0:c2FsdA==$AAAA:AAAA", "SCRAM-SHA-256$x:c2FsdA==$AAAA:AAAA"}) {
        EXPECT_FALSE(parse_scram_verifier(text).has_value()) << text;
    }
}

TEST(PgScram, TheMockSaltIsStableForAName) {
    EXPECT_EQ(mock_scram_verifier("secret", "ann").salt, mock_scram_verifier("secret", "ann").salt);
    EXPECT_NE(mock_scram_verifier("secret", "ann").salt, mock_scram_verifier("secret", "bob").salt);
    EXPECT_NE(mock_scram_verifier("secret", "ann").salt, mock_scram_verifier("other", "ann").salt);
    EXPECT_EQ(mock_scram_verifier("secret", "ann").salt.size(), 16U);
}

TEST(PgScram, Base64IsStrict) {
    EXPECT_EQ(base64_encode("a"), "YQ==");
    EXPECT_EQ(*base64_decode("YWI="), "ab");
    EXPECT_EQ(*base64_decode(""), "");
    for (const char *bad : {"YQ", "YQ=", "Y===", "YR==", " YQ=", "YQ==YQ==", "Y@=="}) {
        EXPECT_FALSE(base64_decode(bad).has_value()) << bad;
    }
}

}  // namespace
}  // namespace roost::pg
