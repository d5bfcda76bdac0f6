select event_id, event_time, user_id, session_id, page, country, device
from {{ source('silver', 'page_views') }}
