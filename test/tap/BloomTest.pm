# What the TAP tests share: the modules that all of them use, a server with the
# extension, and sessions that run in the background while the test looks on.

package BloomTest;

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Exporter ();

our @EXPORT = qw(new_node create_database find_crashes
  can_measure_memory);

sub import
{
	strict->import;
	warnings->import;
	Exporter::export($_, scalar caller)
	  foreach qw(BloomTest PostgreSQL::Test::Utils Test::More);
	return;
}

# A server to be started, of the PostgreSQL in install_path or else of the one
# that is tested.  Encoding and locale are our own: those of the environment
# differ from machine to machine.
sub new_node
{
	my ($name, %params) = @_;
	my $install_path = delete $params{install_path};
	my $node = PostgreSQL::Test::Cluster->new($name,
		$install_path ? (install_path => $install_path) : ());

	$node->init(extra => [ '--encoding=UTF8', '--locale=C' ], %params);

	# Queries carry filters, which would fill the log.  Compiling a query
	# takes time and memory that are not ours.
	$node->append_conf(
		'postgresql.conf', q{
log_statement = none
log_min_messages = error
log_min_error_statement = panic
jit = off
});
	return $node;
}

sub create_database
{
	my ($node, $name, $encoding, $options) = @_;

	$node->safe_psql('postgres',
		"CREATE DATABASE $name TEMPLATE template0 ENCODING '$encoding'"
		  . " LOCALE 'C' "
		  . ($options // ''));
	return;
}

# Lines of the server's log that tell of a process that died or of a failed
# assertion.
sub find_crashes
{
	my ($node) = @_;
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);

	# A shutdown may end an archive command.
	return join "\n",
	  grep { /\) was terminated by signal|PANIC:|TRAP:|exited with exit code [^01]/ }
	  split /\n/, $log;
}

# Linux tells how much memory a process has to itself.
sub can_measure_memory
{
	return -r '/proc/self/status'
	  && PostgreSQL::Test::Utils::slurp_file('/proc/self/status') =~
	  /^RssAnon:/m;
}

package BloomTest::Session;

use IPC::Run;
use Time::HiRes qw(time usleep);

# A session of psql that takes one query after another.  $node and $dbname
# tell where.  Errors come as their SQLSTATE.
sub new
{
	my ($class, $node, $dbname) = @_;
	my $self = bless {
		in => '',
		out => '',
		err => '',
		marker => 0,
		patience => $PostgreSQL::Test::Utils::timeout_default || 180
	}, $class;

	$self->{psql} = IPC::Run::start(
		[
			'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', '-d',
			$node->connstr($dbname), '-f', '-'
		],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err});
	($self->{pid}) = $self->query('SELECT pg_backend_pid()');
	return $self;
}

sub pid
{
	my ($self) = @_;
	return $self->{pid};
}

# Begin with a query and return at once.
sub send
{
	my ($self, $query) = @_;
	my $marker = 'marker ' . ++$self->{marker};

	$self->{in} .= "$query;\n\\echo $marker\n\\warn $marker\n";
	$self->{deadline} = time + $self->{patience};
	$self->{psql}->pump_nb;
	return;
}

# Whether the query has ended.
sub ended
{
	my ($self) = @_;
	my $end = qr/^marker $self->{marker}\n/m;

	return 1 if $self->{out} =~ $end && $self->{err} =~ $end;
	die "no end of query in $self->{patience} s" if time > $self->{deadline};
	die "psql ended: $self->{err}" unless $self->{psql}->pumpable;
	$self->{psql}->pump_nb;
	return 0;
}

# Wait for the end of the query, meanwhile calling $watch every few
# milliseconds.  Returns what it wrote, and its errors and warnings.
sub finish
{
	my ($self, $watch) = @_;
	my ($out, $err);

	until ($self->ended)
	{
		$watch->() if $watch;
		usleep(5_000);
	}
	($out, $err) = @$self{qw(out err)};
	s/^marker \d+\n//m for $out, $err;
	@$self{qw(out err)} = ('', '');
	chomp($out, $err);
	return ($out, $err);
}

sub query
{
	my ($self, $query, $watch) = @_;

	$self->send($query);
	return $self->finish($watch);
}

# Memory in kB that belongs to the backend alone.
sub memory
{
	my ($self) = @_;

	return process_status($self->{pid})->{RssAnon};
}

# Like query, and returns in front the memory in kB at the peak.  The kernel
# knows the peak of all memory that is resident.  What is shared, or mapped
# from files, only grows meanwhile, so what was there beforehand can be taken
# off and the rest is at least our own.  Where the kernel does not let us reset
# its peak, what was seen in passing has to do.
sub query_memory
{
	my ($self, $query) = @_;
	my $before = process_status($self->{pid});
	my $peak = 0;
	my $reset;

	if (open my $refs, '>', "/proc/$self->{pid}/clear_refs")
	{
		$reset = print $refs "5\n";
		close $refs or $reset = 0;
	}
	my ($out, $err) = $self->query(
		$query,
		sub {
			my $memory = $self->memory;
			$peak = $memory if $memory > $peak;
		});
	if ($reset)
	{
		my $memory = process_status($self->{pid})->{VmHWM} -
		  $before->{RssFile} - $before->{RssShmem};
		$peak = $memory if $memory > $peak;
	}
	return ($peak, $out, $err);
}

