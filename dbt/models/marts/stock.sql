{{ config(materialized='view') }}

select
  stock.product_id,
  products.description,
  products.price,
  stock.counted,
  stock.counted_at,
  stock.sold,
  stock.stock,
  stock.stock <= 0 as is_out,
  cast(greatest(stock.stock, 0) * products.price as decimal(18, 3)) as stock_value
from {{ source('gold', 'product_stock') }} as stock
left join {{ ref('stg_products') }} as products on stock.product_id = products.product_id
where stock.counted is not null
