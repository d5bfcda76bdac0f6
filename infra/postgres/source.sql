-- What change capture needs beside the shop's own tables. Run on each `up`, so every statement may be repeated.

-- Written by the connector's heartbeat: without it an idle shop's slot would hold back the WAL of the other databases.
CREATE TABLE IF NOT EXISTS public.heartbeat (id INT PRIMARY KEY, beaten_at TIMESTAMPTZ NOT NULL);

-- For the whole schema, so that it is there before the shop's tables are, and also covers those that come later.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = 'lockstep') THEN
    CREATE PUBLICATION lockstep FOR TABLES IN SCHEMA public;
  END IF;
END
$$;
