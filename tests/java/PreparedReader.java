// Reads the tables named by number, each through a prepared statement that is kept: t0 is `java PreparedReader.java 0`. Prints
// "rows,sum" a line.
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.HashMap;
import java.util.Map;

public class PreparedReader {
    public static void main(String[] tables) throws Exception {
        Map<String, String> env = System.getenv();
        String url = "jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" + env.get("PGDATABASE")
            + "?prepareThreshold=1";
        try (Connection connection = DriverManager.getConnection(url, env.get("PGUSER"), env.get("PGPASSWORD"))) {
            Map<String, PreparedStatement> statements = new HashMap<>();
            for (String table : tables) {
                PreparedStatement statement = statements.get(table);
                if (statement == null) {
                    statement = connection.prepareStatement(
                        "SELECT count(*), sum(i)::BIGINT, max(s) FROM t" + table + " WHERE i >= ?");
                    statements.put(table, statement);
                }
                statement.setLong(1, 0);
                try (ResultSet result = statement.executeQuery()) {
                    result.next();
                    System.out.println(result.getLong(1) + "," + result.getLong(2));
                }
            }
        }
    }
}
