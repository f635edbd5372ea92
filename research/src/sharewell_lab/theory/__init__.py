"""Theory, as code: coupon times, the query limit, and the conditions of the scheduler theorems."""
