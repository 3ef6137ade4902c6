#include "lake/postgres_dsn.h"

#include <gtest/gtest.h>

namespace roost {
namespace {

TEST(CompleteDsn, AddsBoundsAndKeepsWhatWasSaid) {
    const auto dsn = complete_dsn("host=db dbname='my lake' password='it\\'s' connect_timeout=9");
    ASSERT_TRUE(dsn.ok()) << dsn.status().to_string();
    EXPECT_NE(dsn->find("host='db'"), std::string::npos);
    EXPECT_NE(dsn->find("dbname='my lake'"), std::string::npos);
    EXPECT_NE(dsn->find("password='it\\'s'"), std::string::npos);
    EXPECT_NE(dsn->find("connect_timeout='9'"), std::string::npos);
    EXPECT_EQ(dsn->find("connect_timeout='5'"), std::string::npos);
    EXPECT_NE(dsn->find("tcp_user_timeout='20000'"), std::string::npos);
    EXPECT_NE(dsn->find("lock_timeout=10s"), std::string::npos);
}

TEST(CompleteDsn, TakesUrls) {
    const auto dsn = complete_dsn("postgresql://us%40er:pa%27ss@db:5433/lake?sslmode=require");
    ASSERT_TRUE(dsn.ok()) << dsn.status().to_string();
    EXPECT_NE(dsn->find("user='us@er'"), std::string::npos);
    EXPECT_NE(dsn->find("password='pa\\'ss'"), std::string::npos);
    EXPECT_NE(dsn->find("port='5433'"), std::string::npos);
    EXPECT_NE(dsn->find("sslmode='require'"), std::string::npos);
}

TEST(CompleteDsn, AnErrorDoesNotRepeatTheText) {
    for (const char *text : {"password=geheim nonsense", "postgresql://u:geheim@[broken/x", "geheim=1"}) {
        const Status status = complete_dsn(text).status();
        EXPECT_EQ(status.code(), Code::invalid_argument);
        EXPECT_EQ(status.to_string().find("geheim"), std::string::npos) << status.to_string();
    }
}

TEST(PlacesOf, NamesPortsFoldersAndSecrets) {
    const auto places = places_of("host=/run/pg,db port=5433, password=geheim sslrootcert=/etc/ca.pem");
    ASSERT_TRUE(places.ok()) << places.status().to_string();
    EXPECT_EQ(places->ports, (std::vector<uint16_t>{5433, 5432}));
    EXPECT_EQ(places->paths, (std::vector<std::string>{"/run/pg", "/etc/ca.pem"}));
    EXPECT_EQ(places->secrets, std::vector<std::string>{"geheim"});
    const auto plain = places_of("dbname=lake");
    ASSERT_TRUE(plain.ok());
    EXPECT_EQ(plain->ports, std::vector<uint16_t>{5432});
}

}  // namespace
}  // namespace roost
