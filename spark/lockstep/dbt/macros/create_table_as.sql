{#-
  A Delta table that is there is replaced by its path, not by its name. Spark 4.1's catalog in memory refuses the third replacement of
  a table by its name, after the commit, if a column by which it is partitioned is not the last one ("Corrupted table metadata").
-#}
{% macro spark__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- set text = dbt.spark__create_table_as(temporary, relation, compiled_code, language) -%}
  {%- set is_delta = language == 'sql' and config.get('file_format') == 'delta' -%}
  {%- if is_delta and not temporary and load_relation(relation) is not none -%}
    {%- set by_name = 'create or replace table ' ~ relation -%}
    {%- set by_path = 'create or replace table delta.`' ~ path_of_table() ~ '`' -%}
    {%- set text = text | replace(by_name, by_path, 1) | replace(location_clause(), '', 1) -%}
  {%- endif -%}
  {{ return(text) }}
{%- endmacro %}
