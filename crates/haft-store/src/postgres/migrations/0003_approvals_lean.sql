-- Less to do for each request that is written: the server reads checks of a table, generated columns and triggers anew for
-- every statement, and that was half of its work. What a domain checks it keeps. The statement that writes requests says when
-- and tells; the trigger is for what changes later.
CREATE DOMAIN haft.status AS text CHECK (VALUE IN ('pending', 'approved', 'denied', 'answered', 'running', 'done', 'expired',
    'withdrawn'));

ALTER TABLE haft.approvals ALTER COLUMN stands DROP EXPRESSION;
ALTER TABLE haft.approvals ALTER COLUMN stands SET DEFAULT true;
ALTER TABLE haft.approvals DROP CONSTRAINT approvals_status_check;
ALTER TABLE haft.approvals DROP CONSTRAINT approvals_check;
ALTER TABLE haft.approvals ALTER COLUMN status TYPE haft.status;

CREATE OR REPLACE FUNCTION haft.tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'running' AND NEW.claimed_by IS NULL THEN
        RAISE check_violation USING MESSAGE = 'a request runs that nobody took';
    END IF;
    NEW.stands := NEW.status IN ('pending', 'approved', 'running', 'denied')
        OR NEW.status IN ('answered', 'done') AND NEW.delivered_by IS NULL;
    NEW.changed := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    PERFORM pg_notify('haft_approvals', NEW.changed || ' ' || NEW.id);
    RETURN NEW;
END
$$;

DROP TRIGGER approvals_tell ON haft.approvals;
CREATE TRIGGER approvals_tell BEFORE UPDATE ON haft.approvals FOR EACH ROW EXECUTE FUNCTION haft.tell();
