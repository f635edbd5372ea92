CREATE SCHEMA sharewell;
CREATE TABLE sharewell.schema_version (version int);
CREATE TABLE sharewell.events (
    ledger text, number bigint, body text NOT NULL, hash bytea NOT NULL, at float8 NOT NULL,
    PRIMARY KEY (ledger, number)
);
CREATE TABLE sharewell.heads (
    ledger text PRIMARY KEY, count bigint NOT NULL, hash bytea NOT NULL
);
CREATE FUNCTION sharewell.refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a ledger is only ever added to'; END $$;
CREATE TRIGGER events_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON sharewell.events
EXECUTE FUNCTION sharewell.refuse();
INSERT INTO sharewell.schema_version VALUES (1);
