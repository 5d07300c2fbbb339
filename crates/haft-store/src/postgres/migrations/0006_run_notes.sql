-- What lists say of runs, and how their calls ended, counted. Apart from `runs`, whose rows seal archives: nothing is verified
-- by what is here. Hours are whole hours since 1970, UTC.
CREATE TABLE haft.run_notes (
    run     text   PRIMARY KEY,
    started bigint NOT NULL,
    noted   bigint NOT NULL,
    failed  bigint NOT NULL,
    notes   text   NOT NULL
);

CREATE INDEX run_notes_noted ON haft.run_notes (noted);
CREATE INDEX run_notes_failed ON haft.run_notes (started DESC) WHERE failed > 0;
CREATE INDEX runs_in_progress ON haft.runs (state, started DESC) WHERE state <> 'closed';

-- Each process that works on a run has a part of its own, so that a count may be written twice.
CREATE TABLE haft.run_calls (
    run       text   NOT NULL,
    tool      text   NOT NULL,
    status    text   NOT NULL,
    part      bigint NOT NULL,
    hour      bigint NOT NULL,
    calls     bigint NOT NULL,
    total_ms  bigint NOT NULL,
    decided   bigint NOT NULL,
    waited_ms bigint NOT NULL,
    PRIMARY KEY (run, tool, status, part, hour)
);

-- The sums over all runs.
CREATE TABLE haft.call_hours (
    hour      bigint NOT NULL,
    tool      text   NOT NULL,
    status    text   NOT NULL,
    calls     bigint NOT NULL,
    total_ms  bigint NOT NULL,
    decided   bigint NOT NULL,
    waited_ms bigint NOT NULL,
    PRIMARY KEY (hour, tool, status)
);

CREATE FUNCTION haft.sum_calls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        UPDATE haft.call_hours SET calls = calls + NEW.calls - OLD.calls, total_ms = total_ms + NEW.total_ms - OLD.total_ms,
                decided = decided + NEW.decided - OLD.decided, waited_ms = waited_ms + NEW.waited_ms - OLD.waited_ms
            WHERE hour = NEW.hour AND tool = NEW.tool AND status = NEW.status;
    ELSE
        INSERT INTO haft.call_hours AS h
            VALUES (NEW.hour, NEW.tool, NEW.status, NEW.calls, NEW.total_ms, NEW.decided, NEW.waited_ms)
            ON CONFLICT (hour, tool, status) DO UPDATE SET calls = h.calls + excluded.calls,
                total_ms = h.total_ms + excluded.total_ms, decided = h.decided + excluded.decided,
                waited_ms = h.waited_ms + excluded.waited_ms;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER run_calls_summed AFTER INSERT OR UPDATE ON haft.run_calls
    FOR EACH ROW EXECUTE FUNCTION haft.sum_calls();
