select
  impression_id,
  ad_id,
  click_no,
  delay_ms,
  at as known_at
from {{ source('gold', 'ad_click_through') }}
