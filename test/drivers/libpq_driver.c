/*
 * The driver libpq: see check_drivers.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#define INT8OID	20
#define TEXTOID	25

static PGconn *conn;

static void
fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, PQerrorMessage(conn));
	exit(1);
}

static PGresult *
query(const char *sql, int nparams, const Oid *types,
	  const char *const *values, const int *lengths, const int *formats,
	  int result_format)
{
	PGresult   *result = PQexecParams(conn, sql, nparams, types, values,
									  lengths, formats, result_format);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		fail(sql);
	return result;
}

static char *
read_file(const char *name, int *length)
{
	FILE	   *file = fopen(name, "rb");
	char	   *content = malloc(1 << 20);

	if (file == NULL || content == NULL)
		fail(name);
	*length = (int) fread(content, 1, (1 << 20) - 1, file);
	content[*length] = '\0';
	fclose(file);
	return content;
}

static void
write_file(const char *name, const char *content, int length)
{
	FILE	   *file = fopen(name, "wb");

	if (file == NULL ||
		fwrite(content, 1, (size_t) length, file) != (size_t) length ||
		fclose(file) != 0)
		fail(name);
}

/*
 * One line of the cases.  A bigint is sent in binary, as a program would that
 * has it as an integer.
 */
static void
run_case(char *line)
{
	char	   *name = strtok(line, "|");
	char	   *type_name = strtok(NULL, "|");
	char	   *value = strtok(NULL, "|");
	char	   *sql = strtok(NULL, "\n");
	unsigned char bytes[8];
	const char *values[1];
	int			lengths[1] = {sizeof(bytes)};
	int			formats[1] = {0};
	Oid			types[1] = {0};
	PGresult   *result;

	if (sql == NULL)
		fail("cases");
	values[0] = value;
	if (strcmp(type_name, "text") == 0)
		types[0] = TEXTOID;
	else if (strcmp(type_name, "bigint") == 0)
	{
		unsigned long long number = strtoull(value, NULL, 10);
		int			i;

		for (i = 7; i >= 0; i--, number >>= 8)
			bytes[i] = number & 0xFF;
		types[0] = INT8OID;
		values[0] = (const char *) bytes;
		formats[0] = 1;
	}
	result = query(sql, 1, types, values, lengths, formats, 0);
	printf("%s\t%s\n", name, PQgetvalue(result, 0, 0));
	PQclear(result);
}

int
main(int argc, char **argv)
{
	static const char *const names[] = {"text", "binary"};
	static const char *const files[] = {"back.text", "back.binary"};
	char		line[1024];
	FILE	   *cases;
	int			format;

	conn = PQconnectdb("client_encoding=UTF8");
	if (PQstatus(conn) != CONNECTION_OK)
		fail("connection");

	cases = argc == 2 ? fopen(argv[1], "r") : NULL;
	if (cases == NULL)
		fail("cases");
	while (fgets(line, sizeof(line), cases) != NULL)
		run_case(line);
	fclose(cases);

	for (format = 0; format <= 1; format++)
	{
		PGresult   *result = query("SELECT f FROM driver_text",
								   0, NULL, NULL, NULL, NULL, format);
		const char *values[2];
		int			lengths[2] = {0, 0};
		int			formats[2] = {0, 0};
		char	   *back = read_file(files[format], &lengths[1]);

		write_file(names[format], PQgetvalue(result, 0, 0),
				   PQgetlength(result, 0, 0));
		PQclear(result);

		values[0] = names[format];
		values[1] = back;
		formats[1] = format;
		PQclear(query("INSERT INTO driver_back VALUES ($1, $2)",
					  2, NULL, values, lengths, formats, 0));
		free(back);
	}
	PQfinish(conn);
	return 0;
}
