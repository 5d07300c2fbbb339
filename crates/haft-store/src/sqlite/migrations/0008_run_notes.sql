-- What lists say of runs, and how their calls ended, counted. Times are nanoseconds since 1970, UTC; hours are whole hours.
-- Apart from `runs`, whose rows seal archives: nothing is verified by what is here.
CREATE TABLE run_notes (
    run     TEXT    PRIMARY KEY,
    started INTEGER NOT NULL,
    noted   INTEGER NOT NULL,
    failed  INTEGER NOT NULL,
    notes   TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX run_notes_noted ON run_notes (noted);
CREATE INDEX run_notes_failed ON run_notes (started DESC) WHERE failed > 0;
CREATE INDEX runs_in_progress ON runs (state, started DESC) WHERE state <> 'closed';

-- Each process that works on a run has a part of its own, so that a count may be written twice.
CREATE TABLE run_calls (
    run       TEXT    NOT NULL,
    tool      TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    part      INTEGER NOT NULL,
    hour      INTEGER NOT NULL,
    calls     INTEGER NOT NULL,
    total_ms  INTEGER NOT NULL,
    decided   INTEGER NOT NULL,
    waited_ms INTEGER NOT NULL,
    PRIMARY KEY (run, tool, status, part, hour)
) STRICT, WITHOUT ROWID;

-- The sums over all runs.
CREATE TABLE call_hours (
    hour      INTEGER NOT NULL,
    tool      TEXT    NOT NULL,
    status    TEXT    NOT NULL,
    calls     INTEGER NOT NULL,
    total_ms  INTEGER NOT NULL,
    decided   INTEGER NOT NULL,
    waited_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, tool, status)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER run_calls_added AFTER INSERT ON run_calls BEGIN
    INSERT INTO call_hours VALUES (new.hour, new.tool, new.status, new.calls, new.total_ms, new.decided, new.waited_ms)
        ON CONFLICT DO UPDATE SET calls = calls + new.calls, total_ms = total_ms + new.total_ms,
            decided = decided + new.decided, waited_ms = waited_ms + new.waited_ms;
END;

CREATE TRIGGER run_calls_changed AFTER UPDATE ON run_calls BEGIN
    UPDATE call_hours SET calls = calls + new.calls - old.calls, total_ms = total_ms + new.total_ms - old.total_ms,
            decided = decided + new.decided - old.decided, waited_ms = waited_ms + new.waited_ms - old.waited_ms
        WHERE hour = new.hour AND tool = new.tool AND status = new.status;
END;

PRAGMA user_version = 8;
