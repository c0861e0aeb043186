/*
 * The driver JDBC: see check_drivers.py.
 *
 * Strings are sent as varchar, or without a type under stringtype=unspecified;
 * other values with the type of the method that sets them.
 */
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.Properties;
import java.util.UUID;
import javax.net.SocketFactory;
import org.postgresql.util.PGobject;

public class JdbcDriver {
	/* JDBC speaks TCP, the test server does not. */
	public static class UnixSockets extends SocketFactory {
		@Override
		public Socket createSocket() {
			return new UnixSocket();
		}

		@Override
		public Socket createSocket(String host, int port) {
			throw new UnsupportedOperationException();
		}

		@Override
		public Socket createSocket(String host, int port,
				java.net.InetAddress local, int localPort) {
			throw new UnsupportedOperationException();
		}

		@Override
		public Socket createSocket(java.net.InetAddress host, int port) {
			throw new UnsupportedOperationException();
		}

		@Override
		public Socket createSocket(java.net.InetAddress host, int port,
				java.net.InetAddress local, int localPort) {
			throw new UnsupportedOperationException();
		}
	}

	static class UnixSocket extends Socket {
		private SocketChannel channel;

		@Override
		public void connect(SocketAddress address, int timeout)
				throws IOException {
			String port = System.getenv().getOrDefault("PGPORT", "5432");

			channel = SocketChannel.open(StandardProtocolFamily.UNIX);
			channel.connect(UnixDomainSocketAddress.of(
					Path.of(System.getenv("PGHOST"), ".s.PGSQL." + port)));
		}

		@Override
		public InputStream getInputStream() {
			return Channels.newInputStream(channel);
		}

		@Override
		public OutputStream getOutputStream() {
			return Channels.newOutputStream(channel);
		}

		@Override
		public void close() throws IOException {
			channel.close();
		}

		@Override
		public boolean isClosed() {
			return channel != null && !channel.isOpen();
		}

		/* Options of TCP, which the driver sets */
		@Override
		public void setTcpNoDelay(boolean on) {
		}

		@Override
		public void setKeepAlive(boolean on) {
		}

		@Override
		public void setSoTimeout(int timeout) {
		}

		@Override
		public int getSoTimeout() {
			return 0;
		}
	}

	static Connection connect(String stringType) throws Exception {
		Properties properties = new Properties();

		properties.setProperty("user", System.getenv("PGUSER"));
		properties.setProperty("socketFactory", UnixSockets.class.getName());
		properties.setProperty("sslmode", "disable");
		properties.setProperty("gssEncMode", "disable");
		properties.setProperty("stringtype", stringType);
		/* prepared on the server, and binary where it can, from the first */
		properties.setProperty("prepareThreshold", "-1");
		return DriverManager.getConnection("jdbc:postgresql://localhost/"
				+ System.getenv("PGDATABASE"), properties);
	}

	interface Setter {
		void set(PreparedStatement statement) throws Exception;
	}

	/* What type the server sees; 42P18 is indeterminate_datatype. */
	static void sends(PrintStream out, Connection connection, String name,
			Setter setter) throws Exception {
		String sent;

		try (PreparedStatement statement =
				connection.prepareStatement("SELECT pg_typeof(?)::text")) {
			setter.set(statement);
			try (ResultSet result = statement.executeQuery()) {
				result.next();
				sent = result.getString(1);
			}
		} catch (SQLException error) {
			if (!error.getSQLState().equals("42P18"))
				throw error;
			sent = "none";
		}
		out.println("sends " + name + "\t" + sent);
	}

	static void sendAll(PrintStream out, Connection c) throws Exception {
		LocalDateTime noon = LocalDateTime.of(2026, 1, 31, 12, 0);

		sends(out, c, "a string", s -> s.setString(1, "red"));
		sends(out, c, "5", s -> s.setInt(1, 5));
		sends(out, c, "5000000000", s -> s.setLong(1, 5000000000L));
		sends(out, c, "1.5", s -> s.setDouble(1, 1.5));
		sends(out, c, "a decimal",
				s -> s.setBigDecimal(1, new BigDecimal("1.50")));
		sends(out, c, "true", s -> s.setBoolean(1, true));
		sends(out, c, "bytes", s -> s.setBytes(1, new byte[] {1, 2}));
		sends(out, c, "a UUID", s -> s.setObject(1, new UUID(0, 5)));
		sends(out, c, "a date", s -> s.setObject(1, noon.toLocalDate()));
		sends(out, c, "a time stamp", s -> s.setObject(1, noon));
		sends(out, c, "a time stamp with zone",
				s -> s.setObject(1, noon.atOffset(ZoneOffset.UTC)));
		sends(out, c, "strings", s -> s.setArray(1,
				c.createArrayOf("text", new String[] {"red", "blue"})));
		sends(out, c, "integers", s -> s.setArray(1,
				c.createArrayOf("bigint", new Long[] {5L, 6L})));
		sends(out, c, "no elements", s -> s.setArray(1,
				c.createArrayOf("bigint", new Long[] {})));
		sends(out, c, "NULL", s -> s.setNull(1, Types.BIGINT));
		sends(out, c, "NULL without a type", s -> s.setNull(1, Types.NULL));
		sends(out, c, "setDate",
				s -> s.setDate(1, Date.valueOf(noon.toLocalDate())));
		sends(out, c, "setTimestamp",
				s -> s.setTimestamp(1, Timestamp.valueOf(noon)));
	}

	public static void main(String[] arguments) throws Exception {
		PrintStream out = new PrintStream(System.out, true, "UTF-8");

		try (Connection untyped = connect("unspecified");
				Connection typed = connect("varchar")) {
			for (String line : Files.readAllLines(Path.of(arguments[0]))) {
				String[] test = line.split("\\|", 4);
				Connection connection =
						test[1].equals("none") || test[1].equals("list") ?
						untyped : typed;

				try (PreparedStatement statement = connection.prepareStatement(
						test[3].replace("$1", "?"))) {
					if (test[1].equals("bigint"))
						statement.setLong(1, Long.parseLong(test[2]));
					else
						statement.setString(1, test[2]);
					try (ResultSet result = statement.executeQuery()) {
						result.next();
						out.println(test[0] + "\t"
								+ (result.getBoolean(1) ? "t" : "f"));
					}
				}
			}

			sendAll(out, typed);

			try (PreparedStatement statement = typed.prepareStatement(
					"SELECT f, f::bytea FROM driver_text");
					ResultSet result = statement.executeQuery()) {
				result.next();
				Files.write(Path.of("text"),
						result.getString(1).getBytes(StandardCharsets.UTF_8));
				Files.write(Path.of("binary"), result.getBytes(2));
			}

			try (PreparedStatement statement = typed.prepareStatement(
					"INSERT INTO driver_back VALUES ('text', ?)")) {
				PGobject filter = new PGobject();

				filter.setType("bloom");
				filter.setValue(Files.readString(Path.of("back.text")));
				statement.setObject(1, filter);
				statement.executeUpdate();
			}
			try (PreparedStatement statement = typed.prepareStatement(
					"INSERT INTO driver_back VALUES ('binary', ?::bloom)")) {
				statement.setBytes(1, Files.readAllBytes(Path.of("back.binary")));
				statement.executeUpdate();
			}
		}
	}
}
