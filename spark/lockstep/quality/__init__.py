"""Gates on silver and gold: reviewable suites, run on what is new, with outcomes that are kept and read."""

import logging
import os

# Great Expectations looks at both while it is imported: it reports home, and tells of hundreds of its own functions.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
logging.getLogger("great_expectations").setLevel(logging.WARNING)
