PRAGMA application_id = 1399347045;
CREATE TABLE schema_version (version INTEGER) STRICT;
CREATE TABLE events (
    number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash BLOB NOT NULL, at REAL NOT NULL
) STRICT;
CREATE TABLE head (count INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
CREATE TRIGGER events_stay_as_they_are BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
INSERT INTO schema_version VALUES (1);
