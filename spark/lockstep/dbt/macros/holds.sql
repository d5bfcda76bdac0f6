{#- The condition is true of every row of the interval that was built: returns those of which it is false or unknown. Without
  a day, all rows are looked at. -#}
{% test holds(model, condition, day=none) %}
select * from {{ model }} where {{ interval_of_run(day) if day else 'true' }} and not coalesce({{ condition }}, false)
{% endtest %}
