{#- A model's schema is the layer's own name, for every target: `staging`, `marts`. -#}
{% macro generate_schema_name(custom_schema_name, node) -%}
  {{ custom_schema_name or target.schema }}
{%- endmacro %}
