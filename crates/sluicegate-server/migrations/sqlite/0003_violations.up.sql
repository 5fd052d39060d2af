-- Denials, aggregated by bucket, rule, mode and minute.
-- No foreign key: a violation outlives its rule, and rules may come from a file.

CREATE TABLE rate_limit_violations (
    violation_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    bucket_key     TEXT    NOT NULL
        CONSTRAINT bucket_key CHECK (length(CAST(bucket_key AS BLOB)) <= 1024),
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
    CONSTRAINT rate_limit_violations_bucket_key UNIQUE (bucket_key, rule_id, mode, minute)
) STRICT;

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

-- Last batch of each process that writes violations, so that a batch sent again is not written twice.
CREATE TABLE rate_limit_writers (
    writer     INTEGER PRIMARY KEY,
    sequence   INTEGER NOT NULL,
    written_at INTEGER NOT NULL
) STRICT;
