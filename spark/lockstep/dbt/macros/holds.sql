{#- The condition is true of every row of the days that were built: returns those of which it is false or unknown. -#}
{% test holds(model, condition, day) %}
select * from {{ model }} where {{ built_days(day) }} and not coalesce({{ condition }}, false)
{% endtest %}
