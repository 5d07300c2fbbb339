-- Calls that ended because a person was asked, so that the same call made again finds what became of it: by its key, until
-- its outcome was told. Times are nanoseconds since 1970, UTC.
CREATE TABLE haft.suspended_calls (
    run      text    NOT NULL,
    call     text    NOT NULL,
    key      text    NOT NULL,
    approval text    NOT NULL,
    -- The request is that of a call within it.
    within   boolean NOT NULL,
    -- Its run is for it alone.
    alone    boolean NOT NULL,
    noted    bigint  NOT NULL,
    -- As bytes: whatever a tool said is kept.
    outcome  bytea,
    -- The attempt that took the outcome: one whose answer was lost is known again.
    taken_by text,
    PRIMARY KEY (run, call)
);

CREATE INDEX suspended_calls_alike ON haft.suspended_calls (key);
