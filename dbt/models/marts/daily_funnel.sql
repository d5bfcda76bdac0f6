{{ config(event_time='day', partition_by='day') }}

with visits as (
  select
    session_id,
    device,
    cast(event_time as date) as day,
    bool_or(page = '/search') as searched,
    bool_or(page like '/product/%') as viewed,
    bool_or(page = '/cart') as filled_cart,
    bool_or(page = '/checkout') as checked_out
  from {{ ref('stg_page_views') }}
  {%- if is_incremental() %}
  where {{ interval_of_run('event_time') }}
  {%- endif %}
  group by session_id, device, cast(event_time as date)
),

paid as (
  select distinct session_id, cast(event_time as date) as day
  from {{ ref('stg_payments') }}
  {%- if is_incremental() %}
  where {{ interval_of_run('event_time') }}
  {%- endif %}
)

select
  visits.day,
  visits.device,
  count(*) as visits,
  count_if(visits.searched) as searched,
  count_if(visits.viewed) as viewed,
  count_if(visits.filled_cart) as filled_cart,
  count_if(visits.checked_out) as checked_out,
  count(paid.session_id) as paid
from visits
left join paid on visits.session_id = paid.session_id and visits.day = paid.day
group by visits.day, visits.device
