-- Journals of chains: a line an entry, and who is at a run, by the server's clock. A chain that ended leaves nothing.
CREATE TABLE haft.journal_runs (
    run         text        PRIMARY KEY,
    holder      text        NOT NULL,
    alive_until timestamptz NOT NULL
);

CREATE TABLE haft.journal_lines (
    row  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run  text   NOT NULL,
    -- Names the attempt to write it: one whose answer was lost is not written twice.
    name text   NOT NULL UNIQUE,
    -- As bytes: whatever a script says is kept.
    line bytea  NOT NULL
);

CREATE INDEX journal_lines_of ON haft.journal_lines (run);
