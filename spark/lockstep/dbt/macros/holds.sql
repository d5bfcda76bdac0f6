{#- The condition is true of every row of the interval that was built: returns those of which it is false or unknown. -#}
{% test holds(model, condition, day) %}
select * from {{ model }} where {{ interval_of_run(day) }} and not coalesce({{ condition }}, false)
{% endtest %}
