{#- The columns identify a row of the interval that was built: returns those values that more than one row has. Without
  a day, all rows are looked at. -#}
{% test one_row_per(model, columns, day=none) %}
select {{ columns | join(', ') }}, count(*) as n
from {{ model }}
where {{ interval_of_run(day) if day else 'true' }}
group by {{ columns | join(', ') }}
having count(*) > 1
{% endtest %}
