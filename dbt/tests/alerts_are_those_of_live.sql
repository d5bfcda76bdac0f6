-- The alerts of a day are those that live has sent, in number and in money. A day is looked at when live and batch were compared
-- to its end. That it only warns is on purpose: where live has fallen behind, the marts go on.
{{ config(severity='warn') }}

with in_marts as (
  select
    day,
    sum(alerts) as alerts,
    sum(alerted) as alerted
  from {{ ref('daily_fraud') }}
  where {{ interval_of_run('day') }}
  group by day
),

in_live as (
  select
    cast(at as date) as day,
    count(*) as alerts,
    sum(amount) as alerted
  from {{ source('live', 'fraud_alerts') }}
  where {{ interval_of_run('at') }}
  group by cast(at as date)
),

compared as (
  select cast(max(window_end) as date) as until
  from {{ source('ops', 'reconciliation') }}
  where view = 'fraud_alerts'
)

select
  coalesce(in_marts.day, in_live.day) as day,
  in_marts.alerts,
  in_live.alerts as alerts_of_live,
  in_marts.alerted,
  in_live.alerted as alerted_of_live
from in_marts
full outer join in_live on in_marts.day = in_live.day
cross join compared
where
  coalesce(in_marts.day, in_live.day) < compared.until
  and (
    coalesce(in_marts.alerts, 0) != coalesce(in_live.alerts, 0)
    or coalesce(in_marts.alerted, 0) != coalesce(in_live.alerted, 0)
  )
