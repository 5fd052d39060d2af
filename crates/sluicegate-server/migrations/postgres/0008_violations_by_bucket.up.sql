-- Violations by the identity of their bucket. Different values may give the same readable key.

-- Hash of the values in the key; the key itself in rows from before this column.
ALTER TABLE rate_limit_violations ADD COLUMN bucket_id BYTEA
    CONSTRAINT bucket_id CHECK (octet_length(bucket_id) <= 1024);
UPDATE rate_limit_violations SET bucket_id = convert_to(bucket_key, 'UTF8');
ALTER TABLE rate_limit_violations ALTER COLUMN bucket_id SET NOT NULL;

ALTER TABLE rate_limit_violations DROP CONSTRAINT rate_limit_violations_bucket_key;
ALTER TABLE rate_limit_violations
    ADD CONSTRAINT rate_limit_violations_bucket_id UNIQUE (bucket_id, rule_id, mode, minute);
