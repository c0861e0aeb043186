"""A connection to PostgreSQL by libpq, which every server package brings, through ctypes."""
import ctypes
import ctypes.util

TUPLES_OK = 2
FATAL_ERROR = 7
SQLSTATE = ord("C")


class ServerError(Exception):
    def __init__(self, sqlstate, message):
        super().__init__(message)
        self.sqlstate = sqlstate


def load():
    libpq = ctypes.CDLL(ctypes.util.find_library("pq") or "libpq.so.5")
    for name, result, arguments in (
            ("PQconnectdb", ctypes.c_void_p, (ctypes.c_char_p,)),
            ("PQstatus", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQfinish", None, (ctypes.c_void_p,)),
            ("PQserverVersion", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQerrorMessage", ctypes.c_char_p, (ctypes.c_void_p,)),
            ("PQsetNoticeProcessor", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
            ("PQexec", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)),
            ("PQresultStatus", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQresultErrorField", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int)),
            ("PQresultErrorMessage", ctypes.c_char_p, (ctypes.c_void_p,)),
            ("PQclear", None, (ctypes.c_void_p,)),
            ("PQntuples", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQnfields", ctypes.c_int, (ctypes.c_void_p,)),
            ("PQgetvalue", ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_int, ctypes.c_int)),
            ("PQgetisnull", ctypes.c_int, (ctypes.c_void_p, ctypes.c_int, ctypes.c_int))):
        function = getattr(libpq, name)
        function.restype, function.argtypes = result, arguments
    return libpq


class Connection:
    """Takes what the connection string does not say from PGHOST and the like."""

    def __init__(self, parameters=""):
        self.libpq = load()
        self.handle = self.libpq.PQconnectdb(parameters.encode())
        if self.libpq.PQstatus(self.handle) != 0:
            raise ServerError("08001", self.libpq.PQerrorMessage(self.handle).decode())
        self.ignore = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)(lambda _context, _message: None)
        self.libpq.PQsetNoticeProcessor(self.handle, self.ignore, None)

    def version(self):
        return self.libpq.PQserverVersion(self.handle) // 10000

    def close(self):
        self.libpq.PQfinish(self.handle)

    def run(self, statement):
        """The rows of the last statement as tuples of text, None for NULL."""
        result = self.libpq.PQexec(self.handle, statement.encode())
        try:
            if result is None or self.libpq.PQresultStatus(result) == FATAL_ERROR:
                state = result and self.libpq.PQresultErrorField(result, SQLSTATE)
                raise ServerError(state.decode() if state else "08006",
                                  self.libpq.PQerrorMessage(self.handle).decode(errors="replace").strip())
            columns = range(self.libpq.PQnfields(result))
            return [tuple(None if self.libpq.PQgetisnull(result, row, column) else
                          self.libpq.PQgetvalue(result, row, column) for column in columns)
                    for row in range(self.libpq.PQntuples(result))]
        finally:
            self.libpq.PQclear(result)
