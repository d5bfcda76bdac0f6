"""New streams and views from templates: everything that one must have, in the places where it is looked for."""
