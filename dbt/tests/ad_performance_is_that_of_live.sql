-- The impressions and clicks of an advertisement on a day are those that live has of it. A day is looked at when live and batch
-- were compared to its end. That it only warns is on purpose: where live has fallen behind, the marts go on.
{{ config(severity='warn') }}

with in_marts as (
  select
    day,
    ad_id,
    impressions,
    clicks
  from {{ ref('daily_ad_performance') }}
  where {{ interval_of_run('day') }}
),

in_live as (
  select
    cast(at as date) as day,
    ad_id,
    count_if(click_no <= 1) as impressions,
    count_if(click_no >= 1) as clicks
  from {{ source('live', 'ad_click_through') }}
  where {{ interval_of_run('at') }}
  group by cast(at as date), ad_id
),

compared as (
  select cast(max(window_end) as date) as until
  from {{ source('ops', 'reconciliation') }}
  where view = 'ad_click_through'
)

select
  coalesce(in_marts.day, in_live.day) as day,
  coalesce(in_marts.ad_id, in_live.ad_id) as ad_id,
  in_marts.impressions,
  in_live.impressions as impressions_of_live,
  in_marts.clicks,
  in_live.clicks as clicks_of_live
from in_marts
full outer join in_live on in_marts.day = in_live.day and in_marts.ad_id = in_live.ad_id
cross join compared
where
  coalesce(in_marts.day, in_live.day) < compared.until
  and (
    coalesce(in_marts.impressions, 0) != coalesce(in_live.impressions, 0)
    or coalesce(in_marts.clicks, 0) != coalesce(in_live.clicks, 0)
  )
