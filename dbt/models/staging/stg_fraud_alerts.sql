select
  payment_id,
  amount,
  payment_country as country,
  at as alerted_at
from {{ source('gold', 'fraud_alerts') }}
