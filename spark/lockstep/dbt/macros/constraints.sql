{#-
  `not_null` in a contract. dbt-spark creates the table, and then says `alter column … set not null`, which Delta refuses outside of
  Databricks, with the new rows published already. Here the rows are checked while the table is created, in the same commit; and a
  CHECK constraint of the table refuses nulls that come later.
-#}
{% macro is_not_null(column) -%}
  {{ return(column.constraints | selectattr('type', 'equalto', 'not_null') | list | length > 0) }}
{%- endmacro %}

{% macro spark__get_select_subquery(sql) %}
  select
    {%- for column in model.columns.values() %}
    {%- if is_not_null(column) %}
    if({{ column.name }} is null, raise_error("{{ this }}: {{ column.name }} is null, and the contract says not_null"), {{ column.name }})
      as {{ column.name }}
    {%- else %}
    {{ column.name }}
    {%- endif %}
    {{- "," if not loop.last }}
    {%- endfor %}
  from (
    {{ sql }}
  ) as model_subq
{% endmacro %}

{% macro spark__alter_column_set_constraints(relation, column_dict) %}
  {%- set conditions = [] -%}
  {%- for column in column_dict.values() if is_not_null(column) -%}
    {%- do conditions.append(column.name ~ ' is not null') -%}
  {%- endfor -%}
  {%- if conditions -%}
    {%- call statement() -%}
      alter table {{ relation }} add constraint contract_not_null check ({{ conditions | join(' and ') }})
    {%- endcall -%}
  {%- endif -%}
{% endmacro %}
