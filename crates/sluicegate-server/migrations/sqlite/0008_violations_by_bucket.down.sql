-- Rows of buckets with the same readable key become one.
UPDATE rate_limit_violations SET
    count = CASE WHEN one.count > 9007199254740991 THEN 9007199254740991 ELSE one.count END,
    requested_at = one.requested_at,
    last_at = one.last_at
FROM (
    SELECT MIN(violation_id) AS violation_id, SUM(count) AS count, MIN(requested_at) AS requested_at,
        MAX(last_at) AS last_at
    FROM rate_limit_violations GROUP BY bucket_key, rule_id, mode, minute HAVING COUNT(*) > 1
) AS one
WHERE rate_limit_violations.violation_id = one.violation_id;

DELETE FROM rate_limit_violations WHERE violation_id NOT IN
    (SELECT MIN(violation_id) FROM rate_limit_violations GROUP BY bucket_key, rule_id, mode, minute);

CREATE TABLE rate_limit_violations_old (
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

INSERT INTO rate_limit_violations_old
    (violation_id, bucket_key, user_id, ip_address, endpoint, method, requested_at, tokens_at_time,
    rule_id, count, last_at, mode, minute)
SELECT
    violation_id, bucket_key, user_id, ip_address, endpoint, method, requested_at, tokens_at_time,
    rule_id, count, last_at, mode, minute
FROM rate_limit_violations;

-- Ids of deleted violations are still not reused.
DELETE FROM sqlite_sequence WHERE name = 'rate_limit_violations_old';
INSERT INTO sqlite_sequence (name, seq)
SELECT 'rate_limit_violations_old', seq FROM sqlite_sequence WHERE name = 'rate_limit_violations';

DROP TABLE rate_limit_violations;
ALTER TABLE rate_limit_violations_old RENAME TO rate_limit_violations;

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
