"""A JDBC client: ``python jdbc.py <url> <statement>...`` prints, as JSON, for each the rows as texts, or the error as a text.

A program, as it has a JVM inside. The drivers are those that come with PySpark: BI tools have the same one for ``jdbc:hive2:``.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jpype

from lockstep.stack.jars import spark_home
from lockstep.stack.java import SPARK_OPENS, find_java

DRIVERS = {
    "jdbc:sc": "org.apache.spark.sql.connect.client.jdbc.SparkConnectDriver",
    "jdbc:hive2": "org.apache.hive.jdbc.HiveDriver",
}
# Instead of a statement: the tables and views, as a BI tool asks for them.
TABLES = "tables"


def run(url: str, *statements: str) -> list[Any]:
    """Run the statements in one connection: for each the rows, or the error."""
    done = subprocess.run([sys.executable, __file__, url, *statements], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    answers: list[Any] = json.loads(done.stdout)
    return answers


def main(url: str, *statements: str) -> None:
    """Run the statements, each whatever became of those before."""
    jars = spark_home() / "jars"
    driver = next(name for prefix, name in DRIVERS.items() if url.startswith(prefix))
    # The client first: other jars have classes of the same names, for the server.
    client = map(str, (jars / "connect-repl").glob("spark-connect-client-*.jar")) if url.startswith("jdbc:sc") else ()
    library = next(Path(find_java().home).rglob("libjvm.so"))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    jpype.startJVM(str(library), *SPARK_OPENS, quiet, classpath=[*client, str(jars / "*")])
    connection = jpype.JClass(driver)().connect(url, jpype.JClass("java.util.Properties")())
    try:
        print(json.dumps([answer(connection, statement) for statement in statements]))
    finally:
        connection.close()


def answer(connection: Any, statement: str) -> Any:
    """The rows of the statement as texts, or its error."""
    try:
        if statement == TABLES:
            return rows_of(connection.getMetaData().getTables(None, None, "%", None))
        # The driver of Spark Connect has no prepared statements, which Python's clients of JDBC ask for.
        query = connection.createStatement()
        rows = rows_of(query.getResultSet()) if query.execute(statement) else []
        query.close()
        return rows
    except jpype.JClass("java.sql.SQLException") as error:
        return str(error)


def rows_of(result: Any) -> list[dict[str, str]]:
    """All rows of a result, which is closed."""
    columns = range(1, result.getMetaData().getColumnCount() + 1)
    names = {column: str(result.getMetaData().getColumnName(column)) for column in columns}
    found = []
    while result.next():
        found.append({names[column]: str(result.getObject(column)) for column in columns})
    # The driver of Spark Connect counts a result that was not closed as a leak.
    result.close()
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
