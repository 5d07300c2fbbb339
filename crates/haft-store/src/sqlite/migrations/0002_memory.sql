-- Memories. Keys start with the tenant; times are nanoseconds since 1970, UTC. The text comes last: what a search looks
-- at stands before it on the page.
CREATE TABLE memory (
    row       INTEGER PRIMARY KEY,
    tenant    TEXT    NOT NULL,
    subject   TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    scope     TEXT    NOT NULL CHECK (scope IN ('user', 'agent', 'project')),
    key       TEXT    NOT NULL,
    path      TEXT,
    state     TEXT    NOT NULL CHECK (state IN ('candidate', 'accepted', 'rejected')),
    deletes   INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    updated   INTEGER NOT NULL,
    expires   INTEGER,
    revision  INTEGER NOT NULL,
    digest    TEXT    NOT NULL,
    run       TEXT,
    call      TEXT,
    agent     TEXT,
    author    TEXT    NOT NULL,
    changed_by TEXT   NOT NULL,
    decided_by TEXT,
    replaces  TEXT,
    replaces_revision INTEGER,
    tags      TEXT    NOT NULL,
    content   TEXT    NOT NULL,
    UNIQUE (tenant, subject, id),
    CHECK ((replaces IS NULL) = (replaces_revision IS NULL))
) STRICT;

CREATE INDEX memory_newest ON memory (tenant, subject, state, updated DESC);
CREATE INDEX memory_same ON memory (tenant, subject, scope, key, digest);
CREATE INDEX memory_of_run ON memory (tenant, subject, run) WHERE run IS NOT NULL;
CREATE INDEX memory_expires ON memory (expires) WHERE expires IS NOT NULL;
CREATE UNIQUE INDEX memory_file ON memory (tenant, subject, scope, key, path)
    WHERE path IS NOT NULL AND state = 'accepted' AND deletes = 0;

-- Earlier revisions: what a record was before it was changed.
CREATE TABLE memory_history (
    row      INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    state    TEXT    NOT NULL,
    by       TEXT    NOT NULL,
    content  TEXT    NOT NULL,
    PRIMARY KEY (row, revision)
) STRICT, WITHOUT ROWID;

-- How many there are, so that no write counts them.
CREATE TABLE memory_counts (
    tenant  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    state   TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (tenant, subject, state)
) STRICT, WITHOUT ROWID;

-- The words of accepted records; taken apart before they come here, so that the tokenizer only folds and stems.
CREATE VIRTUAL TABLE memory_words USING fts5(
    words, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
    INSERT INTO memory_counts VALUES (new.tenant, new.subject, new.state, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER memory_moved AFTER UPDATE OF state ON memory WHEN old.state <> new.state BEGIN
    UPDATE memory_counts SET n = n - 1
        WHERE tenant = old.tenant AND subject = old.subject AND state = old.state;
    INSERT INTO memory_counts VALUES (new.tenant, new.subject, new.state, 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER memory_changed AFTER UPDATE OF revision ON memory BEGIN
    INSERT INTO memory_history VALUES
        (old.row, old.revision, old.updated, old.state, old.changed_by, old.content);
    DELETE FROM memory_history WHERE row = old.row AND revision < new.revision - 32;
END;

CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
    UPDATE memory_counts SET n = n - 1
        WHERE tenant = old.tenant AND subject = old.subject AND state = old.state;
    DELETE FROM memory_history WHERE row = old.row;
    DELETE FROM memory_words WHERE rowid = old.row;
END;

PRAGMA user_version = 2;
