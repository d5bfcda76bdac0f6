{{ config(materialized='view') }}

select
  cast(committed_at as date) as day,
  table_name,
  case op when 'c' then 'created' when 'u' then 'updated' when 'd' then 'deleted' when 'r' then 'snapshot' end
    as operation,
  count(*) as changes,
  count(distinct row_key) as changed_rows,
  max(committed_at) as last_committed_at
from {{ ref('stg_changes') }}
group by all
