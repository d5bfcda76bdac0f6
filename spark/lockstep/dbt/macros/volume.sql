{#- A day of the run has at least a share of what is usual: of the median of the same weekday in the weeks before. Returns the
  days that have less, also those that have no row at all. The newest day is not over, and is left out; so is a day with less than
  `weeks - 1` such weekdays before it. -#}
{% test volume(model, day, value='count(*)', share=0.5, weeks=4) %}
with found as (
  select cast({{ day }} as date) as day, {{ value }} as amount from {{ model }} group by 1
),

-- From the first day to the one before the newest.
bounds as (
  select min(day) as first, date_sub(max(day), 1) as last from found
),

days as (
  select explode(if(first <= last, sequence(first, last), cast(array() as array<date>))) as day from bounds
),

compared as (
  select days.day, coalesce(found.amount, 0) as amount
  from days
  left join found on days.day = found.day
  where {{ interval_of_run('days.day') }}
)

select compared.day, compared.amount, percentile(found.amount, 0.5) as usual
from compared
inner join found
  on datediff(compared.day, found.day) between 7 and {{ 7 * weeks }} and datediff(compared.day, found.day) % 7 = 0
group by compared.day, compared.amount
having count(*) >= {{ weeks - 1 }} and compared.amount < {{ share }} * percentile(found.amount, 0.5)
{% endtest %}
