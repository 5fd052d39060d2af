-- Rows of buckets with the same readable key become one.
UPDATE rate_limit_violations SET
    count = LEAST(one.count, 9007199254740991),
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

ALTER TABLE rate_limit_violations DROP COLUMN bucket_id;
ALTER TABLE rate_limit_violations
    ADD CONSTRAINT rate_limit_violations_bucket_key UNIQUE (bucket_key, rule_id, mode, minute);
