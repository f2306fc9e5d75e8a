"""Wrong answers to lesson 06 that were accepted from a stranger in the seventeenth round."""

from tests.answers import edited

# Six digits: 1204223 becomes 1.20422e+06.
edited("06.1", "no_count", ("{count} nan", "{count:g} nan"), points=6)
