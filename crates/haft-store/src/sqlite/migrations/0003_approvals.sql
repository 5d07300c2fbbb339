-- Requests that wait for a person. Keys start with the tenant; times are nanoseconds since 1970, UTC. What is asked is kept
-- whole in `request` and never changed; the long texts come last, what a list looks at stands before them on the page.
CREATE TABLE approvals (
    row           INTEGER PRIMARY KEY,
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL UNIQUE,
    run           TEXT    NOT NULL,
    fingerprint   TEXT    NOT NULL,
    status        TEXT    NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'denied', 'answered',
        'running', 'done', 'expired', 'withdrawn')),
    created       INTEGER NOT NULL,
    expires       INTEGER NOT NULL,
    -- Rises with every transaction: whoever has seen one number finds what came later.
    changed       INTEGER NOT NULL,
    -- The processes that wait for the decision, and that took it.
    waiter        TEXT,
    claimed_by    TEXT,
    delivered     INTEGER NOT NULL DEFAULT 0,
    -- SHA-256 of the canonical arguments as proposed, and as approved where they were edited.
    digest        TEXT    NOT NULL,
    edited_digest TEXT,
    decision      TEXT,
    outcome       TEXT,
    request       TEXT    NOT NULL,
    CHECK (status <> 'running' OR claimed_by IS NOT NULL)
) STRICT;

CREATE INDEX approvals_alike ON approvals (fingerprint, run);
CREATE INDEX approvals_where ON approvals (tenant, status);
CREATE INDEX approvals_changed ON approvals (changed);

-- Processes that wait for decisions or carry them out, and until when each is taken to be alive.
CREATE TABLE approval_processes (
    id          TEXT    PRIMARY KEY,
    alive_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 3;
