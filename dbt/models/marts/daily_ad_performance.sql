{{ config(event_time='day', partition_by='day') }}

select
  cast(known_at as date) as day,
  ad_id,
  count_if(click_no <= 1) as impressions,
  count_if(click_no = 1) as clicked,
  count_if(click_no >= 1) as clicks,
  cast(try_divide(count_if(click_no = 1), count_if(click_no <= 1)) as decimal(9, 6)) as ctr,
  cast(avg(delay_ms) filter (where click_no = 1) as bigint) as mean_delay_ms
from {{ ref('stg_ad_impressions') }}
{%- if is_incremental() %}
where {{ interval_of_run('known_at') }}
{%- endif %}
group by cast(known_at as date), ad_id
