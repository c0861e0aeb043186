/*-------------------------------------------------------------------------
 *
 * redis.c
 *	  A Bloom filter in Redis, made of SETBIT and GETBIT by a Lua script with
 *	  k = 14, as applications do without a module.
 *
 *	  redis KEYS ADDRESS...		"/path/of/socket" or "PORT" on 127.0.0.1
 *
 * Adds KEYS keys (the even numbers up to twice KEYS) and then obeys the lines
 * of standard input: ADDRESS-NUMBER OPERATION REPETITIONS, OPERATION being
 * check (one key a request), add, or pipelined-check (1,000 requests sent
 * before the first answer is read).  Writes a line with the wall time of one
 * in ns after each.  Half of the keys checked are in the filter.
 *
 *-------------------------------------------------------------------------
 */
#include <hiredis/hiredis.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH	1000
#define MAX_ADDRESSES	4

/* Positions by double hashing from SHA-1, which Redis has. */
#define SCRIPT(body, result) \
	"local h = redis.sha1hex(ARGV[1]) " \
	"local x = tonumber(string.sub(h, 1, 8), 16) " \
	"local y = tonumber(string.sub(h, 9, 16), 16) " \
	"local m = tonumber(ARGV[2]) " \
	"for i = 1, 14 do " body " end return " result

#define CHECK_SCRIPT \
	SCRIPT("if redis.call('GETBIT', KEYS[1], (x + i * y) % m) == 0 " \
		   "then return 0 end", "1")
#define ADD_SCRIPT \
	SCRIPT("redis.call('SETBIT', KEYS[1], (x + i * y) % m, 1)", "1")

static redisContext *connections[MAX_ADDRESSES];
static char check_sha[64];
static char add_sha[64];
static char bits[32];			/* of the filter */
static uint64_t nkeys;
static uint64_t state = 1;

static redisReply *
checked(redisReply *reply)
{
	if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
	{
		fprintf(stderr, "redis: %s\n",
				reply == NULL ? "no reply" : reply->str);
		exit(EXIT_FAILURE);
	}
	return reply;
}

static redisContext *
connect_to(const char *address)
{
	redisContext *c = *address == '/' ? redisConnectUnix(address) :
		redisConnect("127.0.0.1", atoi(address));
	const char *password = getenv("REDIS_PASSWORD");

	if (c == NULL || c->err)
	{
		fprintf(stderr, "redis: %s\n", c == NULL ? "no memory" : c->errstr);
		exit(EXIT_FAILURE);
	}
	if (password != NULL)
		freeReplyObject(checked(redisCommand(c, "AUTH %s", password)));
	return c;
}

static void
load(redisContext *c, const char *script, char *sha)
{
	redisReply *reply = checked(redisCommand(c, "SCRIPT LOAD %s", script));

	snprintf(sha, 64, "%s", reply->str);
	freeReplyObject(reply);
}

static void
send_key(redisContext *c, const char *sha, uint64_t key)
{
	redisAppendCommand(c, "EVALSHA %s 1 filter %llu %s", sha,
					   (unsigned long long) key, bits);
}

static long long
receive(redisContext *c)
{
	void	   *reply = NULL;
	long long	answer;

	(void) redisGetReply(c, &reply);
	answer = checked(reply)->integer;
	freeReplyObject(reply);
	return answer;
}

/* A number up to twice as many as there are keys: the even ones are. */
static uint64_t
random_key(void)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (state >> 20) % (2 * nkeys) + 1;
}

static void
run_operation(redisContext *c, const char *sha, uint64_t n, uint64_t batch)
{
	uint64_t	i,
				j;
	uint64_t	key[BATCH];

	for (i = 0; i < n; i += batch)
	{
		for (j = 0; j < batch; j++)
		{
			key[j] = random_key();
			if (sha == add_sha)
				key[j] &= ~UINT64_C(1);
			send_key(c, sha, key[j]);
		}
		for (j = 0; j < batch; j++)
		{
			if (receive(c) == 0 && key[j] % 2 == 0)
			{
				fprintf(stderr, "redis: a key is lost\n");
				exit(EXIT_FAILURE);
			}
		}
	}
}

static void
fill(redisContext *c)
{
	uint64_t	sent,
				received = 0;

	for (sent = 0; sent < nkeys;)
	{
		send_key(c, add_sha, 2 * ++sent);
		if (sent % BATCH == 0 || sent == nkeys)
		{
			for (; received < sent; received++)
				(void) receive(c);
		}
	}
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

int
main(int argc, char **argv)
{
	int			i;
	int			address;
	char		operation[32];
	unsigned long long n;

	if (argc < 3 || argc > 2 + MAX_ADDRESSES)
		return EXIT_FAILURE;
	nkeys = strtoull(argv[1], NULL, 10);
	snprintf(bits, sizeof(bits), "%.0f", ceil((double) nkeys * 14 / log(2)));
	for (i = 2; i < argc; i++)
		connections[i - 2] = connect_to(argv[i]);
	load(connections[0], CHECK_SCRIPT, check_sha);
	load(connections[0], ADD_SCRIPT, add_sha);
	fill(connections[0]);
	printf("ready\n");
	fflush(stdout);

	while (scanf("%d %31s %llu", &address, operation, &n) == 3)
	{
		double		began = now();

		run_operation(connections[address],
					  strcmp(operation, "add") == 0 ? add_sha : check_sha, n,
					  strncmp(operation, "pipelined", 9) == 0 ? BATCH : 1);
		printf("%.1f\n", (now() - began) / (double) n);
		fflush(stdout);
	}
	return 0;
}
