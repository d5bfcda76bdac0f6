{{ config(event_time='day', partition_by='day') }}

with events as (
  select cast(event_time as date) as day, country, amount, false as is_alert
  from {{ ref('stg_payments') }}
  {%- if is_incremental() %}
  where {{ interval_of_run('event_time') }}
  {%- endif %}
  union all
  select cast(alerted_at as date) as day, country, amount, true as is_alert
  from {{ ref('stg_fraud_alerts') }}
  {%- if is_incremental() %}
  where {{ interval_of_run('alerted_at') }}
  {%- endif %}
)

select
  day,
  coalesce(country, 'Unspecified') as country,
  count_if(not is_alert) as payments,
  cast(coalesce(sum(amount) filter (where not is_alert), 0) as decimal(18, 3)) as paid,
  count_if(is_alert) as alerts,
  cast(coalesce(sum(amount) filter (where is_alert), 0) as decimal(18, 3)) as alerted
from events
group by day, coalesce(country, 'Unspecified')
