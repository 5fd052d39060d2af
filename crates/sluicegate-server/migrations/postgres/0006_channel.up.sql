-- Databases made before the product was renamed notify on a channel with its former name.
CREATE OR REPLACE FUNCTION rate_limit_changed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE rate_limit_generation SET generation = generation + 1 + floor(random() * 16777216)::BIGINT;
    PERFORM pg_notify('sluicegate_changed', '');
    RETURN NULL;
END
$$;
