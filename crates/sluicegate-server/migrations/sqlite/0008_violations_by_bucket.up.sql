-- Violations by the identity of their bucket. Different values may give the same readable key. SQLite cannot
-- change a constraint: the table is created again, with its indexes.

CREATE TABLE rate_limit_violations_new (
    violation_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    bucket_key     TEXT    NOT NULL
        CONSTRAINT bucket_key CHECK (length(CAST(bucket_key AS BLOB)) <= 1024),
    -- Hash of the values in the key; the key itself in rows from before this column.
    bucket_id      BLOB    NOT NULL
        CONSTRAINT bucket_id CHECK (length(bucket_id) <= 1024),
    user_id        TEXT    CONSTRAINT user_id CHECK (length(CAST(user_id AS BLOB)) <= 1024),
    ip_address     TEXT    CONSTRAINT ip_address CHECK (length(CAST(ip_address AS BLOB)) <= 1024),
    endpoint       TEXT    CONSTRAINT endpoint CHECK (length(CAST(endpoint AS BLOB)) <= 1024),
    method         TEXT    CONSTRAINT method CHECK (length(CAST(method AS BLOB)) <= 1024),
    -- Time of the first denial.
    requested_at   INTEGER NOT NULL,
    tokens_at_time INTEGER NOT NULL
        CONSTRAINT tokens_at_time CHECK (tokens_at_time BETWEEN 0 AND 4503599627370496),
    rule_id        INTEGER NOT NULL
        CONSTRAINT rule_id CHECK (rule_id BETWEEN 0 AND 9007199254740991),
    count          INTEGER NOT NULL DEFAULT 1
        CONSTRAINT count CHECK (count BETWEEN 1 AND 9007199254740991),
    -- Time of the last denial.
    last_at        INTEGER NOT NULL,
    mode           TEXT    NOT NULL DEFAULT 'enforce'
        CONSTRAINT mode CHECK (mode IN ('enforce', 'shadow')),
    -- Minutes since the epoch.
    minute         INTEGER NOT NULL,
    CONSTRAINT last_at CHECK (last_at >= requested_at),
    CONSTRAINT rate_limit_violations_bucket_id UNIQUE (bucket_id, rule_id, mode, minute)
) STRICT;

INSERT INTO rate_limit_violations_new
    (violation_id, bucket_key, bucket_id, user_id, ip_address, endpoint, method, requested_at, tokens_at_time,
    rule_id, count, last_at, mode, minute)
SELECT
    violation_id, bucket_key, CAST(bucket_key AS BLOB), user_id, ip_address, endpoint, method, requested_at, tokens_at_time,
    rule_id, count, last_at, mode, minute
FROM rate_limit_violations;

-- Ids of deleted violations are still not reused.
DELETE FROM sqlite_sequence WHERE name = 'rate_limit_violations_new';
INSERT INTO sqlite_sequence (name, seq)
SELECT 'rate_limit_violations_new', seq FROM sqlite_sequence WHERE name = 'rate_limit_violations';

DROP TABLE rate_limit_violations;
ALTER TABLE rate_limit_violations_new RENAME TO rate_limit_violations;

CREATE INDEX rate_limit_violations_time ON rate_limit_violations
    (requested_at DESC, violation_id DESC);
CREATE INDEX rate_limit_violations_user ON rate_limit_violations
    (user_id, requested_at DESC, violation_id DESC);
CREATE INDEX rate_limit_violations_ip ON rate_limit_violations
    (ip_address, requested_at DESC, violation_id DESC);
CREATE INDEX rate_limit_violations_endpoint ON rate_limit_violations
    (endpoint, requested_at DESC, violation_id DESC);
CREATE INDEX rate_limit_violations_rule ON rate_limit_violations
    (rule_id, requested_at DESC, violation_id DESC);
CREATE INDEX rate_limit_violations_bucket ON rate_limit_violations
    (bucket_key, requested_at DESC, violation_id DESC);
