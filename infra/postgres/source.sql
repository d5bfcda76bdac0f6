-- What change capture needs in the source database. `lockstep up` runs it each time, so every statement can be repeated.

-- The connector's heartbeat writes it. Without it, the slot of an idle source would hold back the WAL of the other databases.
CREATE TABLE IF NOT EXISTS public.heartbeat (id INT PRIMARY KEY, beaten_at TIMESTAMPTZ NOT NULL);

-- Debezium is asked here to read the rows of a table that is captured from now on. It takes the request out of the WAL.
CREATE TABLE IF NOT EXISTS public.debezium_signal (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048));

-- For the whole schema: the publication exists before the source's tables do, and covers tables that are made later. Changes of
-- a partition are those of its table: contracts name no partitions.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = 'lockstep') THEN
    CREATE PUBLICATION lockstep FOR TABLES IN SCHEMA public WITH (publish_via_partition_root = true);
  ELSIF EXISTS (SELECT FROM pg_publication WHERE pubname = 'lockstep' AND NOT pubviaroot AND pg_has_role(pubowner, 'USAGE')) THEN
    ALTER PUBLICATION lockstep SET (publish_via_partition_root = true);
  END IF;
END
$$;
