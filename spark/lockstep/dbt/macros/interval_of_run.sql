{#-
  The predicate that selects the rows which this run builds: of the batch in a microbatch model, else from `--event-time-start` to
  `--event-time-end`, else all. The column is a date or a timestamp.

  A model says it in `{% if is_incremental() %} … {% endif %}`. A test that keeps to it reads only what was built.
-#}
{% macro interval_of_run(column) -%}
  {%- set batch = model.batch if model is defined and model.batch else none -%}
  {%- if batch -%}
    {%- set start, end = batch.event_time_start, batch.event_time_end -%}
  {%- else -%}
    {%- set start = invocation_args_dict.get('event_time_start') -%}
    {%- set end = invocation_args_dict.get('event_time_end') -%}
  {%- endif -%}
  {%- if start and end -%}
    {%- set start, end = (start | string)[:19] | replace('T', ' '), (end | string)[:19] | replace('T', ' ') -%}
    {%- if not batch and not (start.endswith(' 00:00:00') and end.endswith(' 00:00:00')) -%}
      {{ exceptions.raise_compiler_error(
          "Days are built as a whole: give --event-time-start and --event-time-end as days, such as 2026-11-19 and 2026-11-20."
      ) }}
    {%- endif -%}
    ({{ column }} >= '{{ start }}' and {{ column }} < '{{ end }}')
  {%- else -%}
    true
  {%- endif -%}
{%- endmacro %}
