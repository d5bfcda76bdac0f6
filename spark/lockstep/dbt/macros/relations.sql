{#- The tables and views of a schema. Spark lists the temporary views of the session too, in every schema; dbt stumbles at them. -#}
{% macro spark__list_relations_without_caching(relation) %}
  {%- call statement('list_relations_without_caching', fetch_result=True) -%}
    show table extended in {{ relation.schema }} like '*'
  {%- endcall -%}
  {{ return(load_result('list_relations_without_caching').table.rows | rejectattr('isTemporary') | list) }}
{% endmacro %}
