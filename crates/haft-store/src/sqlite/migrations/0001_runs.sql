-- The index of runs. Keys start with the tenant; times are nanoseconds since 1970, UTC.
CREATE TABLE runs (
    tenant    TEXT    NOT NULL,
    run       TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    door      TEXT    NOT NULL,
    workspace TEXT,
    profile   TEXT    NOT NULL,
    state     TEXT    NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'suspended', 'closed')),
    started   INTEGER NOT NULL,
    ended     INTEGER,
    calls     INTEGER NOT NULL DEFAULT 0,
    -- How the archive was closed; the seal is the hash of its last line, which no file holds.
    count     INTEGER,
    head      TEXT,
    seal      TEXT,
    PRIMARY KEY (tenant, run),
    UNIQUE (run),
    CHECK ((state = 'closed') = (seal IS NOT NULL))
) STRICT;

CREATE INDEX runs_newest ON runs (started DESC);
CREATE INDEX runs_newest_of ON runs (tenant, subject, started DESC);

PRAGMA user_version = 1;
