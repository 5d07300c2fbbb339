-- Requests with less to write for each. A new one is found by its row, one that changed by `changed`: the index of that holds
-- only what changed. Alike requests are found by the last 16 digits of their fingerprint, a SHA-256, and the run. The digest
-- of the arguments as proposed is in `request`. The words of `status` are told apart one after the other, the usual first:
-- a list would be sorted for each row.
CREATE TABLE approvals_lean (
    row           INTEGER PRIMARY KEY,
    tenant        TEXT    NOT NULL,
    id            TEXT    NOT NULL UNIQUE,
    run           TEXT    NOT NULL,
    fingerprint   TEXT    NOT NULL,
    status        TEXT    NOT NULL DEFAULT 'pending' CHECK (status = 'pending' OR status = 'approved' OR status = 'denied'
        OR status = 'answered' OR status = 'running' OR status = 'done' OR status = 'expired' OR status = 'withdrawn'),
    created       INTEGER NOT NULL,
    expires       INTEGER NOT NULL,
    -- 0 while nothing has; then rises with every transaction: whoever has seen one number finds what came later.
    changed       INTEGER NOT NULL DEFAULT 0,
    -- The processes that wait for the decision, and that took it.
    waiter        TEXT,
    claimed_by    TEXT,
    delivered     INTEGER NOT NULL DEFAULT 0,
    -- SHA-256 of the canonical arguments as approved, where they were edited.
    edited_digest TEXT,
    decision      TEXT,
    outcome       TEXT,
    request       TEXT    NOT NULL,
    CHECK (status <> 'running' OR claimed_by IS NOT NULL)
) STRICT;

INSERT INTO approvals_lean (row, tenant, id, run, fingerprint, status, created, expires, changed, waiter, claimed_by,
    delivered, edited_digest, decision, outcome, request)
SELECT row, tenant, id, run, fingerprint, status, created, expires, changed, waiter, claimed_by,
    delivered, edited_digest, decision, outcome, request FROM approvals ORDER BY row;

DROP TABLE approvals;
ALTER TABLE approvals_lean RENAME TO approvals;

CREATE INDEX approvals_alike ON approvals (substr(fingerprint, -16), run);
CREATE INDEX approvals_where ON approvals (tenant, status);
CREATE INDEX approvals_changed ON approvals (changed) WHERE changed > 0;

PRAGMA user_version = 5;
