"""Rows of services that a command starts, uses and stops: PostgreSQL, Redis and MariaDB; and Docker, which commands do not have."""

POSTGRES = ("PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH; d=$(mktemp -d); initdb -D $d/data -A trust -U work >$d/log"
            " && pg_ctl -D $d/data -o \"-k $d -c listen_addresses=\" -l $d/log -w start >/dev/null"
            " && psql -h $d -U work -d postgres -Atc 'select 40 + 2' | grep -qx 42; code=$?; pg_ctl -D $d/data -m fast stop >/dev/null; exit $code")
REDIS = ("redis-server --port 6390 --save '' --daemonize yes --dir /tmp --logfile redis.log >/dev/null; "
         "for i in $(seq 100); do redis-cli -p 6390 ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done; "
         "redis-cli -p 6390 set a 42 >/dev/null && redis-cli -p 6390 get a | grep -qx 42; code=$?; redis-cli -p 6390 shutdown nosave; exit $code")
MARIADB = ("d=$(mktemp -d); mariadb-install-db --no-defaults --datadir=$d/data --auth-root-authentication-method=normal >/dev/null; "
           "mariadbd --no-defaults --datadir=$d/data --socket=$d/s --port=3390 --bind-address=127.0.0.1 2>$d/log & "
           "for i in $(seq 200); do mariadb -S $d/s -u root -e 'select 1' >/dev/null 2>&1 && break; sleep 0.1; done; "
           "mariadb -S $d/s -u root -e 'create database w; create table w.a (x int); insert into w.a values (42)'"
           " && mariadb -h 127.0.0.1 -P 3390 -u root -Ne 'select x from w.a' | grep -qx 42; code=$?; mariadb-admin -S $d/s -u root shutdown; wait; exit $code")

ROWS = [
    {"name": "PostgreSQL", "needs": "psql", "apt": "postgresql", "files": {"README": "work\n"}, "lines": [POSTGRES]},
    {"name": "Redis", "needs": "redis-server", "apt": "redis-server", "files": {"README": "work\n"}, "lines": [REDIS]},
    {"name": "MariaDB", "needs": "mariadbd", "apt": "mariadb-server", "files": {"README": "work\n"}, "lines": [MARIADB]},
    {"name": "Docker", "absent": "commands reach no Docker socket, as it would give them the whole machine"},
]
