"""Gates on silver and gold: check new rows against reviewable suites, and store the outcomes."""

import logging
import os

# Great Expectations reads both settings when it is imported. By default it sends usage statistics to its makers, and logs
# hundreds of lines about its own functions.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
logging.getLogger("great_expectations").setLevel(logging.WARNING)
