-- What change capture needs in the source database. `lockstep up` runs it each time, so every statement can be repeated.

-- The connector's heartbeat writes it. Without it, the slot of an idle source would hold back the WAL of the other databases.
CREATE TABLE IF NOT EXISTS public.heartbeat (id INT PRIMARY KEY, beaten_at TIMESTAMPTZ NOT NULL);

-- For the whole schema: the publication exists before the source's tables do, and covers tables that are made later.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = 'lockstep') THEN
    CREATE PUBLICATION lockstep FOR TABLES IN SCHEMA public;
  END IF;
END
$$;
