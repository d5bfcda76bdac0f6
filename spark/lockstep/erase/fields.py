"""The limits of what may be asked of an erasure. The DAG's form imports this too, so it imports nothing heavy."""

# The DAG that erases.
DAG = "erase"
# TOPIC:PARTITION:FROM-TO, the last offset left out.
RANGE = r"([A-Za-z0-9._-]+):([0-9]{1,6}):([0-9]{1,18})-([0-9]{1,18})"
# So many records of a leak; more of them are a topic to be removed.
MOST_RECORDS = 10_000
# Of the value that names a person, and of a reason.
LONGEST_TEXT = 300
