-- Runs and requests that wait for a person. Keys start with the tenant; times without a type of their own are nanoseconds
-- since 1970, UTC.
CREATE SCHEMA IF NOT EXISTS haft;

CREATE TABLE haft.version (version integer NOT NULL);

CREATE TABLE haft.runs (
    tenant    text   NOT NULL,
    run       text   NOT NULL UNIQUE,
    subject   text   NOT NULL,
    door      text   NOT NULL,
    workspace text,
    profile   text   NOT NULL,
    state     text   NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'suspended', 'closed')),
    started   bigint NOT NULL,
    ended     bigint,
    calls     bigint NOT NULL DEFAULT 0,
    count     bigint,
    head      text,
    seal      text,
    PRIMARY KEY (tenant, run),
    CHECK ((state = 'closed') = (seal IS NOT NULL))
);

CREATE INDEX runs_newest ON haft.runs (started DESC);
CREATE INDEX runs_newest_of ON haft.runs (tenant, subject, started DESC);

-- Processes that wait for decisions or carry them out, and until when, by the server's clock, each is taken to be alive.
CREATE TABLE haft.processes (
    id          text        PRIMARY KEY,
    alive_until timestamptz NOT NULL
);

CREATE TABLE haft.approvals (
    row           bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant        text    NOT NULL,
    id            text    NOT NULL UNIQUE,
    run           text    NOT NULL,
    fingerprint   text    NOT NULL,
    status        text    NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'denied', 'answered',
        'running', 'done', 'expired', 'withdrawn')),
    created       bigint  NOT NULL,
    expires       bigint  NOT NULL,
    -- Microseconds since 1970 by the server's clock.
    changed       bigint  NOT NULL,
    waiter        text,
    -- Who took it and who delivered its outcome: each attempt has a name of its own, so that one whose answer was lost is
    -- known again.
    claimed_by    text,
    delivered_by  text,
    digest        text    NOT NULL,
    edited_digest text,
    decision      text,
    -- As bytes: whatever a tool said is kept.
    outcome       bytea,
    request       text    NOT NULL,
    -- Whether a call that says the same is answered by this one.
    stands        boolean NOT NULL GENERATED ALWAYS AS (status IN ('pending', 'approved', 'running', 'denied')
        OR status IN ('answered', 'done') AND delivered_by IS NULL) STORED,
    CHECK (status <> 'running' OR claimed_by IS NOT NULL)
);

CREATE UNIQUE INDEX approvals_alike ON haft.approvals (fingerprint, run) WHERE stands;
CREATE INDEX approvals_where ON haft.approvals (tenant, status);
CREATE INDEX approvals_changed ON haft.approvals (changed);

CREATE FUNCTION haft.tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    PERFORM pg_notify('haft_approvals', NEW.changed || ' ' || NEW.id);
    RETURN NEW;
END
$$;

CREATE TRIGGER approvals_tell BEFORE INSERT OR UPDATE ON haft.approvals
    FOR EACH ROW EXECUTE FUNCTION haft.tell();

INSERT INTO haft.version VALUES (1);
