-- Calls that ended because a person was asked, so that the same call made again finds what became of it: by its key, until
-- its outcome was told. Times are nanoseconds since 1970, UTC.
CREATE TABLE suspended_calls (
    run      TEXT    NOT NULL,
    call     TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    approval TEXT    NOT NULL,
    -- The request is that of a call within it.
    within   INTEGER NOT NULL,
    -- Its run is for it alone.
    alone    INTEGER NOT NULL,
    noted    INTEGER NOT NULL,
    outcome  TEXT,
    PRIMARY KEY (run, call)
) STRICT, WITHOUT ROWID;

CREATE INDEX suspended_calls_alike ON suspended_calls (key);

PRAGMA user_version = 6;