# What /proc has about a process, in kB.
sub process_status
{
	my ($pid) = @_;
	my $file = PostgreSQL::Test::Utils::slurp_file("/proc/$pid/status");

	return { $file =~ /^(\w+):\s+(\d+) kB$/mg };
}

sub quit
{
	my ($self) = @_;

	$self->{in} .= "\\q\n";
	$self->{psql}->finish;
	return;
}

# Of a session whose server is gone, or about to be.
sub abandon
{
	my ($self) = @_;

	$self->{psql}->kill_kill(grace => 1);
	return;
}

# A connection that speaks the protocol itself: psql sends binary data only
# from a file, and files by the ten thousands take their time.
package BloomTest::Wire;

use IO::Socket::UNIX;

sub new
{
	my ($class, $node, $dbname) = @_;
	my $self = bless {}, $class;

	$self->{socket} =
	  IO::Socket::UNIX->new(
		Peer => $node->host . '/.s.PGSQL.' . $node->port)
	  or die "cannot connect: $!";
	my $user = $node->safe_psql($dbname, 'SELECT current_user');
	my $startup =
	  pack 'N(Z*)*', 3 << 16, 'user', $user, 'database', $dbname, '';
	$self->_write(pack('N', 4 + length $startup) . $startup);
	foreach my $message ($self->_answer)
	{
		my ($type, $body) = @$message;
		die "cannot connect: $body" if $type eq 'E';
		$self->{pid} = unpack 'N', $body if $type eq 'K';
	}
	return $self;
}

# Copy each of the rows, which are lists of values in binary format, by a
# statement of its own.  Returns 'ok' or the SQLSTATE of the error for each.
sub copy_binary
{
	my ($self, $into, @rows) = @_;
	my $copy = _message('Q', "COPY $into FROM STDIN (FORMAT binary)\0");
	my @states;

	# Some at a time, as many as surely fit into the buffers on the way.
	while (my @some = splice @rows, 0, 16)
	{
		foreach my $row (@some)
		{
			my $data = join '',
			  pack('a11NNn', "PGCOPY\n\xff\r\n\0", 0, 0, scalar @$row),
			  pack('(N/a*)*', @$row), pack('n', 0xffff);
			$self->_write($copy, _message('d', $data), _message('c', ''));
		}
		foreach my $row (@some)
		{
			my ($error) = grep { $_->[0] eq 'E' } $self->_answer;
			push @states, $error ? $error->[1] =~ /\0C(\w{5})\0/ : 'ok';
		}
	}
	return @states;
}

# The most memory in kB that the backend ever had, but for what it shares.
sub memory
{
	my ($self) = @_;
	my $status = $self->status;

	return $status->{VmHWM} - $status->{RssFile} - $status->{RssShmem};
}

sub status
{
	my ($self) = @_;

	return BloomTest::Session::process_status($self->{pid});
}

# Call a function by its OID, with arguments as text or undef for NULL.
# Returns 'ok' and its result, or the SQLSTATE of the error.
sub call
{
	my ($self, $function, @arguments) = @_;

	$self->_write(
		_message(
			'F',
			join '',
			pack('Nnn', $function, 0, scalar @arguments),
			(map { defined $_ ? pack('N/a*', $_) : "\xff\xff\xff\xff" }
				  @arguments),
			pack('n', 0)));
	foreach my $message ($self->_answer)
	{
		my ($type, $body) = @$message;

		return $body =~ /\0C(\w{5})\0/ if $type eq 'E';
		return ('ok', unpack 'x4a*', $body) if $type eq 'V';
	}
	return;
}

# Start statements in their order, execute them in the opposite one, up to the
# first row, all in one transaction, and return all rows, or the error.
sub execute_backwards
{
	my ($self, @statements) = @_;
	my @rows;

	foreach my $i (0 .. $#statements)
	{
		$self->_write(
			_message('P', pack('Z*Z*n', '', $statements[$i], 0)),
			_message('B', pack('Z*Z*nnn', "p$i", '', 0, 0, 0)));
	}
	$self->_write(_message('E', pack('Z*N', "p$_", 1)))
	  for reverse 0 .. $#statements;
	$self->_write(_message('S', ''));
	foreach my $message ($self->_answer)
	{
		my ($type, $body) = @$message;

		return $body if $type eq 'E';
		push @rows, join '|', unpack 'n/(N/a*)', $body if $type eq 'D';
	}
	return join "\n", @rows;
}

sub quit
{
	my ($self) = @_;

	$self->_write(_message('X', ''));
	close $self->{socket};
	return;
}

sub _message
{
	my ($type, $body) = @_;
	return $type . pack('N', 4 + length $body) . $body;
}

sub _write
{
	my ($self, @parts) = @_;

	$self->{socket}->write(join '', @parts)
	  or die "connection lost: $!";
	$self->{socket}->flush;
	return;
}

sub _read
{
	my ($self, $n) = @_;

	($self->{socket}->read(my $bytes, $n) // 0) == $n
	  or die 'the server closed the connection';
	return $bytes;
}

# The messages up to the next one that says that the server is ready.
sub _answer
{
	my ($self) = @_;
	my @messages;

	while (1)
	{
		my ($type, $length) = unpack 'aN', $self->_read(5);
		my $body = $length > 4 ? $self->_read($length - 4) : '';

		return @messages if $type eq 'Z';
		push @messages, [ $type, $body ];
		return @messages if $type eq 'E' && !defined $self->{pid};
	}
	return;
}

1;
