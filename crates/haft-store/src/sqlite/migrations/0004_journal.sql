-- Journals of chains: a line an entry, and who is at a run. A chain that ended leaves nothing.
CREATE TABLE journal_runs (
    run         TEXT    PRIMARY KEY,
    holder      TEXT    NOT NULL,
    alive_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE journal_lines (
    row  INTEGER PRIMARY KEY,
    run  TEXT NOT NULL,
    line TEXT NOT NULL
) STRICT;

CREATE INDEX journal_lines_of ON journal_lines (run);

PRAGMA user_version = 4;
