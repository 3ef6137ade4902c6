// pgjdbc against a pool, as a Java program uses it. Runs the checks it is told the names of, or all, and prints for each
// "PASS name" or "FAIL name: why". The address comes in the PG* variables, the password among them.
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

public class Pgjdbc {
    interface Check { void run() throws Exception; }

    static final String ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b";
    static final Map<String, Check> CHECKS = new LinkedHashMap<>();

    static Connection open(String... properties) throws SQLException {
        return open(System.getenv("PGPASSWORD"), properties);
    }

    static Connection open(String password, String[] properties) throws SQLException {
        Properties all = new Properties();
        all.setProperty("user", System.getenv("PGUSER"));
        all.setProperty("password", password);
        for (int i = 0; i < properties.length; i += 2) all.setProperty(properties[i], properties[i + 1]);
        return DriverManager.getConnection(
            "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"), all);
    }

    static void same(Object got, Object want, String what) {
        if (!Objects.equals(got, want)) throw new AssertionError(what + ": got " + got + ", want " + want);
    }

    static ResultSet one(Statement statement, String sql) throws SQLException {
        ResultSet rows = statement.executeQuery(sql);
        if (!rows.next()) throw new AssertionError("no row");
        return rows;
    }

    static ResultSet one(PreparedStatement statement) throws SQLException {
        ResultSet rows = statement.executeQuery();
        if (!rows.next()) throw new AssertionError("no row");
        return rows;
    }

    // The SQLSTATE that `check` fails with, and what the connection says afterwards.
    static void fails(Connection connection, String sqlstate, Check check) throws Exception {
        try {
            check.run();
        } catch (SQLException error) {
            same(error.getSQLState(), sqlstate, "SQLSTATE of «" + error.getMessage() + "»");
            if (!connection.getAutoCommit()) connection.rollback();
            try (Statement statement = connection.createStatement()) {
                same(one(statement, "SELECT 7").getInt(1), 7, "the connection after " + sqlstate);
            }
            return;
        }
        throw new AssertionError("no error, want " + sqlstate);
    }

    // --- connecting

    static void wrongPassword() throws Exception {
        try (Connection connection = open("certainly wrong", new String[0])) {
            throw new AssertionError("connected with a wrong password");
        } catch (SQLException error) {
            same(error.getSQLState(), "28P01", "SQLSTATE");
        }
    }

    static void productAndParameters() throws Exception {
        try (Connection connection = open("ApplicationName", "a Java program")) {
            same(connection.getMetaData().getDatabaseProductName(), "PostgreSQL", "product");
            same(connection.getMetaData().getDatabaseMajorVersion() >= 12, true, "a modern version");
            same(connection.isValid(5), true, "valid");
            same(one(connection.createStatement(), "SHOW application_name").getString(1), "a Java program", "application_name");
        }
    }

    // --- values

    static void simpleQuery() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            ResultSet rows = statement.executeQuery("SELECT range AS n, 'v' || range AS s FROM range(3) ORDER BY 1");
            ResultSetMetaData meta = rows.getMetaData();
            same(meta.getColumnCount() + meta.getColumnLabel(1) + meta.getColumnTypeName(1) + meta.getColumnLabel(2), "2nint8s", "columns");
            for (int i = 0; i < 3; i++) {
                same(rows.next(), true, "row " + i);
                same(rows.getLong("n") + rows.getString("s"), i + "v" + i, "row " + i);
            }
            same(rows.next(), false, "the end");
            same(statement.execute("SELECT 1; SELECT 'two'"), true, "a result of the first");
            same(statement.getMoreResults(), true, "a result of the second");
            statement.getResultSet().next();
            same(statement.getResultSet().getString(1), "two", "the second");
        }
    }

    static final byte[] BYTES = {0, 1, -1, 127, -128, 92, 39};
    static final Timestamp STAMP = Timestamp.valueOf("2020-02-03 04:05:06.789012");
    // No longer: in the simple protocol pgjdbc writes ('…'::numeric), which is DECIMAL(18,3) to DuckDB.
    static final BigDecimal MONEY = new BigDecimal("-123456789012345.67");
    static final BigDecimal LARGE = new BigDecimal("-123456789012345678901234567890.12345678");

    // `bytes` may be null: in the simple protocol this pgjdbc sends "?" for bytea.
    static void setAll(PreparedStatement statement, int number, byte[] bytes) throws SQLException {
        statement.setInt(1, number);
        statement.setLong(2, 9_007_199_254_740_993L + number);
        statement.setDouble(3, 0.1 + number);
        statement.setBigDecimal(4, MONEY);
        statement.setString(5, "it's é \\ 日本 😀 " + number);
        statement.setDate(6, Date.valueOf("1815-12-10"));
        statement.setTimestamp(7, STAMP);
        statement.setBoolean(8, number % 2 == 0);
        statement.setBytes(9, bytes);
        statement.setNull(10, Types.INTEGER);
        statement.setFloat(11, 1.5f);
        statement.setShort(12, (short) -7);
        statement.setObject(13, UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"));
        statement.setTime(14, Time.valueOf("10:20:30"));
        statement.setNull(15, Types.VARCHAR);
    }

    static void checkAll(ResultSet row, int number, byte[] bytes) throws SQLException {
        same(row.getInt(1), number, "int");
        same(row.getLong(2), 9_007_199_254_740_993L + number, "long");
        same(row.getDouble(3), 0.1 + number, "double");
        same(row.getBigDecimal(4), MONEY, "BigDecimal");
        same(row.getString(5), "it's é \\ 日本 😀 " + number, "String");
        same(row.getDate(6), Date.valueOf("1815-12-10"), "Date");
        same(row.getTimestamp(7), STAMP, "Timestamp");
        same(row.getBoolean(8), number % 2 == 0, "boolean");
        same(Arrays.toString(row.getBytes(9)), Arrays.toString(bytes), "bytea");
        same(row.getInt(10) + "" + row.wasNull(), "0true", "NULL");
        same(row.getFloat(11), 1.5f, "float");
        same(row.getShort(12), (short) -7, "short");
        same(row.getObject(13), UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), "UUID");
        same(row.getTime(14), Time.valueOf("10:20:30"), "Time");
        same(row.getString(15), null, "NULL text");
    }

    static final String ALL = "SELECT ?::INTEGER, ?::BIGINT, ?::DOUBLE, ?::DECIMAL(19,2), ?::VARCHAR, ?::DATE, ?::TIMESTAMP, ?::BOOLEAN,"
        + " ?::BLOB, ?::INTEGER, ?::REAL, ?::SMALLINT, ?::UUID, ?::TIME, ?::VARCHAR";

    // Without a name and text at first, a named statement and binary values from prepareThreshold on.
    static void roundTrip(String... properties) throws Exception {
        byte[] bytes = Arrays.asList(properties).contains("simple") ? null : BYTES;
        try (Connection connection = open(properties); PreparedStatement statement = connection.prepareStatement(ALL)) {
            for (int i = 0; i < 8; i++) {
                setAll(statement, i, bytes);
                checkAll(one(statement), i, bytes);
            }
        }
    }

    static void roundTripThroughATable() throws Exception {
        try (Connection connection = open("prepareThreshold", "1"); Statement plain = connection.createStatement()) {
            plain.execute("CREATE TABLE jdbc_all (i INTEGER, l BIGINT, d DOUBLE, m DECIMAL(19,2), s VARCHAR, day DATE, stamp TIMESTAMP,"
                + " b BOOLEAN, bytes BLOB, nothing INTEGER, f REAL, h SMALLINT, u UUID, t TIME, nothing_too VARCHAR)");
            PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_all VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
            for (int i = 0; i < 3; i++) {
                setAll(insert, i, BYTES);
                same(insert.executeUpdate(), 1, "rows inserted");
            }
            PreparedStatement select = connection.prepareStatement("SELECT * FROM jdbc_all WHERE i = ? AND l > ? AND day <= ? AND stamp = ? AND m < ?");
            for (int i = 0; i < 3; i++) {
                select.setInt(1, i);
                select.setLong(2, 5);
                select.setDate(3, Date.valueOf("1815-12-10"));
                select.setTimestamp(4, STAMP);
                select.setBigDecimal(5, BigDecimal.ZERO);
                checkAll(one(select), i, BYTES);
            }
            same(plain.executeUpdate("UPDATE jdbc_all SET s = 'z' WHERE i > 0"), 2, "rows updated");
            same(plain.executeUpdate("DELETE FROM jdbc_all"), 3, "rows deleted");
        }
    }

    static void javaTime() throws Exception {
        try (Connection connection = open("prepareThreshold", "1");
             PreparedStatement statement = connection.prepareStatement("SELECT ?::DATE, ?::TIMESTAMP, ?::TIME, ?::TIMESTAMPTZ")) {
            LocalDateTime at = LocalDateTime.of(1969, 12, 31, 23, 59, 59, 123_456_000);
            for (int i = 0; i < 4; i++) {
                statement.setObject(1, LocalDate.of(2024, 2, 29));
                statement.setObject(2, at);
                statement.setObject(3, LocalTime.of(1, 2, 3, 4_000));
                statement.setObject(4, OffsetDateTime.of(at, ZoneOffset.ofHours(5)));
                ResultSet row = one(statement);
                same(row.getObject(1, LocalDate.class), LocalDate.of(2024, 2, 29), "LocalDate");
                same(row.getObject(2, LocalDateTime.class), at, "LocalDateTime");
                same(row.getObject(3, LocalTime.class), LocalTime.of(1, 2, 3, 4_000), "LocalTime");
                same(row.getObject(4, OffsetDateTime.class).toInstant(), at.toInstant(ZoneOffset.ofHours(5)), "OffsetDateTime");
            }
        }
    }

    static void largeDecimals() throws Exception {
        try (Connection connection = open("prepareThreshold", "1");
             PreparedStatement statement = connection.prepareStatement("SELECT ?::DECIMAL(38,8), ?")) {
            for (int i = 0; i < 4; i++) {
                statement.setBigDecimal(1, LARGE);
                statement.setBigDecimal(2, LARGE);
                ResultSet row = one(statement);
                same(row.getBigDecimal(1), LARGE, "with a type");
                same(row.getBigDecimal(2), LARGE, "without a type");
            }
        }
    }

    static void arrays() throws Exception {
        try (Connection connection = open("prepareThreshold", "1");
             PreparedStatement statement = connection.prepareStatement("SELECT ?::INTEGER[], ?::VARCHAR[]")) {
            Object[] numbers = {1, null, -3}, words = {"a", "b c", "d\"e", null, ""};
            for (int i = 0; i < 4; i++) {
                statement.setArray(1, connection.createArrayOf("int4", numbers));
                statement.setArray(2, connection.createArrayOf("text", words));
                ResultSet row = one(statement);
                same(Arrays.toString((Object[]) row.getArray(1).getArray()), Arrays.toString(numbers), "numbers");
                same(Arrays.toString((Object[]) row.getArray(2).getArray()), Arrays.toString(words), "words");
            }
        }
    }

    static void describe() throws Exception {
        try (Connection connection = open();
             PreparedStatement statement = connection.prepareStatement("SELECT range AS n, 1.5::DECIMAL(9,2) AS m FROM range(10) WHERE range > ?")) {
            same(statement.getParameterMetaData().getParameterCount(), 1, "parameters");
            same(statement.getParameterMetaData().getParameterTypeName(1), "int8", "its type");
            ResultSetMetaData meta = statement.getMetaData();
            same(meta.getColumnLabel(1) + meta.getColumnTypeName(1) + meta.getPrecision(2) + meta.getScale(2), "nint892", "columns");
        }
    }

    // --- many rows

    static void fetchSize(int fetch) throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.setFetchSize(fetch);
            ResultSet rows = statement.executeQuery("SELECT range AS n, 'row ' || range AS s FROM range(100000) ORDER BY n");
            int seen = 0;
            while (rows.next()) {
                if (rows.getInt(1) != seen || !rows.getString(2).equals("row " + seen)) throw new AssertionError("row " + seen + ": " + rows.getInt(1));
                seen++;
                if (seen == 50_000) {
                    // Another statement while this one is suspended.
                    try (Statement other = connection.createStatement()) {
                        same(one(other, "SELECT 5").getInt(1), 5, "a statement in between");
                    }
                }
            }
            same(seen, 100_000, "rows");
            connection.commit();
            same(one(statement, "SELECT 1").getInt(1), 1, "afterwards");
            connection.commit();
        }
    }

    static void maxRows() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            statement.setMaxRows(10);
            ResultSet rows = statement.executeQuery("SELECT range FROM range(100000)");
            int seen = 0;
            while (rows.next()) seen++;
            same(seen, 10, "rows");
        }
    }

    static void leftEarly() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.setFetchSize(100);
            for (int i = 0; i < 5; i++) {
                ResultSet rows = statement.executeQuery("SELECT range FROM range(100000000)");
                rows.next();
                rows.close();
                connection.commit();
            }
            same(one(statement, "SELECT 1").getInt(1), 1, "afterwards");
        }
    }

    // --- errors

    static void errors() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            fails(connection, "42P01", () -> statement.executeQuery("SELECT * FROM jdbc_nowhere"));
            fails(connection, "42601", () -> statement.executeQuery("SELEC 1"));
            fails(connection, "42703", () -> statement.executeQuery("SELECT nothing FROM range(1)"));
            fails(connection, "22P02", () -> statement.executeQuery("SELECT s::INTEGER FROM (SELECT 'x' || range AS s FROM range(2))"));
            fails(connection, "42501", () -> statement.executeQuery("SELECT * FROM read_csv('/etc/passwd')"));
            PreparedStatement prepared = connection.prepareStatement("SELECT ?::INTEGER");
            for (int i = 0; i < 7; i++) {  // also as a named statement
                prepared.setString(1, "x");
                fails(connection, "22P02", prepared::executeQuery);
                prepared.setString(1, "42");
                same(one(prepared).getInt(1), 42, "the statement after its error");
            }
        }
    }

    static void errorsInATransaction() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE jdbc_kept (n INTEGER)");
            connection.setAutoCommit(false);
            statement.executeUpdate("INSERT INTO jdbc_kept VALUES (1)");
            connection.commit();
            statement.executeUpdate("INSERT INTO jdbc_kept VALUES (2)");
            try {
                statement.executeQuery("SELECT * FROM jdbc_nowhere");
                throw new AssertionError("no error");
            } catch (SQLException error) {
                same(error.getSQLState(), "42P01", "SQLSTATE");
            }
            fails(connection, "25P02", () -> statement.executeQuery("SELECT 1"));
            same(one(statement, "SELECT count(*) FROM jdbc_kept").getInt(1), 1, "rows after the rollback");
            connection.rollback();
        }
    }

    static void errorsInTheMiddle() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.setFetchSize(1000);
            fails(connection, "22P02", () -> {
                ResultSet rows = statement.executeQuery("SELECT CASE WHEN range < 300000 THEN '1' ELSE 'x' END::INTEGER FROM range(400000)");
                while (rows.next()) rows.getInt(1);
            });
        }
    }

    // --- cancel

    static void cancel() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            // A cancel that comes before the statement does nothing, so it is repeated until one hits.
            Thread canceller = new Thread(() -> {
                try {
                    while (!Thread.interrupted()) {
                        statement.cancel();
                        TimeUnit.MILLISECONDS.sleep(50);
                    }
                } catch (InterruptedException | SQLException end) {
                    // told to stop
                }
            });
            canceller.start();
            long began = System.nanoTime();
            try {
                statement.executeQuery(ENDLESS);
                throw new AssertionError("it ended");
            } catch (SQLException error) {
                same(error.getSQLState(), "57014", "SQLSTATE");
            } finally {
                canceller.interrupt();
                canceller.join();
            }
            long took_ms = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
            same(took_ms < 5000, true, "cancelled after " + took_ms + " ms");
            same(one(statement, "SELECT 7").getInt(1), 7, "the connection afterwards");
        }
    }

    static void queryTimeout() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            fails(connection, "57014", () -> statement.executeQuery(ENDLESS));
            statement.setQueryTimeout(0);
            PreparedStatement prepared = connection.prepareStatement("SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range > ?");
            prepared.setQueryTimeout(1);
            prepared.setLong(1, 5);
            fails(connection, "57014", prepared::executeQuery);
        }
    }

    // --- batches

    static void batch(String... properties) throws Exception {
        try (Connection connection = open(properties); Statement statement = connection.createStatement()) {
            statement.execute("CREATE OR REPLACE TABLE jdbc_batch (n INTEGER, s VARCHAR, m DECIMAL(9,2))");
            connection.setAutoCommit(false);
            PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_batch VALUES (?, ?, ?)");
            for (int i = 0; i < 500; i++) {
                insert.setInt(1, i);
                insert.setString(2, i % 7 == 0 ? null : "v" + i);
                insert.setBigDecimal(3, BigDecimal.valueOf(i, 2));
                insert.addBatch();
            }
            same(insert.executeBatch().length, 500, "results");
            connection.commit();
            ResultSet row = one(statement, "SELECT count(*), count(s), sum(n), sum(m) FROM jdbc_batch");
            same(row.getInt(1) + " " + row.getInt(2) + " " + row.getInt(3) + " " + row.getBigDecimal(4), "500 428 124750 1247.50", "the table");
            connection.commit();
        }
    }

    static void batchThatFails() throws Exception {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            statement.execute("CREATE OR REPLACE TABLE jdbc_batch_fails (n INTEGER)");
            connection.setAutoCommit(false);
            PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_batch_fails SELECT ?::VARCHAR::INTEGER");
            for (String value : new String[] {"1", "2", "x", "4"}) {
                insert.setString(1, value);
                insert.addBatch();
            }
            try {
                insert.executeBatch();
                throw new AssertionError("no error");
            } catch (BatchUpdateException error) {
                same(error.getSQLState(), "22P02", "SQLSTATE");
            }
            connection.rollback();
            same(one(statement, "SELECT count(*) FROM jdbc_batch_fails").getInt(1), 0, "rows");
            connection.commit();
        }
    }

    static void manyConnections() throws Exception {
        Connection[] connections = new Connection[16];
        try {
            for (int i = 0; i < connections.length; i++) connections[i] = open();
            for (int i = 0; i < connections.length; i++) same(one(connections[i].createStatement(), "SELECT " + i).getInt(1), i, "connection " + i);
        } finally {
            for (Connection connection : connections) if (connection != null) connection.close();
        }
    }

    static {
        CHECKS.put("wrong_password", Pgjdbc::wrongPassword);
        CHECKS.put("product_and_parameters", Pgjdbc::productAndParameters);
        CHECKS.put("simple_query", Pgjdbc::simpleQuery);
        CHECKS.put("prepared_text_then_binary", () -> roundTrip());
        CHECKS.put("prepared_binary_at_once", () -> roundTrip("prepareThreshold", "1"));
        CHECKS.put("prepared_binary_forced", () -> roundTrip("prepareThreshold", "-1"));
        CHECKS.put("prepared_text_only", () -> roundTrip("binaryTransfer", "false", "prepareThreshold", "1"));
        CHECKS.put("prepared_never_named", () -> roundTrip("prepareThreshold", "0"));
        CHECKS.put("prepared_simple_protocol", () -> roundTrip("preferQueryMode", "simple"));
        CHECKS.put("prepared_extended_for_prepared", () -> roundTrip("preferQueryMode", "extendedForPrepared"));
        CHECKS.put("prepared_cache_everything", () -> roundTrip("preferQueryMode", "extendedCacheEverything", "prepareThreshold", "1"));
        CHECKS.put("through_a_table", Pgjdbc::roundTripThroughATable);
        CHECKS.put("java_time", Pgjdbc::javaTime);
        CHECKS.put("large_decimals", Pgjdbc::largeDecimals);
        CHECKS.put("arrays", Pgjdbc::arrays);
        CHECKS.put("describe", Pgjdbc::describe);
        CHECKS.put("fetch_size_1000", () -> fetchSize(1000));
        CHECKS.put("fetch_size_1024", () -> fetchSize(1024));
        CHECKS.put("fetch_size_30000", () -> fetchSize(30_000));
        CHECKS.put("max_rows", Pgjdbc::maxRows);
        CHECKS.put("left_early", Pgjdbc::leftEarly);
        CHECKS.put("errors", Pgjdbc::errors);
        CHECKS.put("errors_in_a_transaction", Pgjdbc::errorsInATransaction);
        CHECKS.put("errors_in_the_middle", Pgjdbc::errorsInTheMiddle);
        CHECKS.put("cancel", Pgjdbc::cancel);
        CHECKS.put("query_timeout", Pgjdbc::queryTimeout);
        CHECKS.put("batch", () -> batch());
        CHECKS.put("batch_rewritten", () -> batch("reWriteBatchedInserts", "true"));
        CHECKS.put("batch_that_fails", Pgjdbc::batchThatFails);
        CHECKS.put("many_connections", Pgjdbc::manyConnections);
    }

    public static void main(String[] names) {
        for (String name : names.length > 0 ? Arrays.asList(names) : CHECKS.keySet()) {
            try {
                CHECKS.get(name).run();
                System.out.println("PASS " + name);
            } catch (Throwable failure) {
                StackTraceElement at = Arrays.stream(failure.getStackTrace()).filter(e -> e.getClassName().startsWith("Pgjdbc")
                    && !e.getMethodName().equals("same")).findFirst().orElse(null);
                System.out.println("FAIL " + name + ": " + String.valueOf(failure.getMessage()).replaceAll("\\s+", " ")
                    + (at == null ? "" : " at line " + at.getLineNumber()));
            }
        }
    }
}
