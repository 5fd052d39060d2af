-- Rules that replace others by name, and rules without a limit.

ALTER TABLE rate_limit_rules
    -- NULL: no name. Several rules may share a name.
    ADD COLUMN name TEXT
        CONSTRAINT name CHECK (octet_length(name) BETWEEN 1 AND 128),
    -- A JSON array of names.
    ADD COLUMN replaces TEXT NOT NULL DEFAULT '[]'
        CONSTRAINT replaces CHECK (json_typeof(replaces::json) = 'array'),
    DROP CONSTRAINT mode,
    ADD CONSTRAINT mode CHECK (mode IN ('enforce', 'shadow', 'unlimited'));

-- Makes running processes load again.
UPDATE rate_limit_generation SET generation = generation + 1 + floor(random() * 16777216)::BIGINT;
